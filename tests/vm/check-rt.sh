# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker check --rt` describes this machine, and detects the changes that the test makes:
# to the command line, cpuset partitions, the fair server, the watchdogs, work items, interrupts,
# tracing, and a process. Its commands fix the problems that it reports.
# kernels: stock
# long: rt
# cpus: 4
# root: full
# arm64: no, its root has no LTTng
# timeout: 600
# worth: the command runs for each finding, before and after the fix, and perf and LTTng start for
# some
# append: isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=1-3 irqaffinity=0-1 skew_tick=1
# debug: no, it needs a command line of its own
# alone: it changes the isolation of CPUs, and the placement of all tasks

. /lt/tests/lib.sh

# asked STATUS WORD...: run the check, which must exit with STATUS (any: 0 or 1). The rows go to
# /tmp/rows, one per line; the commands to files in /tmp/fix.
asked() {
	status=0
	_want=$1
	shift
	latency-tracker check --json --rt "$@" >/tmp/json 2>/tmp/said || status=$?
	case $_want:$status in
		any:[01]|"$status:$status") ;;
		*) fail "exit status of check --rt $*: $status, expected $_want: $(cat /tmp/said)" ;;
	esac
	echo >&5
	read -r _ <&6 || fail "the rows: see above"
}

# One interpreter for all rows: under emulation, starting one takes as long as the check.
cat >/tmp/rows.py <<-'END'
	import json, os, shutil, sys
	for _ in sys.stdin:
	    shutil.rmtree("/tmp/fix", True)
	    os.mkdir("/tmp/fix")
	    with open("/tmp/json", encoding="utf-8") as rows, open("/tmp/rows", "w", encoding="utf-8") as out:
	        for line in rows:
	            row = json.loads(line)
	            assert row["why"] and row["group"] and row["cpus"], row
	            assert row["state"] in ("warn", "bad") or not row["fix"], row
	            print("%(row)s=%(state)s: %(found)s" % row, file=out)
	            with open("/tmp/fix/" + row["row"], "w", encoding="utf-8") as fix:
	                fix.write("".join(command + "\n" for command in row["fix"]))
	    print(flush=True)
END
mkfifo /tmp/ask /tmp/answer
python3 /tmp/rows.py </tmp/ask >/tmp/answer &
exec 5>/tmp/ask 6</tmp/answer

# row NAME: print "STATE: RESULT".
row() { sed -n "s/^$1=//p" /tmp/rows; }

# says NAME START: check that the text of the row begins with START.
says() {
	case $(row "$1") in
		"$2"*) ;;
		*) fail "$1: '$(row "$1")', expected '$2'" ;;
	esac
}

# mend NAME: execute the commands of a row.
mend() {
	[ -s "/tmp/fix/$1" ] || fail "no command for $1"
	sh -eu "/tmp/fix/$1" || fail "the commands for $1 fail: $(cat "/tmp/fix/$1")"
}

cpu=/sys/devices/system/cpu
servers=/sys/kernel/debug/sched

# The state after boot: without --rt CPUS, the isolated CPUs are checked.
asked any
grep -q '"cpus":"2-3"' /tmp/json || fail "check --rt does not default to the isolated CPUs, 2-3: $(head -n 1 /tmp/json)"
case $(uname -v) in
	*PREEMPT_RT*) says preemption "ok: PREEMPT_RT" ;;
	*) says preemption "warn: not PREEMPT_RT; " ;;
esac
says isolated "ok: all of them"
says housekeeping "ok: CPU 0-1"
says "boot line" "ok: nohz_full and isolcpus as asked"
says tick "ok: stops"
says "RCU callbacks" "ok: offloaded"
says "tick skew" "ok: skew_tick=1"
says "new interrupts" "ok: elsewhere"
case $(row "managed interrupts") in
	"ok: elsewhere"*|"warn: "*"of queues that only these CPUs use"*) ;;
	*) fail "managed interrupts: $(row "managed interrupts")" ;;
esac
says "timer migration" "warn: on: timers started on CPU 2-3 (nohz_full) expire on another CPU"
mend "timer migration"
asked any
says "timer migration" "ok: off"
echo 1 >/proc/sys/kernel/timer_migration
says "high resolution" "ok: on"
says "lockup detector" "ok: elsewhere"
says irqbalance "ok: does not run"
says frequency "n/a: $cpu/cpu2/cpufreq/scaling_governor does not exist"
says swap "ok: none"
says "BPF programs" "ok: none"
says "EFI runtime" "ok: not booted by EFI"
says caches "ok: "
says "machine checks" "warn: polled every 300 s"
mend "machine checks"
says "hung tasks" "ok: every 120 s, elsewhere"
says "virtual machine" "warn: yes"
case $(uname -r) in
	*rt*) says "huge pages" "n/a: /sys/kernel/mm/transparent_hugepage/enabled does not exist" ;;
	*) says "huge pages" "warn: always" ;;
