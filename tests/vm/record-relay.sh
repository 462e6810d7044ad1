# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# record --url sends a copy of each trace to a relay daemon of LTTng in another network namespace. The copy contains
# the alert and the evidence, so that explain gives the same answer for the copy as for the capture. While the relay
# daemon is away, captures are complete here, and the recorder reports and counts the captures that it could not send.
# Once the relay daemon is back, the next capture is sent.
# kernels: stock
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root is without LTTng
# timeout: 600

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/net.sh
. /lt/tests/recorders.sh

relayd() {
	ip netns exec inner lttng-relayd --output /tmp/relay >/tmp/relayd.log 2>&1 &
	relayd=$!
	in_a_while python3 -c 'import socket; socket.create_connection(("10.9.0.2", 5342))' 2>/dev/null
}
counted() { [ "$(grep -c '^seq=' /tmp/off)" -eq "$1" ]; }
relayed() { [ -s "$(find /tmp/relay -path "*/$1-*" -name metadata)" ]; }

load_module
null_disk slow 200000000
mkdir /tmp/relay
between_namespaces
# the relay daemon's port for lttng-live is on the loopback device
ip netns exec inner /usr/bin/ip link set lo up
lttng-sessiond --daemonize

echo "== no relay daemon"
refused "a URL of a file" latency-tracker record --url file:///tmp/relay slow block
latency-tracker start off offcpu threshold=50ms comm=dd
follow $LT/off/alerts /tmp/off
start log -o /tmp/captures --url net://10.9.0.2/slow/disks slow block threshold=50ms dev=slow
recorder=$!
grep '^latency-tracker: no relay daemon answers at net://10.9.0.2/slow/disks: Connection refused .*; until the relay daemon answers, captures are saved only in /tmp/captures$' /tmp/log.log ||
	fail "the recorder does not say that the relay daemon is away"
reads slow 1 1
in_a_while captured /tmp/captures 0001
traced /tmp/captures/0001/trace 8
grep '^latency-tracker: capture 0001 saved only here, not sent: no relay daemon answers at ' /tmp/log.log || fail "it does not say what is not sent"
grep '"not_sent": "no relay daemon answers at ' /tmp/captures/0001/alert.json || fail "alert.json does not say why it is not sent"
in_a_while grep '^captures 1  not sent 1  skipped 0 ' /tmp/log.log

echo "== a relay daemon"
relayd
for capture in 2 3; do
	reads slow 1 $capture
	in_a_while captured /tmp/captures 000$capture
	in_a_while relayed 000$capture
	place=$(sed -n "s|^latency-tracker: capture 000$capture sent to net://10.9.0.2/slow/disks: ||p" /tmp/log.log)
	assert_eq "$place" "vm/slow/disks/000$capture-*" "the place of capture $capture"
	grep "\"sent\": \"net://10.9.0.2/slow/disks vm/slow/disks/000$capture-\*\"" /tmp/captures/000$capture/alert.json || fail "alert.json does not have the place"
	there=$(echo /tmp/relay/vm/slow/disks/000$capture-*)
	traced "$there" $((capture * 8))
	latency-tracker explain "$there" >/tmp/there
	cat /tmp/there
	grep "sector $((capture * 8)) " /tmp/there || fail "the alert is not in the trace"
	assert_eq "$(grep -c '^alert [0-9]* of slow' /tmp/there)" 1 "alerts of the copy of capture $capture"
	# the first sentence gives the reason
	latency-tracker explain /tmp/captures/000$capture | sed -n '/ % of the delay/p' >/tmp/here
	sed -n '/ % of the delay/p' /tmp/there | cmp - /tmp/here || { cat /tmp/here; fail "another explanation there"; }
	# The evidence names the disk; the events of the trace have only its number.
	in_a_while counted $capture
	tail -n 1 /tmp/off >/tmp/last
	for trace in /tmp/captures/000$capture "$there"; do
		latency-tracker explain --alerts /tmp/last "$trace" >/tmp/why || fail "the wait of dd has no explanation"
		grep 'dd/.* slow' /tmp/why || { cat /tmp/why; fail "the disk has no name in $trace"; }
	done
done

echo "== it goes away"
pkill lttng-relayd
wait $relayd || :
reads slow 1 4
in_a_while captured /tmp/captures 0004
traced /tmp/captures/0004/trace 32
kill -INT $recorder
ended $recorder log
grep '^captures 4  not sent 2 ' /tmp/log.log || fail "captures that were not sent are not counted"
pkill lttng-sessiond
unload_module
