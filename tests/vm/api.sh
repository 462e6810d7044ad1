# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The promises of include/latency_tracker.h to other modules hold on a real kernel, even if those modules make mistakes:
# if they are unloaded without destroying a tracker, or without returning a reference.
# kernels: stock rt
# cpus: 2
# arm64: yes
# timeout: 180
# leaves: our module, which can no longer be unloaded

. /lt/tests/lib.sh

load_module
log() { dmesg | grep -c "$1" || :; }

# A reader sleeps on all alerts, so that each context has a task to wake.
follow $LT/alerts /tmp/alerts
reader=$!
insmod /lt/lt_api.ko || { dmesg | grep lt_api; fail "a test of the interface failed"; }
dmesg | grep lt_api
# When a module refuses to load, busybox's insmod tries again, by another system call.
! kernel_says ': FAILED at line ' || fail "a test failed in the first of two runs: $(dmesg | grep ': FAILED at line ')"
# Two of the tests send NMIs, which only x86 has.
assert_eq "$(log 'lt_api: .*: ok')" "$(if [ "$(uname -m)" = x86_64 ]; then echo 20; else echo 18; fi)" "tests that passed"
wait_until 20 grep -q 'instance=api tracker=module reason=' /tmp/alerts
kill $reader
assert_eq "$(log 'latency_tracker_destroy(): no such tracker, or already destroyed')" 1 "log lines about a tracker that is destroyed twice"
[ "$(log 'latency_tracker_destroy() refused: ')" -ge 2 ] || fail "the log does not say what was refused"
assert_eq "$(stat api_nested nested)" 1 "the callbacks that were not called"
assert_eq "$(stat api_nested alerts)" 5 "alerts, one of them for that end"

# The tracker is an instance like any other, except for its removal.
grep -q '^api_left module ' $LT/control || fail "the tracker is not listed"
wait_until 20 grep -q 'timed_out 1' $LT/api_left/stats
grep -q ' key=0x1234 pid=0' $LT/api_left/pending || fail "pending: $(cat $LT/api_left/pending)"
wait_until 20 grep -q '^alerts 1' $LT/api_left/stats
refused "removed by control" sh -c "echo -api_left >$LT/control"
refused "created by control" sh -c "echo another module >$LT/control"
echo 5ms >$LT/api_left/threshold
assert_eq "$(cat $LT/api_left/threshold)" 5000000 "the threshold"

# With worst=1, an end that max_alerts suppresses does not raise the threshold, so that the longest delay gets its alert.
echo 0 >$LT/api_left/timeout
echo 1 >$LT/api_left/worst
echo 1 >$LT/api_left/max_alerts
delay=5000000
operation() { echo $delay >/sys/module/lt_api/parameters/operation; }
suppressed() {
	delay=$((delay + 1))
	operation
	stat_is api_left alerts_suppressed -gt 0
}
wait_until 20 suppressed
[ "$(cat $LT/api_left/threshold)" -lt $delay ] || fail "a suppressed alert raises the threshold"
raised() {
	operation
	[ "$(cat $LT/api_left/threshold)" = $delay ]
}
wait_until 20 raised
refused "our module leaves before its user" rmmod latency_tracker
rmmod lt_api
[ ! -e $LT/api_left ] || fail "the tracker is still there"

# A module that forgets to destroy its tracker is named in the log, and nothing of it is left.
insmod /lt/lt_api.ko forget=1
rmmod lt_api
[ ! -e $LT/api_left ] || fail "a forgotten tracker is still there"
assert_eq "$(log 'api_left: destroyed: its module was unloaded')" 1 "the log names it"

# A module that fails to load is named, too.
refused "a module that fails" insmod /lt/lt_api.ko fail=1
[ ! -e $LT/api_left ] || fail "the tracker of a module that failed is still there"
[ "$(log 'api_left: destroyed: its module was unloaded')" -gt 1 ] || fail "the log does not name it"
rmmod latency_tracker

# A reference that is never returned keeps its memory and our module in use.
load_module
insmod /lt/lt_api.ko leak=1
rmmod lt_api
assert_eq "$(log 'api_left: module lt_api has not returned 1 references')" 1 "the log names it"
assert_eq "$(log 'lt_api: a reference that is left: ok')" 1 "it can still be used"
refused "our module is unloaded despite a reference" rmmod latency_tracker
