# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# hackbench.sh: measures the cost that tracing the scheduler adds to hackbench, inside the virtual machine;
# scripts/bench runs it.
#
# usage: hackbench.sh ROUNDS LOOPS
#
# The contenders take turns in each round: no tracer, our `wakeup` and `offcpu`, `offcpu` alone,
# `offcpu by=stack` alone, the three variants of the BPF programs of sched.bpf.c, and hist triggers of
# ftrace. Each tracer measures all waits of tasks, with two exceptions: `offcpu` without `wakeup` does
# not measure waits from wakeup to switch-in, and hist triggers miss the first wakeup of a new task. None
# reports a wait. The machine has one processor, and its clock counts executed instructions.
#
# hackbench runs at a real-time priority over sockets that hold only a few messages. So the number
# of task switches is the same for each contender, and different decisions of the scheduler do not
# mask its cost.
#
# Prints `result NAME 0 MEDIAN 1000000` in ns of that clock, and what each has measured and lost in all runs:
# `result delays_NAME 0 NUMBER ROUNDS`, `result lost_NAME 0 NUMBER 1`. The cost of by=stack depends on the number of
# functions on the stacks: `result depth_by_stack 0 FUNCTIONS STACKS`.

. /lt/tests/lib.sh
rounds=$1 loops=$2
events=/sys/kernel/tracing/events

# run NAME: run hackbench, timed by the machine's clock.
run() {
	before=$(awk '/^now at/ { print $3 }' /proc/timer_list | head -n 1)
	chrt --fifo 1 hackbench --process --groups 2 --fds 4 --loops "$loops" >/dev/null
	after=$(awk '/^now at/ { print $3 }' /proc/timer_list | head -n 1)
	echo "time $1 $((after - before))" >>/tmp/runs
}

none() { run none; }

# trackers NAME TRACKER...: run with an instance of each TRACKER; parameters may follow its name.
trackers() {
	name=$1
	shift
	for line; do control "lt_${line%% *} $line threshold=3600s"; done
	run "$name"
	for line; do control "lt_${line%% *} ${line%% *} enabled=0"; done
	for line; do
		instance=lt_${line%% *}
		echo "count $name $(stat "$instance" ended) $(stat "$instance" full)" >>/tmp/runs
		[ ! -e "$LT/$instance/labels" ] || awk '
			/^label stack="/ {
				stack = $0; sub(/^label stack="/, "", stack); sub(/".*/, "", stack)
				sub(/.* count=/, ""); functions += $1 * split(stack, list, ","); stacks += $1
			}
			END { print "depth", functions, stacks }' "$LT/$instance/labels" >>/tmp/runs
		control "-$instance"
	done
}

bpf() {
	rm -f /tmp/in /tmp/out
	mkfifo /tmp/in
	/lt/bench-sched "/lt/sched-$1.bpf.o" </tmp/in >/tmp/out &
	exec 3>/tmp/in
	until grep -q ready /tmp/out; do
		kill -0 $! || exit 1
		sleep 0.1
	done
	run "bpf_$1"
	exec 3>&-
	wait $!
	echo "count bpf_$1 $(sed -n 's/delays //p' /tmp/out) $(sed -n 's/lost //p' /tmp/out)" >>/tmp/runs
}

# The hist triggers for these waits, one per line: an event and its trigger. (A task is woken
# only while it sleeps, so its variable is never set twice before it is read.)
cat >/tmp/triggers <<'END'
sched/sched_waking keys=pid:woken=common_timestamp
sched/sched_switch keys=prev_pid:left=common_timestamp if prev_pid != 0
sched/sched_switch keys=next_pid:lat=common_timestamp-$woken:onmatch(sched.sched_waking).lt_wakeup($lat) if next_pid != 0
sched/sched_switch keys=next_pid:off=common_timestamp-$left:onmatch(sched.sched_switch).lt_offcpu($off) if next_pid != 0
synthetic/lt_wakeup keys=lat.log2
synthetic/lt_offcpu keys=off.log2
END

# triggers: set the triggers. no_triggers: remove them, the last one first.
triggers() { while read -r event trigger; do echo "hist:$trigger" >>"$events/$event/trigger"; done </tmp/triggers; }
no_triggers() {
	sed '1!G; h; $!d' /tmp/triggers |
		while read -r event trigger; do echo "!hist:$trigger" >>"$events/$event/trigger"; done
}

# sum WORD: print its sum over the histograms.
sum() { cat $events/sched/sched_*/hist $events/synthetic/lt_*/hist | awk -v word="$1:" '$1 == word { sum += $2 } END { print sum + 0 }'; }

hist() {
	echo 'lt_wakeup u64 lat' >>/sys/kernel/tracing/synthetic_events
	echo 'lt_offcpu u64 off' >>/sys/kernel/tracing/synthetic_events
	triggers
	run hist
	measured=$(cat $events/synthetic/lt_*/hist | awk '$1 == "Hits:" { sum += $2 } END { print sum + 0 }')
	echo "count hist $measured $(sum Dropped)" >>/tmp/runs
	no_triggers
	echo '!lt_wakeup u64 lat' >>/sys/kernel/tracing/synthetic_events
	echo '!lt_offcpu u64 off' >>/sys/kernel/tracing/synthetic_events
}

echo 4608 >/proc/sys/net/core/wmem_default
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
load_module
# Warm up: the first run of anything is slow.
run warm
run warm
round=0
while [ $round -lt "$rounds" ]; do
	none
	trackers ours wakeup offcpu
	trackers offcpu offcpu
	trackers by_stack 'offcpu by=stack'
	bpf facts
	bpf hash
	bpf storage
	hist
	round=$((round + 1))
done
for name in none ours offcpu by_stack bpf_facts bpf_hash bpf_storage hist; do
	echo "result $name 0 $(awk -v name=$name '$1 == "time" && $2 == name { print $3 }' /tmp/runs | sort -n |
		awk '{ time[NR] = $1 } END { print time[int((NR + 1) / 2)] }') 1000000"
	[ $name = none ] || awk -v name=$name -v rounds="$rounds" '
		$1 == "count" && $2 == name { delays += $3; lost += $4 }
		END { print "result delays_" name " 0 " delays " " rounds; print "result lost_" name " 0 " lost " 1" }' /tmp/runs
done
awk '$1 == "depth" { functions += $2; stacks += $3 } END { print "result depth_by_stack 0", functions, stacks }' /tmp/runs
echo complete
