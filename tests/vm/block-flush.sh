# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Flushes on a disk with a cache. Each request to the device is measured once. The empty flush of an
# fsync is never issued itself: its event is counted in `gone` and `unissued`.
# kernels: rt
# long: stock
# cpus: 2
# timeout: 60

. /lt/tests/lib.sh
. /lt/tests/block.sh

load_module
# With a volatile cache, an fsync must flush the disk.
null_disk cached 3000000 cache_size=1
echo 'write back' >/sys/block/cached/queue/write_cache 2>/dev/null || :
[ "$(cat /sys/block/cached/queue/write_cache)" = "write back" ] || skip "null_blk has no write cache here"
control 'flush block dev=cached threshold=1ms'
follow $LT/flush/alerts /tmp/alerts

# Writes without a flush.
writes cached 10
wait_until 5 quiet flush
assert_eq "$(stat flush ended)" 10 "writes"
# Each fsync makes an empty flush, for which the block layer issues a flush of its own.
for _ in 1 2 3 4 5; do dd if=/dev/zero of=/dev/cached bs=4k count=1 conv=fsync 2>/dev/null; done
wait_until 5 quiet flush
cat $LT/flush/stats
sums_hold flush
assert_eq "$(stat flush unissued)" 5 "empty flushes of the submitter"
assert_eq "$(stat flush gone)" 5 "gone"
for key in unmatched replaced negative aborted partial full; do assert_eq "$(stat flush $key)" 0 "$key"; done
wait_until 5 grep -q 'op="FF"' /tmp/alerts
# The block layer's own flushes have no submitter.
assert_eq "$(grep 'op="FF"' /tmp/alerts | field pid | sort -u)" 0 "the submitter of the block layer's flushes"
unload_module