esac
# CPU 1 is not isolated: only its RCU callbacks are offloaded.
asked 1 1
says isolated "bad: not CPU 1"
says tick "warn: on CPU 1"
says "RCU callbacks" "ok: offloaded"
says "new interrupts" "warn: also on CPU 1"
says "managed interrupts" "warn: "
says "timer migration" "warn: on"
asked 1 0-3
says housekeeping "bad: no CPU is left for other work"
asked 1 3,9
grep -q 'CPU 9 is not online (online: 0-3)' /tmp/said || fail "CPU 9: $(cat /tmp/said)"
if latency-tracker check --rt 3-2 2>/tmp/said; then fail "3-2 is a list"; fi
grep -q 'the first CPU is above the last' /tmp/said || fail "3-2: $(cat /tmp/said)"

# A partition isolates, and the kernel's own file of isolated CPUs does not show it.
asked 1 1
mend isolated
assert_eq "$(cat /sys/fs/cgroup/rt/cpuset.cpus.partition)" isolated "the partition"
assert_eq "$(cat $cpu/isolated)" 2-3 "what was isolated at boot"
asked any 1
says isolated "ok: all of them"
says partitions "ok: 1, all valid"
says "timer migration" "warn: on"
says "work queues" "ok: elsewhere"
asked any
grep -q '"cpus":"1-3"' /tmp/json || fail "check --rt leaves out CPU 1, which the partition isolates: $(head -n 1 /tmp/json)"
# An invalid partition: it requests a CPU of the first partition.
mkdir /sys/fs/cgroup/second
echo 1 >/sys/fs/cgroup/second/cpuset.cpus
echo isolated >/sys/fs/cgroup/second/cpuset.cpus.partition 2>/dev/null || :
case $(cat /sys/fs/cgroup/second/cpuset.cpus.partition) in *invalid*) ;; *) fail "the second partition is valid" ;; esac
asked 1 2-3
says partitions "bad: /sys/fs/cgroup/second: isolated invalid"
mend partitions
rmdir /sys/fs/cgroup/second
asked any 2-3
says partitions "ok: 1, all valid"

# noticed ROW OK FILE VALUE BAD: check that a setting that can change at run time is OK, then BAD
# after VALUE is written to FILE, then fixed by the printed command.
noticed() {
	asked any 2-3
	says "$1" "$2"
	echo "$4" >"$3" || fail "$3 does not become $4"
	asked any 2-3
	says "$1" "$5"
	mend "$1"
	asked any 2-3
	says "$1" ok:
}
for server in fair ext; do
	name="$server server"
	[ $server = fair ] || name="sched_ext server"
	asked any 2-3
	says "$name" "warn: up to 50 ms of a period on CPU 2-3;"
	mend "$name"
	noticed "$name" "ok: off" $servers/${server}_server/cpu3/runtime 20000000 "warn: up to 20 ms of a period on CPU 3;"
	for n in 2 3; do echo 50000000 >$servers/${server}_server/cpu$n/runtime; done
done
noticed "lockup detector" ok: /proc/sys/kernel/watchdog_cpumask 0-2 "warn: on CPU 2"
noticed "work queues" ok: /sys/devices/virtual/workqueue/cpumask f "bad: unbound ones may run on CPU 2-3"
/usr/bin/taskset -pc 3 "$(pgrep khungtaskd)" >/dev/null
asked any 2-3
says "hung tasks" "warn: every 120 s"
mend "hung tasks"
noticed tracing "ok: none" /sys/kernel/tracing/events/sched/sched_switch/enable 1 "warn: events of ftrace"
# Tracing that the top-level event files of tracefs do not show: an instance of tracefs, perf,
# LTTng.
mkdir /sys/kernel/tracing/instances/other
noticed tracing "ok: none" /sys/kernel/tracing/instances/other/events/sched/enable 1 \
	"warn: events of ftrace in the instance other"
rmdir /sys/kernel/tracing/instances/other
if command -v perf >/dev/null; then
	perf record -a -o /tmp/perf.data -F 100 sleep 600 >/dev/null 2>&1 &
	perf=$!
	# perf starts the command once its own events are open. Before that, it opens and closes other events.
	wait_until 30 pgrep -P $perf -x sleep
	asked any 2-3
	says tracing "warn: perf events of perf["
	kill -INT $perf
	wait $perf || :
fi
lttng-sessiond --daemonize
lttng create --snapshot beside --output=/tmp/beside >/dev/null
lttng enable-event --kernel sched_switch >/dev/null
lttng start >/dev/null
asked any 2-3
says tracing "warn: LTTng session of lttng-sessiond["
lttng destroy beside >/dev/null
kill "$(cat /run/lttng/lttng-sessiond.pid)"
wait_until 60 sh -c '! pidof lttng-sessiond >/dev/null'
asked any 2-3
says tracing "ok: none"
load_module
latency-tracker start slow block threshold=10ms >/dev/null
asked any 2-3
says tracing "warn: our own instances: slow"
mend tracing
asked any 2-3
says tracing "ok: none"
unload_module

says "hung tasks" "ok: every 600 s"
says "machine checks" "ok: not polled"

