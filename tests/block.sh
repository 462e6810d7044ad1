# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# block.sh: disks of known slowness, for tests inside the virtual machine. Sourced after lib.sh.

NULLB=/sys/kernel/config/nullb

# null_disk NAME NANOSECONDS [KEY=VALUE...]: make a RAM disk /dev/NAME on which each request takes NANOSECONDS.
null_disk() {
	if [ ! -d $NULLB ]; then
		modprobe null_blk nr_devices=0
		[ -d $NULLB ] || mount -t configfs none /sys/kernel/config
	fi
	_disk=$1 _ns=$2
	shift 2
	mkdir "$NULLB/$_disk"
	for _setting in size=64 memory_backed=1 irqmode=2 "completion_nsec=$_ns" "$@" power=1; do
		echo "${_setting#*=}" >"$NULLB/$_disk/${_setting%%=*}" ||
			fail "null_blk refuses $_setting"
	done
	wait_until 10 test -b "/dev/$_disk"
}

# dev_of NAME: print MAJOR:MINOR of a disk.
dev_of() { cat "/sys/block/$1/dev"; }

# reads DISK COUNT [BLOCK]: make single direct reads of 4 KiB, one after another.
reads() { dd if="/dev/$1" of=/dev/null bs=4k count="$2" skip="${3:-0}" iflag=direct 2>/dev/null; }

# writes DISK COUNT [BLOCK]: make single direct writes of 4 KiB, one after another.
writes() { dd if=/dev/zero of="/dev/$1" bs=4k count="$2" seek="${3:-0}" oflag=direct 2>/dev/null; }

# watch_slow_disk: check that the command in PATH starts an instance on a slow disk, and shows its five alerts.
watch_slow_disk() {
	null_disk slow 20000000
	latency-tracker start slow_disk block threshold=10ms dev=slow
	reads slow 5
	wait_until 10 quiet slow_disk
	latency-tracker watch slow_disk --count 5 || [ $? -eq 2 ]
	assert_eq "$(stat slow_disk alerts)" 5 "alerts"
}
