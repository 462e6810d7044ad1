# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Each alert is also an event for ftrace and perf: latency_tracker:alert, with the fields of the alert, and
# alert_TRACKER, with the tracker's fields by name.
# kernels: stock
# long: rt
# cpus: 2
# arm64: yes
# timeout: 300

. /lt/tests/lib.sh
. /lt/tests/block.sh

trace=/sys/kernel/tracing
load_module
null_disk slow 20000000
cat $trace/events/latency_tracker/alert/format
echo mono >$trace/trace_clock
echo 1 >$trace/events/latency_tracker/alert/enable
control 'slow block threshold=10ms dev=slow'
follow $LT/alerts /tmp/alerts
reads slow 5
wait_until 10 sh -c '[ $(wc -l </tmp/alerts) -eq 5 ]'
grep ' alert: ' $trace/trace
assert_eq "$(grep -c ' alert: ' $trace/trace)" 5 "events"
for key in seq time delay threshold pid tid; do
	assert_eq "$(sed -n "s/.*[ ]$key=\([^ ]*\).*/\1/p" $trace/trace | tr '\n' ' ')" \
		"$(sed -n "s/.*\b$key=\([^ ]*\).*/\1/p" /tmp/alerts | tr '\n' ' ')" "$key"
done
assert_eq "$(grep -c 'instance=slow tracker=block reason=threshold ' $trace/trace)" 5 "names"
# A filter of ftrace sees the fields.
echo 0 >$trace/trace
echo 'delay > 10000000000' >$trace/events/latency_tracker/alert/filter
reads slow 2
assert_eq "$(grep -c ' alert: ' $trace/trace)" 0 "events that the filter lets through"
echo 0 >$trace/events/latency_tracker/alert/enable
control -slow

# same_values "KEY...": check that each of $count events and lines has each key, with equal values.
# One process compares them, since a process for each of thousands of lines and a dozen keys would
# take too long.
same_values() {
	awk -v keys="$1" -v count="$count" '
		BEGIN { n = split(keys, key) }
		FNR == 1 { file++ }
		{
			split("", value)
			for (i = 1; i <= NF; i++)
				if (at = index($i, "="))
					value[substr($i, 1, at - 1)] = substr($i, at + 1)
			all = ""
			for (i = 1; i <= n; i++) {
				if (!(key[i] in value))
					continue
				has[file, key[i]]++
				all = all " " key[i] "=" value[key[i]]
			}
			if (file == 1)
				event[FNR] = all
			else if (event[FNR] != all) {
				print "the event has" event[FNR] ", the line" all
				differs = 1
				exit
			}
		}
		END {
			for (file = 1; !differs && file <= 2; file++)
				for (i = 1; i <= n; i++)
					if (has[file, key[i]] != count) {
						print has[file, key[i]] + 0, (file == 1 ? "events" : "lines"), "of", count, "have", key[i]
						differs = 1
						break
					}
			exit differs
		}' /tmp/events /tmp/lines
}

# same TRACKER "KEY..." [PARAMETER...]: check that each alert during the workload and the event of
# its tracker have equal values. The quotes in the line are removed.
same() {
	tracker=$1 keys=$2
	shift 2
	echo 0 >$trace/trace
	echo 1 >"$trace/events/latency_tracker/alert_$tracker/enable"
	# A reader gets only alerts raised after it has opened the file.
	control "t $tracker enabled=0 threshold=0 stack=0 ring=16384 $*"
	exec 4<$LT/t/alerts
	: >/tmp/of-t
	cat <&4 >/tmp/of-t &
	reader=$!
	control "t $tracker enabled=1"
	doing
	control "t $tracker enabled=0"
	count=$(stat t alerts)
	[ "$count" -gt 3 ] || fail "only $count alerts of $tracker"
	wait_until 10 sh -c "tail -n 1 /tmp/of-t | grep -q '^seq=$count '"
	kill $reader
	exec 4<&-
	echo 0 >"$trace/events/latency_tracker/alert_$tracker/enable"
	grep " alert_$tracker: " $trace/trace | sed 's/.*: seq=/seq=/' | sort >/tmp/events
	tr -d '"' </tmp/of-t | sort >/tmp/lines
	same_values "seq time instance reason delay threshold pid tid comm $keys" || fail "$tracker"
	control -t
}
doing() { reads slow 5; }
same block 'sector bytes queue device requeues' dev=slow
doing() {
	i=0
	while [ $i -lt 5 ]; do
		(j=0; while [ $j -lt 2000 ]; do j=$((j + 1)); done)
		sleep 0.01
		i=$((i + 1))
	done
}
same wakeup 'prio target migrated waker_pid waker_tid waker_comm context prev_pid prev_tid prev_comm'
same runqueue 'prio state from migrated by_pid by_tid prev_pid prev_tid prev_comm'
same offcpu 'prio from waker_pid waker_tid waker_comm context queued'
same syscall 'number abi arg0 ret'
same softirq 'vec on'
same func 'depth context' function=hrtimer_nanosleep
same tree 'end state origin action target_cpu prio preempted merged more'
doing() {
	for i in 1 2 3 4 5 6 7 8; do
		echo "an interrupt of the console $i"
		sleep 0.05
	done
}
same irq 'irq on ret action'
insmod /lt/lt_works.ko
doing() { for _ in 1 2 3 4 5; do echo slow >/sys/module/lt_works/parameters/run; done; }
same workqueue 'work workqueue state worker_cpu by_pid by_tid context queued running'
rmmod lt_works
ifconfig lo up
doing() { ping -c 5 -i 0.1 127.0.0.1; }
same net 'skb dev ifindex netns len end' dev=lo
doing() {
	for i in 1 2 3 4 5; do
		echo "hello $i" | nc -l -p 1234 >/dev/null &
		wait_until 5 sh -c 'echo bye | nc 127.0.0.1 1234'
		wait $!
	done
}
same accept 'socket fd bytes'
unload_module
[ ! -e $trace/events/latency_tracker ] || fail "the event is still there"
