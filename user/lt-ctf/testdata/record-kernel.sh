#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# record-kernel.sh [TRACE...]: records these kernel traces, or all, into /lt/out, in the virtual
# machine; make calls it.
#
#   compact   few events, so short headers; contexts
#   all       all tracepoints and system calls, so long headers; call stacks; each stream in several files
#   snapshot  a flight recorder, which has overwritten the start
#   rare      field classes that few events have: parts of network packets, in network byte order, some with a size
#             that is not whole bytes; octal modes; flags of poll
#   rare-1.8  as rare, in the older format

set -eu

does() {
	find /usr/lib -name '*a' | head -n 200 | sort >/tmp/list
	dd if=/tmp/list of=/dev/null bs=512 2>/dev/null
}

# record NAME CREATE-OPTION... -- CHANNEL-OPTION...
record() {
	name=$1
	shift
	case " ${wanted:-$name} " in *" $name "*) ;; *) return 0 ;; esac
	create=
	while [ "$1" != -- ]; do
		create="$create $1"
		shift
	done
	shift
	# shellcheck disable=SC2086 # options, or none
	lttng create "$name" $create --output="/lt/out/$name"
	lttng enable-channel --kernel "$@" channel
	contexts
	events
	lttng start
	does
	[ "$name" != snapshot ] || { sleep 0.5; lttng snapshot record; }
	lttng stop
	lttng destroy "$name"
}

wanted=$*
lttng-sessiond --daemonize

contexts() { lttng add-context --kernel --channel=channel --type=pid --type=procname --type=prio; }
events() { lttng enable-event --kernel --channel=channel sched_switch,sched_waking,irq_softirq_raise,irq_softirq_entry,irq_softirq_exit,irq_handler_entry,timer_hrtimer_start; }
record compact -- --subbuf-size=16k --num-subbuf=16

events() { lttng enable-event --kernel --channel=channel sched_switch,sched_waking,irq_softirq_entry,irq_softirq_exit; }
record snapshot --snapshot -- --subbuf-size=4k --num-subbuf=2

contexts() { lttng add-context --kernel --channel=channel --type=tid --type=callstack-kernel; }
events() {
	lttng enable-event --kernel --channel=channel --all --tracepoint
	lttng enable-event --kernel --channel=channel --all --syscall
}
record all -- --subbuf-size=16k --num-subbuf=4 --tracefile-size=65536 --tracefile-count=2

ip link set lo up
contexts() { lttng add-context --kernel --channel=channel --type=tid; }
events() {
	lttng enable-event --kernel --channel=channel \
		net_dev_queue,net_if_receive_skb,net_if_rx,udp_fail_queue_rcv_skb,lttng_statedump_file_descriptor
	lttng enable-event --kernel --channel=channel lttng_statedump_network_interface
	lttng enable-event --kernel --channel=channel --syscall poll,ppoll
}
does() {
	python3 - <<-'END'
		import select, socket
		for family, address in (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"):
		    server = socket.create_server((address, 0), family=family)
		    client = socket.create_connection(server.getsockname()[:2])
		    connection, _ = server.accept()
		    waits = select.poll()
		    waits.register(client, select.POLLIN | select.POLLPRI)
		    for size in 1, 10, 3000:
		        connection.send(b"x" * size)
		        waits.poll(1000)
		        client.recv(size)
		    connection.close()
		    waits.poll(1000)
		    # UDP packets: more than the receive buffer holds, and one to a port without a socket.
		    full = socket.socket(family, socket.SOCK_DGRAM)
		    full.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
		    full.bind((address, 0))
		    other = socket.socket(family, socket.SOCK_DGRAM)
		    for size in range(10):
		        other.sendto(bytes(1000), full.getsockname())
		    other.sendto(b"y", (address, 9))
	END
}
record rare -- --subbuf-size=16k --num-subbuf=16
record rare-1.8 --trace-format=ctf-1.8 -- --subbuf-size=16k --num-subbuf=16
