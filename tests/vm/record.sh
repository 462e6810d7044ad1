# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker record` keeps numbered captures, each with the trace of its slow request, and
# misses no alert, even if `wakeup` has other readers. A full disk or a killed session daemon loses
# the trace, not the alert; a closed output loses nothing. A capture has the limits of the late
# thread's cgroups, with their counters before and after the delay, and the addresses of the
# functions in its trace. Ctrl-C ends the run, also after an alert, and leaves no session, instance
# or daemon behind. Captures that are too old or too many are removed, and nothing else in their
# directory; `captures` lists and shows them. --events-for records all that an analysis reads,
# without an instance, prints its cost before, and keeps it if the session ends early.
# scripts/lttng-snapshot saves a snapshot at an alert, too.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root has no LTTng
# timeout: 900
# worth: each run of record starts and ends a session daemon of LTTng, and each fault needs a run of
# its own

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/sched.sh

sessions() { lttng --no-sessiond --mi xml list 2>/dev/null | grep -o '<session>' | wc -l; }
armed() { grep -q '^armed' /tmp/record.log; }

# The script's help, and an option that it does not have.
lttng-snapshot --help | grep '^usage: lttng-snapshot' || fail "lttng-snapshot --help"
refused "an unknown option" lttng-snapshot --nosuch
refused "a missing instance" lttng-snapshot nosuch

load_module
null_disk slow 200000000
mkdir -m 700 /tmp/captures /tmp/captures/0000
echo '{}' >/tmp/captures/0000/alert.json
touch -d '2000-01-01' /tmp/captures/0000
latency-tracker record --cooldown 0s --keep-for 1d -o /tmp/captures slow block threshold=50ms dev=slow >/tmp/record.log 2>&1 &
recorder=$!
wait_until 180 armed
assert_eq "$(wc -l <$LT/control)" 1 "instances while recording"
for sector in 8 16; do
	reads slow 1 $sector
	wait_until 180 test -s "/tmp/captures/000$((sector / 8))/explanation.txt"
	sleep 1
done
kill -INT $recorder
wait $recorder && status=0 || status=$?
cat /tmp/record.log
assert_eq $status 2 "the exit status after an alert"
grep -E '^cost: .* events/s of [0-9]+ bytes; with --lean [0-9]+ events/s' /tmp/record.log || fail "no cost"

for capture in 0001 0002; do
	sector=$((capture * 64))
	babeltrace2 /tmp/captures/$capture/trace >/tmp/trace
	for event in block_rq_issue block_rq_complete; do
		grep "$event: .* sector = $sector," /tmp/trace >/dev/null || fail "$capture: the trace has no $event of sector $sector"
	done
	grep -q "sector $sector " /tmp/captures/$capture/explanation.txt || fail "$capture explains another request"
	grep -q "\"sector\": $sector," /tmp/captures/$capture/alert.json || fail "$capture has another alert"
done

# The oldest capture is gone, and the others are listed and shown.
[ ! -e /tmp/captures/0000 ] || fail "a capture of 2000 is still there"
latency-tracker captures -o /tmp/captures >/tmp/list
cat /tmp/list
grep -E '^ *0002  20[0-9-]+T[0-9:]+Z .* slow +1 +[0-9.]+ms  .' /tmp/list || fail "the list of captures"
latency-tracker captures -o /tmp/captures 1 | grep -F "$(sed -n 1p /tmp/captures/0001/explanation.txt)" || fail "capture 1 is not shown"
latency-tracker captures -o /tmp/captures 7 2>&1 | grep 'no capture 0007; there are 0001 to 0002' || fail "capture 7"

# Nothing is left.
assert_eq "$(wc -l <$LT/control)" 0 "instances left"
assert_eq "$(sessions)" 0 "sessions left"
wait_until 10 sh -c '! pgrep lttng-sessiond'

