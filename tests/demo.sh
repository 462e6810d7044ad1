# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# demo.sh: the demonstration, inside the virtual machine (scripts/demo). It also checks what it shows: it
# fails if the slow disk has an alert too few or too many, or an event is lost. (Emulation may make a fast
# request slow, too; that alert is as true as the others.)

. /lt/tests/lib.sh
. /lt/tests/block.sh

THRESHOLD=50ms
SLOW=12

title() { printf '\n== %s\n\n' "$*"; }
run() { printf '# %s\n' "$*"; "$@"; }

load_module
null_disk fast 2000000
null_disk slow 200000000
# The first run of anything is slow under emulation; that is not an error.
reads fast 20

title "1. Follow every disk request; report those that take longer than $THRESHOLD"
run latency-tracker start disks block threshold=$THRESHOLD
run cat $LT/control

title "2. Record the kernel's last moments in memory, and keep them when a request was slow"
printf '# latency-tracker record -o /tmp/captures -n 1 disks &\n'
latency-tracker record -o /tmp/captures -n 1 disks >/tmp/record.log 2>&1 &
recorder=$!
wait_until 60 sh -c "grep -q '^armed' /tmp/record.log || ! kill -0 $recorder 2>/dev/null"
cat /tmp/record.log
kill -0 $recorder 2>/dev/null || fail "the recorder has ended"
recorded=$(wc -l </tmp/record.log)

title "3. Thousands of requests of 2 ms, and among them $SLOW of 200 ms; the alerts as they come"
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

title "4. How long they took, fast and slow"
run latency-tracker hist disks -m

title "5. What the kernel did around the first slow request"
wait_until 60 sh -c "! kill -0 $recorder 2>/dev/null"
wait $recorder || :
tail -n +$((recorded + 1)) /tmp/record.log
run ls /tmp/captures/0001

title "6. What it cost"
run cat $LT/disks/stats >/tmp/stats
slow=$(grep -c 'disk="slow"' /tmp/alerts || :)
fast=$(grep -c 'disk="fast"' /tmp/alerts || :)
if [ "$fast" -gt 0 ]; then
	echo "$fast of the alerts are of the fast disk: the host was busy and let this machine stand still, so a request of"
	echo "2 ms took longer than $THRESHOLD here, too. That is measured, not invented; an idle host has fewer of them."
	echo
fi
awk '
	{ v[$1] = $2 }
	END {
		printf "requests seen %d, completed %d, in flight %d\n", v["attempts"], v["ended"], v["pending"]
		printf "alerts %d, wake-ups of readers %d\n", v["alerts"], v["wakes"]
		printf "events lost: %d (pool full %d, alerts lost %d)\n", v["full"] + v["alerts_lost"], v["full"], v["alerts_lost"]
	}' /tmp/stats
sums_hold disks
assert_eq "$(stat disks full)$(stat disks alerts_lost)" 00 "events lost"
assert_eq "$slow" $SLOW "alerts for the slow disk"
[ "$(stat disks started)" -ge 4000 ] || fail "fio made only $(stat disks started) requests"
[ -s /tmp/captures/0001/explanation.txt ] || fail "the capture has no explanation"

title "7. Remove everything"
run latency-tracker stop disks
run rmmod latency_tracker
echo
echo "All $SLOW slow requests among $(awk '$1 == "started" { print $2 }' /tmp/stats) were reported, none lost."
