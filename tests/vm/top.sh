# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker top` shows the module's counts. `--once` prints the values of `hist` and of the counters. The
# intervals of a run add up exactly to these values, while instances are created and removed and another reader of
# `wakeup` gets every alert. `--by` groups these alerts. On a terminal, `top` exits when the module is unloaded, and
# restores the terminal.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# timeout: 240

. /lt/tests/lib.sh
. /lt/tests/block.sh

check() { python3 /lt/tests/top.py "$@"; }
load_module
null_disk slow 20000000
null_disk quick 1000
null_disk stuck 3000000000
control "slow block threshold=10ms dev=$(dev_of slow)"
control "quick block threshold=3600s dev=$(dev_of quick)"
control "few block threshold=10ms max_alerts=1 dev=$(dev_of slow)"
control "stuck block threshold=3600s dev=$(dev_of stuck)"

# A reading of everything, with nothing in flight.
reads slow 6
reads quick 50
for name in slow quick few stuck; do
	wait_until 20 quiet $name
done
assert "alerts that max_alerts has suppressed" [ "$(stat few alerts_suppressed)" -gt 0 ]
latency-tracker top --once --json >/tmp/top.json
latency-tracker hist --json >/tmp/hist.json
check once /tmp/top.json /tmp/hist.json || fail "$(cat /tmp/top.json /tmp/hist.json)"
latency-tracker top --once >/tmp/top.txt
grep -q '^slow  *block  *-  .* 6  *0  *- ' /tmp/top.txt || fail "$(cat /tmp/top.txt)"
grep -q "few alerts_suppressed=$(stat few alerts_suppressed)" /tmp/top.txt || fail "$(cat /tmp/top.txt)"
latency-tracker top --once --json --by subject >/tmp/top.json
check groups /tmp/top.json slow || fail "$(cat /tmp/top.json)"
latency-tracker top --once --by task >/tmp/top.txt
grep -q 's  *slow  *6  *[0-9.]*m*s  *dd/[0-9]*$' /tmp/top.txt || fail "$(cat /tmp/top.txt)"

# In flight: the age is between the ages that `pending` shows just before and just after, if these are of one request.
start_of() { sed -n 's/.*"start":\([0-9]*\).*/\1/p' "$1"; }
in_flight() {
	latency-tracker pending stuck --json >/tmp/before
	latency-tracker top stuck --once --json >/tmp/top.json
	latency-tracker pending stuck --json >/tmp/after
	[ -s /tmp/before ] && [ "$(start_of /tmp/before)" = "$(start_of /tmp/after)" ]
}
: >/tmp/requests
while [ -e /tmp/requests ]; do reads stuck 1; done &
requests=$!
wait_until 60 in_flight
rm /tmp/requests
check between /tmp/before /tmp/top.json /tmp/after || fail "$(cat /tmp/before /tmp/top.json /tmp/after)"
wait $requests

# Intervals add up. First, a reader of `wakeup` takes all alerts up to now.
latency-tracker top slow --once >/dev/null
cat $LT/slow/wakeup >/dev/null
# has_shown NAME=ENDED...: whether the reports of $top have shown these numbers of operations.
has_shown() {
	readlink "/proc/$top/exe" >/dev/null || fail "top has exited: $(cat /tmp/top.err; tail -n 3 /tmp/top.json)"
	check shows /tmp/top.json "$@"
}
# The background shell empties the file at an unknown time.
: >/tmp/top.json
latency-tracker top --json -i 100ms >/tmp/top.json 2>/tmp/top.err &
top=$!
# An instance that is removed before the first reading would be missing from the sums.
wait_until 60 has_shown slow=6 quick=50
reads slow 5
control -quick
reads slow 3
control "quick block threshold=3600s dev=$(dev_of quick)"
reads quick 7
(wait_until 60 has_shown slow=14 quick=57) ||
	fail "quick has $(stat quick ended), slow $(stat slow ended); top: $(check total /tmp/top.json; tail -n 1 /tmp/top.json)"
kill -INT $top
wait $top || fail "the exit status of top: $(cat /tmp/top.err)"
check sums /tmp/top.json slow=14 quick=57
assert_eq "$(stat slow ended)" 14 "requests of the slow disk"
assert_eq "$(wc -l <$LT/slow/wakeup)" 8 "alerts that wakeup still has"

# The module is removed while `top` prints to a file, and while `top` draws on a terminal.
: >/tmp/top.txt
latency-tracker top -b -i 100ms >/tmp/top.txt 2>/tmp/top.err &
top=$!
wait_until 60 grep -q 'over [0-9]' /tmp/top.txt
unload_module
wait $top || fail "its exit status without the module: $(cat /tmp/top.err)"
grep -q 'the latency_tracker module was removed' /tmp/top.err || fail "$(cat /tmp/top.err)"
load_module
control "slow block threshold=10ms dev=$(dev_of slow)"
reads slow 2
check terminal latency-tracker top -i 100ms
loaded && fail "the module is still loaded" || :
