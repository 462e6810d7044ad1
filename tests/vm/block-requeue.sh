# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Requests that a disk returns for requeueing are issued again, and measured once each, from the
# first issue. A request that is returned before it was started has waited in a queue since then.
# kernels: rt
# long: stock
# cpus: 2
# arm64: no, Debian's kernels for arm64 have no scsi_debug
# timeout: 90

. /lt/tests/lib.sh
. /lt/tests/block.sh

# Every third command is rejected with "host busy" (opts 0x8000).
modprobe scsi_debug dev_size_mb=16 delay=0 ndelay=2000000 every_nth=3 opts=0x8000 max_queue=4 ||
	skip "this kernel has no scsi_debug"
modprobe sd_mod 2>/dev/null || :
wait_until 10 sh -c 'grep -l scsi_debug /sys/block/sd*/device/model'
disk=$(grep -l scsi_debug /sys/block/sd*/device/model | head -n 1 | cut -d/ -f4)
wait_until 10 test -b "/dev/$disk"
sleep 1
load_module
control "busy block dev=$disk threshold=1ms"
follow $LT/busy/alerts /tmp/alerts
reads "$disk" 30
writes "$disk" 30
wait_until 10 quiet busy
cat $LT/busy/stats
sums_hold busy
[ "$(stat busy requeued)" -ge 10 ] || fail "only $(stat busy requeued) requests were given back"
assert_eq "$(stat busy full)" 0 "full"
assert_eq "$(stat busy replaced)" 0 "replaced"
assert_eq "$(stat busy unmatched)" 0 "unmatched"
[ "$(stat busy ended)" -ge 60 ] || fail "only $(stat busy ended) requests ended"
assert_eq "$(stat busy started)" "$(stat busy ended)" "each request once"
wait_until 5 grep -q 'requeues=[1-9]' /tmp/alerts

# This disk takes 20 KiB in each 20 ms, and returns further requests before it starts them. Without a scheduler, and
# with several queues, they are not inserted: block_rq_insert is not hit.
null_disk held 10000 mbps=1 submit_queues=2
echo none >/sys/block/held/queue/scheduler
control "held block dev=held from=insert threshold=1ms"
follow $LT/held/alerts /tmp/held
dd if=/dev/held of=/dev/null bs=16k count=20 iflag=direct 2>/dev/null
wait_until 10 quiet held
cat $LT/held/stats
sums_hold held
[ "$(stat held requeued)" -ge 3 ] || fail "only $(stat held requeued) requests were given back"
assert_eq "$(stat held replaced)" 0 "replaced"
wait_until 5 grep -q ' queue=[1-9][0-9]* .* requeues=[1-9]' /tmp/held
cat /tmp/held
assert_eq "$(grep -c ' queue=0 .* requeues=[1-9]' /tmp/held)" 0 "requests whose time in the queue is unknown"
unload_module
