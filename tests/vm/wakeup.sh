# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A task that is woken while a SCHED_FIFO task keeps its CPU for 20 ms is reported once, with that delay, and says
# who kept it waiting: the waker, which is also who was switched out for it. It shows as pending meanwhile, and
# times out. Nobody reports those who read the alerts, however late they are.
# kernels: stock rt
# cpus: 2
# root: full
# icount: 1
# timeout: 120

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/sched.sh

load_module
# Who reads is not kept waiting, too.
/usr/bin/taskset -p 1 $$ >/dev/null
# The first time of everything is slow under emulation.
waits hog 1 5
control 'w wakeup threshold=15ms wakeup_interval=0'
exec 3<$LT/w/alerts
waits hog 1 20 >/tmp/who
sleep 0.2
victim=$(sed 's/.*victim=//' /tmp/who)
hog=$(sed 's/hog=\([0-9]*\) .*/\1/' /tmp/who)
alerts_of w /tmp/alerts
cat /tmp/alerts
grep " tid=$victim " /tmp/alerts >/tmp/alert || fail "no alert of the victim"
assert_eq "$(wc -l </tmp/alert)" 1 "alerts of the victim"
delay=$(field delay </tmp/alert)
{ [ "$delay" -ge 20000000 ] && [ "$delay" -lt 25000000 ]; } || fail "it waited $delay ns"
assert_eq "$(field waker_tid </tmp/alert)" "$hog" "waker"
# On PREEMPT_RT interrupts are threads that may have been waiting, too, and go first.
case $(uname -r) in
*-rt-*) ;;
*) assert_eq "$(field prev_tid </tmp/alert)" "$hog" "who ran before" ;;
esac
assert_eq "$(field cpu </tmp/alert) $(field target </tmp/alert) $(field migrated </tmp/alert)" "1 1 0" "cpu target migrated"
assert_eq "$(field context </tmp/alert) $(field policy </tmp/alert) $(field prio </tmp/alert)" "task other 120" "context policy prio"
exec 3<&-

# It is pending while it waits, times out, and its end is reported, too.
echo 3600s >$LT/w/threshold
echo 50ms >$LT/w/timeout
cat $LT/w/alerts >/tmp/alerts &
waits hog 1 800 >/tmp/who &
wait_until 10 grep -q victim= /tmp/who
victim=$(sed 's/.*victim=//' /tmp/who)
# Others may time out, too.
wait_until 10 grep -q " reason=timeout .* tid=$victim " /tmp/alerts
cat $LT/w/pending
grep " tid=$victim .* policy=other .* awake=0" $LT/w/pending || fail "the victim is not pending"
wait_until 10 grep -q " reason=late .* tid=$victim " /tmp/alerts
wait %2
cat /tmp/alerts
for reason in timeout late; do
	assert_eq "$(grep -c " reason=$reason .* tid=$victim " /tmp/alerts)" 1 "$reason"
done

# A reader that is told of everything is told nothing of itself: what goes on is the reader, and the shell that sleeps.
echo 0 >$LT/w/timeout
echo 0 >$LT/w/threshold
cat $LT/w/alerts >/tmp/alerts &
reader=$!
sleep 2
[ "$(stat w readers)" -gt 0 ] || fail "the reader was not woken"
assert_eq "$(grep -c " tid=$reader " /tmp/alerts)" 0 "alerts about the reader"
control 'w wakeup enabled=0'
sums_hold w
unload_module
