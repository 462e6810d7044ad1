# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A server that takes 20 ms to send its first byte is reported once per connection: task, file, ports, number of bytes,
# and the delay that the server itself measures, over IPv4, IPv6 and a Unix socket. Later data is not reported, and a
# connection closed without sending anything is gone. Filters by port and process work. A server that was waiting in
# accept(2) when an instance was removed gets its connection, even if other probes are registered meanwhile. A call of
# accept(2) that fprobe misses is counted.
#
# The machine's clock counts instructions.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# icount: 1
# turn: 100
# timeout: 180

. /lt/tests/lib.sh

net() { python3 /lt/tests/net.py "$@"; }
/usr/bin/ip link set lo up
load_module
# The kernel of tests/run-debug has only IPv4.
ipv6() { [ -e /proc/net/if_inet6 ]; }
! in_time || ipv6 || fail "no IPv6"
addresses='127.0.0.1' connections=6
! ipv6 || addresses='127.0.0.1 ::1' connections=11
ms=$(patiently 20)
# Warm up: the first run of anything is slow under emulation.
net serve 127.0.0.1 1 1
control "a accept threshold=$((ms * 3 / 4))ms"
exec 3<$LT/a/alerts
for address in $addresses; do net serve $address 5 "$ms" >>/tmp/said; done
net serve-unix /tmp/socket "$ms" >>/tmp/said
net close 127.0.0.1
alerts_of a /tmp/alerts
cat /tmp/said /tmp/alerts
cat $LT/a/stats
assert_eq "$(wc -l </tmp/alerts)" $connections "alerts"
line=0
while read -r one two three four; do
	case $one in
	server=*)
		server=${one#*=} port=${two#*=}
		family=ip
		[ "$line" -lt 5 ] || family=ipv6
		[ "$line" -lt $((connections - 1)) ] || family=unix
		;;
	*)
		line=$((line + 1))
		sed -n "${line}p" /tmp/alerts >/tmp/alert
		case $family in
		ip) ends="local=127.0.0.1:$port remote=127.0.0.1:${two#*=}" ;;
		ipv6) ends="local=\\[::1\\]:$port remote=\\[::1\\]:${two#*=}" ;;
		unix) ends="local= remote=" ;;
		esac
		grep -q " pid=$server .* family=$family $ends $one $three\$" /tmp/alert || fail "line $line: expected $family $ends $one $three"
		took=${four#*=} delay=$(field delay </tmp/alert)
		# accept(2) returns before the server reads its clock, and the first byte is sent before the
		# server reads it again.
		off=$((took - delay))
		! in_time || { [ $off -gt -500000 ] && [ $off -lt 500000 ]; } || fail "line $line: $delay ns, the server says $took"
		[ "$delay" -ge "${ms}000000" ] || fail "line $line: $delay ns"
		;;
	esac
done </tmp/said
assert_eq "$line $(stat a closed) $(stat a gone)" "$connections 1 1" "connections, closed, gone"
exec 3<&-

# A connection is pending until its first byte, and times out, with a stack.
echo 3600s >$LT/a/threshold
echo 50ms >$LT/a/timeout
exec 3<$LT/a/alerts
net serve 127.0.0.1 1 "$(patiently 300)" >/tmp/said &
wait_until 10 grep -q 'family=ip local=127.0.0.1:' $LT/a/pending
wait $!
cat /tmp/said
alerts_of a /tmp/alerts
cat /tmp/alerts
grep -q 'reason=timeout .* bytes=0 stack=".*nanosleep' /tmp/alerts || fail "no timeout with a stack"
grep -q 'reason=late .* bytes=1$' /tmp/alerts || fail "no late end"
exec 3<&-

# Filters; only the last one matches.
control 'p accept threshold=1ms port=1'
control 'q accept threshold=1ms pid=1'
control 'r accept threshold=1ms comm=python3'
net serve 127.0.0.1 3 5 >/tmp/said
assert_eq "$(stat p started) $(stat p filtered)" "0 3" "by port"
assert_eq "$(stat q started) $(stat q filtered)" "0 3" "by process"
assert_eq "$(stat r alerts)" 3 "by name"
refused_line 'bad accept port=65536' '"65536"'
for i in a p q r; do
	control "$i accept enabled=0"
	sums_hold $i
done
for i in a p q r; do control "-$i"; done

# When a server returns from accept(2), the kernel looks up the probe by the address that it had at
# the call. If a probe without an exit handler had that address by then, the kernel would crash. A
# probe with an exit handler counts the connection like any other.
control 'keep func function=vfs_statfs threshold=3600s'
for i in $(seq 4); do control "a$i accept threshold=0"; done
net listen 127.0.0.1 5000 0 >/tmp/server &
server=$!
wait_until 10 grep -q port=5000 /tmp/server
reader=$(sed -n 's/^reader=\([0-9]*\) .*/\1/p' /tmp/server)
wait_until 10 grep -qs inet_csk_accept "/proc/$reader/stack"
for i in $(seq 4); do control "-a$i"; done
for i in $(seq 4); do control "n$i net threshold=3600s"; done
control 'b accept threshold=3600s'
net call 127.0.0.1 5000
wait $server
assert_eq "$(stat b started)" 1 "connections of one that waited"

# The probes of one function's returns share 32 words of the task's shadow stack. A func instance takes two, and an accept
# instance one: 16 func instances and one accept instance do not fit, and all miss the call.
control -b
for i in $(seq 16); do control "f$i func function=__sys_accept4 threshold=3600s events=1"; done
control 'm accept threshold=3600s'
net serve 127.0.0.1 1 0 >/tmp/said
assert_eq "$(stat m started) $(stat m missed) $(stat f1 attempts) $(stat f1 missed)" "0 1 0 1" \
	"a call without room: started, missed, of func: attempts, missed"
control -f1
net serve 127.0.0.1 1 0 >/tmp/said
assert_eq "$(stat m started) $(stat m missed)" "1 1" "a call with room: started, missed"
unload_module
