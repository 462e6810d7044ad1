# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Several recorders at the same time, and other users of LTTng. If two recorders share a directory, each alert is in a
# capture with its trace, and no number is given twice. If two record the same instance, each has all alerts. A recorder
# that ends removes only its own instance and session, not an instance that replaced its own; the last one stops the
# session daemon. If the instance of a recorder is not its own, and is replaced, the recorder continues with the new
# instance, for which it waits while an `apply` is running; it fails if the new instance has another tracker. A cgroup
# that is created again is followed, even if limiting the instance to it fails at first. If another program destroys or
# stops a session, the recorder reports it within a minute or at the next alert, keeps that alert, and records again. A
# recorder whose module is unloaded reports this, ends, and leaves nothing behind.
# long: stock
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root is without LTTng
# timeout: 900
# worth: each recorder creates a session of LTTng, and the test waits until a recorder checks its session

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/recorders.sh

load_module
null_disk slow 200000000
null_disk idle 200000000

echo "== two instances, one directory"
start one -o /tmp/both one block threshold=50ms dev=slow
one=$!
start two -o /tmp/both two block threshold=50ms dev=idle
two=$!
assert_eq "$(sessions)" "latency-tracker-one-$one latency-tracker-two-$two" "sessions"
for round in 1 2 3; do
	reads slow 1 $round & reader=$!
	reads idle 1 $round
	wait $reader
	in_a_while captured /tmp/both 000$((round * 2))
done
ls -A /tmp/both
python3 - <<-'END' || fail "not the captures of two recorders"
	import glob, json
	found = []
	for path in sorted(glob.glob("/tmp/both/0*")):
	    with open(path + "/alert.json", encoding="utf-8") as file:
	        record = json.load(file)
	    assert record["capture"] == int(path[-4:]) and "no_trace" not in record, (path, record)
	    found += [(record["instance"], alert["sector"]) for alert in record["alerts"]]
	assert sorted(found) == [(name, sector) for name in ("one", "two") for sector in (8, 16, 24)], found
END
for capture in 1 2 3 4 5 6; do
	traced /tmp/both/000$capture/trace "$(sed -n 's/^ *"sector": \([0-9]*\),$/\1/p' /tmp/both/000$capture/alert.json)"
done

echo "== one instance"
start three -o /tmp/third one
three=$!
reads slow 1 9
in_a_while captured /tmp/third 0001
in_a_while captured /tmp/both 0007
traced /tmp/third/0001/trace 72
traced /tmp/both/0007/trace 72

echo "== the first one ends"
kill -INT $one
ended $one one
ended $three three
grep '^latency-tracker: instance one was removed, so the run ends' /tmp/three.log || fail "the other recorder does not say why it ends"
assert_eq "$(sessions)" "latency-tracker-two-$two" "sessions of the other"
reads idle 1 10
in_a_while captured /tmp/both 0008
traced /tmp/both/0008/trace 80
kill -INT $two
ended $two two
! grep 'not saved' /tmp/one.log /tmp/two.log || fail "alerts were not saved"
wait_until 20 sh -c '! pgrep lttng-sessiond'

echo "== an instance that is replaced"
start same -o /tmp/same same block threshold=50ms dev=slow
same=$!
control -same
control 'same block threshold=3600s dev=slow'
wait $same && status=0 || status=$?
cat /tmp/same.log
assert_eq "$status" 0 "the exit status of a recorder without alerts"
grep '^same block .* threshold=3600000000000 ' $LT/control || fail "the recorder removed the instance that replaced its own"
control -same

echo "== an instance that is kept, and replaced"
control 'next block threshold=50ms dev=slow'
start next -o /tmp/next next
next=$!
# The alert comes before the recorder has noticed.
kill -STOP $next
control -next
control 'next block threshold=50ms dev=slow ring=64'
reads slow 1 1
kill -CONT $next
in_a_while captured /tmp/next 0001
grep '^latency-tracker: instance next was replaced: the run continues with the new one' /tmp/next.log ||
	fail "the replacement is not reported"