# With a quota, evidence.json has the counters that a trace cannot have.
if grep -qw cpu /sys/fs/cgroup/cgroup.controllers; then
	waits quota 1 50 5 # makes the cgroup
	latency-tracker record -n 1 -o /tmp/held held runqueue threshold=50ms cgroup=/lt-quota >/tmp/record.log 2>&1 &
	recorder=$!
	wait_until 180 armed
	python3 /lt/tests/sched.py quota 1 10 1000000 &
	member=$!
	wait $recorder && status=0 || status=$?
	kill $member
	cat /tmp/record.log
	assert_eq $status 2 "the exit status after an alert of a quota"
	assert_eq "$(ls -ln /tmp/held/0001/evidence.json | awk '{ print $1, $3 }')" "-rw------- 0" "mode and owner of evidence.json"
	babeltrace2 /tmp/held/0001/trace | grep timer_hrtimer_expire_entry >/tmp/trace
	cat /tmp/held/0001/evidence.json
	python3 - $member <<-'END' || fail "not the evidence of a quota"
		import json, re, sys
		def read(name):
		    with open(f"/tmp/held/0001/{name}.json", encoding="utf-8") as file:
		        return json.load(file)
		member = int(sys.argv[1])
		alerts, evidence = read("alert")["alerts"], read("evidence")
		assert {alert["tid"] for alert in alerts} == {member}, alerts
		(task,) = evidence["tasks"]
		assert (task["tid"], task["cgroup"], task["policy"], task["cpus"]) == (member, "/lt-quota", "SCHED_OTHER", "1"), task
		(group,) = evidence["cgroups"]
		assert group["path"] == "/lt-quota" and ["cpu.max", "10000 100000"] in group["limits"], group
		before, after = group["reads"][0], group["reads"][-1]
		assert before["end"] <= min(a["time"] - a["delay"] for a in alerts), "no read before the delay"
		assert after["begin"] >= max(a["time"] for a in alerts), "no read after the delay"
		for counter in "nr_throttled", "throttled_usec":
		    assert after[counter] > before[counter], (counter, group["reads"])
		# The trace has the timer that ended the delay by its address.
		addresses = {f["address"] for f in evidence["functions"] if f["name"] == "sched_cfs_period_timer"}
		with open("/tmp/trace", encoding="utf-8") as lines:
		    traced = {int(address, 16) for address in re.findall("function = (0x[0-9A-Fa-f]+)", lines.read())}
		assert len(addresses) == 1 and addresses <= traced, (addresses, traced)
	END
fi

# Another reader of the same file consumes no alerts: all of them are in captures.
seqs() { sed -n 's/^ *"seq": \([0-9]*\),$/\1/p' "$@" | sort -n | uniq; }
start() { # DIRECTORY ARGUMENT... -> $recorder
	directory=$1
	shift
	latency-tracker record --cooldown 0s --no-explain -o "$directory" "$@" >/tmp/record.log 2>&1 &
	recorder=$!
	wait_until 180 armed
}
stop() { # -> $status
	kill -INT $recorder
	wait $recorder && status=0 || status=$?
	cat /tmp/record.log
}
# Ctrl-C after an alert, in the wait of --post-trigger, ends the run, with a capture. In this wait, the recorder polls
# only its pipe for signals.
start /tmp/last --post-trigger 1h last block threshold=50ms dev=slow
reads slow 1 0
wait_until 60 grep -q '^7 0x[0-9a-f]* 0x1 ' /proc/$recorder/syscall
kill -INT $recorder
wait_until 180 sh -c "! grep -q '^State:.[^Z]' /proc/$recorder/status 2>/dev/null"
wait $recorder && status=0 || status=$?
cat /tmp/record.log
assert_eq $status 2 "the exit status after an alert and Ctrl-C"
assert_eq "$(seqs /tmp/last/0001/alert.json)" 1 "the alert before Ctrl-C"

