# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A request that has not ended at its timeout is reported once while it is pending, and again at its end, as late. A
# request that ends in time is not reported.
# kernels: rt
# long: stock
# cpus: 2
# arm64: yes
# timeout: 180
# icount: 1

. /lt/tests/lib.sh
. /lt/tests/block.sh

load_module
# null_blk itself gives up after 5 s.
null_disk stuck 3000000000
null_disk fast 2000000
control "stuck block dev=stuck threshold=3600s timeout=500ms wakeup_interval=0"
control 'fast block dev=fast threshold=3600s timeout=500ms'
assert_eq "$(cat $LT/stuck/timeout)" 500000000 "timeout"
follow $LT/stuck/alerts /tmp/alerts

reads stuck 1 5 &
wait_until 3 sh -c '[ $(wc -l </tmp/alerts) -eq 1 ]'
# The request is reported while it is pending.
assert_eq "$(stat stuck pending)" 1 "pending at the timeout"
assert_eq "$(stat stuck timed_out) $(stat stuck late)" "1 0" "timed_out late"
grep -q ' reason=timeout .*sector=40 ' /tmp/alerts || fail "the first alert: $(cat /tmp/alerts)"
grep -q 'disk="stuck"' /tmp/alerts || fail "without the name of the disk"
delay=$(field delay </tmp/alerts)
[ "$delay" -ge 500000000 ] || fail "reported $delay ns after the start, before the timeout"
! in_time || [ "$delay" -lt 1500000000 ] || fail "reported $delay ns after the start: late"
reads fast 100
wait %2 2>/dev/null || :
wait_until 10 quiet stuck
wait_until 5 sh -c '[ $(wc -l </tmp/alerts) -eq 2 ]'
cat /tmp/alerts
tail -n 1 /tmp/alerts | grep -q ' reason=late .*sector=40 ' || fail "the end was not reported as late"
assert_eq "$(stat stuck timed_out) $(stat stuck late) $(stat stuck alerts)" "1 1 2" "timed_out late alerts"
assert_eq "$(stat fast timed_out) $(stat fast alerts) $(stat fast ended)" "0 0 100" "fast: timed_out alerts ended"
sums_hold stuck
sums_hold fast

# A timeout that is set while a request waits applies to it; 0 means never.
echo 0 >$LT/stuck/timeout
reads stuck 1 6 &
sleep 1
assert_eq "$(stat stuck timed_out)" 1 "timed out without a timeout"
echo 100ms >$LT/stuck/timeout
wait_until 2 sh -c "grep -q '^timed_out 2' $LT/stuck/stats"
wait_until 10 quiet stuck

# A request that is not even issued, since the device is busy with another request.
null_disk narrow 3000000000 hw_queue_depth=1
modprobe mq-deadline 2>/dev/null || :
echo mq-deadline >/sys/block/narrow/queue/scheduler
control 'narrow block dev=narrow threshold=3600s timeout=500ms wakeup_interval=0'
follow $LT/narrow/alerts /tmp/narrow
reads narrow 1 1 &
sleep 1
reads narrow 1 2 &
wait_until 5 sh -c '[ $(wc -l </tmp/narrow) -eq 2 ]'
cat /tmp/narrow
assert_eq "$(grep -c ' reason=timeout ' /tmp/narrow)" 2 "timeouts"
assert_eq "$(grep ' sector=16 ' /tmp/narrow | field device)" 0 "time at the device of a request that was not issued"
[ "$(grep ' sector=16 ' /tmp/narrow | field queue)" -ge 400000000 ] || fail "it waited in the queue"
wait_until 15 quiet narrow
assert_eq "$(stat narrow timed_out) $(stat narrow late)" "2 2" "narrow: timed_out late"
sums_hold narrow

# Many requests time out at once, and each is reported once. The module is unloaded while some wait.
for n in 1 2 3 4 5 6 7 8; do reads stuck 1 $((n * 10)) & done
wait_until 5 sh -c "grep -q '^timed_out 10' $LT/stuck/stats"
sleep 0.5
assert_eq "$(stat stuck timed_out)" 10 "each once"
unload_module
