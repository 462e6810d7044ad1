# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# scaling.sh: records traces of hackbench, each of a different length, inside the virtual machine.
#
# usage: scaling.sh DIRECTORY CLIENTS SECONDS...
#
# Each client sends messages to a server of its own. The load runs only while it is recorded, so the size of a trace,
# in DIRECTORY/SECONDS, follows its length, however slow LTTng's commands are. LTTng's consumer, which would rarely get
# the CPU among many clients, is started with a high priority; the buffers of a CPU hold 64 MB.

set -eu
directory=$1 clients=$2
shift 2
nice -n -20 lttng-sessiond --daemonize
for seconds in "$@"; do
	lttng create scaling --output="$directory/$seconds"
	lttng enable-channel --kernel --subbuf-size=4M --num-subbuf=16 channel
	lttng enable-event --kernel --channel=channel 'sched_*,irq_*,timer_hrtimer_*,x86_irq_vectors_*'
	lttng enable-event --kernel --channel=channel --syscall --all
	lttng start
	# as the leader of a process group, which is killed as a whole
	setsid hackbench --process --groups "$clients" --fds 1 --loops 100000000 >/dev/null 2>&1 &
	sleep "$seconds"
	kill -KILL "-$!"
	wait $! || :
	lttng stop
	lttng destroy
done
