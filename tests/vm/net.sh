# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Packets that wait 30 ms for their reader are reported once each, with device, protocol, length and
# reader: TCP and UDP, IPv4 and IPv6, over loopback and between two network namespaces. A packet
# dropped unread when its socket is closed is reported with the reason. Filters by device and
# protocol work. Merged packets are not reported. No event of a packet that GRO merges behind a
# tunnel stays live, to be ended by a later packet.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# icount: 1
# timeout: 150

. /lt/tests/lib.sh
. /lt/tests/net.sh

net() { python3 /lt/tests/net.py "$@"; }
load_module
ip link set lo up
ms=$(patiently 30)
threshold=$(patiently 25)ms
# The kernel of tests/run-debug has only IPv4, and only loopback.
ipv6() { [ -e /proc/net/if_inet6 ]; }
veth() { modprobe veth 2>/dev/null; }
! in_time || { ipv6 && veth; } || fail "no IPv6 or no veth"
addresses='127.0.0.1' waiting=2
! ipv6 || addresses='127.0.0.1 ::1' waiting=4
# Warm up: the first run of anything is slow under emulation.
for address in $addresses; do
	net read tcp $address 1
	net read udp $address 1
done

control "w net threshold=$threshold"
control "lo net threshold=$threshold dev=lo protocol=ipv6"
control "udp net threshold=$threshold transport=udp"
exec 3<$LT/w/alerts
for kind in tcp udp; do for address in $addresses; do net read $kind $address "$ms" >>/tmp/who; done; done
net unread udp 127.0.0.1 "$ms"
# A socket is destroyed after an RCU grace period.
wait_until 10 stat_is w alerts -gt $waiting
alerts_of w /tmp/alerts
cat /tmp/alerts
cat $LT/w/stats
assert_eq "$(wc -l </tmp/alerts)" $((waiting + 1)) "alerts"

# near NS: check that the delay NS is the time for which the reader lets a packet wait, and at most 5 ms more.
near() {
	[ "$1" -ge $((ms * 1000000 - 100000)) ] || fail "it took $1 ns"
	! in_time || [ "$1" -lt $(((ms + 5) * 1000000)) ] || fail "it took $1 ns"
}
line=0
for wanted in 'protocol=ip transport=tcp len=1052 end=copied' 'protocol=ipv6 transport=tcp len=1072 end=copied' \
	'protocol=ip transport=udp len=1028 end=[a-z]*' 'protocol=ipv6 transport=udp len=1048 end=[a-z]*'; do
	case $wanted in protocol=ipv6*) ipv6 || continue ;; esac
	line=$((line + 1))
	sed -n "${line}p" /tmp/alerts >/tmp/alert
	grep -q " dev=\"lo\" ifindex=1 netns=[0-9]* $wanted\$" /tmp/alert || fail "line $line: expected $wanted"
	reader=$(sed -n "${line}p" /tmp/who | sed 's/reader=\([0-9]*\) .*/\1/')
	assert_eq "$(field pid </tmp/alert)" "$reader" "line $line: reader"
	near "$(field delay </tmp/alert)"
done
tail -n 1 /tmp/alerts | grep -q ' transport=udp len=1028 end=dropped drop_reason=[A-Z_]* location="[^"\\]*"$' || fail "not dropped"
# The kernel drops a packet to an unused port at once: no alert, but it is counted.
[ "$(stat w dropped)" -ge 2 ] || fail "dropped: $(stat w dropped)"
assert_eq "$(stat lo alerts) $(stat udp alerts)" "$((waiting - 2)) $((waiting / 2 + 1))" "alerts by device and transport"
[ "$(stat lo filtered)" -gt 0 ] || fail "nothing was refused"

# Between namespaces, the device is the receiver's.
exec 3<&-
over_veth() {
	between_namespaces
	ip netns exec inner /usr/bin/ip link set lo up
	control 'v net threshold=25ms dev=veth1'
	exec 3<$LT/v/alerts
	# A new file, since the background shell truncates it at an unknown time.
	ip netns exec inner python3 /lt/tests/net.py listen 10.9.0.2 5000 30 >/tmp/listens &
	wait_until 10 test -s /tmp/listens
	net call 10.9.0.2 5000
	wait $!
	alerts_of v /tmp/alerts
	cat /tmp/alerts
	assert_eq "$(wc -l </tmp/alerts)" 1 "alerts of veth1"
	grep -q ' dev="veth1" .* transport=tcp len=1052 end=copied$' /tmp/alerts || fail "not over veth1"
	near "$(field delay </tmp/alerts)"
	inode=$(ip netns exec inner readlink /proc/self/ns/net)
	assert_eq "net:[$(field netns </tmp/alerts)]" "$inode" "the namespace"
	exec 3<&-
}

# pour PORT: send 100 kB through the tunnel to a reader that does not wait.
pour() {
	ip netns exec inner python3 /lt/tests/net.py drain 10.9.1.2 "$1" >/tmp/drains."$1" &
	wait_until 10 test -s /tmp/drains."$1"
	net pour 10.9.1.2 "$1" 100000
	wait $!
}
# GRO merges packets that veth1 has received, and no tracepoint reports that GRO frees them. No event of such a packet
# may stay live, or end a second later with another packet at the same address.
over_tunnel() {
	tunnel_between_namespaces
	pour 5001
	control 't net threshold=500ms'
	control 'm net threshold=0 dev=tunnel1'
	exec 3<$LT/m/alerts
	pour 5002
	sleep 1
	pour 5003
	wait_until 10 quiet t
	cat $LT/t/stats
	assert_eq "$(stat t alerts)" 0 "late packets"
	[ "$(stat t gro)" -gt 0 ] || fail "no packet was passed to GRO"
	alerts_of m /tmp/alerts
	longest=$(field len </tmp/alerts | sort -n | tail -n 1)
	[ "$longest" -gt 1500 ] || fail "GRO has merged none: the longest has $longest bytes"
	rmmod ip_gre
}
if veth; then
	over_veth
	over_tunnel
fi

# Invalid parameters are refused, and the log has the reason.
for bad in dev=sixteen_letters_ protocol=tcp transport=ip; do
	refused_line "bad net $bad" "\"${bad#*=}\""
done
for i in w lo udp v t m; do
	[ -e $LT/$i ] || continue
	control "$i net enabled=0"
	sums_hold $i
	for key in full negative unmatched; do assert_eq "$(stat $i $key)" 0 "$i: $key"; done
done
unload_module
