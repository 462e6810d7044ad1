# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The alerts match the work items one by one: ftrace records when each is queued, started and ended,
# and lt-witness computes from its trace how long each waited and ran, on which workqueue and by
# which worker. With part=all, both times are in the same alert. The items come from writeback,
# timers, a disk and the test's own module. Some are queued again while they run, or while they
# wait. An item that waits when it is queued again has waited since it was first queued.
#
# The threshold is 0, so every work item is an alert. No reader runs meanwhile.
# kernels: rt
# long: stock
# cpus: 2
# root: full
# icount: 1
# turn: 100
# debug: no, sanitizers add more time between two probes than the comparison allows
# timeout: 200

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/witness.sh

load_module
insmod /lt/lt_works.ko
run() { for word in "$@"; do echo "$word" >/sys/module/lt_works/parameters/run; done; }
null_disk disk 200000 size=128
modprobe ext4
mkfs.ext4 -q /dev/disk
mkdir -p /tmp/disk
mount /dev/disk /tmp/disk
tracing 20000 workqueue
work() {
	# lt-witness accepts a larger difference for one delay in ten, so there must be many items.
	for _ in $(seq 15); do run slow again freed delayed behind requeue; done
	# fio must not preempt a worker between two probes.
	chrt --idle 0 fio --name=w --directory=/tmp/disk --rw=randwrite --bs=4k --size=4M --fsync=64 --numjobs=2 --output=/dev/null
	sync
	run again behind
}
# Warm up: the first run of anything is slow under emulation.
run slow again freed

# For each part: the start and end events of the trace, the key, and the other fields of the alert.
queued='workqueue_queue_work(work:struct=; workqueue:workqueue= context)'
rule_waiting="first $queued -> workqueue_execute_start(work:#2; tid)"
rule_running='last workqueue_execute_start(work:#2 tid) -> workqueue_execute_end(work:#2 tid)'

# Work items that are queued again at any time, even after a worker has taken them and before it
# starts them. Then the tracepoints do not show which queueing a start belongs to, and the probes of
# ftrace and of the module may see them in a different order.
racing='blk_mq_run_work_fn|ext4_end_io_rsv_work'

# without_racing: remove the racing items from /tmp/trace and /tmp/alerts, and renumber the alerts.
without_racing() {
	edit /tmp/trace grep -Ev "$racing"
	edit /tmp/alerts grep -Ev "$racing"
	edit /tmp/alerts awk '{ $1 = "seq=" NR; print }'
}

# exact_part PART WHAT: check that the alerts in /tmp/alerts are the work items of /tmp/trace, with
# the start and the end of this part.
exact_part() {
	case $1 in waiting) rule=$rule_waiting ;; *) rule=$rule_running ;; esac
	exact "$2" --rule "$rule" --threshold 0 --expect-at-least 100
}

# of_all PART: from the alerts in /tmp/all, which have both times, make alerts of part=waiting or part=running.
of_all() {
	awk -v part="$1" '
		{
			for (i = 1; i <= NF; i++) { split($i, f, "="); v[f[1]] = f[2]; at[f[1]] = i }
			time = part == "waiting" ? v["time"] - v["running"] : v["time"] + 0
			$at["time"] = sprintf("time=%.0f", time)
			$at["delay"] = "delay=" (part == "waiting" ? v["queued"] : v["running"])
			print
		}' /tmp/all >/tmp/alerts
}

for part in waiting running all; do
	both workqueue "part=$part threshold=0 ring=65536" work
	without_racing
	case $part in
	all)
		mv /tmp/alerts /tmp/all
		# A barrier item, which waits for other items to end, is not queued, so it is not tracked.
		edit /tmp/trace grep -v wq_barrier_func
		for time in waiting running; do
			of_all $time
			exact_part $time "the time $time of part=all"
		done
		;;
	*) exact_part $part "part=$part" ;;
	esac
	none "$part" full unmatched negative alerts_lost readers
	control -w
done
umount /tmp/disk
rmmod lt_works
unload_module
