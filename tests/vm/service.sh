# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The units of `make install` under systemd. The instances of /etc/latency-tracker run, and
# `systemctl reload` applies a changed file. An invalid line fails the unit and is in the journal;
# once the line is corrected, `systemctl reload-or-restart` starts the unit.
# A unit that restarts gets a new cgroup: `why --unit` finds a stall after the restart, and reports it;
# an instance from the files is renewed if the start of the unit reloads latency-tracker; its recorder
# renews it, too.
# The recorder of an instance reports that it is ready, makes a capture, and writes the alert with
# its fields, but no explanation, to the journal. After a suspend, its traces have the present time of
# day. If it hangs, the watchdog kills and restarts it, and no session is left behind; a suspend, or
# a change of the time of day, is not a hang. It makes captures again after its session daemon was
# killed. It is restarted with the unit of the instances. It continues if a reload replaces its
# instance, and is restarted if the new instance has another tracker.
# Only members of the group latency-tracker can read the alerts. `systemctl stop` leaves nothing
# behind, even while a recorder destroys its session. The exporter, which has no privileges, shows
# the kernel's numbers, and names the capture of a bucket, from an index that only the group can
# read. systemd rates the units as hardened.
# kernels: stock
# cpus: 2
# icount: 1
# root: full
# debug: no, LTTng's modules are not built for this kernel
# timeout: 1200
# worth: the long part starts recorders nine times
# long-part: the recorder

. /lt/tests/lib.sh
. /lt/tests/block.sh

# systemd is the first process of a container with this machine's devices, but with processes and
# mounts of its own. The rest of this script runs in the container.
if [ -z "${SERVICE_INSIDE:-}" ]; then
	mkdir -p "/lt/clone/build/$(uname -r)"
	cp -r /lt/scripts /lt/Documentation /lt/clone/
	cp -r /lt/bin /lt/clone/build/user
	cp /lt/latency_tracker.ko "/lt/clone/build/$(uname -r)/"
	few_modules null_blk
	/lt/clone/scripts/install
	null_disk slow 20000000
	ln -sf /dev/null /etc/systemd/system/systemd-udevd.service
	cat >/etc/systemd/system/inside.service <<-END
		[Service]
		Type=oneshot
		Environment=SERVICE_INSIDE=1 LT_LONG=${LT_LONG:-}
		WorkingDirectory=/lt
		ExecStart=/bin/sh /lt/tests/vm/service.sh
		StandardOutput=file:/lt/said
		StandardError=inherit
		TimeoutStartSec=infinity
		ExecStopPost=/bin/sh -c 'echo \$EXIT_STATUS >/lt/status; systemctl --no-block --force exit'
	END
	env -i container=test /usr/bin/unshare --pid --mount --fork --kill-child --mount-proc \
		/usr/lib/systemd/systemd --unit=inside.service >/lt/systemd 2>&1 || :
	cat /lt/said || :
	[ "$(cat /lt/status 2>&1)" = 0 ] || { tail -n 40 /lt/systemd; fail "see above"; }
	exit 0
fi

CONF=/etc/latency-tracker
RECORDER=latency-tracker-record@slow
CAPTURES=/var/lib/latency-tracker/captures
trap '[ $? -eq 0 ] || { systemctl --no-pager status "latency-tracker*" lttng-sessiond; journalctl --no-pager -n 60; }' EXIT

names() { awk '{ print $1 }' $LT/control | sort | xargs; }
group_of() { stat -c %g "$LT/$1/alerts" 2>/dev/null || busybox stat -c %g "$LT/$1/alerts"; }
property() { systemctl show --value -p "$1" $RECORDER; }
is() { [ "$(property "$1")" = "$2" ]; }
differs() { [ "$(property "$1")" != "$2" ]; }
captures() { find $CAPTURES -mindepth 1 -maxdepth 1 -name '[0-9]*' | wc -l; }
has_captures() { [ "$(captures)" -ge "$1" ]; }
sessions() { lttng --no-sessiond list 2>/dev/null | grep -c 'latency-tracker-slow-' || :; }
one_session() { [ "$(sessions)" = 1 ]; }
# entries FIELD=VALUE...: print how many entries of alerts the journal has.
entries() { journalctl --quiet -o json "$@" | wc -l; }
has_entries() { _n=$1; shift; [ "$(entries "$@")" -eq "$_n" ]; }
said() { journalctl --quiet -o cat -u "$1" | grep -qF -- "$2"; }

