# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A partition is not a disk: it is refused, by name and by number, in a line of the control language
# and in the parameter's file; a number that no disk has yet is accepted. Looking up a disk does not
# open it. Requests to a partition count as requests to its disk.
# kernels: stock
# long: rt
# cpus: 2
# arm64: no, Debian's kernels for arm64 have no scsi_debug
# timeout: 90

. /lt/tests/lib.sh
. /lt/tests/block.sh

modprobe scsi_debug dev_size_mb=16 num_parts=1 delay=0 || skip "this kernel has no scsi_debug"
modprobe sd_mod 2>/dev/null || :
wait_until 10 sh -c 'grep -l scsi_debug /sys/block/sd*/device/model'
disk=$(grep -l scsi_debug /sys/block/sd*/device/model | head -n 1 | cut -d/ -f4)
part=${disk}1
wait_until 10 test -b "/dev/$part"
number=$(cat "/sys/block/$disk/$part/dev")
load_module
for word in "$part" "$number"; do
	refused "dev=$word" control "part block dev=$word"
	[ ! -e $LT/part ] || fail "dev=$word made an instance"
	dmesg | grep 'latency_tracker: dev: expected a whole disk' | tail -n 1 | grep -qF "\"$word\"" || fail "the log does not name $word"
done
kernel_says "expected a whole disk, not a partition: \"$number\"" || fail "the log does not say that $number is a partition"
# Looking up a disk does not open it: this one cannot be opened.
echo offline >"/sys/block/$disk/device/state"
refused "$disk is offline" dd if="/dev/$disk" of=/dev/null bs=4k count=1
control "named block dev=$disk"
assert_eq "$(cat $LT/named/dev)" "$(dev_of "$disk")" "a disk that cannot be opened"
control -named
echo running >"/sys/block/$disk/device/state"
control "whole block dev=$(dev_of "$disk") threshold=1s"
refused "$number in the file" sh -c "echo $number >$LT/whole/dev"
assert_eq "$(cat $LT/whole/dev)" "$(dev_of "$disk")" "the disk after that"
# A bio-based disk has no requests, so nothing would ever be tracked.
modprobe brd rd_nr=1 rd_size=1024 || fail "no RAM disk"
wait_until 10 test -b /dev/ram0
for word in ram0 "$(dev_of ram0)"; do
	refused_line "part block dev=$word" "expected a disk with requests (md, zram, brd and most of device mapper have none): \"$word\""
	refused "dev=$word" control "part io dev=$word"
done
refused "ram0 in the file" sh -c "echo ram0 >$LT/whole/dev"
assert_eq "$(cat $LT/whole/dev)" "$(dev_of "$disk")" "the disk after that"
rmmod brd
control 'later block dev=3000:1'
assert_eq "$(cat $LT/later/dev)" 3000:1 "a device that is not there"
control '-later'
sleep 1
wait_until 5 quiet whole
ended=$(stat whole ended)
reads "$part" 5
wait_until 5 quiet whole
assert_eq "$(stat whole ended)" $((ended + 5)) "requests to the partition"
sums_hold whole
unload_module