# The reader of the output is gone when an alert comes: the run ends, with a capture.
mkfifo /tmp/output
latency-tracker record --no-explain -o /tmp/unread unread block threshold=50ms dev=slow >/tmp/output 2>/tmp/record.log &
recorder=$!
# Not sed: busybox's waits for the line after the one that ends it.
while read -r line && [ "${line#armed}" = "$line" ]; do :; done </tmp/output
reads slow 1 0
wait $recorder || true
cat /tmp/record.log
assert_eq "$(seqs /tmp/unread/0001/alert.json)" 1 "the alert of a run whose output is not read"

# With --keep 1, each capture replaces the one before; a directory without an alert is no capture.
control 'kept block threshold=50ms dev=slow'
mkdir -m 700 /tmp/kept /tmp/kept/0001
: >/tmp/kept/0001/mine
start /tmp/kept --keep 1 kept
for capture in 0002 0003; do
	reads slow 1 0
	wait_until 60 test -s /tmp/kept/$capture/alert.json
done
wait_until 60 sh -c '! test -e /tmp/kept/0002'
stop
assert_eq "$(cd /tmp/kept && echo *)" "0001 0003" "what is left with --keep 1"
assert_eq "$(seqs /tmp/kept/0003/alert.json)" 2 "the alert of the newest capture"
grep '^latency-tracker: removed 1 capture, to keep the newest 1$' /tmp/record.log || fail "the removal is not said"
control -kept

control 'shared block threshold=50ms dev=slow wakeup_interval=0'
start /tmp/shared --post-trigger 1s shared
(while cat $LT/shared/wakeup; do :; done) >/tmp/loop &
loop=$!
reads slow 6 0
wait_until 30 sh -c 'cat /tmp/shared/*/alert.json | grep -q "\"seq\": 6,"'
stop
assert_eq "$(seqs /tmp/shared/*/alert.json | tr '\n' ' ')" "1 2 3 4 5 6 " "alerts in captures"
grep 'missed: alerts 0 ' /tmp/record.log || fail "the summary"

# On a full disk, the run continues, the alert is saved without a trace, and the disk is named.
mkdir /tmp/small
mount -t tmpfs -o size=60k,mode=0700 full /tmp/small
start /tmp/small/captures shared
reads slow 1 0
wait_until 30 grep 'without a trace 1 ' /tmp/record.log
stop
assert_eq $status 2 "the exit status on a full disk"
grep 'full (mounted on /tmp/small) has .* free of 60 KiB' /tmp/record.log || fail "the disk is not named"
grep '"seq": 7,' /tmp/small/captures/0001/alert.json || fail "the alert is not kept"
latency-tracker captures -o /tmp/small/captures | grep -E '^ *0001 .*no trace$' || fail "it has a trace"
umount /tmp/small

# The session daemon is killed: its helpers end, the next alert is saved, and the alert after it has
# a trace again. The output is CTF 1.8, marked so that Trace Compass opens it.
start /tmp/killed --trace-format ctf-1.8 shared
kill -KILL "$(cat /run/lttng/lttng-sessiond.pid)"
reads slow 1 0
wait_until 180 grep 'both were started again$' /tmp/record.log
reads slow 1 0
wait_until 180 test -s /tmp/killed/0002/alert.json
stop
grep '"seq": 8,' /tmp/killed/0001/alert.json || fail "the alert is not kept"
babeltrace2 /tmp/killed/0002/trace | grep -q block_rq_complete || fail "no trace after the restart"
head -c 12 /tmp/killed/0002/trace/kernel/metadata | grep '/\* CTF 1.8' || fail "not CTF 1.8"
wait_until 20 sh -c '! pgrep lttng'
control -shared
wait $loop || true

# Without an instance, all that an analysis reads is recorded for a while: each request is there.
latency-tracker record --events-for io,syscalls -o /tmp/traces >/tmp/record.log 2>&1 &
recorder=$!
wait_until 180 grep 'recording until Ctrl-C$' /tmp/record.log
assert_eq "$(sessions)" 1 "sessions while recording"
reads slow 3 0
stop
assert_eq $status 0 "the exit status without alerts"
trace=/tmp/traces/0001/trace
babeltrace2 $trace >/tmp/trace
for sector in 0 8 16; do
	assert_eq "$(grep -c "block_rq_issue: .* sector = $sector, .*comm = \"dd\"" /tmp/trace)" 1 "requests of sector $sector"
