# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# lib.sh: shared by the tests inside the virtual machine; each sources it first.
#
# A test passes if it exits 0 and the kernel did not complain; 77 skips it.

set -eu

LT=/proc/latency_tracker
# shellcheck disable=SC2034 # for the tests
PAGE_SIZE=4096

# Differences between architectures: a function in assembly, which cannot be traced; the prefix of
# the functions of system calls; and the numbers of system calls, by name.
# shellcheck disable=SC2034 # for the tests
case $(uname -m) in
	aarch64)
		ASSEMBLY=call_on_irq_stack SYSCALL=__arm64_sys
		NUMBERS='read 63, write 64, getpid 172, execve 221, clock_nanosleep 115' ;;
	*)
		ASSEMBLY=asm_exc_page_fault SYSCALL=__x64_sys
		NUMBERS='read 0, write 1, getpid 39, execve 59, clock_nanosleep 230' ;;
esac

# number_of CALL: print the native number of this system call.
number_of() { echo "$NUMBERS" | tr , '\n' | awk -v call="$1" '$1 == call { print $2; found = 1 } END { exit !found }'; }

# fail WORD...: fail the test.
fail() { echo "FAIL: $*" >&2; exit 1; }

# skip WHY...: skip the test, which cannot run here.
skip() { echo "SKIP: $*" >&2; exit 77; }

# need COMMAND...: skip unless these exist.
need() { for c in "$@"; do command -v "$c" >/dev/null || skip "no $c in this root"; done; }

# assert_eq GOT WANT WHAT
assert_eq() { [ "$1" = "$2" ] || fail "${3:-value}: got '$1', expected '$2'"; }

# assert WHAT COMMAND...: the command must succeed.
assert() { _what=$1; shift; "$@" || fail "$_what: '$*' failed"; }

# refused WHAT COMMAND...: the command must fail.
refused() { _what=$1; shift; if "$@" 2>/dev/null; then fail "$_what: '$*' succeeded"; fi; }

# wait_until SECONDS COMMAND...: wait for the command to succeed; longer on a slow kernel (tests/run-debug). Limits must
# be generous: with --icount, the machine's clock runs on while the machine waits for a disk of a busy host.
#
# Empty FILE (`: >FILE`) before `COMMAND >FILE &` if FILE may exist, and is then waited for: the shell in the background
# empties it at an unknown time. Until then, what an earlier command wrote looks like the output of this one.
wait_until() {
	read -r _now _ </proc/uptime
	_end=$((${_now%.*} + $1 * ${PATIENCE:-1}))
	shift
	_until 0.1 "$@"
}

# in_a_while COMMAND...: as `wait_until 240`, but with longer pauses, for waits of many seconds. Under emulation, each
# look takes CPU time from the program that the test waits for, and starts processes, which a recorder records.
in_a_while() {
	read -r _now _ </proc/uptime
	_end=$((${_now%.*} + 240 * ${PATIENCE:-1}))
	_until 1 "$@"
}

# _until PAUSE COMMAND...: wait until the command succeeds; after $_end, fail the test. /proc/uptime is read without a
# process.
_until() {
	_pause=$1
	shift
	until "$@"; do
		read -r _now _ </proc/uptime
		[ "${_now%.*}" -le "$_end" ] || fail "waited in vain for: $*"
		sleep "$_pause"
	done
}

# few_modules NAME|FILE...: let modprobe find only these modules of the kernel, what they need,
# LTTng's modules, and each FILE, until the end of the test (tests/sequence.sh). depmod reads every
# module, which under emulation takes a long time for the thousands of Debian's kernel.
few_modules() {
	_all=/usr/lib/modules/$(uname -r) _few=/run/lt.modules
	mkdir -p $_few/kernel $_few/updates
	cp "$_all"/modules.builtin* "$_all/modules.order" $_few/
	[ ! -d "$_all/updates" ] || cp -r "$_all/updates" $_few/
	for _module; do
		case $_module in
			/*) cp "$_module" $_few/updates/ ;;
			*)
				/sbin/modprobe --show-depends "$_module" | sed -n 's/^insmod \([^ ]*\).*/\1/p' |
					while read -r _file; do cp "$_file" $_few/kernel/; done ;;
		esac
	done
	mount --bind $_few "$_all"
	/sbin/depmod
}

load_module() { insmod /lt/latency_tracker.ko "$@" || fail "the module does not load"; }
unload_module() { rmmod latency_tracker || fail "the module does not unload"; }
loaded() { grep -q '^latency_tracker ' /proc/modules; }

# control LINE: write one line to the control file in one write.
control() { printf '%s\n' "$1" >$LT/control; }

# stat INSTANCE KEY: print one counter.
stat() { awk -v key="$2" '$1 == key { print $2; found = 1 } END { exit !found }' "$LT/$1/stats"; }

