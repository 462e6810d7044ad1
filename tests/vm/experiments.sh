# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker analyze delays` finds where the time went in four experiments, smaller versions of published case
# studies, whose delays are known by construction: a desktop that starts through a chain of eight forks, an editor
# that asks a slow network, a web server with a worker and a slow disk, and several clients with a server each. Each
# process notes what it did, by the clock of the trace; tests/experiments.py compares that with the report: each stay
# in a state, and each wait, is in the report once, has its cause, and is at least as long as it must be, and the
# states add up to the range.
#
# The machine's clock counts instructions, so a process that is about to wait is not overtaken by the end of its wait,
# however busy the host is.
# kernels: stock
# cpus: 2
# root: full
# icount: 1
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root has no LTTng
# timeout: 300

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/net.sh

modprobe sch_netem || skip "this kernel has no netem"
null_disk slow 50000000
ip link set lo up
between_namespaces
inner() { ip netns exec inner "$@"; }
ip neigh replace 10.9.0.2 lladdr "$(inner cat /sys/class/net/veth1/address)" dev veth0 nud permanent
inner /usr/bin/ip neigh replace 10.9.0.1 lladdr "$(cat /sys/class/net/veth0/address)" dev veth1 nud permanent
/usr/sbin/tc qdisc add dev veth0 root netem delay 50ms
inner /usr/sbin/tc qdisc add dev veth1 root netem delay 50ms

# Warm up: the first run of anything is slow under emulation, and may wait for the machine's own disk.
python3 -B /lt/tests/experiments.py run /tmp/warm-up

lttng create experiments --output=/tmp/trace
lttng enable-channel --kernel --subbuf-size=4M --num-subbuf=8 channel
lttng enable-event --kernel --channel=channel 'sched_*,irq_*,timer_hrtimer_*,x86_irq_vectors_*,block_rq_*'
lttng enable-event --kernel --channel=channel --syscall --all
lttng start
python3 -B /lt/tests/experiments.py run /tmp/truth
lttng stop
lttng destroy
python3 -B /lt/tests/experiments.py judge /tmp/truth /tmp/trace || { cp /tmp/truth /lt/out; fail "the time went elsewhere"; }
ip netns del inner
