# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The alerts are exactly the system calls of all tasks, one by one, with their arguments and what they returned: ftrace
# records raw_syscalls at the same time, and lt-witness pairs its events. Processes that are born, wait for each other
# and exit, hackbench, and calls that fail.
#
# The threshold is 0: every call is an alert. Nobody reads while it lasts. The machine's clock counts instructions, so
# that it does not matter when the host has something else to do.
# kernels: stock rt
# cpus: 2
# root: full
# icount: 1
# debug: no, a sanitizer takes longer between two probes than the comparison allows
# timeout: 200

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/sched.sh

trace=/sys/kernel/tracing
load_module
echo mono >$trace/trace_clock
echo 30000 >$trace/buffer_size_kb
echo 1 >$trace/events/raw_syscalls/enable
echo 1 >$trace/events/sched/sched_process_exit/enable
# The first time of everything is slow under emulation.
python3 /lt/tests/calls.py many 2

for options in '' 'stacks=switch'; do
	echo 0 >$trace/tracing_on
	echo >$trace/trace
	echo 1 >$trace/tracing_on
	control "w syscall threshold=0 ring=131072 stack=0 events=1024 $options"
	exec 3<$LT/w/alerts
	sleep 0.2
	echo lt-witness begin >$trace/trace_marker
	# Between two probes of this tracepoint a task can be preempted; these are not, by each other.
	chrt -f 10 python3 /lt/tests/calls.py many 20
	chrt -f 10 hackbench -g 1 -f 4 -l 20
	sleep 0.2
	echo lt-witness end >$trace/trace_marker
	echo 0 >$trace/tracing_on
	control "w syscall enabled=0"
	alerts_of w /tmp/alerts
	exec 3<&-
	cat $trace/trace >/tmp/trace
	lt-witness --rule syscall --threshold 0 --usual 500us --most 5ms --expect-at-least 1500 /tmp/trace /tmp/alerts ||
		{ cp /tmp/trace /tmp/alerts /lt/out; fail "syscall is not exact"; }
	grep -v ' 0$' $LT/w/stats
	sums_hold w
	for key in full unmatched negative alerts_lost replaced; do assert_eq "$(stat w $key)" 0 "$key"; done
	control -w
done
unload_module
