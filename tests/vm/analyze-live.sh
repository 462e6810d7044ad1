# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The tables of `latency-tracker analyze` equal what the trackers count meanwhile, one operation after another: wakeups,
# system calls, requests of a disk and handlers of a line. Each instance has the threshold 0, so each operation is an
# alert. The load is of tasks that wake each other, start and exit, of calls that wait and fail, and of direct requests.
#
# The windows of the trace and of the instances differ at their edges, so only what lies inside both is compared:
#
#     trace starts   instances start   load   instances stop   trace stops
#     ------|---------------|----------====---------|---------------|----->
#                          born               last, alive
#
# - Wakeups and calls: all those of the tasks that were born after the instances were started, and had been reaped
#   before the first instance was stopped. Thread ids are given out in order, so these tasks have the ids after `born`,
#   the last one before the load, up to `last`, the last one after it, except for those that exist then.
# - Requests and handlers: all those of the disk and of the line. Nothing else uses the two, and the load waits until
#   they have ended.
#
# The buffers of the tracer hold the whole trace, so it discards nothing. No reader runs meanwhile.
# kernels: rt
# long: stock
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root has no LTTng
# timeout: 180

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/sched.sh

load_module
null_disk slow 2000000
# Warm up: the first run of anything is slow under emulation; the line has the same number later.
insmod /lt/lt_irqs.ko times=1
line=$(cat /sys/module/lt_irqs/parameters/number)
rmmod lt_irqs
waits crowd 2 5
python3 /lt/tests/calls.py many 2

# Without command substitution: a shell that waits for a child may get a signal, and the trace has no end of the call
# with which its handler returns.
load() {
	insmod /lt/lt_irqs.ko times=5
	read -r again </sys/module/lt_irqs/parameters/number
	assert_eq "$again" "$line" "the line"
	rmmod lt_irqs
	reads slow 20
	writes slow 20
	waits crowd 4 60
	python3 /lt/tests/calls.py many 20
	hackbench -g 1 -f 4 -l 20 >/dev/null
}

# The tasks of the load have higher ids than all older ones. At the usual limit, the ids could start again.
pid_max=$(cat /proc/sys/kernel/pid_max)
echo 4194304 >/proc/sys/kernel/pid_max
lttng create live --output=/tmp/live
lttng enable-channel --kernel --subbuf-size=4M --num-subbuf=8 channel
lttng enable-event --kernel --channel=channel 'sched_*,irq_handler_*,block_rq_*'
lttng enable-event --kernel --channel=channel --syscall --all
lttng start
control "handlers irq threshold=0 irq=$line"
control "requests block threshold=0 dev=slow"
control "wakeups wakeup threshold=0 ring=65536 events=1024"
control "calls syscall threshold=0 ring=131072 events=1024"
exec 4<$LT/handlers/alerts 5<$LT/requests/alerts 6<$LT/wakeups/alerts 7<$LT/calls/alerts

read -r _ _ _ _ born </proc/loadavg
load
read -r _ _ _ _ last </proc/loadavg
wait_until 10 quiet requests
for thread in /proc/[0-9]*/task/[0-9]*; do echo "${thread##*/}"; done >/tmp/alive

for instance in 'handlers irq' 'requests block' 'wakeups wakeup' 'calls syscall'; do control "$instance enabled=0"; done
lttng stop
lttng destroy
alerts_of handlers /tmp/handlers 3<&4
alerts_of requests /tmp/requests 3<&5
alerts_of wakeups /tmp/wakeups 3<&6
alerts_of calls /tmp/calls 3<&7
exec 4<&- 5<&- 6<&- 7<&-
for name in handlers requests wakeups calls; do
	sums_hold $name
	for key in full negative alerts_lost; do assert_eq "$(stat $name $key)" 0 "$name: $key"; done
done
for name in handlers requests; do assert_eq "$(stat $name alerts)" "$(stat $name ended)" "$name: an alert for each"; done

for analysis in irq io wakeups syscalls; do
	by=''
	[ $analysis != syscalls ] || by='--by thread'
	/lt/bin/latency-tracker analyze $analysis /tmp/live $by -n 1000000 --json >/tmp/$analysis.json
done
python3 -B /lt/tests/analyze_live.py "$born" "$last" "$line" "$(dev_of slow)" ||
	{ cp /tmp/*.json /tmp/handlers /tmp/requests /tmp/wakeups /tmp/calls /lt/out; fail "a trace and the trackers do not measure the same"; }
echo "$pid_max" >/proc/sys/kernel/pid_max
for name in handlers requests wakeups calls; do control "-$name"; done
unload_module
