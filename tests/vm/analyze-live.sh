# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The tables of `latency-tracker analyze` match what the trackers count at the same time, operation by operation:
# wakeups, sleeps, waits of preempted tasks, system calls, futex calls, requests of a disk and their time in its queue,
# work items, reclaims, handlers of a line, and softirqs and their wait from the raise. Each instance has the threshold
# 0, so each operation is an alert. The load consists of tasks that wake each other, compute, start and exit, calls that
# wait and fail, threads that take turns, direct requests, work items of known functions, a program in a cgroup at its
# limit, and packets to this machine. LTTng has no events of contended kernel locks and of compaction, so these are not
# compared. Nor has it events of all ends of packets: only their number is compared. As many packets must leave the
# backlog of the loopback device as the tracker sees arrive.
#
# The windows of the trace and of the instances differ at their edges, so only what lies inside both is compared:
#
#     trace starts   instances start   load   instances stop   trace stops
#     ------|---------------|----------====---------|---------------|----->
#                          born               last, alive
#
# - Wakeups, preemptions, calls and reclaims, if their task was born after the instances were started, and was reaped
#   before the first instance was stopped. Thread ids are given out in order. So these tasks have the ids after `born`,
#   the last id before the load, up to `last`, the last id after the load, except for the ids of tasks that exist then.
# - Sleeps of the tasks with ids after `awake`, up to `slept`: they sleep for milliseconds, until a disk, a timer or
#   another task wakes them. If a task is woken at the very moment at which it falls asleep on another CPU, the two
#   tracepoints run at once, and the tracker and the trace may see them in different orders.
# - Requests of the disk, handlers of the line, softirqs of the vector HI, work items of lt_works, and packets of the
#   loopback device. Nothing else uses these five, and the load waits until all such operations have ended.
#
# The buffers of the tracer hold the whole trace, so it discards nothing. No reader runs meanwhile.
# kernels: rt
# long: stock
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root has no LTTng
# timeout: 600
# worth: the only proof that traces and trackers measure the same, event by event, for ten trackers

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/net.sh
. /lt/tests/sched.sh

small=/sys/fs/cgroup/small
load_module
null_disk slow 2000000
null_disk quick 0
# With a scheduler, each request is in a queue first.
modprobe mq-deadline 2>/dev/null || :
echo mq-deadline >/sys/block/slow/queue/scheduler
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir $small
echo 20M >$small/memory.max
insmod /lt/lt_works.ko ms=2
# Warm up: the first run of anything is slow under emulation; the line has the same number later.
insmod /lt/lt_irqs.ko times=1
line=$(cat /sys/module/lt_irqs/parameters/number)
rmmod lt_irqs
waits crowd 2 5
python3 /lt/tests/calls.py many 2 2
python3 /lt/tests/calls.py write 1 1
echo slow >/sys/module/lt_works/parameters/run
ip link set lo up
python3 /lt/tests/net.py flood 127.0.0.1 20

# Without command substitution: a shell that waits for a child may get a signal, and then the trace does not have
# the end of the system call with which the signal handler returns.
load() {
	insmod /lt/lt_irqs.ko times=5
	read -r again </sys/module/lt_irqs/parameters/number
	assert_eq "$again" "$line" "the line"
	rmmod lt_irqs
	# The softirqs of all other vectors would be many.
	control 'raises pair enabled=0'
	read -r _ _ _ _ awake </proc/loadavg
	reads slow 20
	writes slow 20
	python3 /lt/tests/calls.py write 10 5
	read -r _ _ _ _ slept </proc/loadavg
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		for word in slow behind freed delayed; do echo "$word" >/sys/module/lt_works/parameters/run; done
	done
	# shellcheck disable=SC2016 # for the other shell
	sh -c 'echo $$ >/sys/fs/cgroup/small/cgroup.procs; exec dd if=/dev/quick of=/dev/null bs=1M count=60' 2>/dev/null
	waits crowd 4 60
	waits preempt 1 5
	python3 /lt/tests/calls.py many 20 20
	python3 /lt/tests/net.py flood 127.0.0.1 30
	hackbench -g 1 -f 4 -l 20 >/dev/null
}