traced /tmp/next/0001/trace 8
! grep 'waiting for `apply`' /tmp/next.log /tmp/three.log || fail "waited without an apply"
# Holds the lock between removal and creation, as `apply` does.
mkfifo /tmp/applied
python3 -c 'import fcntl
lock = open("/run/latency-tracker/lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
open("/tmp/locked", "w").close()
open("/tmp/applied").read()' & apply=$!
in_a_while test -e /tmp/locked
control -next
in_a_while grep '^latency-tracker: instance next was removed: waiting for `apply`, which may replace it' /tmp/next.log
control 'next block threshold=50ms dev=slow'
echo >/tmp/applied
wait $apply
reads slow 1 2
in_a_while captured /tmp/next 0002
traced /tmp/next/0002/trace 16
kill -STOP $next
control -next
control 'next wakeup threshold=3600s'
kill -CONT $next
wait $next && status=0 || status=$?
cat /tmp/next.log
assert_eq "$status" 1 "the exit status of a recorder whose instance got another tracker"
grep '^latency-tracker: instance next was replaced by one of the tracker wakeup,' /tmp/next.log || fail "the tracker is not named"
grep '^next wakeup ' $LT/control || fail "the recorder removed an instance that it did not create"
control -next

echo "== a cgroup that is created again"
GROUP=/sys/fs/cgroup/lt-recorders
mkdir $GROUP
control 'held syscall threshold=3600s cgroup=/lt-recorders'
first=$(cat $LT/held/cgroup)
refused "the instance with another cgroup" latency-tracker record -d 1 held syscall cgroup=/
start held -o /tmp/held held syscall threshold=3600s cgroup=/lt-recorders
held=$!
# Each write fails until this mount is removed.
mount --bind /dev/full $LT/held/cgroup
rmdir $GROUP
mkdir $GROUP
second=$(ls -di $GROUP | { read -r inode _; echo "$inode"; })
in_a_while grep '^latency-tracker: the cgroup of held was created again, but .*: No space left on device' /tmp/held.log
# The mount is busy during a write.
in_a_while umount $LT/held/cgroup
in_a_while grep '^latency-tracker: the cgroup of held was created again: ' /tmp/held.log
assert_eq "$(cat $LT/held/cgroup)" "$second" "the cgroup of the instance, which was $first"
assert_eq "$(grep -c 'still limited' /tmp/held.log)" 1 "reports of a failure"
kill -INT $held
wait $held && status=0 || status=$?
assert_eq "$status" 0 "the exit status of a recorder without alerts"
control -held
rmdir $GROUP

echo "== a session that is destroyed"
start gone -o /tmp/gone gone block threshold=50ms dev=slow
gone=$!
LINE='LTTng session latency-tracker-gone-[0-9]* was destroyed by another program after 20[0-9T:-]*Z: nothing was recorded until 20[0-9T:-]*Z, when it was created again'
lttng destroy "$(session_of gone)"
in_a_while grep "^latency-tracker: $LINE\$" /tmp/gone.log
reads slow 1 1
in_a_while captured /tmp/gone 0001
traced /tmp/gone/0001/trace 8
lttng destroy "$(session_of gone)"
reads slow 1 2
in_a_while captured /tmp/gone 0002
grep "\"no_trace\": \"$LINE\"" /tmp/gone/0002/alert.json || fail "alert.json does not say why it has no trace"
grep "^latency-tracker: no trace: $LINE\$" /tmp/gone.log || fail "the recorder does not say why there is no trace"
grep '"sector": 16,' /tmp/gone/0002/alert.json || fail "the alert is not kept"
reads slow 1 3
in_a_while captured /tmp/gone 0003
traced /tmp/gone/0003/trace 24

echo "== a session that is stopped"
lttng stop "$(session_of gone)"
reads slow 1 4
in_a_while grep '^latency-tracker: LTTng session .* was stopped by another program after .*, when it was started again$' /tmp/gone.log
in_a_while captured /tmp/gone 0004
reads slow 1 5
in_a_while captured /tmp/gone 0005
traced /tmp/gone/0005/trace 40

echo "== the module is unloaded"
rmmod latency_tracker
ended $gone gone
grep '^latency-tracker: the latency_tracker module was unloaded, so the run ends$' /tmp/gone.log ||
	fail "the recorder does not say why it ends"
assert_eq "$(sessions)" "" "sessions left"
wait_until 20 sh -c '! pgrep lttng'
refused "a recorder without the module" latency-tracker record gone block threshold=50ms dev=slow