done
grep -q 'syscall_entry_read: ' /tmp/trace || fail "no system call"
grep -q 'lttng_statedump_process_state: ' /tmp/trace || fail "no names of threads"
grep -q 'lttng_statedump_file_descriptor: ' /tmp/trace || fail "no files that were open before"
latency-tracker analyze syscalls $trace --by file --csv >/tmp/files.csv
grep -q '^call,[0-9]*,file,/dev/slow,' /tmp/files.csv || fail "no calls on the disk"
grep -E "^recorded [0-9,]+ events .*: $trace\$" /tmp/record.log || fail "what was recorded is not said"
grep "^next: latency-tracker analyze io $trace\$" /tmp/record.log || fail "no next command"
# What it will cost is printed before it starts. The sample for the estimate is not kept.
sed '/recording until/q' /tmp/record.log >/tmp/before
grep '^buffers: 8 x .* on each of [0-9]* CPUs, .* of memory$' /tmp/before || fail "the buffers are not said"
grep '^cost: .* [1-9][0-9]* events/s, .*/s on disk$' /tmp/before || fail "the cost is not estimated"
grep '^disk: .* free of ' /tmp/before || fail "the free space is not said"
assert_eq "$(ls /tmp/traces/0001)" trace "what is kept"
latency-tracker analyze io $trace --csv >/tmp/io.csv
assert_eq "$(grep -c '^device,.*slow' /tmp/io.csv)" 1 "rows of the disk"

# If another program ends the session, what it has recorded is kept.
latency-tracker record --events-for io --num-subbuf 2 --subbuf-size 128K -o /tmp/cut >/tmp/record.log 2>&1 &
recorder=$!
wait_until 180 grep 'recording until Ctrl-C$' /tmp/record.log
grep '^buffers: 2 x 128 KiB ' /tmp/record.log || fail "not the buffers that were requested"
reads slow 1 0
lttng destroy "$(lttng --no-sessiond list | grep -o 'latency-tracker-events-[0-9]*')"
stop
assert_eq $status 1 "the exit status without a session"
babeltrace2 /tmp/cut/0001/trace | grep 'block_rq_complete: .* sector = 0,' >/dev/null || fail "no trace of the session"
grep 'may be incomplete, and its losses are unknown: /tmp/cut/0001/trace$' /tmp/record.log || fail "the trace is not named"
! grep 'left behind' /tmp/record.log || fail "no session is left behind"
wait_until 20 sh -c '! pgrep lttng'

# Default events that LTTng has no probe for are named, and the others recorded.
lttng-sessiond --daemonize --kmod-probes=block,sched
latency-tracker record --lean -d 1 -o /tmp/few few wakeup threshold=1h >/tmp/record.log 2>&1 || fail "$(cat /tmp/record.log)"
grep '^latency-tracker: not recorded, because .* no probes for these events: irq_handler_\*, ' /tmp/record.log || fail "$(cat /tmp/record.log)"
! grep 'not recorded, .*\(sched_switch\|block_rq_complete\)' /tmp/record.log || fail "what is there is missing"

# The shell script scripts/lttng-snapshot saves a snapshot of a session that was set up by hand.
control 'hand block threshold=50ms dev=slow'
lttng create --snapshot hand --output=/tmp/hand
lttng enable-channel --kernel --subbuf-size=256k --num-subbuf=4 blocks
lttng enable-event --kernel --channel=blocks block_rq_issue,block_rq_complete
lttng start
lttng-snapshot hand >/tmp/hand.log 2>&1 &
loop=$!
sleep 1
reads slow 1 50
wait_until 180 sh -c 'babeltrace2 /tmp/hand 2>/dev/null | grep -q "block_rq_complete: .* sector = 400,"'
kill $loop
lttng destroy hand
unload_module