# The tasks of the load have higher ids than all older ones. At the usual limit, the ids could start again.
pid_max=$(cat /proc/sys/kernel/pid_max)
echo 4194304 >/proc/sys/kernel/pid_max
lttng create live --output=/tmp/live
lttng enable-channel --kernel --subbuf-size=4M --num-subbuf=8 channel
lttng enable-event --kernel --channel=channel 'sched_*,irq_handler_*,irq_softirq_*,block_rq_*,workqueue_*'
lttng enable-event --kernel --channel=channel 'mm_vmscan_direct_reclaim_*,mm_vmscan_memcg_reclaim_*'
lttng enable-event --kernel --channel=channel net_if_rx,net_if_receive_skb,net_dev_queue,net_dev_xmit,skb_kfree,skb_consume
lttng enable-event --kernel --channel=channel --syscall --all
lttng start
control "handlers irq threshold=0 irq=$line"
control "requests block threshold=0 dev=slow"
control "wakeups wakeup threshold=0 ring=65536 events=1024"
control "calls syscall threshold=0 ring=131072 events=1024"
control "preempted runqueue threshold=0 kthreads=0 stack=0 ring=16384 events=1024"
control "softirqs softirq threshold=0 vec=hi"
control "packets net threshold=0 dev=lo"
control "sleeps offcpu threshold=0 when=blocked stack=0 ring=16384 events=1024"
control "reclaims reclaim threshold=0 stack=0 ring=8192"
control "works workqueue threshold=0 ring=16384 events=1024"
# The softirq starts on the CPU on which it was raised. A further raise before that changes nothing.
control "raises pair begin=tracepoint:softirq_raise end=tracepoint:softirq_entry begin_key=cpu,arg0:32 again=keep \
threshold=0 ring=65536 wakeup_interval=3600s"
exec 4<$LT/handlers/alerts 5<$LT/requests/alerts 6<$LT/wakeups/alerts 7<$LT/calls/alerts 8<$LT/preempted/alerts \
	9<$LT/softirqs/alerts

read -r _ _ _ _ born </proc/loadavg
load
read -r _ _ _ _ last </proc/loadavg
wait_until 10 quiet requests
for thread in /proc/[0-9]*/task/[0-9]*; do echo "${thread##*/}"; done >/tmp/alive

for instance in 'handlers irq' 'requests block' 'wakeups wakeup' 'calls syscall' 'preempted runqueue' 'softirqs softirq' \
	'packets net' 'sleeps offcpu' 'reclaims reclaim' 'works workqueue'; do
	control "$instance enabled=0"
done
lttng stop
lttng destroy
alerts_of handlers /tmp/handlers 3<&4
alerts_of requests /tmp/requests 3<&5
alerts_of wakeups /tmp/wakeups 3<&6
alerts_of calls /tmp/calls 3<&7
alerts_of preempted /tmp/preempted 3<&8
alerts_of softirqs /tmp/softirqs 3<&9
exec 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-
# Reads all alerts, until end-of-file.
for name in sleeps reclaims works raises; do
	cat $LT/$name/wakeup >/tmp/$name
	assert_eq "$(wc -l </tmp/$name)" "$(stat $name alerts)" "$name: alerts"
done
names='handlers requests wakeups calls preempted softirqs sleeps reclaims works raises'
assert_eq "$(stat requests requeued)" 0 "requests that the driver gave back"
for name in $names packets; do
	sums_hold $name
	for key in full negative alerts_lost; do assert_eq "$(stat $name $key)" 0 "$name: $key"; done
done
for name in handlers requests softirqs; do assert_eq "$(stat $name alerts)" "$(stat $name ended)" "$name: an alert for each"; done

for analysis in irq io wakeups cpu syscalls locks net sleeps reclaim work; do
	case $analysis in
		syscalls|locks|reclaim) by='--by thread' ;;
		*) by='' ;;
	esac
	/lt/bin/latency-tracker analyze $analysis /tmp/live $by -n 1000000 --json >/tmp/$analysis.json
done
python3 -B /lt/tests/analyze_live.py "$born" "$awake" "$slept" "$last" "$line" "$(dev_of slow)" "$(stat packets started)" ||
	{ (cd /tmp && cp -- *.json $names /lt/out); fail "a trace and the trackers do not measure the same"; }
echo "$pid_max" >/proc/sys/kernel/pid_max
for name in $names packets; do control "-$name"; done
rmdir $small
rmmod lt_works
unload_module
