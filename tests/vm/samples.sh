# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The samples in C and in Rust track functions of their own: threshold, timeout, late end,
# references, and a tracker that its module forgets to destroy.
# kernels: stock
# long: rt
# cpus: 2
# arm64: yes
# timeout: 120

. /lt/tests/lib.sh

load_module
P=/sys/module/lt_sample_c/parameters
insmod /lt/lt_sample_c.ko || fail "the sample in C does not load"
echo 1 >$P/work
assert_eq "$(sed -n 's/^started //p' $LT/sample_c/stats)" 1 "calls that were seen"
# On a slow machine the short call may be late, too, so only increments are checked. A round in which the call of 30 ms
# times out does not count.
for _ in 1 2 3 4 5; do
	short=$(cat $P/threshold) timeout=$(cat $P/timeout)
	echo 30 >$P/work
	[ "$(cat $P/timeout)" -ne "$timeout" ] || break
done
assert_eq "$(cat $P/threshold)" $((short + 1)) "reports of the threshold"
assert_eq "$(cat $P/last_ms)" 30 "private data in the callback"
[ "$(cat $P/last_delay)" -ge 30000000 ] || fail "a delay of $(cat $P/last_delay) ns"
# The line of the alert has the thread.
key=$(printf '0x%x' "$(cat $P/last_tid)")
grep -q "tracker=module reason=threshold .* key=$key id=0" $LT/sample_c/wakeup || fail "no alert of the thread"

# A call that does not end in time is reported while it is pending, and again at its end.
late=$(cat $P/late)
echo 3000 >$P/work &
worker=$!
wait_until 20 stat_is sample_c timed_out -gt "$timeout"
grep -q "key=" $LT/sample_c/pending || fail "it is not pending"
wait $worker
assert_eq "$(cat $P/timeout)" $((timeout + 1)) "reports of a timeout"
assert_eq "$(cat $P/late)" $((late + 1)) "reports of a late end"
assert_eq "$(sed -n 's/^pending //p' $LT/sample_c/stats)" 0 "pending in the end"
refused "our module leaves before its user" rmmod latency_tracker
rmmod lt_sample_c
[ ! -e $LT/sample_c ] || fail "the tracker is still there"

insmod /lt/lt_sample_c.ko forget=1
rmmod lt_sample_c
[ ! -e $LT/sample_c ] || fail "a forgotten tracker is still there"
dmesg | grep -q 'sample_c: destroyed: its module was unloaded' || fail "the log does not name it"

insmod /lt/lt_sample_rust.ko ms=1000 || { dmesg | tail; fail "the sample in Rust does not load"; }
dmesg | grep lt_sample_rust | tail -1
dmesg | grep -q 'lt_sample_rust: threshold=1 timeout=1 late=1 ms=3000' || fail "other reports"
assert_eq "$(sed -n 's/^ended //p' $LT/sample_rust/stats)" 2 "calls that ended"
rmmod lt_sample_rust
rmmod latency_tracker