# A device interrupt, of the serial line. A new affinity takes effect at the next interrupt.
exec 4>/dev/ttyS0
line=$(sed -n 's/^ *\([0-9]*\):.*ttyS0.*/\1/p' /proc/interrupts)
[ -n "$line" ] || { cat /proc/interrupts; fail "no interrupt of ttyS0"; }
moved() { echo >&4; [ "$(cat "/proc/irq/$line/effective_affinity_list")" = "$1" ]; }
echo 3 >"/proc/irq/$line/smp_affinity_list"
wait_until 10 moved 3
asked 1 2-3
says interrupts "bad: $line (ttyS0) on CPU 3"
mend interrupts
case $(cat "/proc/irq/$line/smp_affinity_list") in *[23]*) fail "interrupt $line may come to CPU 2 and 3 still" ;; esac
# The affinity is now correct, whether or not the interrupt has occurred since.
asked any 2-3
says interrupts "ok: "
wait_until 10 sh -c "echo >&4; ! grep -q '[23]' /proc/irq/$line/effective_affinity_list"
exec 4>&-

# The command line takes one edit, which can be repeated.
mkdir -p /etc/default
printf 'GRUB_CMDLINE_LINUX_DEFAULT="quiet nohz_full=1"\nGRUB_CMDLINE_LINUX="irqaffinity=3"\n' >/etc/default/grub
printf '#!/bin/sh\necho updated >>/tmp/updated\n' >/usr/local/bin/update-grub
chmod +x /usr/local/bin/update-grub
latency-tracker check --rt 1 --print-fix | grep '^if grep' >/tmp/grub.sh || :
assert_eq "$(wc -l </tmp/grub.sh)" 1 "edits of /etc/default/grub"
sh -eu /tmp/grub.sh
cp /etc/default/grub /tmp/once
sh -eu /tmp/grub.sh
cmp /tmp/once /etc/default/grub || fail "a second edit changes it again"
grep '^GRUB_CMDLINE_LINUX_DEFAULT="quiet"$' /tmp/once || fail "the old nohz_full= is left: $(cat /tmp/once)"
grep '^GRUB_CMDLINE_LINUX=.*nohz_full=1' /tmp/once || fail "no nohz_full=: $(cat /tmp/once)"
assert_eq "$(wc -l </tmp/updated)" 2 "calls of update-grub"
echo 'GRUB_TIMEOUT=1' >/etc/default/grub
refused "a file without the line" sh -eu /tmp/grub.sh

# An ordinary process, and a process that is set up correctly. Each reports that it is ready, and
# sleeps.
cat >/tmp/app.py <<-'END'
	import ctypes, mmap, os, sys, time
	if "locked" in sys.argv:
	    assert ctypes.CDLL(None).mlockall(3) == 0
	faults = "faults" in sys.argv
	for _ in range(500):  # until the interpreter has specialised the loop
	    time.sleep(0.0001)
	open("/tmp/ready", "w").close()
	while True:
	    time.sleep(0.05)
	    if faults:
	        mmap.mmap(-1, 4096).write(b"x")
END
app() {
	rm -f /tmp/ready
	"$@" & app=$!
	wait_until 60 test -e /tmp/ready
}
app taskset -c 0 python3 /tmp/app.py faults
asked 1 2-3 --pid $app
says interrupts "ok: "
says policy "bad: none of its threads is real-time"
says affinity "n/a: it has no real-time thread"
says "locked memory" "bad: "
says "page faults" "warn: "
says preempted "n/a: it has no real-time thread"
says "timer slack" "warn: up to 50 us: python3[$app]"
says bandwidth "ok: no limit"
mend "timer slack"
mend policy
asked 1 2-3 --pid $app
says policy "ok: python3[$app] FIFO 80"
says affinity "bad: python3[$app] on CPU 0"
says "timer slack" "ok: none"
mend affinity
assert_eq "$(/usr/bin/taskset -pc $app | sed 's/.*: //')" 2,3 "the CPUs of the process"
kill $app
if grep -qw cpu /sys/fs/cgroup/cgroup.controllers; then
	echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
	mkdir /sys/fs/cgroup/small
	echo '50000 100000' >/sys/fs/cgroup/small/cpu.max
fi
# The kernel must not migrate pages of the process, since that also causes faults.
[ ! -e /sys/kernel/mm/transparent_hugepage/enabled ] || echo never >/sys/kernel/mm/transparent_hugepage/enabled
echo 0 >/proc/sys/vm/compact_unevictable_allowed
app taskset -c 3 chrt -f 70 python3 /tmp/app.py locked
asked any 2-3 --pid $app
for row in policy affinity "locked memory" "page faults" preempted "timer slack" bandwidth limits; do says "$row" "ok: "; done
says policy "ok: python3[$app] FIFO 70"
if [ -d /sys/fs/cgroup/small ]; then
	chrt -o -p 0 $app
	echo $app >/sys/fs/cgroup/small/cgroup.procs
	asked 1 2-3 --pid $app
	says bandwidth "bad: /sys/fs/cgroup/small/cpu.max: 50000 of 100000 us"
	mend bandwidth
	assert_eq "$(cat /sys/fs/cgroup/small/cpu.max)" "max 100000" "the limit"
fi
kill $app
wait $app || :
refused "a process that has ended" latency-tracker check --rt 2-3 --pid $app
exec 5>&- 6<&-
