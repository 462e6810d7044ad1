#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# The runner can fail: a test that says it passed is failed if the kernel complained, was tainted or crashed;
# a test that hangs is ended; a failed command, a skip and a pass are distinguished. Tests that share a machine do not
# see each other, and what only a new machine can put right gets one.
# timeout: 600

set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$top/build"
work=$(mktemp -d "$top/build/runner.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/vm" "$work/host"

vm_test() { printf '# timeout: %s\n. /lt/tests/lib.sh\n%s\n' "$2" "$3" >"$work/vm/$1.sh"; }
vm_test good 30 'echo all is well'
vm_test bad 30 'assert_eq 1 2 "one and two"'
vm_test warned 30 'echo "WARNING: CPU: 0 PID: 1 at kernel/test.c:1 test+0x1/0x2" >/dev/kmsg'
vm_test tainted 30 'echo 512 >/proc/sys/kernel/tainted'
# Code that was freed, and code that the kernel had put right before: only the latter is the emulator's fault.
crash() {
	printf "for line in 'Oops: int3: 0000 [#1]' 'Code: 90 %s 48'; do echo \"\$line\" >/dev/kmsg; done\n" "$1"
	echo 'echo c >/proc/sysrq-trigger; sleep 20'
}
vm_test crashed 30 "$(crash 'cc <cc>')"
vm_test broken 30 "$(crash 'eb <53>')"
vm_test hanging 15 'echo before; sleep 1000'
vm_test skipped 30 'skip "not on a Tuesday"'
# Longest time first: one leaves what can be put back, the other finds nothing of it.
vm_test leaving 100 '. /lt/tests/block.sh
	echo left >/tmp/file; echo left >/dev/kmsg; sleep 1000 & load_module; null_disk disk 1000
	control "one block"; echo 1 >/sys/kernel/tracing/events/sched/sched_switch/enable'
vm_test finding 90 'refused "a file" test -e /tmp/file; refused "a module" loaded; refused "a disk" test -e /dev/disk
	refused "a process" pidof sleep; refused "a line of the log" kernel_says left
	assert_eq "$(wc -l </sys/kernel/tracing/set_event)" 0 "events"'
# This one leaves what cannot.
vm_test spoiling 80 'mkdir /spoilt; mount -t tmpfs none /spoilt'
vm_test unspoilt 70 'refused "a mount" grep spoilt /proc/mounts'
printf 'exit 3\n' >"$work/host/bad.sh"
printf '# timeout: 1\nsleep 100\n' >"$work/host/hanging.sh"

status=0
LT_TESTS=$work LT_LOGS=$work/log LT_JOBS=1 "$top/tests/run" >"$work/said" 2>&1 || status=$?
cat "$work/said"
[ "$status" -eq 1 ] || { echo "exit status $status, expected 1"; exit 1; }
check() { grep -qE -- "$1" "$work/said" || { echo "expected a line like: $1"; exit 1; }; }
check '^PASS vm/good@stock '
check '^FAIL vm/bad@stock '
check "FAIL: one and two: got '1', expected '2'"
check '^FAIL vm/warned@stock '
check '\| .*WARNING: CPU: 0'
check '^FAIL vm/tainted@stock '
check 'the kernel is tainted: 512'
check '^FAIL vm/crashed@stock '
check 'Kernel panic'
check '^The emulator broke the machine of vm/broken@stock,'
check '^FAIL vm/broken@stock '
check 'vm: the emulator broke the machine'
[ "$(grep -c '^The emulator broke' "$work/said")" -eq 1 ] || { echo "more than one was the emulator's fault"; exit 1; }
check '^FAIL vm/hanging@stock '
check '\| vm: time is up: ended after 15 s'
check '^SKIP vm/skipped@stock: not on a Tuesday$'
check '^FAIL host/bad '
check '^FAIL host/hanging '
for test in leaving finding spoiling unspoilt; do check "^PASS vm/$test@stock "; done
# machines NAME: those that it ran in.
machines() { grep -lE "lt-test: $1 begins" "$work"/log/vm/machine-*/*/console.log | sort; }
[ "$(machines leaving)" = "$(machines finding)" ] || { echo "these two did not share a machine"; exit 1; }
[ "$(machines spoiling)" != "$(machines unspoilt)" ] || { echo "a spoilt machine went on"; exit 1; }
[ "$(machines broken | wc -l)-$(machines crashed | wc -l)" = 2-1 ] || { echo "not one more machine for the broken one"; exit 1; }
[ "$(machines bad)" != "$(machines good)" ] || { echo "a machine went on after a test that failed"; exit 1; }
for test in leaving finding spoiling unspoilt good; do
	[ ! -s "$work/log/vm/$test@stock/complaints" ] || { echo "$test has complaints that are not its own"; exit 1; }
done
[ "$(tail -n 1 "$work/said")" = '5 passed, 8 failed, 1 skipped' ] || { echo "not the closing line"; exit 1; }
! pgrep -f "$work" >/dev/null || { echo "processes are left:"; pgrep -fa "$work"; exit 1; }
