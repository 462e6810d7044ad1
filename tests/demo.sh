# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# demo.sh: the demonstration, inside the virtual machine (scripts/demo). It also checks what it
# shows: it fails if the number of alerts is wrong, if an event is lost, or if a slow request is not
# explained. The machine's clock counts instructions, so that no request is late because the
# host was busy.

. /lt/tests/lib.sh
. /lt/tests/block.sh

THRESHOLD=50ms
SLOW=12

title() { printf '\n== %s\n\n' "$*"; }
run() { printf '# %s\n' "$*"; "$@"; }

load_module
null_disk fast 2000000
null_disk slow 200000000
# Run all programs once, so that their files are in memory. The machine's own disk is a file of the
# host, which determines how long a read takes.
fio --output=/tmp/fio.log --direct=1 --bs=4k --ioengine=libaio --name=fast --filename=/dev/fast --rw=randrw --number_ios=20
{
	lttng-sessiond --daemonize
	lttng create before --snapshot
	lttng enable-event --kernel 'sched_switch,block_rq_*'
	lttng start
	lttng snapshot record
	lttng destroy before
	kill "$(cat /run/lttng/lttng-sessiond.pid)"
} >/dev/null
wait_until 20 sh -c '! pidof lttng-sessiond >/dev/null'
rm -rf "$HOME/lttng-traces"

title "1. A program reads from a disk that is slow, and one command says why"
dd if=/dev/slow of=/dev/null bs=4k count=16000 iflag=direct 2>/dev/null &
reader=$!
status=0
run latency-tracker why --disk slow --over $THRESHOLD -d 5m >/tmp/why.log 2>&1 || status=$?
cat /tmp/why.log
kill $reader
wait $reader || :
assert_eq $status 2 "the exit status of why"
grep -q "^by dd/$reader, took 20" /tmp/why.log || fail "the late program is not named"
because='(99|100) % of the delay \(20[0-9.]+ms\): the request was at the device, which had no other request before it'
tr -s ' \n' ' ' </tmp/why.log | grep -qE "$because" || fail "why the disk is slow is not explained"
assert_eq "$(cat $LT/control)" "" "instances that why left"

title "2. Follow every disk request; report those that take longer than $THRESHOLD"
run latency-tracker start disks block threshold=$THRESHOLD
run cat $LT/control

title "3. Record the kernel's last moments in memory, and keep them when a request was slow"
printf '# latency-tracker record -o /tmp/captures -n 1 disks &\n'
latency-tracker record -o /tmp/captures -n 1 disks >/tmp/record.log 2>&1 &
recorder=$!
wait_until 600 sh -c "grep -q '^armed' /tmp/record.log || ! kill -0 $recorder 2>/dev/null"
cat /tmp/record.log
kill -0 $recorder 2>/dev/null || fail "the recorder has ended"
recorded=$(wc -l </tmp/record.log)

title "4. Thousands of requests of 2 ms, and among them $SLOW of 200 ms; the alerts as they come"
latency-tracker watch disks --on-alert continue &
watcher=$!
follow $LT/disks/alerts /tmp/alerts
sleep 1
fio --output=/tmp/fio.log --direct=1 --bs=4k --ioengine=libaio \
	--name=fast --filename=/dev/fast --rw=randrw --iodepth=8 --number_ios=4000 \
	--name=slow --filename=/dev/slow --rw=randread --iodepth=1 --number_ios=$SLOW ||
	{ cat /tmp/fio.log; fail "fio failed"; }
wait_until 10 quiet disks
sleep 1.5
kill -INT $watcher
wait $watcher || :

title "5. How long they took, fast and slow"
run latency-tracker hist disks -m

title "6. What it cost"
run cat $LT/disks/stats >/tmp/stats
awk '
	{ v[$1] = $2 }
	END {
		printf "requests seen %d, completed %d, in flight %d\n", v["attempts"], v["ended"], v["pending"]
		printf "alerts %d, wakeups of readers %d\n", v["alerts"], v["wakes"]
		printf "events lost: %d, alerts lost: %d\n", v["full"] + v["crowded"], v["alerts_lost"]
	}' /tmp/stats
sums_hold disks
assert_eq "$(stat disks full)$(stat disks alerts_lost)" 00 "events lost"
assert_eq "$(grep -c 'disk="slow"' /tmp/alerts)" $SLOW "alerts for the slow disk"
assert_eq "$(stat disks alerts)" $SLOW "alerts in all"
[ "$(stat disks started)" -ge 4000 ] || fail "fio made only $(stat disks started) requests"

wait_until 60 sh -c "! kill -0 $recorder 2>/dev/null"
wait $recorder || :
title "7. Remove everything"
run latency-tracker stop disks
run rmmod latency_tracker

title "8. Why the first slow request was slow"
tail -n +$((recorded + 1)) /tmp/record.log
run ls /tmp/captures/0001
because='100 % of the delay (200.*ms): the request was at the device, which had no$'
grep -q "$because" /tmp/captures/0001/explanation.txt || fail "the capture is not explained"
first=$(head -n 1 /tmp/alerts)
# field_ms NAME: print a time of the first alert, in milliseconds.
field_ms() { echo "$first" | field "$1" | awk '{ printf "%.1f ms", $1 / 1e6 }'; }
cat <<END

In plain words: the program $(echo "$first" | field comm) asked the disk "$(echo "$first" | field disk)" for 4 KiB, and got
them $(field_ms delay) later. The kernel passed the request on after $(echo "$first" | field queue | awk '{ print $1 / 1e3 }') us;
the disk then kept it for $(field_ms device), with no other request before it.
So it is the disk that is slow: not the program, and not the kernel.
END

echo
echo "All $SLOW slow requests among $(awk '$1 == "started" { print $2 }' /tmp/stats) were reported, none lost."