echo "== hardening"
for unit in latency-tracker.service latency-tracker-export.service $RECORDER.service; do
	systemd-analyze security --no-pager --threshold=40 $unit >/tmp/security || { cat /tmp/security; fail "$unit is not hardened"; }
	tail -n 1 /tmp/security
done

# The name of an instance may have a -.
systemctl show -p ExecStart latency-tracker-record@slow-disk | grep -F 'record $RECORD_OPTIONS slow-disk ;' ||
	fail "latency-tracker-record@slow-disk does not record slow-disk"

echo "== instances"
mkdir $CONF
echo 'slow block threshold=10ms dev=slow' >$CONF/slow.conf
systemd-sysusers
group=$(getent group latency-tracker | cut -d: -f3)
systemctl start latency-tracker
assert_eq "$(names)" slow "the instances"
assert_eq "$(group_of slow)" "$group" "the group of what is read"
setpriv --reuid 65534 --regid 65534 --groups "$group" latency-tracker list
refused "another user" setpriv --reuid 65534 --regid 65534 --clear-groups latency-tracker list
echo 'late wakeup threshold=1h' >$CONF/late.conf
systemctl reload latency-tracker
assert_eq "$(names)" "late slow" "the instances after reload"
echo 'oops' >$CONF/wrong.conf
refused "a wrong line" systemctl reload latency-tracker
in_a_while said latency-tracker "$CONF/wrong.conf:1:"
assert_eq "$(names)" "late slow" "the instances after a wrong line"
systemctl stop latency-tracker
refused "a wrong line at the start" systemctl start latency-tracker
assert_eq "$(names)" "late slow" "the instances of a unit that failed"
rm $CONF/wrong.conf
systemctl reload-or-restart latency-tracker
systemctl is-active latency-tracker
assert_eq "$(names)" "late slow" "the instances after the line was mended"

echo "== metrics"
systemctl start latency-tracker-export
reads slow 3
wait_until 10 quiet slow
python3 - $LT <<-'END'
	import sys, urllib.request, urllib.error
	def get(path):
	    with urllib.request.urlopen("http://127.0.0.1:9817" + path, timeout=60) as answer:
	        return answer.headers["Content-Type"], answer.read().decode()
	kind, page = get("/metrics")
	assert kind.startswith("text/plain; version=0.0.4"), kind
	values = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
	of = '{name="slow",tracker="block"}'
	stats = dict(line.split() for line in open(sys.argv[1] + "/slow/stats"))
	for key in "started", "ended", "alerts", "full":
	    assert values[f"latency_tracker_{key}_total{of}"] == stats[key], key
	assert int(stats["alerts"]) >= 3, stats
	assert values["latency_tracker_delay_seconds_count" + of] == stats["ended"]
	slow = float(values["latency_tracker_delay_seconds_sum" + of])
	assert 0.06 <= slow == int(stats["sum_us"]) / 1e6, slow
	assert values['latency_tracker_delay_seconds_bucket{le="+Inf",name="slow",tracker="block"}'] == stats["ended"]
	try:
	    get("/nosuch")
	    raise SystemExit("/nosuch was found")
	except urllib.error.HTTPError as error:
	    assert error.code == 404, error
END
refused "an address in use" latency-tracker export
systemctl stop latency-tracker-export

echo "== a unit that restarts"
STALL=system.slice/stall.service
number() { ls -di /sys/fs/cgroup/$STALL | { read -r _inode _; echo "$_inode"; }; }
is_renewed() { [ "$(cat $LT/held/cgroup)" = "$(number)" ]; }
cat >/run/stall.py <<-'END'
	import os, time
	while True:
	    time.sleep(0.6 if os.path.exists("/run/stalls") else 0.05)
