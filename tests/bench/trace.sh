# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# trace.sh: records a busy kernel, with nearly all events of LTTng, inside the virtual machine: into /lt/out/trace, and
# once more, in the older format, into /lt/out/trace-1.8.

set -eu
lttng-sessiond --daemonize
# The events of writeback are left out: their probes run in tasks that can be preempted, which
# damages the trace (Documentation/upstream/lttng-probe-preempt.patch).
lttng --mi xml list --kernel | grep -o '<name>[^<]*' | cut -d'>' -f2 | grep -v '^writeback_' >/tmp/events
[ "$(wc -l </tmp/events)" -ge 100 ]

# record NAME OPTION...: record the load into /lt/out/NAME; an OPTION is passed to lttng create.
record() {
	lttng create "$@" --output="/lt/out/$1"
	lttng enable-channel --kernel --subbuf-size=1M --num-subbuf=16 channel
	lttng add-context --kernel --channel=channel --type=pid --type=tid --type=procname
	lttng enable-event --kernel --channel=channel "$(paste -sd, /tmp/events)"
	lttng enable-event --kernel --channel=channel --all --syscall
	lttng start
	for _ in 1 2 3 4 5 6; do
		ls -lR /usr/lib | sort | gzip >/tmp/x
		dd if=/tmp/x of=/tmp/y bs=4k conv=fsync
	done >/dev/null 2>&1
	hackbench -l 200 -g 2 >/dev/null 2>&1
	lttng stop
	lttng destroy
}

record trace
record trace-1.8 --trace-format=ctf-1.8
