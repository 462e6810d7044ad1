# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A woken task is kept from its CPU for a while by an interrupt, a softirq, the thread of an
# interrupt, an NMI, or by several of these, nested. With interference=1, the last step of its
# path has the time of each and no other time. Nested time is counted once. A task that migrates
# while it waits has waited for both CPUs. Without interference=1 the step has no such times.
# kernels: rt
# long: stock
# cpus: 2
# root: full
# icount: 1
# turn: 100
# arm64: no, lt_causes can send NMIs only on x86
# timeout: 400

. /lt/tests/lib.sh
. /lt/tests/witness.sh

load_module
us=6000
# shellcheck source=tests/tree.sh
. /lt/tests/tree.sh
# Noise comes from a tick every 4 ms, the ends of interrupts, switches, and the emulation of the
# other processor. A busy period ends at a fixed time, so a tick during it shortens it. A tenth of
# each part is tolerated. Other tasks of that CPU, and softirqs (RCU callbacks and their thread),
# may also run: ftrace has the length of each.
slack=$((us * 100))
# On a slower kernel, other interrupts, softirqs and tasks take longer, too.
in_time || slack=+$slack
case $(uname -r) in *-rt-*) rt=1 ;; *) rt='' ;; esac

# by WORD [PART...]: get three alerts of a task that waits because of WORD. Each PART is NAME:TIMES: `judge` checks
# that NAME has taken TIMES times `us`.
by() {
	word=$1
	shift
	exec 3<$LT/t/alerts
	echo >$TRACE/trace
	echo 1 >$TRACE/tracing_on
	target 3 "$word"
	echo 0 >$TRACE/tracing_on
	cat $TRACE/trace >/tmp/trace
	alerts_of t /tmp/alerts
	exec 3<&-
	cat /tmp/alerts
	assert_eq "$(wc -l </tmp/alerts)" 3 "alerts of $word"
	note "$word" sums /tmp/alerts
	expected=
	for part; do expected="$expected ${part%:*}=$((us * ${part#*:}))000"; done
	mv /tmp/trace "/tmp/trace.$word"
	# shellcheck disable=SC2086
	note "$word" parts /tmp/alerts $slack "/tmp/trace.$word" "$thread" $expected
}
for word in late-irq late-task late-nmi; do target 1 $word; done
[ -n "$rt" ] || target 1 late-softirq
thread=irq/$(cat $parameters/threaded)-lt_threaded
thread=$(printf %.15s "$thread")

tracing 2000 sched/sched_switch irq/irq_handler_entry irq/irq_handler_exit
tracing 2000 irq/softirq_entry irq/softirq_exit
control "t tree threshold=${late}us comm=lt_target interference=1"
by late-irq irq:1
# The interrupt thread counts as an interrupt.
by late-task irq:2
by late-nmi irq:2
# On PREEMPT_RT the softirq runs in a thread that the target may preempt.
[ -n "$rt" ] || by late-softirq irq:1 softirq:1

# The interrupt thread keeps the target off CPU 1 until the target may run on CPU 0. By then the thread has run again.
echo "$(patiently 600000)" >$parameters/us
interrupts() { awk '$NF == "lt_threaded" { print $2 + $3 }' /proc/interrupts; }
before=$(interrupts)
exec 3<$LT/t/alerts
/usr/bin/taskset -c 1 sh -c 'echo $$ >/tmp/pid; printf lt_target >/proc/$$/comm; echo late-task >'$parameters/run &
has_come() { [ "$(interrupts)" -gt "$before" ]; }
wait_until 20 has_come
/usr/bin/taskset -p 1 "$(cat /tmp/pid)" >/dev/null
wait $!
alerts_of t /tmp/alerts
exec 3<&-
cat /tmp/alerts
grep ' switch:[0-9]*(lt_target)/120@0+' /tmp/alerts >/tmp/moved || fail "it was not moved"
note moved sums /tmp/moved
# The target was migrated during the interrupt that preempted the thread: it waited for that interrupt, on CPU 1.
awk '{ match($0, /@0[+][0-9]+[{]irq:[0-9]+/); split(substr($0, RSTART + 3, RLENGTH - 3), part, /[{]irq:/)
	if (part[1] < 10000000 || part[2] < 0.9 * part[1]) exit 1 }' /tmp/moved || fail "moved: not what has kept it on CPU 1"
control -t
echo "$us" >$parameters/us

control "t tree threshold=${late}us comm=lt_target"
exec 3<$LT/t/alerts
target 3 late-irq
alerts_of t /tmp/alerts
exec 3<&-
assert_eq "$(wc -l </tmp/alerts) $(grep -c '{' /tmp/alerts)" "3 0" "alerts without interference"
control -t
for bad in interference=2 interference=on; do
	refused "$bad" control "bad tree $bad"
done
rmmod lt_causes
unload_module
judge