END
printf '[Service]\nExecStart=/usr/bin/python3 /run/stall.py\n' >/etc/systemd/system/stall.service
# The unit is set up as the guide shows.
mkdir /etc/systemd/system/stall.service.d
printf '[Service]\nExecStartPost=-+systemctl --no-block try-reload-or-restart latency-tracker\n' \
	>/etc/systemd/system/stall.service.d/latency-tracker.conf
systemctl daemon-reload
systemctl start stall
first=$(number)
latency-tracker why --unit stall.service --no-trace --waits --over 500ms -d 10m >/tmp/why.log 2>&1 &
why=$!
in_a_while grep -q 'waiting for an operation of stall.service' /tmp/why.log
systemctl restart stall
[ "$(number)" != "$first" ] || fail "the restarted unit has the cgroup $first again"
in_a_while grep -q 'stall.service was restarted: its new cgroup is watched from now on' /tmp/why.log
touch /run/stalls
rc=0
wait $why || rc=$?
cat /tmp/why.log
rm /run/stalls
assert_eq $rc 2 "the exit status of why --unit"
grep -qE 'python3/[0-9]+: clock_nanosleep, for [0-9.]+m?s' /tmp/why.log || fail "why does not name the stall"
grep -qE 'stall.service: operations in up to [0-9.]+[mun]?s may not have been seen \(1 new cgroup\)$' /tmp/why.log ||
	fail "why does not say what it may have missed"
echo "held syscall threshold=1h cgroup=/$STALL" >$CONF/held.conf
systemctl reload latency-tracker
second=$(number)
assert_eq "$(cat $LT/held/cgroup)" "$second" "the cgroup of the instance"
systemctl restart stall
in_a_while is_renewed
[ "$(number)" != "$second" ] || fail "the restarted unit has the cgroup $second again"
in_a_while said latency-tracker "renewed held ($CONF/held.conf:1)"
# While the unit does not run, the instance is shown without a cgroup.
lacks_cgroup() { latency-tracker list 2>&1 | awk '$1 == "held" { print $3 }' | grep -qx no-cgroup; }
systemctl stop stall
in_a_while lacks_cgroup

if [ -z "${LT_LONG:-}" ]; then
	systemctl stop latency-tracker
	assert_eq "$(names)" "" "the instances after stop"
	# `su` leaves root without /usr/sbin in its PATH.
	modprobe -r latency_tracker
	PATH=/usr/bin:/bin /sbin/modprobe latency_tracker
	modprobe -r latency_tracker
	PATH=/usr/local/bin:/usr/bin:/bin latency-tracker start late wakeup threshold=1h
	assert_eq "$(group_of late)" "$group" "the group, if PATH is that of a user"
	exit 0
fi

echo "== the recorder of a unit that restarts"
rm -r /etc/systemd/system/stall.service.d
systemctl daemon-reload
systemctl start stall
systemctl reload latency-tracker
is_renewed || fail "held has the cgroup $(cat $LT/held/cgroup), and stall $(number)"
systemctl start latency-tracker-record@held
systemctl restart stall
wait_until 60 is_renewed
wait_until 60 said latency-tracker-record@held "the cgroup of held was created again"
systemctl stop latency-tracker-record@held stall
rm $CONF/held.conf
systemctl reload latency-tracker
assert_eq "$(names)" "late slow" "the instances without held"

