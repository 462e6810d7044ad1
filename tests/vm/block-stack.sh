# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The alert of a timeout shows where the task waits, matching /proc/PID/stack at that moment. The
# alert of an end has no stack. Neither has the alert of a request whose task has exited.
# kernels: stock
# long: rt
# cpus: 2
# arm64: yes
# timeout: 180

. /lt/tests/lib.sh
. /lt/tests/block.sh

trace=/sys/kernel/tracing
load_module
null_disk stuck 3000000000
control 'stuck block dev=stuck threshold=1s timeout=300ms wakeup_interval=0 stack=32'
control 'short block dev=stuck threshold=1s timeout=300ms wakeup_interval=0 stack=3'
control 'none block dev=stuck threshold=1s timeout=300ms wakeup_interval=0 stack=0'
assert_eq "$(cat $LT/stuck/stack) $(cat $LT/short/stack)" "32 3" "depth"
for name in stuck short none; do follow $LT/$name/alerts /tmp/$name; done
follow $LT/alerts /tmp/all
echo 1 >$trace/events/latency_tracker/alert/enable

# stack_of FILE PID: print the functions of a stack in an alert, one per line, as in /proc/PID/stack.
stack_of() { grep " reason=timeout .* pid=$2 " "$1" | sed -n 's/.* stack="\([^"]*\)"$/\1/p' | tr ',' '\n'; }

# waits_in FUNCTION COMMAND...: check that the command times out inside a function, as /proc/PID/stack shows.
waits_in() {
	_function=$1
	shift
	"$@" 2>/dev/null &
	_pid=$!
	wait_until 5 grep -q " reason=timeout .* pid=$_pid " /tmp/stuck
	sed 's/^\[<0>\] //' "/proc/$_pid/stack" >/tmp/witness
	stack_of /tmp/stuck $_pid >/tmp/stack
	echo "--- $*"
	cat /tmp/stack
	grep -q "^$_function+0x[0-9a-f]*/0x[0-9a-f]*" /tmp/stack || fail "$* does not wait in $_function"
	cmp /tmp/stack /tmp/witness || { cat /tmp/witness; fail "/proc/$_pid/stack says something else"; }
	[ "$(wc -l </tmp/stack)" -ge 5 ] || fail "only $(wc -l </tmp/stack) functions"
	wait $_pid
}
# Some compilers inline one function into the other.
waits_in '\(__blkdev_direct_IO_simple\|blkdev_direct_IO\)' dd if=/dev/stuck of=/dev/null bs=4k count=1 skip=3 iflag=direct
cp /tmp/stack /tmp/deep
wait_until 5 grep -q reason=late /tmp/stuck
assert_eq "$(grep reason=late /tmp/stuck | grep -c ' stack=')" 0 "stacks of an end"
wait_until 5 grep -q reason=timeout /tmp/none
assert_eq "$(grep -c ' stack=' /tmp/none)" 0 "stacks with stack=0"
# A stack with fewer entries has the innermost functions. The file of all instances has the full stack.
wait_until 5 grep -q reason=timeout /tmp/short
pid=$(grep reason=timeout /tmp/short | field pid)
stack_of /tmp/short "$pid" >/tmp/stack
head -n 3 /tmp/deep | cmp - /tmp/stack || fail "not the innermost three: $(cat /tmp/stack)"
grep 'instance=stuck ' /tmp/all >/tmp/all.stuck
stack_of /tmp/all.stuck "$pid" | cmp - /tmp/deep || fail "another stack in the file of all"
# The tracepoint has the same number of addresses.
grep 'instance=stuck .*reason=timeout' $trace/trace | tail -n 1 >/tmp/event
assert_eq "$(sed 's/.* stack={\([^}]*\)}.*/\1/' /tmp/event | tr ',' '\n' | wc -l)" "$(wc -l </tmp/deep)" "addresses in the event"
grep -q 'instance=none .*reason=timeout.* stack={}' $trace/trace || fail "an event with stack=0 has a stack"

# Another kind of wait: fsync(2) waits for writeback.
waits_in folio_wait_writeback dd if=/dev/zero of=/dev/stuck bs=4k count=1 seek=9 conv=fsync

# The task has exited and its thread id is reused: the new task's stack is not shown. The kernel of tests/run-debug does
# not let a test choose the id.
succeeded() {
	null_disk left 3000000000 size=1
	control 'left block dev=left threshold=1s timeout=2s wakeup_interval=0'
	follow $LT/left/alerts /tmp/left
	# Held open, since the last close would wait for the request. A task that waits for a page can be killed.
	exec 9</dev/left
	dd if=/dev/left of=/dev/null bs=4k count=1 2>/dev/null &
	gone=$!
	wait_until 5 grep -q " pid=$gone " $LT/left/pending
	kill -9 $gone
	wait $gone || :
	[ ! -e /proc/$gone ] || fail "$gone is still there"
	# The kernel may create a thread in between, which gets the id.
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		echo $((gone - 1)) >/proc/sys/kernel/ns_last_pid
		sleep 20 &
		[ $! -ne $gone ] || break
		kill $!
	done
	assert_eq $! $gone "the number of the next task"
	wait_until 5 grep -q " reason=timeout .* pid=$gone " /tmp/left
	grep -q nanosleep /proc/$gone/stack || fail "the other task does not sleep"
	cat /tmp/left
	[ "$(stat left pending)" -ge 1 ] || fail "the request of the first task is no longer pending"
	assert_eq "$(grep -c ' stack=' /tmp/left)" 0 "stacks of another task"
	kill $gone
	exec 9<&-
}
case $(uname -r) in *-debug) ;; *) succeeded ;; esac
unload_module
