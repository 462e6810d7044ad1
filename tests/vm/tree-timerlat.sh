# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Compared with the kernel's tracer timerlat, alone and as rtla runs it. The tracer's timer wakes a thread. The tracer
# reports how late the timer's handler was (IRQ), and how late the thread ran in the kernel (Thread) and in user space
# (User). These are steps of the path that `tree` reports for the same timer: when its function is called, when the
# thread is switched in, and when it has returned.
#
# Alone, with kernel threads, the tracer prints each sample with its time. Each sample has a path
# with the start that follows from this time, and there are no other paths. rtla prints histograms
# of user-space threads. The numbers of samples and paths differ by one at most, and the n-th
# longest sample of each kind is never shorter than the n-th longest path. The comparison is made on
# a quiet machine, and on a machine that repeatedly keeps interrupts off for 3 ms, on which both
# report a late handler for the same samples.
#
# The machine has one CPU, and its clock counts instructions, as in tree-cyclictest.
# kernels: rt
# cpus: 1
# root: full
# icount: 1
# debug: no, that kernel has no such tracer
# kcsan: no, as debug
# arm64: no, lt_causes can send NMIs only on x86
# timeout: 200

. /lt/tests/lib.sh

need rtla
tracing=/sys/kernel/tracing
grep -qw timerlat $tracing/available_tracers || skip "this kernel has no tracer timerlat"
period=2500

# follow_thread NAME COMM [WORD]: create an instance for the timers that wake a thread. (The function of the
# timers cannot be named, since no function of the kernel's tracers can be traced.)
follow_thread() { control "$1 tree threshold=0 origin=timer ring=4096 comm=$2 ${3:-}"; }

# judged NAME: check that nothing is lost, and remove the instance.
judged() {
	control "$1 tree enabled=0"
	sums_hold "$1"
	for key in full replaced negative alerts_lost unserved; do assert_eq "$(stat "$1" $key)" 0 "$1: $key"; done
	control "-$1"
}

# late COUNT NAME: turn interrupts off for 3 ms, at most 200 times, until NAME has COUNT alerts, one for each chain.
late() {
	for _ in $(seq 200); do
		stat_is "$2" alerts -lt "$1" || break
		echo hard >/sys/module/lt_causes/parameters/run
	done
}

load_module
insmod /lt/lt_causes.ko us=3000

# The tracer alone.
echo mono >$tracing/trace_clock
usual=$(cat $tracing/osnoise/timerlat_period_us)
echo $period >$tracing/osnoise/timerlat_period_us
follow_thread k timerlat/0 kthreads=1
exec 3<$LT/k/alerts
echo timerlat >$tracing/current_tracer
wait_until 30 stat_is k alerts -ge 100
late 300 k
echo 0 >$tracing/tracing_on
cat $tracing/trace >/tmp/kernel.trace
echo nop >$tracing/current_tracer
echo "$usual" >$tracing/osnoise/timerlat_period_us
alerts_of k /tmp/kernel.switches
exec 3<&-
judged k
python3 /lt/tests/timerlat.py samples ${period}000 5 /tmp/kernel.trace /tmp/kernel.switches || {
	cp /tmp/kernel.* /lt/out
	fail "timerlat has seen something else"
}

# The tracer under rtla.
for load in quiet late; do
	follow_thread s timerlatu/0
	follow_thread u timerlatu/0 end=user
	exec 3<$LT/s/alerts 4<$LT/u/alerts
	rtla timerlat hist -u -c 0 -P f:90 -p $period -d 1s -b 1 -E 10000 >/tmp/$load.hist &
	rtla=$!
	least=0
	if [ $load = late ]; then
		least=5
		wait_until 60 stat_is s alerts -ge 50
		late 300 s
	fi
	wait $rtla || fail "rtla ended with $?"
	alerts_of s /tmp/$load.switches
	exec 3<&4
	alerts_of u /tmp/$load.returns
	exec 3<&- 4<&-
	judged s
	judged u
	python3 /lt/tests/timerlat.py histogram $least /tmp/$load.hist /tmp/$load.switches /tmp/$load.returns || {
		cp /tmp/$load.* /lt/out
		fail "rtla has seen something else ($load)"
	}
done
rmmod lt_causes
unload_module
