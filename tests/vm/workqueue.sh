# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Work items of known lengths (lt_works) are reported once each, with their waiting and running
# times, function, workqueue, worker and the task that queued them: an item that sleeps for 20 ms,
# an item behind it, an item that is queued again while it runs or while it waits, an item that
# frees itself, and a delayed item. A cancelled item is shown as cancelled in `pending`, and does
# not time out. Its event is replaced when the item is queued again.
# kernels: stock rt
# cpus: 2
# root: full
# icount: 1
# timeout: 120

. /lt/tests/lib.sh

# Under load on the host, everything takes longer, even if no item waits. The times that are
# compared must be much longer.
ms=$(patiently "$(patiently 20)")
load_module
insmod /lt/lt_works.ko ms="$ms"
run() { echo "$1" >/sys/module/lt_works/parameters/run; }
# The names of workqueues need the kernel's description of its types.
names() { [ -e /sys/kernel/btf/vmlinux ]; }
run slow
control "w workqueue threshold=$((ms * 3 / 4))ms"
exec 3<$LT/w/alerts

# An item behind a slow item is queued a moment later, when the slow item may already run.
moment=$((ms / 4))
! in_time || moment=1
# near WHAT NS MS: check that NS is MS milliseconds, less at most that moment, and plus at most a
# quarter of the slow item's time.
near() {
	{ [ "$2" -gt $((($3 - moment) * 1000000)) ] && [ "$2" -lt $((($3 + ms / 4) * 1000000)) ]; } || fail "$1: $2 ns, expected $3 ms"
}

# says LINE FUNC QUEUED RUNNING: check that the alert in this line of /tmp/alerts has these values.
says() {
	sed -n "$1p" /tmp/alerts >/tmp/alert
	grep -q " work=[0-9a-f]\{16\} func=\"$2 \[lt_works\]\" " /tmp/alert || fail "line $1: expected $2"
	near "line $1: queued" "$(field queued </tmp/alert)" "$3"
	near "line $1: running" "$(field running </tmp/alert)" "$4"
	[ "$(field running </tmp/alert)" -ge $(($4 * 1000000)) ] || fail "line $1: it did not run for $4 ms"
	delay=$(field delay </tmp/alert)
	assert_eq "$delay" $(($(field queued </tmp/alert) + $(field running </tmp/alert))) "line $1: delay"
	if names; then grep -q ' workqueue="lt_works" ' /tmp/alert || fail "line $1: workqueue"; fi
	grep -q ' comm="kworker/.* state=running ' /tmp/alert || fail "line $1: no worker"
}

for word in slow behind again freed delayed cancel requeue renew; do run $word; done
alerts_of w /tmp/alerts.all
cat /tmp/alerts.all
grep 'lt_work_' /tmp/alerts.all >/tmp/alerts
says 1 lt_work_slow 0 "$ms"
# The shell itself has queued the item.
assert_eq "$(sed -n 1p /tmp/alerts | field by_tid) $(sed -n 1p /tmp/alerts | field context)" "$$ task" "who queued it"
says 2 lt_work_slow 0 "$ms"
says 3 lt_work_quick "$ms" 0
# An item that waits for its own end, since it was queued after half of its running time. A sleep
# may take a tick or two longer.
says 4 lt_work_slow 0 "$ms"
sed -n 5p /tmp/alerts | grep -q ' func="lt_work_slow ' || fail "line 5: not the one queued again"
near "queued again" "$(sed -n 5p /tmp/alerts | field running)" "$ms"
waited=$(sed -n 5p /tmp/alerts | field queued)
{ [ "$waited" -gt $((ms * 100000)) ] && [ "$waited" -lt $((ms * 700000)) ]; } || fail "queued again: it waited $waited ns"
says 6 lt_work_freed 0 "$ms"
# A delayed item counts only from the time when the timer queues it, so it is not late at all. An
# item that is cancelled and queued again is late.
says 7 lt_work_slow 0 "$ms"
says 8 lt_work_quick "$ms" 0
# If an item is queued again while it waits, its wait counts from the first queueing, unless it was
# cancelled in between.
says 9 lt_work_slow 0 "$ms"
says 10 lt_work_quick "$ms" 0
says 11 lt_work_slow 0 "$ms"
assert_eq "$(wc -l </tmp/alerts)" 11 "alerts"
assert_eq "$(stat w replaced)" 2 "replaced"
[ "$(stat w requeued)" -ge 1 ] || fail "nothing was requeued"
exec 3<&-

# A cancelled item is shown as cancelled, and does not time out.
echo 3600s >$LT/w/threshold
echo $((ms * 5 / 2))ms >$LT/w/timeout
exec 3<$LT/w/alerts
run leave
sleep $((ms * 15 / 1000 + 1))
grep 'func="lt_work_quick .* state=cancelled ' $LT/w/pending || fail "it does not show as cancelled"
assert_eq "$(stat w timed_out)" 0 "timed out"
# While an item waits behind another item, both time out: the stack shows where the running item is.
run long &
wait_until 10 stat_is w timed_out -ge 2
cat $LT/w/pending
grep -q ' comm="kworker/.* func="lt_work_long \[lt_works\]" .* state=running ' $LT/w/pending || fail "it does not run"
grep -q ' pid=0 tid=0 comm="" work=[^ ]* func="lt_work_long \[lt_works\]" .* state=waiting ' $LT/w/pending || fail "it does not wait"
wait
alerts_of w /tmp/alerts
cat /tmp/alerts
assert_eq "$(grep -c 'reason=timeout .* func="lt_work_long' /tmp/alerts)" 2 "timeouts"
assert_eq "$(grep -c 'reason=late .* func="lt_work_long' /tmp/alerts)" 2 "late ends"
grep 'reason=timeout .* state=running ' /tmp/alerts | grep -q 'stack=".*lt_work_long+' ||
	fail "no stack of the worker"
exec 3<&-

# Each value of part= is tested separately.
control "waiting workqueue part=waiting threshold=$((ms * 3 / 4))ms"
control "running workqueue part=running threshold=$((ms * 3 / 4))ms"
run behind
# Reads all alerts up to now, until end-of-file.
for part in waiting running; do cat $LT/$part/wakeup >/tmp/$part; done
cat /tmp/waiting /tmp/running
cat $LT/running/stats
grep lt_work_ /tmp/waiting >/tmp/alerts
assert_eq "$(wc -l </tmp/alerts)" 1 "waiting"
says 1 lt_work_quick "$ms" 0
grep lt_work_ /tmp/running >/tmp/alerts
assert_eq "$(wc -l </tmp/alerts)" 1 "running"
near running "$(field running </tmp/alerts)" "$ms"
assert_eq "$(field queued </tmp/alerts) $(field delay </tmp/alerts)" "0 $(field running </tmp/alerts)" "of the running part"

refused_line 'bad workqueue part=half' '"half"'
for i in w waiting running; do control "$i workqueue enabled=0"; sums_hold $i; done
rmmod lt_works
unload_module
