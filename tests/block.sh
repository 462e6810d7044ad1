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

# dated CAPTURE SECTOR SECONDS: check that the trace of a capture has the present time of day, to within SECONDS. The
# request for this sector ends at the time of the only alert, which is CLOCK_MONOTONIC.
dated() {
	babeltrace2 --clock-seconds "$1/trace" | grep "block_rq_complete: .* sector = $2," >/tmp/dated
	python3 - "$1/alert.json" "$3" <<-'END' || fail "$1: the trace has another time of day"
		import json, re, sys, time
		with open(sys.argv[1], encoding="utf-8") as file:
		    record = json.load(file)
		with open("/tmp/dated", encoding="utf-8") as lines:
		    ended = float(re.match(r"\[([0-9.]+)\]", lines.readlines()[-1])[1])
		(alert,) = record["alerts"]
		# A preemption between the readings of the two clocks makes the difference smaller.
		offset = max(time.time() - time.monotonic() for _ in range(9))
		traced = ended - alert["time"] / 1e9
		print(f"time of day - CLOCK_MONOTONIC: {offset} s, in the trace {traced} s")
		assert abs(traced - offset) < float(sys.argv[2])
		assert 0 <= time.time() - record["taken"] < 3600, record["taken"]
	END
}

# watch_slow_disk: check that the command in PATH starts an instance on a slow disk, and shows its five alerts.
watch_slow_disk() {
	null_disk slow 20000000
	latency-tracker start slow_disk block threshold=10ms dev=slow
	reads slow 5
	wait_until 10 quiet slow_disk
	latency-tracker watch slow_disk --count 5 || [ $? -eq 2 ]
	assert_eq "$(stat slow_disk alerts)" 5 "alerts"
}
