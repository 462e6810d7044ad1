# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# On a kernel that differs from an assumption, exactly the trackers that rely on it are marked as
# unavailable in `trackers` and refused with ENOSYS. The others work. The kernel is unchanged: for
# each assumption in turn, the self-test in a copy of the module expects another number.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# timeout: 300

. /lt/tests/lib.sh

# violates TEXT NUMBER TRACKER...: load a copy of the module in which the text of an assumption ends
# with this number; these trackers, in the order of `trackers`, must be unavailable.
violates() {
	text="this kernel violates an assumption: $1=$2"
	# busybox takes ten seconds for these megabytes
	LC_ALL=C /usr/bin/sed "s/$1=[0-9]/$1=$2/g" /lt/latency_tracker.ko >/tmp/odd.ko
	shift 2
	refused "the copy is the same" cmp -s /lt/latency_tracker.ko /tmp/odd.ko
	insmod /tmp/odd.ko || fail "the copy does not load"
	kernel_says "$text" || fail "the log says: $(dmesg | tail -n 1)"
	unavailable=$(awk '/^[a-z]/ { name = $1 } $1 == "unavailable:" { print name }' $LT/trackers)
	assert_eq "$(echo "$unavailable" | tr -d : | xargs)" "$*" "trackers that are unavailable"
	assert_eq "$(grep unavailable $LT/trackers | sort -u)" "  unavailable: $text" "why"
	for tracker; do
		echo "t $tracker" >/tmp/line
		if dd if=/tmp/line of=$LT/control 2>/tmp/error; then fail "$tracker was accepted"; fi
		grep 'Function not implemented' /tmp/error || fail "not ENOSYS: $(cat /tmp/error)"
		[ ! -e $LT/t ] || fail "something is left of it"
	done
	for tracker in block runqueue; do
		control "t $tracker threshold=1000s"
		assert_eq "$(cat $LT/t/enabled)" 1 "$tracker"
		control -t
	done
	unload_module
}

# This kernel meets each assumption.
load_module
refused "something is missing" grep unavailable $LT/trackers
unload_module

violates "a task that is runnable has on_rq" 7 wakeup offcpu syscall lock tree
violates "the waker of a task holds its pi_lock: locked" 0 offcpu tree
violates "sched_throttle_work points to itself while idle: queued" 1 tree
violates "the base of an hrtimer has its clock and offset: clocks" 5 tree
