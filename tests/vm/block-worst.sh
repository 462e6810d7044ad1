# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# With worst=1 only a delay longer than all earlier delays is reported, and `threshold` is the longest so far.
# Timeouts are always reported, and so are their ends. Writing the threshold restarts from that value.
# kernels: rt
# long: stock
# cpus: 2
# timeout: 120
# icount: 1

. /lt/tests/lib.sh
. /lt/tests/block.sh

load_module
null_disk short 20000000
null_disk long "$(patiently 200)000000"
null_disk longest 1500000000
control 'worst block threshold=10ms wakeup_interval=0 worst=1'
control 'all block threshold=10ms wakeup_interval=0'
follow $LT/worst/alerts /tmp/worst

# chain_holds: check that each alert has its predecessor's delay as threshold, and that the threshold is the last delay.
chain_holds() {
	field delay </tmp/worst | sort -n >/tmp/delays
	field threshold </tmp/worst | sort -n >/tmp/thresholds
	assert_eq "$(tail -n +2 /tmp/thresholds)" "$(head -n -1 /tmp/delays)" "thresholds, and the delays before"
	assert_eq "$(sort -un /tmp/delays | wc -l)" "$(wc -l </tmp/delays)" "different delays"
	assert_eq "$(cat $LT/worst/threshold)" "$(tail -n 1 /tmp/delays)" "the threshold"
}
# Several readers run at once: a slower request raises the threshold further.
for n in 1 2 3 4; do reads short 10 $((n * 20)) & jobs="${jobs:-} $!"; done
# shellcheck disable=SC2086 # a list
wait $jobs
wait_until 5 quiet worst
assert_eq "$(stat all alerts)" 40 "alerts without worst"
[ "$(stat worst alerts)" -ge 1 ] || fail "no alert"
wait_until 5 sh -c "[ \$(wc -l </tmp/worst) -eq $(stat worst alerts) ]"
chain_holds
reads long 1
wait_until 5 grep -q 'disk="long"' /tmp/worst
chain_holds
count=$(stat worst alerts)
reads short 10
assert_eq "$(stat worst alerts)" "$count" "alerts after a much longer one"
assert_eq "$(stat worst ended)" 51 "ended"

# Changing another parameter keeps the threshold, which `control` shows, too. Writing a value
# restarts from it.
threshold=$(cat $LT/worst/threshold)
echo 1ms >$LT/worst/wakeup_interval
assert_eq "$(cat $LT/worst/threshold)" "$threshold" "the threshold after another change"
grep -q "^worst block .* threshold=$threshold .* worst=1" $LT/control || fail "control says something else"
echo 10ms >$LT/worst/threshold
reads short 1
[ "$(stat worst alerts)" -eq $((count + 1)) ] || fail "no alert after the threshold was written"

# A timeout does not raise the threshold. The end of the request does.
threshold=$(cat $LT/worst/threshold)
echo 500ms >$LT/worst/timeout
reads longest 1 &
wait_until 5 grep -q reason=timeout /tmp/worst
assert_eq "$(cat $LT/worst/threshold)" "$threshold" "the threshold after a timeout"
wait_until 5 grep -q reason=late /tmp/worst
assert_eq "$(cat $LT/worst/threshold)" "$(grep reason=late /tmp/worst | field delay)" "the threshold after the end"
reads longest 1 9
wait_until 5 sh -c '[ $(grep -c reason=late /tmp/worst) -eq 2 ]'
sums_hold worst
# With worst=0 the threshold stays as it is.
echo 0 >$LT/worst/worst
echo 10ms >$LT/worst/threshold
count=$(stat worst alerts)
reads short 3
assert_eq "$(stat worst alerts)" $((count + 3)) "alerts with worst=0"
assert_eq "$(cat $LT/worst/threshold)" 10000000 "the threshold with worst=0"
unload_module
