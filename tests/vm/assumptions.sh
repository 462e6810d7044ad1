# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# On a kernel that differs from an assumption, the trackers that rely on it are marked as
# unavailable in `trackers` and refused with ENOSYS. The others work. The kernel is unchanged: the
# self-test in a copy of the module expects another number.
# kernels: stock
# long: rt
# cpus: 2
# timeout: 300

. /lt/tests/lib.sh

# This kernel meets the assumption.
load_module
refused "something is missing" grep unavailable $LT/trackers
unload_module

sed 's/runnable has on_rq=1/runnable has on_rq=7/g' /lt/latency_tracker.ko >/tmp/odd.ko
refused "the copy is the same" cmp -s /lt/latency_tracker.ko /tmp/odd.ko
insmod /tmp/odd.ko || fail "the copy does not load"
text='this kernel violates an assumption: a task that is runnable has on_rq=7'
kernel_says "$text" || fail "the log says: $(dmesg | tail -n 1)"
for tracker in wakeup offcpu lock syscall tree; do
	assert_eq "$(grep -A 1 "^$tracker:" $LT/trackers | tail -n 1)" "  unavailable: $text" "$tracker in trackers"
	echo "t $tracker" >/tmp/line
	if dd if=/tmp/line of=$LT/control 2>/tmp/error; then fail "$tracker was accepted"; fi
	grep 'Function not implemented' /tmp/error || fail "not ENOSYS: $(cat /tmp/error)"
	[ ! -e $LT/t ] || fail "something is left of it"
done
assert_eq "$(grep -c unavailable $LT/trackers)" 5 "trackers that are unavailable"
for tracker in block runqueue; do
	control "t $tracker threshold=1000s"
	assert_eq "$(cat $LT/t/enabled)" 1 "$tracker"
	control -t
done
rmmod latency_tracker
