# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker record` keeps numbered captures, each with the trace of its slow request; Ctrl-C leaves
# no session, no instance and no daemon behind. scripts/lttng-snapshot does the same by hand.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# timeout: 170

. /lt/tests/lib.sh
. /lt/tests/block.sh

sessions() { lttng --no-sessiond --mi xml list 2>/dev/null | grep -o '<session>' | wc -l; }
armed() { grep -q '^armed' /tmp/record.log; }

# The word is not an instance.
lttng-snapshot --help | grep '^usage: lttng-snapshot' || fail "lttng-snapshot --help"
refused "an unknown option" lttng-snapshot --nosuch

load_module
null_disk slow 200000000
latency-tracker record --cooldown 0s -o /tmp/captures slow block threshold=50ms dev=slow >/tmp/record.log 2>&1 &
recorder=$!
wait_until 60 armed
assert_eq "$(wc -l <$LT/control)" 1 "instances while recording"
for sector in 8 16; do
	reads slow 1 $sector
	wait_until 60 test -s "/tmp/captures/000$((sector / 8))/explanation.txt"
	sleep 1
done
kill -INT $recorder
wait $recorder && status=0 || status=$?
cat /tmp/record.log
assert_eq $status 2 "the exit status after an alert"

for capture in 0001 0002; do
	sector=$((capture * 64))
	babeltrace2 /tmp/captures/$capture/trace >/tmp/trace
	for event in block_rq_issue block_rq_complete; do
		grep "$event: .* sector = $sector," /tmp/trace >/dev/null || fail "$capture: the trace has no $event of sector $sector"
	done
	grep -q "sector $sector " /tmp/captures/$capture/explanation.txt || fail "$capture explains another request"
	grep -q "\"sector\": $sector," /tmp/captures/$capture/alert.json || fail "$capture has another alert"
done

# Nothing is left.
assert_eq "$(wc -l <$LT/control)" 0 "instances left"
assert_eq "$(sessions)" 0 "sessions left"
wait_until 10 sh -c '! pgrep lttng-sessiond'

# The same by hand, as a shell script.
lttng-sessiond --daemonize
control 'hand block threshold=50ms dev=slow'
lttng create --snapshot hand --output=/tmp/hand
lttng enable-channel --kernel --subbuf-size=256k --num-subbuf=4 blocks
lttng enable-event --kernel --channel=blocks block_rq_issue,block_rq_complete
lttng start
lttng-snapshot hand >/tmp/hand.log 2>&1 &
loop=$!
sleep 1
reads slow 1 50
wait_until 60 sh -c 'babeltrace2 /tmp/hand 2>/dev/null | grep -q "block_rq_complete: .* sector = 400,"'
kill $loop
lttng destroy hand
unload_module
