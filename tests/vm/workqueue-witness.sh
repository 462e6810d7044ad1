# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The alerts are exactly the work items, one by one: ftrace records when each is queued, started and ended, and
# lt-witness computes from its trace how long each waited, and ran, on which workqueue and by which worker; with
# part=all both of the same alert. Works of writeback, of timers, of a disk and of the test's own module, some of which
# are queued again while they run, or put off while they wait.
#
# The threshold is 0: every work is an alert. Nobody reads while it lasts.
# kernels: stock rt
# cpus: 2
# root: full
# icount: 1
# debug: no, a sanitizer takes longer between two probes than the comparison allows
# timeout: 200

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/sched.sh

trace=/sys/kernel/tracing
load_module
insmod /lt/lt_works.ko
run() { for word in "$@"; do echo "$word" >/sys/module/lt_works/parameters/run; done; }
null_disk disk 200000 size=128
modprobe ext4
mkfs.ext4 -q /dev/disk
mkdir -p /tmp/disk
mount /dev/disk /tmp/disk
echo mono >$trace/trace_clock
echo 20000 >$trace/buffer_size_kb
echo 1 >$trace/events/workqueue/enable
work() {
	for _ in 1 2 3 4 5 6; do run slow again freed delayed behind cancel; done
	fio --name=w --directory=/tmp/disk --rw=randwrite --bs=4k --size=4M --fsync=64 --numjobs=2 --output=/dev/null
	sync
	run again behind
}
# The first time of everything is slow under emulation.
run slow again freed

# What of the trace is begin and end; the key and what else the alert has to say.
queued='workqueue_queue_work(work:struct=; workqueue:workqueue= context)'
rule_waiting="last $queued -> workqueue_execute_start(work:#2; tid)"
rule_running='last workqueue_execute_start(work:#2 tid) -> workqueue_execute_end(work:#2 tid)'

# What is queued again at any time, also between being taken by a worker and being started there: then the tracepoints
# do not tell which start belongs to which, and the probes of ftrace and of the module may see them in another order.
racing='blk_mq_run_work_fn|ext4_end_io_rsv_work'

# without_racing: takes these out of /tmp/trace and /tmp/alerts, whose numbers go on without a gap.
without_racing() {
	grep -Ev "$racing" /tmp/trace >/tmp/rest
	mv /tmp/rest /tmp/trace
	grep -Ev "$racing" /tmp/alerts | awk '{ $1 = "seq=" NR; print }' >/tmp/rest
	mv /tmp/rest /tmp/alerts
}

# exact PART WHAT: the alerts in /tmp/alerts are the works of /tmp/trace that begin and end as this part does.
exact() {
	case $1 in waiting) rule=$rule_waiting ;; *) rule=$rule_running ;; esac
	lt-witness --rule "$rule" --threshold 0 --expect-at-least 40 /tmp/trace /tmp/alerts ||
		{ cp /tmp/trace /tmp/alerts /lt/out; fail "$2 is not exact"; }
}

# of_all PART: from the alerts in /tmp/all those of part=waiting or part=running, by what they say of both.
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
	echo 0 >$trace/tracing_on
	echo >$trace/trace
	echo 1 >$trace/tracing_on
	control "w workqueue part=$part threshold=0 ring=65536"
	exec 3<$LT/w/alerts
	sleep 0.2
	echo lt-witness begin >$trace/trace_marker
	work
	sleep 0.2
	echo lt-witness end >$trace/trace_marker
	echo 0 >$trace/tracing_on
	control "w workqueue enabled=0"
	alerts_of w /tmp/alerts
	exec 3<&-
	cat $trace/trace >/tmp/trace
	without_racing
	case $part in
	all)
		mv /tmp/alerts /tmp/all
		# What waits for others to end is not queued, so it is not followed.
		grep -v wq_barrier_func /tmp/trace >/tmp/queued
		mv /tmp/queued /tmp/trace
		for time in waiting running; do
			of_all $time
			exact $time "the time $time of part=all"
		done
		;;
	*) exact $part "part=$part" ;;
	esac
	grep -v ' 0$' $LT/w/stats
	sums_hold w
	for key in full unmatched negative alerts_lost readers; do assert_eq "$(stat w $key)" 0 "$part: $key"; done
	control -w
done
umount /tmp/disk
rmmod lt_works
unload_module
