#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# record-kernel.sh: traces of a kernel into /lt/out, inside the virtual machine; make calls it.
#
#   compact   few events, so short headers; contexts
#   all       all tracepoints and system calls, so long headers; call stacks; each stream in several files
#   snapshot  a flight recorder, which has overwritten the begin

set -eu

# record NAME CREATE-OPTION... -- CHANNEL-OPTION...
record() {
	name=$1
	shift
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
	find /usr/lib -name '*a' | head -n 200 | sort >/tmp/list
	dd if=/tmp/list of=/dev/null bs=512 2>/dev/null
	[ -z "$create" ] || { sleep 0.5; lttng snapshot record; }
	lttng stop
	lttng destroy "$name"
}

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
