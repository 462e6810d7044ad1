# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A task that sleeps 300 ms is reported once, with that delay, its state, where it slept, and what woke it: an
# interrupt. One that waits for a pipe names who wrote to it, and from where. Neither is reported if it takes longer
# than max=, nor by an instance that wants who was preempted only.
# kernels: stock rt
# cpus: 2
# root: full
# icount: 1
# timeout: 150

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/sched.sh

load_module
# The first time of everything is slow under emulation.
waits pipe 5
ms=$(patiently 300)
threshold=$(patiently 200)ms
control "w offcpu threshold=$threshold comm=python3"
control "short offcpu threshold=$threshold max=$(patiently 250)ms comm=python3"
control "preempted offcpu threshold=$threshold when=preempted comm=python3"
control "blocked offcpu threshold=$threshold when=blocked comm=python3"
# words FILE TID: the only alert of a thread.
words() {
	assert_eq "$(grep -c " tid=$2 " "$1")" 1 "alerts of $2"
	grep " tid=$2 " "$1"
}
lasted() {
	[ "$2" -ge $(((ms - 10) * 1000000)) ] || fail "$1 took $2 ns"
	! in_time || [ "$2" -lt 320000000 ] || fail "$1 took $2 ns"
}

exec 3<$LT/w/alerts
who=$(waits sleep "$ms")
sleeper=${who#*=}
waits pipe "$ms" >/tmp/who
writer=$(sed 's/writer=\([0-9]*\) .*/\1/' /tmp/who) reader=$(sed 's/.*reader=//' /tmp/who)
alerts_of w /tmp/alerts
cat /tmp/alerts

words /tmp/alerts "$sleeper" >/tmp/alert
lasted sleep "$(field delay </tmp/alert)"
assert_eq "$(field state </tmp/alert)" S "state"
grep -q ' stack="hrtimer_nanosleep+' /tmp/alert || fail "where did it sleep?"
grep -q ' waker_stack="hrtimer_wakeup+\| waker_stack="[^"]*,hrtimer_wakeup+' /tmp/alert || fail "what woke it?"
[ "$(field context </tmp/alert)" != task ] || [ "$(uname -r | grep -c rt)" = 1 ] || fail "a timer is an interrupt"

words /tmp/alerts "$reader" >/tmp/alert
lasted pipe "$(field delay </tmp/alert)"
assert_eq "$(field waker_tid </tmp/alert) $(field context </tmp/alert)" "$writer task" "who wrote"
grep -q ' waker_stack="[^"]*pipe_write+' /tmp/alert || fail "from where was it woken?"
grep -q ' stack="[^"]*pipe_read+' /tmp/alert || fail "where did it read?"
if grep -q 'latency_tracker\|__traceiter' /tmp/alert; then fail "our own functions"; fi
! in_time || [ "$(field queued </tmp/alert)" -lt 50000000 ] || fail "it was woken at the end"

late=$(stat w alerts)
assert_eq "$(($(stat blocked alerts) + $(stat preempted alerts)))" "$late" "blocked, and preempted"
assert_eq "$(($(stat short alerts) + $(stat short over_max)))" "$late" "short: alerts, and over_max"
# Where all is slow others may be late, too.
[ "$(stat blocked alerts)" -ge 2 ] && [ "$(stat short over_max)" -ge 2 ] || fail "too few"
! in_time || assert_eq "$(stat preempted alerts) $(stat short alerts)" "0 0" "preempted; short"
for name in w short preempted blocked; do
	control "$name offcpu enabled=0"
	sums_hold $name
done

# While it sleeps it is pending, and times out, with its stack.
echo 3600s >$LT/w/threshold
echo "$(patiently 100)ms" >$LT/w/timeout
control 'w offcpu enabled=1'
who=$(waits sleep "$(patiently 400)")
sleeper=${who#*=}
alerts_of w /tmp/alerts
grep " reason=timeout .* tid=$sleeper .* stack=\"hrtimer_nanosleep+" /tmp/alerts || fail "no timeout: $(cat /tmp/alerts)"
assert_eq "$(grep -c " reason=late .* tid=$sleeper " /tmp/alerts)" 1 "its end"
exec 3<&-

# Who reads the alerts sleeps until there is one: that is not one.
control -w
control 'w offcpu threshold=100ms timeout=200ms wakeup_interval=0 comm=cat'
cat $LT/w/alerts >/tmp/alerts &
wait_until 10 grep -q latency_tracker /proc/$!/stack
before=$(stat w alerts)
! in_time || assert_eq "$before" 0 "alerts of its start"
sleep 2
wait_until 10 stat_is w readers -ge 1
assert_eq "$(stat w alerts)" "$before" "alerts about the reader: $(cat /tmp/alerts)"
unload_module