# follow FILE COPY: copy new contents of a file from now on, in the background: the file is open when this returns, so
# the copy has all later alerts. $! is the copying process.
follow() {
	exec 9<"$1"
	# A background shell would open it later.
	: >"$2"
	cat <&9 >"$2" &
	exec 9<&-
}

# alerts_of INSTANCE FILE: write all alerts of the instance up to now to FILE. The instance's file
# `alerts` is open as descriptor 3.
alerts_of() {
	# Create FILE now: a background shell would create it later, and an older file may hold the awaited
	# alert.
	: >"$2"
	cat <&3 >"$2" &
	_reader=$! _last=$(stat "$1" alerts)
	[ "$_last" -eq 0 ] || wait_until 30 grep -q "^seq=$_last " "$2"
	kill $_reader
	wait $_reader || :
}

# patiently N: print N, or a multiple of it on a slow kernel, for workloads that must last while
# they are observed.
patiently() { echo $(($1 * ${PATIENCE:-1})); }

# in_time: whether times have upper limits. They have none on a kernel that checks every memory
# access, in a machine that is timed by a busy host (tests/run-debug): only lower limits apply
# there.
in_time() { [ "${PATIENCE:-1}" -eq 1 ]; }

# online CPU 0|1: take a CPU offline or back online. The kernel may be busy with the last change (EBUSY).
online() { wait_until 20 sh -c "echo $2 >/sys/devices/system/cpu/cpu$1/online"; }

# shift_date DAYS: set the time of day forward, or back by -DAYS.
shift_date() { date -s "@$(($(date +%s) + $1 * 86400))" >/dev/null; }

# suspend_for SECONDS: suspend the machine as far as the last step before the firmware, which would not wake it. The
# kernel waits there, with its clock stopped, and resumes.
suspend_for() {
	echo "$1" >/sys/module/suspend/parameters/pm_test_delay
	echo core >/sys/power/pm_test
	echo mem >/sys/power/state
	echo none >/sys/power/pm_test
}

# stat_is INSTANCE KEY TEST VALUE: compare one counter, for wait_until.
stat_is() { test "$(stat "$1" "$2")" "$3" "$4"; }

# adds_up INSTANCE: whether the counters add up in one reading.
adds_up() {
	awk -v name="$1" '
		{ v[$1] = $2 }
		END {
			begins = v["started"] + v["full"] + v["filtered"] + v["off"] + v["crowded"]
			ends = v["ended"] + v["pending"] + v["replaced"] + v["cleared"] + v["gone"]
			if (v["attempts"] != begins) { print name ": attempts", v["attempts"], "but", begins; exit 1 }
			if (v["started"] != ends) { print name ": started", v["started"], "but", ends; exit 1 }
		}' "$LT/$1/stats"
}

# sums_hold INSTANCE: check that the counters add up exactly. No operation may end meanwhile: the histogram is read
# separately.
sums_hold() {
	# An operation may be counted while the counters are read.
	_try=1
	until adds_up "$1"; do
		[ $_try -lt 5 ] || { cat "$LT/$1/stats"; fail "the counters of $1 do not add up"; }
		_try=$((_try + 1))
	done
	_counted=$(awk '{ n += $3 } END { print n + 0 }' "$LT/$1/histogram")
	_apart=$(awk '$1 == "negative" || $1 == "before_start_ended" { n += $2 } END { print n + 0 }' "$LT/$1/stats")
	assert_eq "$_counted" "$(($(stat "$1" ended) - _apart))" "histogram of $1"
}

# quiet INSTANCE: check that nothing is in flight.
quiet() { [ "$(stat "$1" pending)" = 0 ]; }

# field NAME: print the values of one field, from alert lines on standard input.
field() { sed -n "s/.* $1=\"\\{0,1\\}\\([^\" ]*\\)\"\\{0,1\\}.*/\\1/p"; }

# many N FEW: print N, or FEW on a kernel that checks every memory access.
many() { case $(uname -r) in *-debug|*-kcsan) echo "$2" ;; *) echo "$1" ;; esac; }

# kernel_says TEXT: whether TEXT is in the kernel's log.
kernel_says() { dmesg | grep -qF -- "$1"; }

# refused_line LINE TEXT: the control file must refuse this line, and the kernel's log must have TEXT.
refused_line() {
	refused "$1" control "$1"
	kernel_says "$2" || fail "'$1' does not say '$2': $(dmesg | tail -n 1)"
}

# memory_used: print the kernel's memory in kB: slabs, per-CPU and virtually contiguous memory,
# after caches were dropped and the counters of all CPUs were added up.
memory_used() {
	sleep 1
	for _ in 1 2; do echo 3 >/proc/sys/vm/drop_caches; done
	echo 1 >/proc/sys/vm/stat_refresh
	awk '/^(Slab|Percpu|VmallocUsed):/ { sum += $2 } END { print sum }' /proc/meminfo
}
