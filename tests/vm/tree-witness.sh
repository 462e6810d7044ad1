# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The alerts match the wake chains from interrupts and timers to tasks, one by one and step by step:
# ftrace records interrupts, timers, softirqs, work items, calls on other CPUs, wakeups and switches
# at the same time, and lt-witness rebuilds each chain from the trace, with its steps, their CPUs
# and times. The loads are threads that sleep, with and without a real-time priority; fio on a disk with
# interrupts and on one with timers, with a flood of packets between two namespaces; and the known
# causes of lt_causes.ko, with threaded interrupts and tasklets. A handler wakes a task on another
# CPU while the task sleeps, while it runs, and while it is about to do either.
#
# The threshold is 0, so every chain raises an alert. No reader runs meanwhile. The machine's clock
# counts instructions, so other load on the host does not matter, except that an interrupt of the
# real disk may come at any instruction.
# kernels: rt
# long: stock
# cpus: 2
# root: full
# icount: 1
# debug: no, sanitizers add more time between two probes than the comparison allows
# kcsan: no, as debug
# arm64: no, lt_causes can send NMIs only on x86
# timeout: 300

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/net.sh
. /lt/tests/witness.sh

load_module
insmod /lt/lt_causes.ko us=500
null_disk nullb0 500000
modprobe veth
between_namespaces

tracing 20000 irq/irq_handler_entry irq/irq_handler_exit irq/softirq_raise irq/softirq_entry irq/softirq_exit \
	sched/sched_waking sched/sched_switch sched/sched_process_fork \
	timer/hrtimer_start timer/hrtimer_expire_entry timer/hrtimer_expire_exit timer/timer_expire_entry timer/timer_expire_exit \
	workqueue/workqueue_queue_work workqueue/workqueue_execute_start workqueue/workqueue_execute_end \
	sched/sched_kthread_work_queue_work sched/sched_kthread_work_execute_start sched/sched_kthread_work_execute_end \
	csd/csd_queue_cpu csd/csd_function_entry csd/csd_function_exit
for vector in local_timer x86_platform_ipi irq_work call_function call_function_single thermal_apic; do
	for side in entry exit; do echo 1 >$TRACE/events/irq_vectors/${vector}_$side/enable; done
done

timers() {
	cyclictest --threads=3 --policy=other --interval=1700 --distance=370 --loops="$1" --quiet >/dev/null &
	cyclictest --threads=2 --priority=80 --interval=2300 --distance=510 --loops="$1" --quiet >/dev/null
	wait $!
}
devices() {
	fio --readonly --rw=randread --bs=4k --direct=1 --ioengine=libaio --iodepth=4 --size=4m --number_ios="$1" \
		--name=real --filename=/dev/vda --name=timer --filename=/dev/nullb0 >/tmp/fio &
	/lt/guest/busybox ping -A -q -c $((2 * $1)) 10.9.0.2 >/tmp/ping || fail "ping: $(cat /tmp/ping)"
	wait $! || fail "fio: $(cat /tmp/fio)"
}
causes() {
	for _ in $(seq "$1"); do
		for word in handler softirq thread hard soft fan busy nested work queue job jobs call wheel; do
			echo $word >/sys/module/lt_causes/parameters/run
		done
	done
}

storm() {
	echo 0 >/sys/module/lt_causes/parameters/us
	echo $((20 * $1)) >/sys/module/lt_causes/parameters/rounds
	/usr/bin/taskset -c 1 sh -c 'echo storm >/sys/module/lt_causes/parameters/run'
}

# kernel_threads: print their ids, found by the flag PF_KTHREAD.
kernel_threads() {
	cat /proc/[0-9]*/stat 2>/dev/null | awk '{ id = $1; sub(/.*\) /, ""); if (int($7 / 2097152) % 2) print id }'
}

# chains LOAD TIMES LEAST: compare the alerts of a load, which must be at least LEAST.
chains() {
	# Warm up: the first run of anything is slow under emulation.
	"$1" 3
	kernel_threads >/tmp/kthreads
	both tree 'threshold=0 ring=16384 events=1024' "$1" "$2"
	# Add the threads that have started since.
	kernel_threads >>/tmp/kthreads
	cp /tmp/kthreads /lt/out
	exact "$1" --tree /tmp/kthreads --threshold 0 --usual 500us --most 5ms --expect-at-least "$3"
	rm /lt/out/kthreads
	none "$1" full replaced negative alerts_lost readers unserved stale
	# The kinds of chains in the alerts, with the number of each.
	sed 's/.* path="//; s/"$//; s/@[0-9]*+[0-9]*//g; s/:[0-9][^ ]*//g' /tmp/alerts | sort | uniq -c | tee /tmp/kinds
	control -w
}
chains timers 60 250
chains devices 400 30
grep -q 'irq waking' /tmp/kinds || fail "no interrupt woke a task"
chains causes 8 50
for kind in raise:HI softirq:HI expire:lt_on_timer 'irq waking switch waking switch' 'queue:lt_on_item work:lt_on_item' \
	'queue:lt_on_job work:lt_on_job' \
	called:lt_on_call expire:lt_on_wheel; do
	grep -q "$kind" /tmp/kinds || fail "no chain with $kind"
done
chains storm 50 200
ip netns del inner
rmmod lt_causes
unload_module
