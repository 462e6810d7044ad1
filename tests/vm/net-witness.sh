# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The alerts match the received packets one by one: ftrace records each packet that a device
# receives and what ends it, and lt-witness computes from its trace how long each took, how it
# ended, why it was dropped and by which task. iperf3 sends TCP and UDP, over IPv4 and IPv6, both
# ways, over loopback and between two namespaces, directly and through a tunnel. The tunnel passes
# packets to GRO after they were received. Other senders send UDP to a reader whose buffer is full,
# to a reader that closes without reading, and to an unused port.
#
# Witness and tracker know the same kinds of end. A packet that is freed in another way would stay open, to the end of
# the test or until its address is reused. On reuse, the tracker would replace the packet, or mistake the next
# packet's end for this packet's. The test rules out packets that stay open to the end, and replaced packets, except
# that packets of the tunnel may be received twice, and thus replaced. The witness also sees allocations, and forgets
# an open packet at the allocated address. The test misses an error only if both see an end at a later event, as when
# a deferred packet is finally freed.
#
# Addresses of packets are compared as text. ftrace's dynamic events never hash them, so no address may be hashed.
#
# The threshold is 0, so every packet is an alert. No reader runs meanwhile. The machine's clock counts instructions,
# so other load on the host does not matter.
# kernels: rt
# long: stock
# cpus: 2
# root: full
# icount: 1
# append: no_hash_pointers
# debug: no, sanitizers add more time between two probes than the comparison allows
# timeout: 300

. /lt/tests/lib.sh
. /lt/tests/net.sh
. /lt/tests/witness.sh

modprobe veth
load_module
ip link set lo up
between_namespaces
iperf3 --server >/tmp/server 2>&1 &
ip netns exec inner iperf3 --server >/tmp/server.inner 2>&1 &

tracing 30000 net/netif_receive_skb net/napi_gro_receive_entry \
	skb/skb_copy_datagram_iovec skb/consume_skb skb/kfree_skb
# The functions that free a packet without a tracepoint, that merge it into another one, and that allocate one.
for event in 'freed __kfree_skb skbaddr=$arg1' 'freed skb_attempt_defer_free skbaddr=$arg1' \
	'merged kfree_skb_partial skbaddr=$arg1' \
	'made __alloc_skb%return skbaddr=$retval' 'made skb_clone%return skbaddr=$retval'; do
	echo "f:lt/$event:x64" >>$TRACE/dynamic_events
done
echo 1 >$TRACE/events/lt/enable

begin='netif_receive_skb(skb:skbaddr=; dev:dev= len:len=)'
end='skb_copy_datagram_iovec|consume_skb|kfree_skb|freed(skb:skbaddr=; end:end= drop_reason:drop_reason= tid:by=)'
rule="last $begin -> $end ! merged|made|napi_gro_receive_entry(skb:skbaddr=)"

# listens ADDRESS: whether the server listens there. It reopens its socket for each client.
listens() {
	case $1 in 10.9.*) ip netns exec inner ss -Hltn ;; *) ss -Hltn ;; esac | grep -q ':5201 '
}
# send ADDRESS COUNT WORD...: send COUNT messages.
send() {
	address=$1 count=$2
	shift 2
	wait_until 20 listens "$address"
	iperf3 --client "$address" --blockcount "$count" "$@" >/tmp/client 2>&1 || { cat /tmp/client; fail "iperf3 $*"; }
}
lo() {
	for address in 127.0.0.1 ::1; do
		send $address "$1" --length 1000 --no-delay
		send $address "$1" --length 1000 --udp --bitrate 0
	done
	send ::1 "$1" --length 3000 --reverse
	python3 /lt/tests/net.py unread udp 127.0.0.1
	python3 /lt/tests/net.py flood ::1 20
}
veth() {
	send 10.9.0.2 "$1" --length 1000 --no-delay
	send 10.9.0.2 "$1" --length 3000 --reverse --parallel 2
	send 10.9.0.2 "$1" --length 1000 --udp --bitrate 0
}
tunnel() {
	send 10.9.1.2 "$1" --length 8000
	send 10.9.1.2 "$1" --length 1000 --udp --bitrate 0
}

# with_ends: add the fields of an alert to each end in a trace: its name, its reason, and its task, if any.
with_ends() {
	awk '
		{ sub(/ skbaddr=0x/, " skbaddr="); how = "" }
		/: skb_copy_datagram_iovec: / { how = "copied" }
		/: consume_skb: / || /: freed: / { how = "consumed" }
		/: kfree_skb: / { how = "dropped" }
		how {
			by = 0
			if (match($0, /-[0-9]+ +\[[0-9]+\] ..\./)) by = substr($0, RSTART + 1) + 0
			$0 = $0 " end=" how " drop_reason=" (how == "dropped" ? $NF : "none") " by=" by
		}
		{ print }'
}

# Warm up: the first run of anything is slow under emulation.
lo 10
veth 10

for over in lo veth tunnel; do
	least=250 never='full negative alerts_lost readers cleared' some='copied consumed'
	case $over in
		tunnel)
			tunnel_between_namespaces
			tunnel 10
			least=100 some="$some gro" ;;
		*) never="$never replaced gro" some="$some merged" ;;
	esac
	both net 'threshold=0 ring=16384 stack=0' $over 100
	edit /tmp/trace with_ends
	cp /tmp/alerts /tmp/all
	edit /tmp/alerts sed '/ end=dropped /!s/$/ drop_reason=none/'
	exact $over --rule "$rule" --threshold 0 --usual 500us --most 5ms --expect-at-least $least
	sed 's/.* transport=\([a-z0-9]*\) .* \(end=.*\)/\1 \2/; s/ location=.*//' /tmp/all | sort | uniq -c
	none $over $never
	[ $over != lo ] || [ "$(stat w dropped)" -ge 15 ] || fail "only $(stat w dropped) were dropped"
	for key in $some; do [ "$(stat w "$key")" -gt 0 ] || fail "$over: none was $key"; done
	control -w
done
longest=$(grep ' dev="tunnel1" ' /tmp/all | field len | sort -n | tail -n 1)
[ "$longest" -gt 1500 ] || fail "GRO has merged none: the longest has $longest bytes"
unload_module
rmmod ip_gre
