# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# LTTng's flight recorder works on this kernel: a snapshot of the last second contains context
# switches.
# kernels: stock rt
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root has no LTTng
# timeout: 120

. /lt/tests/lib.sh

lttng create --snapshot flight --output=/tmp/snapshot
lttng enable-channel --kernel --subbuf-size=64k --num-subbuf=4 channel
lttng enable-event --kernel --channel=channel sched_switch,block_rq_issue
lttng start
sleep 1
lttng snapshot record
lttng destroy
switches=$(babeltrace2 /tmp/snapshot | grep -c ' sched_switch: ')
echo "$switches context switches in the snapshot"
[ "$switches" -gt 10 ] || fail "only $switches context switches in a second"
