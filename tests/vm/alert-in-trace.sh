# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# With LTTng's probe for our tracepoints, a trace has each alert among the kernel's events, and `explain` finds it
# there, with the same values as in the line of the alert. The module may be unloaded and loaded again while the
# events are enabled.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root is without LTTng
# timeout: 900
# worth: traces of alerts with each kind of field, and a run of record

. /lt/tests/lib.sh
. /lt/tests/block.sh

modprobe lttng-tracer
insmod /lt/lttng-probe-latency-tracker.ko
load_module
null_disk slow 20000000
lttng create alerts --output=/tmp/trace
lttng enable-channel --kernel --subbuf-size=256k --num-subbuf=4 channel
lttng enable-event --kernel --channel=channel 'latency_tracker_*,block_rq_*,sched_switch'
lttng list --kernel | sed -n 's/.*\(latency_tracker_[a-z_]*\).*/\1/p' | sort >/tmp/listed
ls -d /sys/kernel/tracing/events/latency_tracker/alert* | sed 's|.*/|latency_tracker_|' | sort >/tmp/wanted
diff /tmp/wanted /tmp/listed || fail "LTTng has other events than the module"
lttng start

# late COUNT: make COUNT late reads, and add the lines of their alerts to /tmp/alerts.
late() {
	control 'slow block threshold=10ms dev=slow'
	follow $LT/alerts /tmp/new
	reads slow "$1"
	wait_until 60 sh -c "[ \$(wc -l </tmp/new) -eq $1 ]"
	cat /tmp/new >>/tmp/alerts
}
late 5
unload_module
reads slow 2
load_module
late 3
lttng stop
lttng destroy
cat /tmp/alerts
field delay </tmp/alerts | while read -r delay; do [ "$delay" -ge 20000000 ] || fail "a delay of $delay ns"; done

# Both events of each alert, as LTTng's own reader shows them.
babeltrace2 /tmp/trace >/tmp/events
for event in latency_tracker_alert latency_tracker_alert_block; do
	grep " $event: " /tmp/events >/tmp/of-event || fail "no $event"
	head -n 1 /tmp/of-event
	for key in seq time instance delay comm; do
		assert_eq "$(sed -n "s/.*[ ]$key = \"\{0,1\}\([^\", ]*\).*/\1/p" /tmp/of-event | tr '\n' ' ')" \
			"$(tr ' ' '\n' </tmp/alerts | sed -n "s/^$key=\"\{0,1\}\([^\"]*\).*/\1/p" | tr '\n' ' ')" "$event: $key"
	done
done
grep -q ' block_rq_issue: ' /tmp/events || fail "no other events"

# The alerts that explain finds in the trace are the alerts of /proc.
latency-tracker explain --json --alerts /tmp/alerts /tmp/trace >/tmp/of-lines
latency-tracker explain --json --seq 1 --seq 2 --seq 3 --seq 4 --seq 5 /tmp/trace >/tmp/of-trace
cmp /tmp/of-lines /tmp/of-trace || { diff /tmp/of-lines /tmp/of-trace; fail "other alerts in the trace"; }
assert_eq "$(wc -l </tmp/of-trace)" 8 "alerts in the trace"
latency-tracker explain /tmp/trace >/tmp/newest 2>/tmp/said
cat /tmp/said /tmp/newest
grep -q '^latency-tracker: the newest of 8 alerts in this trace; --seq explains others: slow 1 to 5$' /tmp/said ||
	fail "the others are not named"
grep -q '^alert 3 of slow: slow RS sector 16 4K, at [0-2][0-9]:[0-5][0-9]:[0-5][0-9]$' /tmp/newest || fail "not the newest alert"

# The events of trackers with other kinds of fields have the values that ftrace prints.
control -slow
trace=/sys/kernel/tracing
# same TRACKER "KEY..." [PARAMETER...]: check that LTTng's and ftrace's events of alerts have equal values.
same() {
	tracker=$1 keys=$2
	shift 2
	rm -rf /tmp/trace
	echo >$trace/trace
	echo 1 >"$trace/events/latency_tracker/alert_$tracker/enable"
	lttng create same --output=/tmp/trace
	lttng enable-event --kernel "latency_tracker_alert_$tracker"
	lttng start
	control "t $tracker threshold=0 max_alerts=50 $*"
	for _ in 1 2 3 4 5 6 7 8; do
		echo "an interrupt of the console"
		sleep 0.1
	done
	control -t
	lttng destroy
	echo 0 >"$trace/events/latency_tracker/alert_$tracker/enable"
	grep " alert_$tracker: " $trace/trace >/tmp/printed
	babeltrace2 /tmp/trace >/tmp/recorded
	python3 - $keys <<-'END' || fail "$tracker"
		import re, sys
		def numbers(text):
		    """The values of an array, without the indices of babeltrace2."""
		    return [int(word, 16) for word in re.findall("0x([0-9a-fA-F]+)", text)]
		def values(line, pattern, keys):
		    found = {}
		    for key in keys:
		        value = next(group for group in re.search(pattern % re.escape(key), line).groups() if group is not None)
		        found[key] = numbers(value) if value[:1] in ("{", "[") else int(value, 0) if re.fullmatch("-?(0x[0-9a-fA-F]+|[0-9]+)", value) else value
		    return found
		def read(file, pattern, keys):
		    lines = open(file, encoding="utf-8", errors="replace").read().splitlines()
		    return {each["seq"]: each for each in (values(line, pattern, keys) for line in lines)}
		keys = ["seq", "time", "delay", "pid", "tid", "comm"] + sys.argv[1:]
		printed = read("/tmp/printed", r" %s=(\{.*?\}|.*?)(?= [a-z_0-9]+=|$)", keys)
		recorded = read("/tmp/recorded", r' %s = (?:\( "([^"]+)" : container = [0-9]+ \)|"([^"]*)"|(\[.*?\](?=,| \}))|([^, ]+))', keys)
		both = printed.keys() & recorded.keys()
		print(len(printed), "printed,", len(recorded), "recorded,", len(both), "both")
		assert len(both) > 3
		for seq in both:
		    assert printed[seq] == recorded[seq], (printed[seq], recorded[seq])
	END
}
same offcpu 'prio policy from preempted state waker_pid waker_tid waker_comm context queued'
same func 'context depth ret' function=hrtimer_nanosleep
same syscall 'number abi returned ret'
same irq 'irq action on ret'
same tree 'end state origin subject action target_cpu prio preempted merged more steps'

# The recorder records alerts, too.
latency-tracker record -n 1 --duration 60 -o /tmp/captures slow block threshold=10ms dev=slow >/tmp/record.log 2>&1 &
recorder=$!
wait_until 600 grep -q '^armed' /tmp/record.log
reads slow 1
wait $recorder && status=0 || status=$?
cat /tmp/record.log
assert_eq $status 2 "the exit status of record"
latency-tracker explain /tmp/captures/0001/trace >/tmp/again
cmp /tmp/again /tmp/captures/0001/explanation.txt || fail "explain finds another alert in the trace than that of record"
unload_module
rmmod lttng-probe-latency-tracker
