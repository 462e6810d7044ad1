# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The alerts match the waits of tasks one by one: ftrace records the scheduler at the same time, and
# lt-witness computes from its trace which task waited how long, and which task woke it. Two CPUs run
# pairs of processes that wake each other while they fall asleep, are preempted, migrate, start and
# exit, and a process that computes (tests/sched.py). Some waits have a known length: for a
# SCHED_FIFO task that keeps the CPU for 20 ms, for the next period of a cgroup with 1 % of a CPU,
# and in a sleep of 50 ms.
#
# The threshold is 0, so every wait of every task is an alert. No reader runs meanwhile. The machine's clock counts
# instructions, so other load on the host does not matter.
# kernels: rt
# long: stock
# cpus: 2
# root: full
# icount: 1
# turn: 100
# debug: no, sanitizers add more time between two probes than the comparison allows
# arm64: yes
# timeout: 300

. /lt/tests/lib.sh
. /lt/tests/sched.sh
. /lt/tests/witness.sh

trackers=${LT_TRACKERS:-wakeup runqueue offcpu}
load_module

tracing 30000 sched/sched_waking sched/sched_wakeup_new sched/sched_switch
# work: cause a wait of known length among others.
work() {
	waits crowd 8 150
	case $tracker in
	wakeup) waits hog 1 20 ;;
	runqueue) waits quota 1 1 5 ;;
	offcpu) waits sleep 50 ;;
	esac >/tmp/known
}
# Warm up: the first run of anything is slow under emulation.
waits crowd 2 5

for tracker in $trackers; do
	both "$tracker" 'threshold=0 ring=65536 stack=0 events=1024 kthreads=1' work
	exact "$tracker" --tasks "$tracker" --threshold 0 --expect-at-least 300
	known=$(sed -n 's/.*\(victim\|member\|sleeper\)=//p' /tmp/known)
	grep " delay=[2-9][0-9]\{7\} .* tid=$known \| delay=[0-9]\{9,\} .* tid=$known " /tmp/alerts >/tmp/long ||
		fail "$tracker: no alert of $(cat /tmp/known)"
	head -n 1 /tmp/long
	none "$tracker" full unmatched negative alerts_lost
	control -w
done
unload_module
