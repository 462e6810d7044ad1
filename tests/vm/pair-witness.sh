# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The alerts match the times from one point to another, one by one, with key, arguments and context:
# ftrace records the same points at the same time, and lt-witness pairs its events. The first pairs
# are timers of both kinds, from their start to their handler, paired by the address of the timer. A
# timer is sometimes started again before it expires, so that a new event starts or the event
# continues. The other pairs are calls of two functions, paired by the thread: from a write until
# its task waits for the disk.
#
# The threshold is 0, so every pair is an alert. No reader runs meanwhile, and none is woken: our
# own timer for wakeups is not followed (own), and must not expire. The machine's clock counts
# instructions, so other load on the host does not matter.
# kernels: rt
# long: stock
# cpus: 2
# root: full
# icount: 1
# debug: no, sanitizers add more time between two probes than the comparison allows
# timeout: 200

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/witness.sh

load_module
null_disk disk 200000 size=128
insmod /lt/lt_functions.ko
# On PREEMPT_RT timers expire in threads, which can be preempted between two probes; a real-time priority prevents that.
urgent 90 '^ktimers/'
tracing 20000
writes() {
	fio --name=w --filename=/dev/disk --rw=randwrite --bs=4k --number_ios="$1" --fsync=1 --numjobs=2 \
		--output=/tmp/fio.log || { cat /tmp/fio.log; fail "fio failed"; }
}
work() {
	hackbench -g 1 -f 4 -l 20
	for _ in $(seq "$1"); do /usr/bin/sleep 0.005; done
	# Sleeps use a timer of the other kind. There are many, since one in ten may be an exception.
	echo sleep $(($1 * 3)) 1 >/proc/lt_functions
	writes "$1"
}

# pairs LEAST RULE WORD...: create an instance with these words, and check that its alerts are the
# pairs of the rule in the trace, at least LEAST.
pairs() {
	least=$1 rule=$2
	shift 2
	both pair "$* threshold=0 ring=65536 events=16384 wakeup_interval=3600s" work 40
	head -n 1 /tmp/alerts
	# An alert has a list instead of the rule's separate words.
	edit /tmp/alerts sed 's/ begin=\([^ ,]*\),/ begin=\1 begin1=/; s/ key=\([^ ,]*\),/ key=\1 key1=/'
	# The module's own calls are counted in `own`, and raise no alert.
	edit /tmp/trace grep -v ' function=.* \[latency_tracker\]'
	exact "$*" --rule "$rule" --threshold 0 --usual 500us --most 5ms --expect-at-least "$least"
	none "$*" full negative gone alerts_lost missed readers
}
# Warm up: the first run of anything is slow under emulation.
work 5

echo 1 >$TRACE/events/timer/enable
timers='begin=tracepoint:timer_start end=tracepoint:timer_expire_entry begin_key=arg0 begin_show=arg1 end_show=arg1'
started='timer_start(key:timer=; context begin:bucket_expiry=)'
expired='timer_expire_entry(key:timer=; end:baseclk=)'
pairs 100 "last $started -> $expired" "$timers"
assert_eq "$(stat w again)" 0 "continued"
[ "$(stat w replaced)" -ge 1 ] || fail "no timer was started again"
control -w
pairs 100 "first $started -> $expired" "$timers again=keep"
assert_eq "$(stat w replaced)" 0 "begun again"
[ "$(stat w again)" -ge 1 ] || fail "no timer was started again"
control -w

pairs 200 'last hrtimer_start(key:hrtimer=; context) -> hrtimer_expire_entry(key:hrtimer=)' \
	begin=tracepoint:hrtimer_start end=tracepoint:hrtimer_expire_entry begin_key=arg0
control -w
echo 0 >$TRACE/events/timer/enable

# Pairs by the thread, on any CPU.
echo 'f:lt/called vfs_write buf=$arg2:u64 count=$arg3:u64' >>$TRACE/dynamic_events
echo 'f:lt/waits io_schedule' >>$TRACE/dynamic_events
echo 1 >$TRACE/events/lt/enable
pairs 40 'last called(key:@tid; context begin:buf= begin1:count=) -> waits(key:@tid)' \
	begin=function:vfs_write end=function:io_schedule begin_show=arg1,arg2
control -w
echo 0 >$TRACE/events/lt/enable
echo >$TRACE/dynamic_events
rmmod lt_functions
unload_module
as_usual
