# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# On a kernel that lacks one of its tracepoints, a tracker is marked as unavailable in `trackers`,
# which names the tracepoint, and refused with ENOSYS. The other trackers work, and a parameter that
# needs a missing tracepoint is refused. The kernel is unchanged: a copy of the module has other
# names for the tracepoints.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# timeout: 300

. /lt/tests/lib.sh

# No tracepoint is missing on this kernel.
load_module
refused "something is missing" grep unavailable $LT/trackers
unload_module

# busybox takes more than ten seconds for these megabytes
LC_ALL=C /usr/bin/sed 's/sched_wakeup_new/sched_wakeup_odd/g; s/sched_exit_tp/sched_exit_od/g' /lt/latency_tracker.ko >/tmp/odd.ko
refused "the copy is the same" cmp -s /lt/latency_tracker.ko /tmp/odd.ko
insmod /tmp/odd.ko || fail "the copy does not load"
assert_eq "$(grep -A 1 '^wakeup:' $LT/trackers | tail -n 1)" \
	'  unavailable: this kernel has no tracepoint sched_wakeup_odd' "wakeup in trackers"
assert_eq "$(grep -c unavailable $LT/trackers)" 1 "trackers that are unavailable"
echo 'w wakeup' >/tmp/line
if dd if=/tmp/line of=$LT/control 2>/tmp/error; then fail "wakeup was accepted"; fi
grep 'Function not implemented' /tmp/error || fail "not ENOSYS: $(cat /tmp/error)"
kernel_says 'this kernel does not support this tracker (see `trackers`): "wakeup"' || fail "the log says: $(dmesg | tail -n 1)"
[ ! -e $LT/w ] || fail "something is left of it"
for tracker in block runqueue offcpu; do
	control "t $tracker threshold=1000s"
	assert_eq "$(cat $LT/t/enabled)" 1 "$tracker"
	control -t
done
refused_line 't offcpu ustack=1' 'expected 0, since this kernel lacks the tracepoint sched_exit_od: "ustack"'
[ ! -e $LT/t ] || fail "something is left of it"
rmmod latency_tracker
