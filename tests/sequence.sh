# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# sequence.sh: runs several tests in one virtual machine, one after another (tests/run-debug starts it there).
#
# usage: sh sequence.sh PATIENCE LEAKS     how many times longer than a test says its waits may take; the name
#                                          under which leaks are reported
#
# Marks where each begins and ends, in the output and in the kernel's log:
#
#     lt-test: NAME begins
#     lt-test: NAME ended STATUS SECONDS TAINT      TAINT: what the kernel got in the test
#
# A test finds the machine as the first one did: no module of ours, no disk, an empty kernel log, nothing
# traced. If that cannot be had, the sequence ends there.

PATIENCE=$1
leaks=$2
export PATIENCE
kernel=/sys/kernel
out=/lt/out

mark() {
	echo "lt-test: $1"
	echo "lt-test: $1" >/dev/kmsg
}

taint() { cat /proc/sys/kernel/tainted; }
uptime() { cut -d. -f1 /proc/uptime; }

# ours: the modules that a test has loaded, and not unloaded.
ours() { sed -n 's/^\(latency_tracker\|lt_[a-z]*\) .*/\1/p' /proc/modules; }

# put_back: what a test may leave, successful or not.
put_back() {
	for dir in /proc/[0-9]*; do
		pid=${dir#/proc/}
		# not us, nor those who wait for us, nor threads of the kernel
		case $pid in 1|"$$"|"$PPID") continue ;; esac
		! readlink "$dir/exe" >/dev/null || kill -KILL "$pid" 2>/dev/null
	done
	# Ours first: it may watch the disks. One may be in use by another, whose functions it calls or follows, or by
	# a task that was killed right now: so more than once.
	for pause in 0 1 5; do
		for module in $(ours); do rmmod "$module" 2>/dev/null; done
		[ -n "$(ours)" ] || break
		sleep $pause
	done
	[ -z "$(ours)" ] || { ours; return 1; }
	for disk in "$kernel"/config/nullb/*/; do
		[ -d "$disk" ] || continue
		echo 0 >"$disk/power"
		rmdir "$disk" || return 1
	done
	for module in scsi_debug dm_delay null_blk; do
		! grep -q "^$module " /proc/modules || rmmod $module || return 1
	done
	echo 0 >$kernel/tracing/events/enable
	echo 1 >$kernel/tracing/tracing_on
	echo local >$kernel/tracing/trace_clock
	echo >$kernel/tracing/trace
	rm -rf /tmp/* 2>/dev/null
	return 0
}

# one NAME LIMIT
one() {
	had=$(taint)
	begun=$(uptime)
	dmesg -c >/dev/null
	mark "$1 begins"
	timeout -k 10 "$2" sh "/lt/sequence/$1.sh" 2>&1
	status=$?
	# said by busybox's timeout, and by that of coreutils
	case $status in 124|137|143) echo "time is up: ended after $2 s" ;; esac
	dmesg >>$out.messages
	mark "$1 ended $status $(($(uptime) - begun)) $(($(taint) & ~had))"
	mkdir -p $out.all
	[ -z "$(ls -A $out)" ] || { mkdir "$out.all/$1"; mv $out/* "$out.all/$1/"; }
}

# leaks: what kmemleak sees that it did not see before the tests, and lockdep to the end.
leaks() {
	status=0
	if [ -e $kernel/debug/kmemleak ]; then
		# an object must be without reference in two scans, and some seconds old
		sleep 6
		echo scan >$kernel/debug/kmemleak
		echo scan >$kernel/debug/kmemleak
		cat $kernel/debug/kmemleak
		[ -z "$(cat $kernel/debug/kmemleak)" ] || status=1
	fi
	if [ -e /proc/lockdep_stats ] && ! grep -q 'debug_locks: *1$' /proc/lockdep_stats; then
		echo "lockdep turned itself off"
		status=1
	fi
}

mkdir -p $out
[ ! -e $kernel/debug/kmemleak ] || { echo scan; echo clear; } >$kernel/debug/kmemleak
while read -r name limit <&4; do
	one "$name" "$limit" 4<&-
	put_back || { echo "after $name the machine could not be put back"; break; }
done 4</lt/sequence/list
had=$(taint)
begun=$(uptime)
mark "$leaks begins"
leaks
mark "$leaks ended $status $(($(uptime) - begun)) $(($(taint) & ~had))"
[ ! -d $out.all ] || mv $out.all/* $out/ 2>/dev/null
mv $out.messages $out/messages
exit 0
