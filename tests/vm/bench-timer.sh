# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker bench timer` finds how late a periodic task is: a cycle delayed by a handler of
# known length is listed with the wake chain of its timer, and the second step of that chain has
# most of the delay. The invariants of the statistics hold. The command alternates with cyclictest. However the
# command ends, by itself, by a signal or by a kill, its instance is gone. A signal ends its thread
# even if the thread does not get its CPU.
# kernels: rt
# long: stock
# cpus: 2
# root: full
# icount: 1
# debug: no, on so slow a kernel a task with a CPU to itself would starve the others
# arm64: no, lt_causes can send NMIs only on x86
# timeout: 300

. /lt/tests/lib.sh
. /lt/tests/bench.sh
need cyclictest

no_instance() { [ "$(wc -l <$LT/control)" -eq 0 ]; }

# The task has CPU 1 to itself.
/usr/bin/taskset -p 1 $$ >/dev/null
refused "the only CPU that is left" latency-tracker bench timer -c 0-1
load_module

# cyclictest runs the same number of cycles.
latency-tracker bench timer -c 1 --json -i 2ms -l 300 -t 1h --compare >/tmp/json 2>/tmp/said ||
	fail "exit status $?: $(cat /tmp/said)"
helper report /tmp/json calm loops=300 compared=300 || fail "see above"
assert "no instance" no_instance

# A handler takes 30 ms: the timer of a cycle that is due meanwhile expires afterwards.
insmod /lt/lt_causes.ko us=30000
: >/tmp/said
latency-tracker bench timer -c 1 --json -i 5ms -d 1h -t 20ms >/tmp/json 2>/tmp/said & pid=$!
helper disturb /tmp/said 3 || fail "see above"
kill -INT $pid
ended $pid 2
helper report /tmp/json late=20 || fail "see above"
rmmod lt_causes

# A task with a higher priority has the CPU, so that the cycle cannot start. The command's thread ends nevertheless.
hogged latency-tracker bench timer -c 1 --priority 10 -d 1h -t 1h
kill -INT $pid
# has_ended: whether only the watching thread is left, or the shell has already reaped the command.
has_ended() { [ ! -e "/proc/$pid" ] || [ "$(ls "/proc/$pid/task")" = "$pid" ]; }
wait_until 10 has_ended
# To remove its instance, the command waits for a grace period of RCU. On PREEMPT_RT, the hog prevents the end of the
# command, too: the thread rcuc/1 has a lower priority than the hog.
end_hog
ended $pid 0
assert "no instance" no_instance

# Each of these signals ends the command.
for signal in TERM KILL; do
	: >/tmp/said
	latency-tracker bench timer -c 1 -i 10ms -d 1h -t 1h >/tmp/out 2>/tmp/said & pid=$!
	helper runs $pid || fail "SIG$signal: $(cat /tmp/said)"
	assert_eq "$(wc -l <$LT/control)" 1 "instances while it runs"
	signalled $pid $signal '^passed: no cycle was'
	wait_until 10 no_instance
done
unload_module
