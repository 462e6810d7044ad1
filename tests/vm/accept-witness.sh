# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The alerts match the answered connections one by one. ftrace records the calls of each family's
# functions that accept a connection, send, or close a socket, and the return values of accept(2)
# and accept4(2). From these events, lt-witness computes how long each connection took to its first
# bytes, which task accepted it on which descriptor and port, and how many bytes were sent. The
# tracker attaches elsewhere: for sends, to one tracepoint shared by all families; for accepts, to
# the system call; for closes, to the release of the file.
#
# Threads and processes serve several clients at once over IPv4, IPv6 and Unix sockets, by six different system calls,
# and on descriptors that are duplicated, inherited, passed on, and reused by the next connection. Some connections are
# closed without a byte, and must raise no alert.
#
# First the threshold is 0, so every answered connection raises an alert, and about half of the servers take 20 ms. Then
# these servers take 200 ms, and the threshold is 150 ms. Even under emulation, no other connection takes that long, so
# exactly the connections of these servers raise alerts. No task reads alerts meanwhile. The machine's clock counts
# instructions, so other load on the host does not matter.
#
# Addresses of sockets are compared as text. ftrace's dynamic events print them unhashed, so the alerts must, too
# (no_hash_pointers).
# kernels: rt
# long: stock
# cpus: 2
# root: full
# icount: 1
# append: no_hash_pointers
# debug: no, sanitizers add more time between two probes than the comparison allows
# timeout: 300

. /lt/tests/lib.sh
. /lt/tests/witness.sh

/usr/bin/ip link set lo up
load_module
tracing 20000

event() { echo "f:lt/$1" >>$TRACE/dynamic_events || { cat $TRACE/error_log; fail "$1"; }; }
# A port is two bytes in network order. A Unix socket has none.
remote='skc_dport:b8@0/16 low=$retval->__sk_common.skc_dport:b8@8/16'
event "accepted inet_csk_accept%return socket=\$retval port=\$retval->__sk_common.skc_num:u16 high=\$retval->__sk_common.$remote"
event 'unix_accepted unix_accept%return socket=newsock->sk'
event 'sent tcp_sendmsg%return socket=$arg1 bytes=$retval:s32'
event 'unix_sent unix_stream_sendmsg%return socket=sock->sk bytes=$retval:s32'
event 'closed tcp_close socket=$arg1'
event 'unix_closed unix_release socket=sock->sk'
# A failed call has no socket.
for accepted in accepted unix_accepted; do echo 'socket != 0' >$TRACE/events/lt/$accepted/filter; done
for sent in sent unix_sent; do echo 'bytes > 0' >$TRACE/events/lt/$sent/filter; done
echo 1 >$TRACE/events/lt/enable
# accept and accept4
echo 'id == 43 || id == 288' >$TRACE/events/raw_syscalls/sys_exit/filter
echo 1 >$TRACE/events/raw_syscalls/sys_exit/enable

# Real-time tasks, so that no ordinary task preempts them between two probes.
serve() { chrt -f 10 python3 -W ignore /lt/tests/serve.py "$@"; }
served() { serve "$@" >/tmp/served; }
# of KEY: print a count from the servers.
of() { sed "s/.*$1=\([0-9]*\).*/\1/" /tmp/served; }

# as_the_alert: convert a trace: one event name for all families, and values as in an alert.
as_the_alert() {
	awk '
		{ sub(/: unix_accepted: /, ": accepted: "); sub(/: unix_sent: /, ": sent: "); sub(/: unix_closed: /, ": closed: ") }
		/: (accepted|sent|closed): / { sub(/ socket=0x/, " socket=") }
		/: accepted: / {
			port = remote = 0
			for (i = 1; i <= NF; i++) {
				split($i, word, "=")
				if (word[1] == "port") port = word[2]
				if (word[1] == "high") remote += word[2] * 256
				if (word[1] == "low") remote += word[2]
			}
			$0 = $0 " port=" port " remote=" remote
		}
		{ print }'
}

# Warm up: the first run of anything is slow under emulation.
serve 1 1

# late THRESHOLD CLIENTS MS WHAT: check that the alerts are exactly the connections that took
# longer, that their number is what the servers counted as WHAT, and that every slow connection took
# at least MS.
late() {
	both accept "threshold=$1 ring=16384 stack=0" served "$2" "$3"
	edit /tmp/trace as_the_alert
	cp /tmp/alerts /tmp/all
	edit /tmp/alerts \
		sed 's/ local=[^ ]*:\([0-9]*\) remote=[^ ]*:\([0-9]*\) / port=\1 remote=\2 /; s/ local= remote= / port=0 remote=0 /'
	cat /tmp/served
	exact "what took longer than $1" --rule accept --threshold "$1" --usual 500us --most 5ms --expect-at-least "$(of "$4")"
	none "longer than $1" full negative alerts_lost readers replaced cleared
	assert_eq "$(stat w alerts) $(stat w started) $(stat w ended) $(stat w closed) $(stat w gone)" \
		"$(of "$4") $(of accepted) $(of answered) $(of closed) $(of closed)" "alerts, started, ended, closed, gone"
	long=$(sed 's/.* delay=\([0-9]*\) .*/\1/' /tmp/all | awk -v ms="$3" '$1 >= ms * 1000000' | wc -l)
	[ "$long" -ge "$(of slow)" ] || fail "$long took $3 ms, of $(of slow)"
	control -w
}
late 0 3 20 answered
# One connection in ten may differ by more than the usual 500 us, so there must be many slow ones.
late 150ms 5 200 slow
sed 's/.* \(family=[a-z0-9]*\) .* \(bytes=.*\)/\1 \2/' /tmp/all | sort | uniq -c
unload_module
