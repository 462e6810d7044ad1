# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker bench loop` refuses CPUs that other tasks need. The invariants of its statistics hold. A peak
# caused by a handler of known length is attributed to the handler: by the counter that moved, and with --arm by the
# alert of a tracker. The exit status is 0, 1 or 2. However the loop ends (by itself, by a signal in the middle of a
# slice, or by SIGKILL), priorities, affinities, /dev/cpu_dma_latency and instances are as before.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# icount: 1
# debug: no, a loop with a CPU to itself takes most of the time of such a machine
# arm64: no, lt_causes can send NMIs only on x86
# timeout: 300

. /lt/tests/lib.sh
. /lt/tests/bench.sh

# refuses TEXT WORD...: bench loop exits with 1 at once and prints TEXT.
refuses() {
	_says=$1 _got=0
	shift
	latency-tracker bench loop "$@" >/tmp/json 2>/tmp/said || _got=$?
	assert_eq "$_got" 1 "exit status of bench loop $*: $(cat /tmp/said)"
	grep -qF -- "$_says" /tmp/said || fail "bench loop $* does not say '$_says': $(cat /tmp/said)"
}
# held: print the limit in effect from /dev/cpu_dma_latency.
held() { od -An -td4 /dev/cpu_dma_latency | tr -d ' '; }
# as_before: check that nothing is left, and that no task has changed.
as_before() {
	wait_until 10 sh -c '! grep -qx latency-tracker /proc/[0-9]*/comm 2>/dev/null'
	[ ! -e $LT ] || wait_until 10 sh -c "[ \"\$(wc -l <$LT/control)\" -eq 0 ]"
	assert_eq "$(held)" "$before" "/dev/cpu_dma_latency"
	helper same /tmp/tasks || fail "tasks have changed"
}

# The loop has CPU 1 to itself.
/usr/bin/taskset -p 1 $$ >/dev/null

refuses "are the only ones that are not isolated" -c 0-1
refuses "CPU 9 is not online (online: 0-1)" -c 9
online 1 0
refuses "CPU 0 is the only one online"
online 1 1
echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/rt
echo 1 >/sys/fs/cgroup/rt/cpuset.cpus
echo isolated >/sys/fs/cgroup/rt/cpuset.cpus.partition
assert_eq "$(cat /sys/fs/cgroup/rt/cpuset.cpus.partition)" isolated "the partition"
refuses "CPU 0 is the only CPU that is not isolated" -c 0
refuses "the cgroup of this shell may not use CPU 1" -c 1
rmdir /sys/fs/cgroup/rt
echo -cpuset >/sys/fs/cgroup/cgroup.subtree_control
refuses "expected a time with a unit" -t 100 -c 1
before=$(held)
helper tasks >/tmp/tasks

# A task with a higher priority has the CPU, so that the loop cannot start. The loop ends nevertheless.
hogged latency-tracker bench loop -c 1 --priority 10 -d 1h -t 1h
kill -INT $pid
ended $pid 0
end_hog
as_before

# No loop takes an hour: exit status 0, and the requested number of loops.
latency-tracker bench loop -c 1 --json -l 20000 -t 1h >/tmp/json 2>/tmp/said || fail "exit status $?: $(cat /tmp/said)"
helper report /tmp/json calm loops=20000 || fail "see above"
as_before

# A handler of 30 ms is found by its counter alone.
load_module
insmod /lt/lt_causes.ko us=30000
: >/tmp/said
latency-tracker bench loop -c 1 --json -d 1h -t 20ms >/tmp/json 2>/tmp/said & pid=$!
helper disturb /tmp/said 3 || fail "see above"
kill -INT $pid
ended $pid 2
helper report /tmp/json peaks=30 || fail "see above"

# A handler of 30 ms is found by a tracker's alert, with baseline slices in the same run.
: >/tmp/said
latency-tracker bench loop -c 1 --json -d 1h -t 20ms --slice 500ms --arm --event syscall --rate 200 >/tmp/json 2>/tmp/said & pid=$!
helper disturb /tmp/said 3 alert || fail "see above"
kill -INT $pid
ended $pid 2
helper report /tmp/json peaks=30 alert || fail "see above"
rmmod lt_causes
as_before

# Each of these signals ends the loop in the middle of a slice.
for signal in INT TERM KILL; do
	: >/tmp/said
	latency-tracker bench loop -c 1 -d 1h -t 1h --slice 1h --arm >/tmp/out 2>/tmp/said & pid=$!
	helper runs $pid || fail "SIG$signal: $(cat /tmp/said)"
	assert_eq "$(wc -l <$LT/control)" 3 "instances while it runs"
	assert_eq "$(held)" 0 "/dev/cpu_dma_latency while it runs"
	signalled $pid $signal '^passed: no loop took'
	as_before
done
unload_module
