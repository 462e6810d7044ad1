# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The alerts match the system calls of all tasks one by one, with arguments and results: ftrace
# records raw_syscalls at the same time, and lt-witness pairs its events. The load consists of
# processes that start, wait for each other and exit, of hackbench, and of failing calls.
#
# The threshold is 0, so every call is an alert. No reader runs meanwhile. The machine's clock counts instructions, so
# other load on the host does not matter.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# icount: 1
# debug: no, sanitizers add more time between two probes than the comparison allows
# timeout: 200

. /lt/tests/lib.sh
. /lt/tests/witness.sh

load_module
tracing 30000 raw_syscalls sched/sched_process_exit
# A task can be preempted between two probes of a tracepoint; these tasks do not preempt each other.
work() {
	chrt -f 10 python3 /lt/tests/calls.py many 20
	chrt -f 10 hackbench -g 1 -f 4 -l 20
}
# Warm up: the first run of anything is slow under emulation.
python3 /lt/tests/calls.py many 2

for options in '' 'stacks=switch'; do
	both syscall "threshold=0 ring=131072 stack=0 events=1024 $options" work
	exact "syscall $options" --rule syscall --threshold 0 --usual 500us --most 5ms --expect-at-least 1500
	none "syscall $options" full unmatched negative alerts_lost replaced
	control -w
done
unload_module
