# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The profile loses nothing: if it is read and reset during I/O of other tasks, the pieces add up to
# the whole. Windows contain the operations that ended in them, and no others. Filters work, and
# invalid input is refused.
#
# The machine's clock counts instructions: minutes of sleep pass at once.
# kernels: stock
# long: rt
# cpus: 2
# icount: 1
# arm64: yes
# timeout: 360

. /lt/tests/lib.sh
. /lt/tests/block.sh

# sum FILE [COLUMN]: print the sum of all counts of a profile, or of one column.
sum() {
	awk -v only="${2:-}" 'NR > 2 { for (i = 2; i <= NF; i++) if (only == "" || i == only) n += $i } END { print n + 0 }' "$1"
}
# span FILE: print the seconds that it covers.
span() { sed -n '1s/# begin=\([0-9]*\) end=\([0-9]*\)/\1 \2/p' "$1" | awk '{ print int(($2 - $1) / 1000000000) }'; }
quiet_requests() { ! grep -q 'class=b_' "$LT/$1/pending"; }

load_module
null_disk d 100000
control 'io io'

# Each profile that a reset ends is a piece; the remaining counts are the last piece. The tracker's
# own counters are the whole. The code that reads and resets also reads and opens files, so the
# counts change all the time.
rounds=$(many 30 12)
load() { for _round in $(seq "$rounds"); do reads d 20; writes d 20; done; }
load &
first=$!
load &
second=$!
pieces=0 resets=0 last=0
while kill -0 $first 2>/dev/null || kill -0 $second 2>/dev/null; do
	now=$(sum $LT/io/profile)
	[ "$now" -ge "$last" ] || fail "a profile shrank without a reset: $last, $now"
	echo reset >$LT/io/profile
	piece=$(sum $LT/io/profile_previous)
	[ "$piece" -ge "$now" ] || fail "a reset lost what was seen before: $now, $piece"
	pieces=$((pieces + piece)) resets=$((resets + 1)) last=0
done
wait
[ $resets -ge 5 ] || fail "only $resets resets"
echo 0 >$LT/io/enabled
pieces=$((pieces + $(sum $LT/io/profile)))
echo "$resets resets, $pieces operations"
assert_eq "$pieces" "$(($(stat io ended) - $(stat io negative)))" "the sum of the pieces"
[ "$(stat io ended)" -gt $((rounds * 170)) ] || fail "too little: $(stat io ended)"
sums_hold io
assert_eq "$(stat io full) $(stat io replaced)" "0 0" "full, replaced"
control -io

# Windows: 50 requests, the only ones in their columns.
control 'w io dev=d'
reads d 50
wait_until 5 quiet_requests w
assert_eq "$(sum $LT/w/profile_1min 8) $(sum $LT/w/profile_5min 8) $(sum $LT/w/profile_15min 8)" "50 50 50" "all windows"
sleep 45
assert_eq "$(sum $LT/w/profile_1min 8)" 50 "before a minute has passed"
writes d 30
sleep 30
assert_eq "$(sum $LT/w/profile_1min 8) $(sum $LT/w/profile_1min 9)" "0 30" "reads are gone, writes are not"
assert_eq "$(sum $LT/w/profile_5min 8) $(sum $LT/w/profile_5min 9)" "50 30" "five minutes"
echo reset >$LT/w/profile
assert_eq "$(sum $LT/w/profile 8) $(sum $LT/w/profile_previous 8)" "0 50" "after a reset"
lengths=1
# This part runs only on a machine on which minutes pass at once.
if in_time; then
	lengths='1 5 15'
	sleep 260
	assert_eq "$(sum $LT/w/profile_5min 8) $(sum $LT/w/profile_15min 8)" "0 50" "after five minutes"
	sleep 700
	assert_eq "$(sum $LT/w/profile_15min 8) $(sum $LT/w/profile 8) $(sum $LT/w/profile_previous 8)" "0 0 50" "after fifteen"
fi
for length in $lengths; do
	spanned=$(span "$LT/w/profile_${length}min")
	[ "$spanned" -ge $((length * 60)) ] && [ "$spanned" -le $((length * 65)) ] || fail "$length minutes: $spanned s"
done
control -w

# An instance for one disk and one command: requests of other disks are filtered.
null_disk other 100000
control 'one io dev=other comm=dd'
reads d 3
reads other 4
wait_until 5 quiet_requests one
assert_eq "$(sum $LT/one/profile 8)" 4 "requests of one disk"
[ "$(stat one filtered)" -ge 3 ] || fail "filtered: $(stat one filtered)"
assert_eq "$(stat one unmatched)" 0 "unmatched"
sums_hold one
control -one

# A waiting task is pending, with the place where it waits, and late.
number=$(number_of read)
mkfifo /tmp/gate
sleep 1000 >/tmp/gate &
sleeper=$!
control 'slow io threshold=100ms timeout=50ms comm=cat'
exec 3<$LT/slow/alerts
cat /tmp/gate &
reader=$!
wait_until 5 grep "tid=$reader .*class=s_read call=$number stack=\".*pipe_read" $LT/slow/pending
cat <&3 >/tmp/alerts &
follower=$!
wait_until 5 grep " reason=timeout .* tid=$reader .*class=s_read call=$number" /tmp/alerts
kill $sleeper
wait $reader
wait_until 5 grep " reason=late .* tid=$reader .*class=s_read call=$number" /tmp/alerts
kill $follower
assert_eq "$(grep "tid=$reader " /tmp/alerts | grep -c "reason=\(timeout\|late\) .*class=s_read call=$number")" 2 "alerts of the reader"
exec 3<&-

# Refusals.
refused 'another word' sh -c "echo again >$LT/slow/profile"
kernel_says 'expected reset: "again' || fail 'the word at fault is not named'
refused 'a window' sh -c "echo reset >$LT/slow/profile_1min"
refused_line 'x io from=insert' '"from'
unload_module
