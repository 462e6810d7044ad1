# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# With an I/O scheduler, the times in the queue and at the device are separate. A merged request is
# counted in `gone` and `merged`.
# kernels: rt
# long: stock
# cpus: 2
# arm64: yes
# timeout: 90

. /lt/tests/lib.sh
. /lt/tests/block.sh

load_module
null_disk queued 2000000000 hw_queue_depth=1
modprobe mq-deadline 2>/dev/null || :
echo mq-deadline >/sys/block/queued/queue/scheduler
echo 16 >/sys/block/queued/queue/nr_requests
control 'issue block dev=queued threshold=10ms'
control 'insert block dev=queued threshold=10ms from=insert'

# waits_there N: wait until N requests are in the queue or at the device.
waits_there() { wait_until 5 stat_is insert pending -eq "$1"; }

# One request occupies the only tag, and the next one waits for it. Then come A, C and B. B is
# between A and C on the disk, so that all three become one request.
follow $LT/insert/alerts /tmp/insert
follow $LT/issue/alerts /tmp/issue
writes queued 1 100 &
waits_there 1
writes queued 1 200 &
waits_there 2
writes queued 1 0 &
waits_there 3
writes queued 1 2 &
waits_there 4
writes queued 1 1 &
# Wait for the writers only, not for the two readers of alerts, which never end.
wait %3 %4 %5 %6 %7 || :
wait_until 20 quiet insert
wait_until 5 quiet issue
for name in insert issue; do
	wait_until 5 sh -c "[ \$(wc -l </tmp/$name) -eq 3 ]"
done
cat /tmp/insert /tmp/issue $LT/insert/stats
sums_hold insert
sums_hold issue
for name in insert issue; do
	assert_eq "$(stat $name merged)" 1 "$name: merged"
	assert_eq "$(stat $name gone)" 1 "$name: gone"
	assert_eq "$(stat $name ended)" 3 "$name: ended"
	assert_eq "$(stat $name unmatched)" 0 "$name: unmatched"
done
assert_eq "$(grep -c 'bytes=12288' /tmp/insert)" 1 "the merged request, as the device saw it"

# queue + device is the delay from the insertion, device alone the delay from the issue.
while read -r line; do
	queue=$(echo "$line" | field queue) device=$(echo "$line" | field device)
	assert_eq "$(echo "$line" | field delay)" $((queue + device)) "delay from insertion"
done </tmp/insert
[ "$(grep 'bytes=12288' /tmp/insert | field queue)" -ge 100000000 ] || fail "the merged request did not wait for the tag"
while read -r line; do
	assert_eq "$(echo "$line" | field delay)" "$(echo "$line" | field device)" "delay from issue"
done </tmp/issue
unload_module
