# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The alerts are exactly how long the calls of a function took, one by one: the kernel's own events at its entry and
# its return are recorded at the same time, and lt-witness pairs them. fio writes to two loop devices, and waits for
# every write: the system call is its tasks', and vfs_fsync is called by the threads of the kernel that see to the disks
# below (the system call has its own copy, in line). And a function that calls itself, of several tasks.
#
# The threshold is 0: every call is an alert. Nobody reads while it lasts. The machine's clock counts instructions, so
# that it does not matter when the host has something else to do.
# kernels: stock rt
# cpus: 2
# root: full
# icount: 1
# debug: no, a sanitizer takes longer between two probes than the comparison allows
# timeout: 200

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/sched.sh

trace=/sys/kernel/tracing
load_module
insmod /lt/lt_functions.ko
null_disk fast 2000000
null_disk slow 20000000
modprobe loop
losetup /dev/loop0 /dev/fast
losetup /dev/loop1 /dev/slow
echo mono >$trace/trace_clock
echo 20000 >$trace/buffer_size_kb

syncs() {
	fio --output=/tmp/fio.log --bs=4k --ioengine=psync --rw=randwrite --fsync=1 --io_size=1g \
		--name=fast --filename=/dev/loop0 --number_ios="$1" \
		--name=slow --filename=/dev/loop1 --number_ios=$(($1 / 5)) || { cat /tmp/fio.log; fail "fio failed"; }
}
recursion() {
	for depth in 1 2 3 20; do
		for _ in $(seq "$1"); do echo "recurse $depth 1" >/proc/lt_functions; done &
	done
	wait
}

# exact FUNCTION LEAST WORKLOAD WORD...
exact() {
	function=$1 least=$2
	shift 2
	echo "f:lt/enter $function" >>$trace/dynamic_events
	echo "f:lt/leave $function%return ret=\$retval:s32" >>$trace/dynamic_events
	echo 1 >$trace/events/lt/enable
	# The first time of everything is slow under emulation.
	"$1" 5
	echo 0 >$trace/tracing_on
	echo >$trace/trace
	echo 1 >$trace/tracing_on
	control "w func function=$function threshold=0 ring=16384 stack=0"
	exec 3<$LT/w/alerts
	echo lt-witness begin >$trace/trace_marker
	"$@"
	echo lt-witness end >$trace/trace_marker
	echo 0 >$trace/tracing_on
	control "w func enabled=0"
	alerts_of w /tmp/alerts
	exec 3<&-
	cat $trace/trace >/tmp/trace
	lt-witness --rule 'nest enter(tid) -> leave(tid; ret:ret=)' --threshold 0 --expect-at-least "$least" \
		/tmp/trace /tmp/alerts || { cp /tmp/trace /tmp/alerts /lt/out; fail "$function is not exact"; }
	grep -v ' 0$' $LT/w/stats
	sums_hold w
	for key in full unmatched negative gone replaced alerts_lost missed own; do
		assert_eq "$(stat w $key)" 0 "$function: $key"
	done
	control -w
	echo 0 >$trace/events/lt/enable
	echo >$trace/dynamic_events
}

exact __x64_sys_fsync 100 syncs 100
exact vfs_fsync 100 syncs 100
exact lt_fn_recurse 100 recursion 5
losetup -d /dev/loop0
losetup -d /dev/loop1
unload_module
