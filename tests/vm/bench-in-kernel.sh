# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker bench loop --in-kernel` measures with interrupts off: it does not see handlers, but detects and
# names an NMI. It requires --yes. The kernel's lockup and RCU stall detectors, with short timeouts, stay silent. The
# loop ends within 100 ms of a signal, and when the module is unloaded. Invalid writes to the module's file are
# refused.
# kernels: rt
# long: stock
# cpus: 2
# root: full
# icount: 1
# debug: no, a loop with a CPU to itself takes most of the time of such a machine
# arm64: no, lt_causes can send NMIs only on x86
# timeout: 300

. /lt/tests/lib.sh
. /lt/tests/bench.sh

# inside WORD...: run the loop in the kernel on CPU 1, in the background.
inside() {
	: >/tmp/said
	latency-tracker bench loop -c 1 --in-kernel --yes "$@" >/tmp/json 2>/tmp/said & pid=$!
}

# The loop has CPU 1 to itself.
/usr/bin/taskset -p 1 $$ >/dev/null
load_module
insmod /lt/lt_causes.ko us=30000
helper tasks >/tmp/tasks

if latency-tracker bench loop -c 1 --in-kernel -d 1 2>/tmp/said; then fail "it turns interrupts off without --yes"; fi
grep -q 'add --yes' /tmp/said || fail "without --yes: $(cat /tmp/said)"
helper hostile || fail "see above"

# The loop runs in slices of at most 1 ms, with a rest of 1 ms after each. The slow handler runs in a rest. RCU warns
# after 3 s at the earliest; 2 s of slices, with their rests, take longer.
rcu=/sys/module/rcupdate/parameters/rcu_cpu_stall_timeout soft=/proc/sys/kernel/watchdog_thresh
was_rcu=$(cat $rcu) was_soft=$(cat $soft)
echo 3 >$rcu
echo 1 >$soft
inside --json -d 2s -t 5ms
helper disturb /tmp/said 3 || fail "see above"
ended $pid 0
helper report /tmp/json calm inside || fail "see above"
echo "$was_rcu" >$rcu
echo "$was_soft" >$soft

# An NMI hits a slice. The NMI takes longer than one processor's turn in the emulator, and longer
# than the kernel tolerates silently.
longest=/sys/kernel/debug/x86/nmi_longest_ns
was_longest=$(cat $longest)
echo 100000000 >$longest
echo 5000 >/sys/module/lt_causes/parameters/us
inside --json -d 1h -t 4ms
helper disturb /tmp/said how=nmi nmis=3 || fail "see above"
kill -INT $pid
ended $pid 2
helper report /tmp/json inside nmi=5 || fail "see above"
echo "$was_longest" >$longest

# Each of these signals ends the loop.
for signal in INT TERM KILL; do
	inside -d 1h -t 1h
	helper runs $pid || fail "SIG$signal: $(cat /tmp/said)"
	signalled $pid $signal
done
inside -d 1h -t 1h
helper runs $pid || fail "$(cat /tmp/said)"
rmmod lt_causes
unload_module
ended $pid 1
grep -q 'was it unloaded?' /tmp/said || fail "the module went: $(cat /tmp/said)"
helper same /tmp/tasks || fail "tasks have changed"

# The module is neither installed nor loaded.
if latency-tracker bench loop -c 1 --in-kernel --yes 2>/tmp/said; then fail "it runs without the module"; fi
grep -q 'module is not loaded' /tmp/said || fail "without the module: $(cat /tmp/said)"
