# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A disk completes only a part of a request. The part is counted, the remaining part continues, and
# the request ends once.
# kernels: stock
# long: rt
# cpus: 2
# arm64: no, Debian's kernels for arm64 have no scsi_debug
# timeout: 90

. /lt/tests/lib.sh
. /lt/tests/block.sh

# Every 3rd command transfers half of the requested data (opts 0x100).
modprobe scsi_debug dev_size_mb=16 delay=0 ndelay=2000000 every_nth=3 opts=0x100 max_queue=4 ||
	skip "this kernel has no scsi_debug"
modprobe sd_mod 2>/dev/null || :
wait_until 10 sh -c 'grep -l scsi_debug /sys/block/sd*/device/model'
disk=$(grep -l scsi_debug /sys/block/sd*/device/model | head -n 1 | cut -d/ -f4)
wait_until 10 test -b "/dev/$disk"
sleep 1
load_module
control "half block dev=$disk threshold=1ms"
follow $LT/half/alerts /tmp/alerts
reads "$disk" 30
writes "$disk" 30
wait_until 10 quiet half
cat $LT/half/stats
sums_hold half
[ "$(stat half partial)" -ge 10 ] || fail "only $(stat half partial) completions of a part"
assert_eq "$(stat half requeued) $(stat half reissued)" "$(stat half partial) $(stat half partial)" "the rest of each: requeued, reissued"
assert_eq "$(stat half ended) $(stat half started)" "60 60" "ended started"
for key in unmatched replaced gone negative full; do assert_eq "$(stat half $key)" 0 "$key"; done
# Each half took 2 ms.
wait_until 5 grep -q 'requeues=1' /tmp/alerts
for delay in $(grep 'requeues=1' /tmp/alerts | field delay); do
	[ "$delay" -ge 4000000 ] || fail "two parts of 2 ms each took $delay ns"
done
unload_module
