# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The alerts match the calls of a function one by one: the kernel's own events at its entry and return are recorded at
# the same time, and lt-witness pairs them. fio writes to two loop devices, and waits for every write. The tasks of
# fio make the system call, and the kernel threads of the loop devices call vfs_fsync for the disks below (the system
# call has its own inlined copy). Several tasks also call a recursive function.
#
# The threshold is 0, so every call is an alert. No reader runs meanwhile. The machine's clock counts instructions, so
# no time passes while the host does something else. A processor may lose its turn between the two probes of a call
# (`--most`), but the times of an alert always lie between the neighbouring calls and returns of the same task.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# icount: 1
# debug: no, sanitizers add more time between two probes than the comparison allows
# timeout: 200

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/witness.sh

load_module
insmod /lt/lt_functions.ko
null_disk fast 2000000
null_disk slow 20000000
modprobe loop
losetup /dev/loop0 /dev/fast
losetup /dev/loop1 /dev/slow
tracing 20000

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

# calls FUNCTION LEAST WORKLOAD WORD...: check that the calls of FUNCTION are exact, and at least LEAST.
calls() {
	function=$1 least=$2
	shift 2
	echo "f:lt/enter $function" >>$TRACE/dynamic_events
	echo "f:lt/leave $function%return ret=\$retval:s32" >>$TRACE/dynamic_events
	echo 1 >$TRACE/events/lt/enable
	# Warm up: the first run of anything is slow under emulation.
	"$1" 5
	both func "function=$function threshold=0 ring=16384 stack=0" "$@"
	exact "$function" --rule 'nest enter(tid) -> leave(tid; ret:ret=)' --threshold 0 --most 5ms \
		--expect-at-least "$least"
	none "$function" full unmatched negative gone replaced alerts_lost missed own
	control -w
	echo 0 >$TRACE/events/lt/enable
	echo >$TRACE/dynamic_events
}

calls "${SYSCALL}_fsync" 100 syncs 100
calls vfs_fsync 100 syncs 100
calls lt_fn_recurse 100 recursion 5
losetup -d /dev/loop0
losetup -d /dev/loop1
unload_module
