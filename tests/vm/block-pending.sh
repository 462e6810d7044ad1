# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Requests in flight appear in `pending`, oldest first. Disabling drops them, without a spurious late end. Changing a
# filter keeps them. A request lost because the pool was full is counted once.
# kernels: stock
# long: rt
# cpus: 2
# timeout: 180
# icount: 1

. /lt/tests/lib.sh
. /lt/tests/block.sh

load_module
# null_blk itself gives up after 5 s.
null_disk stuck 4000000000
control 'stuck block dev=stuck threshold=1s'
dd if=/dev/stuck of=/dev/null bs=4k count=1 skip=7 iflag=direct 2>/dev/null &
first=$!
sleep 1
dd if=/dev/zero of=/dev/stuck bs=4k count=1 seek=9 oflag=direct 2>/dev/null &
second=$!
wait_until 3 sh -c "[ \$(wc -l <$LT/stuck/pending) -eq 2 ]"
cat $LT/stuck/pending
assert_eq "$(stat stuck pending)" 2 "pending"
assert_eq "$(head -n 1 $LT/stuck/pending | field sector)" 56 "the oldest"
assert_eq "$(tail -n 1 $LT/stuck/pending | field sector)" 72 "the youngest"
assert_eq "$(field pid <$LT/stuck/pending | tr '\n' ' ')" "$first $second " "owners"
assert_eq "$(field state <$LT/stuck/pending | sort -u)" issued "state"
# Where the tasks of the requests wait: in a direct read, and in a direct write.
assert_eq "$(grep -c ' stack="[^"]*blkdev_\(read\|write\)_iter+' $LT/stuck/pending)" 2 "stacks of the waiting tasks"

# The first request ends, and its alert is raised; the second one is dropped before it ends.
wait $first
wait_until 3 sh -c "[ \$(wc -l <$LT/stuck/pending) -eq 1 ]"
assert_eq "$(stat stuck alerts)" 1 "alerts"
echo 0 >$LT/stuck/enabled
assert_eq "$(stat stuck cleared)" 1 "cleared"
assert_eq "$(stat stuck pending)" 0 "pending after disabling"
echo 1 >$LT/stuck/enabled
wait $second
wait_until 3 stat_is stuck unmatched -eq 1
assert_eq "$(stat stuck unmatched)" 1 "the end of the dropped request"
assert_eq "$(stat stuck alerts)" 1 "alerts after disabling"
sums_hold stuck

# A changed filter keeps the requests in flight.
control 'other block threshold=1s dev=stuck'
reads stuck 1 3 &
wait_until 3 sh -c "[ \$(wc -l <$LT/other/pending) -eq 1 ]"
echo 1:1 >$LT/other/dev
wait $!
wait_until 3 quiet other
assert_eq "$(stat other alerts)" 1 "the alert of a request that began before the filter changed"
assert_eq "$(stat other unmatched)" 0 "unmatched"
sums_hold other

# A pool of one: the second request is lost and counted, once, and its end is unmatched.
control 'tiny block threshold=1s dev=stuck events=1 max_events=1'
dd if=/dev/stuck of=/dev/null bs=4k count=1 skip=7 iflag=direct 2>/dev/null &
first=$!
sleep 1
dd if=/dev/stuck of=/dev/null bs=4k count=1 skip=9 iflag=direct 2>/dev/null &
wait $first $!
wait_until 3 quiet tiny
assert_eq "$(stat tiny attempts) $(stat tiny started) $(stat tiny full) $(stat tiny unmatched)" "2 1 1 1" "attempts started full unmatched"
assert_eq "$(stat tiny alerts)" 1 "alerts"
sums_hold tiny
unload_module