echo "== the recorder"
echo 'RECORD_OPTIONS="--cooldown 0s --rotate --keep-for 30d"' >/etc/default/latency-tracker-record@slow
mkdir /etc/systemd/system/latency-tracker-record@.service.d
printf '[Service]\nRestartSec=1s\n' >/etc/systemd/system/latency-tracker-record@.service.d/test.conf
systemctl daemon-reload
systemctl start $RECORDER
assert_eq "$(sessions)" 1 "sessions of a recorder that is ready"
reads slow 1 8
wait_until 300 has_entries 1 LATENCY_TRACKER_SECTOR=64
entry=$(journalctl --quiet -o json LATENCY_TRACKER_SECTOR=64)
for field in LATENCY_TRACKER_INSTANCE\":\"slow LATENCY_TRACKER_TRACKER\":\"block LATENCY_TRACKER_COMM\":\"dd \
	LATENCY_TRACKER_CAPTURE\":\"$CAPTURES/0001 PRIORITY\":\"4 SYSLOG_IDENTIFIER\":\"latency-tracker; do
	case $entry in *"\"$field\""*) ;; *) fail "no $field in $entry" ;; esac
done
case $(property StatusText) in captures\ 1\ *) ;; *) fail "status: $(property StatusText)" ;; esac
said $RECORDER "saved as $CAPTURES/0001" || fail "the journal does not have what it prints"
! said $RECORDER "$(sed -n 1p $CAPTURES/0001/explanation.txt)" || fail "the journal has the explanation"

echo "== exemplars"
INDEX=/run/latency-tracker/shared/captures
wait_until 60 test -s $INDEX
assert_eq "$(busybox stat -c '%a %u %g' $INDEX)" "640 0 $group" "mode, owner and group of the index"
refused "another user" setpriv --reuid 65534 --regid 65534 --clear-groups cat $INDEX
refused "a member, the captures" setpriv --reuid 65534 --regid 65534 --groups "$group" ls $CAPTURES
systemctl start latency-tracker-export
python3 - <<-'END'
	import re, urllib.request
	accept = {"Accept": "application/openmetrics-text"}
	request = urllib.request.Request("http://127.0.0.1:9817/metrics", headers=accept)
	with urllib.request.urlopen(request, timeout=60) as answer:
	    page = answer.read().decode()
	bucket = r'latency_tracker_delay_seconds_bucket\{le="(.*)",name="slow",tracker="block"\} \d+'
	found = re.findall(bucket + r' # \{capture="(.*)"\} (\S+) \d+$', page, re.M)
	assert {capture for _, capture, _ in found} == {"0001"}, page
	assert all(0.02 <= float(delay) <= float(bound) for bound, _, delay in found), found
END
! said latency-tracker-export 'no exemplars' || fail "the exporter has no exemplars"
systemctl stop latency-tracker-export

echo "== a recorder that hangs"
printf '[Service]\nRestartSec=1s\nWatchdogSec=20s\n' >/etc/systemd/system/latency-tracker-record@.service.d/test.conf
systemctl daemon-reload
systemctl restart $RECORDER
suspend_for 2
# The recorder notices the suspend after the first capture.
for capture in 2 3; do
	reads slow 1 $((capture * 64))
	wait_until 300 has_entries 1 LATENCY_TRACKER_SECTOR=$((capture * 512)) LATENCY_TRACKER_CAPTURE=$CAPTURES/000$capture
done
dated $CAPTURES/0003 1536 0.5
shift_date 1
wait_until 60 said $RECORDER 'the time of day was set forward by '
shift_date -1
wait_until 60 said $RECORDER 'the time of day was set back by '
! said $RECORDER 'former time of day' || fail "LTTng did not measure its clock again"
wait_until 60 differs WatchdogTimestampMonotonic "$(property WatchdogTimestampMonotonic)"
assert_eq "$(property NRestarts)" 0 "restarts of one that does not hang"
kill -STOP "$(property MainPID)"
wait_until 300 is NRestarts 1
wait_until 300 is ActiveState active
wait_until 60 one_session
printf '[Service]\nRestartSec=1s\n' >/etc/systemd/system/latency-tracker-record@.service.d/test.conf
systemctl daemon-reload
systemctl restart $RECORDER
reads slow 1 16
wait_until 300 has_entries 1 LATENCY_TRACKER_SECTOR=128 LATENCY_TRACKER_CAPTURE=$CAPTURES/0004

