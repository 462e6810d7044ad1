# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A packet that is moved to another CPU is followed there. netem holds datagrams until a timer on
# CPU 1 expires. From there, RPS moves each datagram to CPU 0, by a call on that CPU, or on
# PREEMPT_RT by a thread. CPU 0 wakes the waiting task. Without the hop, there is no alert (not
# tested on PREEMPT_RT).
# kernels: stock rt
# cpus: 2
# root: full
# icount: 1
# timeout: 120

. /lt/tests/lib.sh
. /lt/tests/net.sh

load_module
modprobe sch_netem || skip "this kernel has no netem"
# There must be no other packets: a packet that netem holds could start the timer on another CPU.
ipv6=/proc/sys/net/ipv6/conf/default/disable_ipv6
[ ! -e $ipv6 ] || echo 1 >$ipv6
between_namespaces
[ ! -e $ipv6 ] || ip netns exec inner sh -c 'for conf in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 >$conf; done'
inner() { ip netns exec inner "$@"; }
ip neigh replace 10.9.0.2 lladdr "$(inner cat /sys/class/net/veth1/address)" dev veth0 nud permanent
/usr/sbin/tc qdisc add dev veth0 root netem delay 5ms
inner sh -c 'echo 1 >/sys/class/net/veth1/queues/rx-0/rps_cpus'

cat >/tmp/receive.py <<'PYTHON'
import socket
import sys

with open("/proc/self/comm", "w", encoding="ascii") as comm:
    comm.write("lt_receiver")
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("10.9.0.2", 4711))
open("/tmp/ready", "w").close()
for _ in range(int(sys.argv[1])):
    receiver.recv(16)
PYTHON
cat >/tmp/send.py <<'PYTHON'
import socket
import sys
import time

sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[1])):
    # By the end of this sleep, the receiver waits for this packet, and the previous packet has arrived.
    time.sleep(0.1)
    sender.sendto(b"x", ("10.9.0.2", 4711))
PYTHON

# packets NUMBER: send and receive this many packets.
packets() {
	rm -f /tmp/ready
	inner /usr/bin/taskset -c 1 python3 /tmp/receive.py "$1" &
	_receiver=$!
	wait_until 30 test -e /tmp/ready
	/usr/bin/taskset -c 1 python3 /tmp/send.py "$1"
	wait $_receiver || fail "they were not received"
}
# Warm up: the first run of anything is slow under emulation.
packets 2

case $(uname -r) in
*-rt-*) moved='switch:\d+\(backlog_napi/0\)/\d+' ;;
*) moved='call:rps_trigger_softirq .*called:rps_trigger_softirq raise:NET_RX .*softirq:NET_RX' ;;
esac
words='threshold=0 comm=lt_receiver cpu=1 origin=timer timer=qdisc_watchdog from=vector'
control "t tree $words"
exec 3<$LT/t/alerts
packets 5
alerts_of t /tmp/alerts
exec 3<&-
cat /tmp/alerts
python3 /lt/tests/tree.py sums /tmp/alerts || fail "they do not add up"
number=$(wc -l </tmp/alerts)
[ "$number" -ge 3 ] || fail "only $number began on CPU 1"
python3 /lt/tests/tree.py like /tmp/alerts "$number" "vector:local_timer .*$moved waking:\\d+ switch:\\d+\\(lt_receiver\\)/120" ||
	fail "they were not followed to the other CPU"
assert_eq "$(grep -c ' waking:[0-9]*@0+[0-9]* switch:' /tmp/alerts)" "$number" "wakings on the other CPU"
control "t tree enabled=0"
sums_hold t
control -t

case $(uname -r) in
*-rt-*) ;;
*)
	control "t tree $words hops=!call"
	packets 5
	assert_eq "$(stat t alerts)" 0 "alerts without the hop"
	control -t
	;;
esac
ip netns del inner
[ ! -e $ipv6 ] || echo 0 >$ipv6
unload_module
