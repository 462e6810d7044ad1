# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Each alert is also an event for ftrace and perf, latency_tracker:alert, with the same fields.
# kernels: stock rt
# cpus: 2
# timeout: 60

. /lt/tests/lib.sh
. /lt/tests/block.sh

trace=/sys/kernel/tracing
load_module
null_disk slow 20000000
cat $trace/events/latency_tracker/alert/format
echo mono >$trace/trace_clock
echo 1 >$trace/events/latency_tracker/alert/enable
control 'slow block threshold=10ms dev=slow'
cat $LT/alerts >/tmp/alerts &
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
unload_module
[ ! -e $trace/events/latency_tracker ] || fail "the event is still there"
