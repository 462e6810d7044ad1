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
control 'w offcpu threshold=200ms comm=python3'
control 'short offcpu threshold=200ms max=250ms comm=python3'
control 'preempted offcpu threshold=200ms when=preempted comm=python3'
control 'blocked offcpu threshold=200ms when=blocked comm=python3'
# words FILE TID: the only alert of a thread.
words() {
	assert_eq "$(grep -c " tid=$2 " "$1")" 1 "alerts of $2"
	grep " tid=$2 " "$1"
}
lasted() { { [ "$2" -ge 290000000 ] && [ "$2" -lt 320000000 ]; } || fail "$1 took $2 ns"; }

exec 3<$LT/w/alerts
who=$(waits sleep 300)
sleeper=${who#*=}
waits pipe 300 >/tmp/who
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
[ "$(field queued </tmp/alert)" -lt 50000000 ] || fail "it was woken at the end"

late=$(stat w alerts)
assert_eq "$(stat blocked alerts)" "$late" "blocked"
assert_eq "$(stat preempted alerts)" 0 "preempted"
assert_eq "$(stat short alerts) $(stat short over_max)" "0 $late" "short: alerts, over_max"
for name in w short preempted blocked; do
	control "$name offcpu enabled=0"
	sums_hold $name
done

# While it sleeps it is pending, and times out, with its stack.
echo 3600s >$LT/w/threshold
echo 100ms >$LT/w/timeout
control 'w offcpu enabled=1'
who=$(waits sleep 400)
sleeper=${who#*=}
alerts_of w /tmp/alerts
grep " reason=timeout .* tid=$sleeper .* stack=\"hrtimer_nanosleep+" /tmp/alerts || fail "no timeout: $(cat /tmp/alerts)"
assert_eq "$(grep -c " reason=late .* tid=$sleeper " /tmp/alerts)" 1 "its end"
exec 3<&-

# Who reads the alerts sleeps until there is one: that is not one.
control -w
control 'w offcpu threshold=100ms timeout=200ms wakeup_interval=0 comm=cat'
cat $LT/w/alerts >/tmp/alerts &
sleep 2
[ "$(stat w readers)" -ge 1 ] || fail "the reader was not seen"
assert_eq "$(stat w alerts)" 0 "alerts about the reader: $(cat /tmp/alerts)"
unload_module
