# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A task that is woken while a SCHED_FIFO task keeps its CPU for 20 ms is reported once, with that
# delay and with the task that delayed it: the waker, which is also the task switched out for it.
# Meanwhile the task is pending, and it times out. Readers of alerts are not reported, however late
# they are.
# kernels: stock rt
# cpus: 2
# root: full
# icount: 1
# arm64: yes
# timeout: 180

. /lt/tests/lib.sh
. /lt/tests/sched.sh
. /lt/tests/witness.sh

load_module
# Keeps the reader off the CPU of the hog.
/usr/bin/taskset -p 1 $$ >/dev/null
# Warm up: the first run of anything is slow under emulation.
waits hog 1 5
# Longer than any other task keeps the CPU, but less than a second, after which other tasks get their
# share.
ms=$(patiently "$(patiently 20)")
control "w wakeup threshold=$((ms * 3 / 4))ms wakeup_interval=0"
exec 3<$LT/w/alerts
tracing 1000 sched/sched_switch
waits hog 1 "$ms" >/tmp/who
echo 0 >$TRACE/events/enable
victim=$(sed 's/.*victim=//' /tmp/who)
hog=$(sed 's/hog=\([0-9]*\) .*/\1/' /tmp/who)
alerts_of w /tmp/alerts
cat /tmp/alerts
grep " tid=$victim " /tmp/alerts >/tmp/alert || fail "no alert of the victim"
assert_eq "$(wc -l </tmp/alert)" 1 "alerts of the victim"
delay=$(field delay </tmp/alert)
[ "$delay" -ge "${ms}000000" ] || fail "it waited $delay ns"
! in_time || [ "$delay" -lt 25000000 ] || fail "it waited $delay ns"
assert_eq "$(field waker_tid </tmp/alert)" "$hog" "waker"
# The victim follows the hog, unless a kernel thread has waited, too, and runs first.
assert_eq "$(field prev_tid </tmp/alert)" "$(other_of next "$victim" "$(field time </tmp/alert)")" "who ran before"
assert_eq "$(field cpu </tmp/alert) $(field target </tmp/alert) $(field migrated </tmp/alert)" "1 1 0" "cpu target migrated"
assert_eq "$(field context </tmp/alert) $(field policy </tmp/alert) $(field prio </tmp/alert)" "task other 120" "context policy prio"
exec 3<&-

# The task is pending while it waits, and times out, and its end is reported, too. This holds
# whether the CPU that searches for timeouts is another CPU or the busy one, and also for a new task.
echo 3600s >$LT/w/threshold
for round in '0 hog' '1 hog' '0 newborn'; do
	looks=${round% *}
	/usr/bin/taskset -c "$looks" sh -c "echo 50ms >$LT/w/timeout"
	sleep 0.2
	follow $LT/w/alerts /tmp/alerts
	reader=$!
	waits "${round#* }" 1 800 >/tmp/who &
	hog=$!
	while kill -0 $hog 2>/dev/null; do
		cat $LT/w/pending
		sleep 0.05
	done >/tmp/pending
	wait $hog
	victim=$(sed 's/.*victim=//' /tmp/who)
	grep " tid=$victim .* policy=other .* awake=0" /tmp/pending || { cat /tmp/pending; fail "the victim, $victim, was not pending"; }
	wait_until 10 grep -q " reason=late .* tid=$victim " /tmp/alerts
	cat /tmp/alerts
	for reason in timeout late; do
		assert_eq "$(grep -c " reason=$reason .* tid=$victim " /tmp/alerts)" 1 "$reason"
	done
	# 50 ms, 3.1 ms as promised, and 10 ms until the other CPU takes over.
	delay=$(grep " reason=timeout .* tid=$victim " /tmp/alerts | field delay)
	! in_time || [ "$delay" -lt 70000000 ] || fail "found after $delay ns, looked for on CPU $looks"
	echo 0 >$LT/w/timeout
	kill $reader
	wait $reader || :
done

# A reader of all alerts gets none about itself: the only tasks that run are the reader, and the shell that sleeps.
echo 0 >$LT/w/threshold
# cat opens the file itself, since it is not a reader until then.
cat $LT/w/alerts >/tmp/alerts &
reader=$!
sleep 2
wait_until 5 stat_is w readers -gt 0
assert_eq "$(grep -c " tid=$reader " /tmp/alerts)" 0 "alerts about the reader"
control 'w wakeup enabled=0'
sums_hold w

# A parameter changed together with enabling applies from the first event on. A parameter changed
# together with disabling does not apply before the last event. If either did, the threshold or a
# filter would accept everything for a moment, and there would be an alert, since some task is always
# woken.
/usr/bin/taskset -p 3 $$ >/dev/null
busy=
for i in 1 2 3 4 5 6; do
	(while :; do sleep 0.001; done) &
	busy="$busy $!"
done
control 'c wakeup threshold=0 ring=1024 enabled=0'
for strict in threshold=3000s tid=4194303; do
	lax=tid=all
	[ $strict = tid=4194303 ] || lax=threshold=0
	i=0
	while [ $i -lt 8 ]; do
		control "c wakeup $lax"
		control "c wakeup enabled=1 $strict"
		control "c wakeup enabled=0 $lax"
		i=$((i + 1))
	done
	assert_eq "$(stat c alerts)" 0 "alerts while $strict and then $lax"
	control "c wakeup threshold=0 tid=all"
done
[ "$(stat c attempts)" -gt 0 ] || fail "nothing was woken"
# shellcheck disable=SC2086 # several
kill $busy
sums_hold c
unload_module
