# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# LTTng's probe for our tracepoints: an LTTng trace has each alert among the kernel's events, with the values of its
# line. The module may be unloaded and loaded again while the events are enabled.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root is without LTTng
# timeout: 600

. /lt/tests/lib.sh
. /lt/tests/block.sh

modprobe lttng-tracer
insmod /lt/lttng-probe-latency-tracker.ko
load_module
null_disk slow 20000000
lttng create alerts --output=/tmp/trace
lttng enable-channel --kernel --subbuf-size=256k --num-subbuf=4 channel
lttng enable-event --kernel --channel=channel 'latency_tracker_*,block_rq_issue,sched_switch'
lttng list --kernel | grep latency_tracker
lttng start

# late COUNT: that many late reads, whose lines are added to /tmp/alerts.
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
babeltrace2 /tmp/trace >/tmp/events
grep latency_tracker_ /tmp/events
assert_eq "$(grep -c ' latency_tracker_alert: ' /tmp/events)" 8 "events"
unload_module
rmmod lttng-probe-latency-tracker