echo "== without its session daemon"
systemctl kill --kill-whom=main --signal=KILL lttng-sessiond
reads slow 1 24
wait_until 300 has_entries 1 LATENCY_TRACKER_SECTOR=192
wait_until 300 one_session
reads slow 1 32
wait_until 300 has_entries 1 LATENCY_TRACKER_SECTOR=256
journalctl --quiet -o json LATENCY_TRACKER_SECTOR=256 | grep -q "\"LATENCY_TRACKER_CAPTURE\":\"$CAPTURES/" || fail "no capture by the new daemon"
has_captures 5 || fail "$(captures) captures"

echo "== a restart of the instances"
# This test starts the recorder more often than its unit allows.
systemctl reset-failed $RECORDER
old=$(property MainPID)
systemctl restart latency-tracker
assert_eq "$(names)" "late slow" "the instances after restart"
wait_until 300 is ActiveState active
differs MainPID "$old" || fail "the recorder is still process $old, whose instance was removed"
wait_until 60 one_session
reads slow 1 40
wait_until 300 has_entries 1 LATENCY_TRACKER_SECTOR=320

echo "== a reload that replaces the instance"
old=$(property MainPID)
echo 'slow block threshold=10ms dev=slow ring=64' >$CONF/slow.conf
systemctl reload latency-tracker
assert_eq "$(cat $LT/slow/ring)" 64 "ring"
reads slow 1 48
wait_until 300 has_entries 1 LATENCY_TRACKER_SECTOR=384
journalctl --quiet -o json LATENCY_TRACKER_SECTOR=384 | grep -q "\"LATENCY_TRACKER_CAPTURE\":\"$CAPTURES/" || fail "no capture of the new instance"
wait_until 60 said $RECORDER 'instance slow was replaced: the run continues with the new one'
is MainPID "$old" || fail "the recorder was restarted, and its buffers lost"
echo 'slow wakeup threshold=1h' >$CONF/slow.conf
systemctl reload latency-tracker
wait_until 60 said $RECORDER 'instance slow was replaced by one of the tracker wakeup,'
wait_until 60 differs MainPID "$old"
wait_until 300 is ActiveState active
systemctl reset-failed $RECORDER

echo "== stopped while it ends"
# The recorder ends with its instance. The recorder's command to destroy the session waits until systemd has sent its
# signals.
mkdir /run/slow-lttng
cat >/run/slow-lttng/lttng <<-'END'
	#!/bin/sh
	case " $* " in *" destroy "*)
		touch /run/slow-lttng/destroys
		until [ -e /run/slow-lttng/go ]; do sleep 0.1; done ;;
	esac
	exec /usr/bin/lttng "$@"
END
chmod +x /run/slow-lttng/lttng
printf '[Service]\nEnvironment=PATH=/run/slow-lttng:/usr/sbin:/usr/bin\nReadWritePaths=/run/slow-lttng\n' \
	>/etc/systemd/system/latency-tracker-record@.service.d/test.conf
systemctl daemon-reload
touch /run/slow-lttng/go
systemctl restart $RECORDER
rm -f /run/slow-lttng/go /run/slow-lttng/destroys
latency-tracker stop slow
wait_until 60 test -e /run/slow-lttng/destroys
systemctl stop --no-block $RECORDER
wait_until 60 is ActiveState deactivating
touch /run/slow-lttng/go
wait_until 60 is ActiveState inactive
is Result success || fail "the recorder ended with $(property Result)"
assert_eq "$(sessions)" 0 "sessions of a recorder that was stopped while it ended"

echo "== end"
systemctl restart latency-tracker
systemctl start $RECORDER
assert_eq "$(sessions)" 1 "sessions of the last recorder"
systemctl stop latency-tracker
wait_until 60 is ActiveState inactive
assert_eq "$(names)" "" "the instances after stop"
assert_eq "$(sessions)" 0 "sessions after stop"
is Result success || fail "the recorder ended with $(property Result)"
systemctl stop lttng-sessiond
modprobe -r latency_tracker
