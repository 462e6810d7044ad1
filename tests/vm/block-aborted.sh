# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A request that is returned without having been completed is `aborted`: there is no delay and no
# alert, and nothing stays in flight. Multipath does this: if the lower path does not accept a
# request at once, it accounts that request as done there, and sends another one.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# arm64: no, Debian's kernels for arm64 have no scsi_debug
# timeout: 120

. /lt/tests/lib.sh

need dmsetup
load_module

modprobe scsi_debug dev_size_mb=16 delay=0 ndelay=2000000 max_queue=4 || skip "this kernel has no scsi_debug"
modprobe sd_mod 2>/dev/null || :
modprobe dm-multipath || skip "this kernel has no multipath"
wait_until 10 sh -c 'grep -l scsi_debug /sys/block/sd*/device/model'
disk=$(grep -l scsi_debug /sys/block/sd*/device/model | head -n 1 | cut -d/ -f4)
wait_until 10 test -b "/dev/$disk"
echo none >"/sys/block/$disk/queue/scheduler"
dmsetup create --noudevsync multi --table "0 $(cat "/sys/block/$disk/size") multipath 0 0 1 1 round-robin 0 1 1 /dev/$disk 1000" ||
	fail "no multipath"
dmsetup mknodes
# From now on, the disk rejects every third command with "host busy".
echo 3 >/sys/bus/pseudo/drivers/scsi_debug/every_nth
echo 0x8000 >/sys/bus/pseudo/drivers/scsi_debug/opts

trace=/sys/kernel/tracing
dev=$((8 << 20 | $(cut -d: -f2 "/sys/block/$disk/dev")))
for event in block_io_start block_io_done block_rq_complete; do
	echo "dev == $dev" >$trace/events/block/$event/filter
	echo 1 >$trace/events/block/$event/enable
done
control "one block dev=$disk threshold=3600s"
dd if=/dev/mapper/multi of=/dev/null bs=4k count=30 iflag=direct 2>/dev/null || fail "a read failed"
wait_until 10 quiet one
for event in block_io_start block_io_done block_rq_complete; do echo 0 >$trace/events/block/$event/enable; done
cat $LT/one/stats
# emitted EVENT: print how often ftrace has recorded it.
emitted() { grep -c " $1: " $trace/trace; }
aborted=$(($(emitted block_io_done) - $(emitted block_rq_complete)))
[ $aborted -ge 10 ] || fail "only $aborted requests were given back without having been completed"
assert_eq "$(stat one aborted)" $aborted "aborted"
assert_eq "$(stat one gone)" $aborted "gone"
assert_eq "$(stat one started)" "$(emitted block_io_start)" "started"
assert_eq "$(stat one ended) $(stat one alerts) $(stat one unmatched)" "30 0 0" "ended, alerts, unmatched"
sums_hold one
dmsetup remove --noudevsync multi
unload_module
