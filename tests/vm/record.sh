# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker record` keeps numbered captures, each with the trace of its slow request, and
# misses no alert, even if `wakeup` has other readers. A full disk or a killed session daemon loses
# the trace, not the alert; a closed output loses nothing. A capture has the limits of the late
# thread's cgroups, with their counters before and after the delay, and the addresses of the
# functions in its trace. Ctrl-C ends the run, even after an alert, and leaves no session, instance
# or daemon behind. Captures that are too old or too many are removed, and nothing else in their
# directory; `captures` lists and shows them. If the time of day is set, no capture is removed too
# early, no alert is missed, and later traces have the new time of day. --events-for records all that
# an analysis reads, without an instance, prints the cost before it starts, and keeps what it has
# recorded if the session ends early. What it records for an analysis has the events that this
# analysis needs, and `analyze work` names the process that queued an item. The next run removes the
# instance of a killed run, but no other instance of that name. scripts/lttng-snapshot saves a
# snapshot at an alert, too.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root has no LTTng
# timeout: 900
# worth: each run of record sets up a flight recorder and reads all kernel symbols, and each way to end a run takes a
# run of its own

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/net.sh
. /lt/tests/sched.sh
. /lt/tests/recorders.sh

need /usr/bin/unshare

# The help of lttng-snapshot, and an unknown option.
lttng-snapshot --help | grep '^usage: lttng-snapshot' || fail "lttng-snapshot --help"
refused "an unknown option" lttng-snapshot --nosuch
refused "a missing instance" lttng-snapshot nosuch

load_module
null_disk slow 200000000
mkdir -m 700 /tmp/captures /tmp/captures/0000
echo '{}' >/tmp/captures/0000/alert.json
touch -d "@$(($(date +%s) - 172800))" /tmp/captures/0000
# In the first hour after boot, no capture is removed by its date: for this recorder, that hour is over.
# shellcheck disable=SC2034 # for start
RECORDER="/usr/bin/unshare --time --boottime 7200"
start slow --keep-for 1d -o /tmp/captures --parquet /tmp/fleet --host web3 slow block threshold=50ms dev=slow
recorder=$!
# shellcheck disable=SC2034 # for start
RECORDER=
assert_eq "$(wc -l <$LT/control)" 1 "instances while recording"
for sector in 8 16; do
	reads slow 1 $sector
	in_a_while test -s "/tmp/captures/000$((sector / 8))/explanation.txt"
done
kill -INT $recorder
ended $recorder slow
grep -E '^cost: .* events/s of [0-9]+ bytes; with --lean [0-9]+ events/s' /tmp/slow.log || fail "no cost"

for capture in 0001 0002; do
	sector=$((capture * 64))
	babeltrace2 /tmp/captures/$capture/trace >/tmp/trace
	for event in block_rq_issue block_rq_complete; do
		grep "$event: .* sector = $sector," /tmp/trace >/dev/null || fail "$capture: the trace has no $event of sector $sector"
	done
	grep -q "sector $sector " /tmp/captures/$capture/explanation.txt || fail "$capture explains another request"
	grep -q "\"sector\": $sector," /tmp/captures/$capture/alert.json || fail "$capture has another alert"
done

# Each capture has its rows, which only root may read. A request has no path.
assert_eq "$(command stat -c '%a %u' /tmp/fleet/alerts/host=web3/*.parquet | sort | uniq -c | tr -s ' ')" " 2 600 0" "files of alerts"
assert_eq "$(command stat -c '%a %u' /tmp/fleet /tmp/fleet/alerts/host=web3 | sort -u)" "700 0" "directories of rows"
[ ! -e /tmp/fleet/edges ] || fail "a request has a path"

# The oldest capture is gone, and the others are listed and shown.
[ ! -e /tmp/captures/0000 ] || fail "a capture that is two days old is still there"
latency-tracker captures -o /tmp/captures >/tmp/list
cat /tmp/list
grep -E '^ *0002  20[0-9-]+T[0-9:]+Z .* slow +1 +[0-9.]+ms  .' /tmp/list || fail "the list of captures"
latency-tracker captures -o /tmp/captures 1 | grep -F "$(sed -n 1p /tmp/captures/0001/explanation.txt)" || fail "capture 1 is not shown"
latency-tracker captures -o /tmp/captures 7 2>&1 | grep 'no capture 0007; there are 0001 to 0002' || fail "capture 7"

# Nothing is left.
assert_eq "$(wc -l <$LT/control)" 0 "instances left"
assert_eq "$(sessions)" "" "sessions left"
wait_until 10 sh -c '! pgrep lttng-sessiond'

# The next runs share a session daemon, which has few probes. Default events without a probe are named, and the other
# events are recorded.
lttng-sessiond --daemonize --kmod-probes=block,sched,timer
latency-tracker record --lean -d 1 -o /tmp/few few wakeup threshold=1h >/tmp/record.log 2>&1 || fail "$(cat /tmp/record.log)"
grep '^latency-tracker: not recorded, because .* no probes for these events: irq_handler_\*, ' /tmp/record.log || fail "$(cat /tmp/record.log)"
! grep 'not recorded, .*\(sched_switch\|block_rq_complete\)' /tmp/record.log || fail "what is there is missing"

# The next run removes the instance of a killed run, but no other instance of its name, even with the same parameters.
killed() {
	latency-tracker record -o /tmp/few killed wakeup threshold=1h >/tmp/record.log 2>&1 &
	recorder=$!
	wait_until 60 grep -q '^killed ' $LT/control
	kill -KILL $recorder
	wait $recorder || :
}
next() { latency-tracker run syscall threshold=1h -d 1s >/tmp/run.log 2>&1 || fail "$(cat /tmp/run.log)"; }
killed
next
grep "^latency-tracker: removed instance killed, left by a killed run (process $recorder)\$" /tmp/run.log || fail "$(cat /tmp/run.log)"
assert_eq "$(wc -l <$LT/control)" 0 "instances after a killed run"
killed
control -killed
control 'killed wakeup threshold=3600s'
next
assert_eq "$(cut -d' ' -f1 $LT/control)" killed "the instance of another program"
control -killed

# Ctrl-C after an alert, in the wait of --post-trigger, ends the run, with a capture. In this wait, the recorder polls
# only its socket for signals. The alert is of a quota: evidence.json has the counters that a trace cannot have.
grep -qw cpu /sys/fs/cgroup/cgroup.controllers || fail "no quota of processors here"
waits quota 1 50 5 # makes the cgroup
start held --no-explain --post-trigger 1h -o /tmp/held held runqueue threshold=50ms cgroup=/lt-quota
recorder=$!
python3 /lt/tests/sched.py quota 1 10 1000000 &
member=$!
in_a_while grep -q '^7 0x[0-9a-f]* 0x1 ' /proc/$recorder/syscall
kill -INT $recorder
in_a_while sh -c "! grep -q '^State:.[^Z]' /proc/$recorder/status 2>/dev/null"
kill $member
ended $recorder held
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

# Another reader of the same file consumes no alerts: all alerts are in captures.
seqs() { sed -n 's/^ *"seq": \([0-9]*\),$/\1/p' "$@" | sort -n | uniq; }
stop() { # LOG
	kill -INT $recorder
	wait $recorder && status=0 || status=$?
	cat "/tmp/$1.log"
}
control 'shared block threshold=50ms dev=slow wakeup_interval=0'
mkfifo /tmp/output
cat /tmp/output >/tmp/output.log &
reader=$!
latency-tracker record --cooldown 0s --no-explain --post-trigger 1s --keep-for 1d -o /tmp/shared shared >/tmp/output 2>/tmp/shared.log &
recorder=$!
in_a_while grep -q '^armed' /tmp/output.log
(while cat $LT/shared/wakeup; do :; done) >/tmp/loop &
loop=$!
reads slow 6 0
in_a_while sh -c 'cat /tmp/shared/*/alert.json 2>/dev/null | grep -q "\"seq\": 6,"'

# While the time of day is ten days ahead, no capture is too old: neither a capture of this boot, nor a capture of an
# earlier boot, whose age is known only by its date.
mkdir -m 700 /tmp/shared/1000
echo '{}' >/tmp/shared/1000/alert.json
capture() { # NUMBER, which is also the block to read
	reads slow 1 "$1"
	in_a_while test -s "/tmp/shared/100$1/alert.json"
}
shift_date 10
capture 1
capture 2
dated /tmp/shared/1002 16 60
shift_date -10
capture 3
# After each capture, the recorder corrects the dates of all captures, and then prints a summary. Without a reader of
# its output, the summary would end the run before the next alert.
in_a_while sh -c 'sed "1,/^capture 1003:/d" /tmp/output.log | grep -q "^events "'
# The reader of the output is gone when an alert comes: the run ends, with a capture.
kill $reader
wait $reader || :
reads slow 1 4
wait $recorder || :
cat /tmp/output.log /tmp/shared.log
assert_eq "$(seqs /tmp/shared/*/alert.json | tr '\n' ' ')" "1 2 3 4 5 6 7 8 9 10 " "alerts in captures"
! grep 'missed: alerts [1-9]' /tmp/output.log || fail "the summary counts missed alerts"
for how in forward back; do
	grep "^latency-tracker: the time of day was set $how by " /tmp/shared.log || fail "not reported: set $how"
done
! grep 'former time of day' /tmp/shared.log || fail "LTTng did not measure its clock again"
[ -e /tmp/shared/1000 ] || fail "a capture of an earlier boot was removed while the time of day was wrong"
for capture in /tmp/shared/[0-9]*; do
	age=$(($(date +%s) - $(date -r "$capture" +%s)))
	[ "$age" -gt -3600 ] && [ "$age" -lt 3600 ] || fail "$capture has a wrong date: $(ls -ld "$capture")"
done

# The shell script scripts/lttng-snapshot saves a snapshot of a session that was set up by hand.
control 'hand block threshold=50ms dev=slow'
lttng create --snapshot hand --output=/tmp/hand
lttng enable-channel --kernel --subbuf-size=256k --num-subbuf=4 blocks
lttng enable-event --kernel --channel=blocks block_rq_issue,block_rq_complete
lttng start
lttng-snapshot hand >/tmp/hand.log 2>&1 &
script=$!
wait_until 60 sh -c "ls -l /proc/\$(pgrep -P $script)/fd 2>/dev/null | grep -q /hand/wakeup"
reads slow 1 50
in_a_while sh -c 'babeltrace2 /tmp/hand 2>/dev/null | grep -q "block_rq_complete: .* sector = 400,"'
kill $script
wait $script || :
lttng destroy hand
control -hand
kill "$(cat /run/lttng/lttng-sessiond.pid)"
wait_until 120 sh -c '! pgrep lttng'

# On a full disk, the run continues, the alert is saved without a trace, and the disk is named. With --keep 1, each
# capture replaces the one before; a directory without an alert is not a capture.
mkdir /tmp/small
mount -t tmpfs -o size=20k,mode=0700 full /tmp/small
captures=/tmp/small/captures
mkdir -m 700 $captures $captures/0001
: >$captures/0001/mine
seq=$(($(stat shared alerts) + 1))
start small --no-explain --keep 1 --trace-format ctf-1.8 -o $captures shared
recorder=$!
reads slow 1 0
in_a_while grep 'without a trace 1 ' /tmp/small.log
# The note before the start, that there is no room for the estimate, does not count.
sed '1,/^armed/d' /tmp/small.log >/tmp/after
grep 'full (mounted on /tmp/small) has .* free of 20 KiB' /tmp/after || fail "the disk is not named"
assert_eq "$(seqs $captures/0002/alert.json)" "$seq" "the alert on a full disk"
latency-tracker captures -o $captures | grep -E '^ *0002 .*no trace$' || fail "it has a trace"

# The session daemon is killed: its helpers end, the next alert is saved, and the alert after it has
# a trace again. The recorder waits until the killed daemon is gone, which takes longer on a busy host, and starts
# another before it saves the alert. The output is CTF 1.8, marked so that Trace Compass opens it.
mount -o remount,size=64m /tmp/small
kill -KILL "$(cat /run/lttng/lttng-sessiond.pid)"
reads slow 1 0
in_a_while captured $captures 0003
grep 'it and the session were started again$' /tmp/small.log || fail "the gap is not reported"
assert_eq "$(seqs $captures/0003/alert.json)" $((seq + 1)) "the alert without a session daemon"
reads slow 1 0
in_a_while captured $captures 0004
kill -INT $recorder
ended $recorder small
assert_eq "$(cd $captures && echo *)" "0001 0004" "what is left with --keep 1"
assert_eq "$(seqs $captures/0004/alert.json)" $((seq + 2)) "the alert of the newest capture"
assert_eq "$(grep -c '^latency-tracker: removed 1 capture, to keep the newest 1$' /tmp/small.log)" 2 "removals that are said"
babeltrace2 $captures/0004/trace | grep -q block_rq_complete || fail "no trace after the restart"
head -c 12 $captures/0004/trace/kernel/metadata | grep '/\* CTF 1.8' || fail "not CTF 1.8"
wait_until 20 sh -c '! pgrep lttng'
umount /tmp/small
control -shared
wait $loop || :

# Without an instance, all that an analysis reads is recorded for a while: each request is there.
latency-tracker record --events-for io,syscalls -o /tmp/traces >/tmp/traces.log 2>&1 &
recorder=$!
in_a_while grep 'recording until Ctrl-C$' /tmp/traces.log
assert_eq "$(sessions)" "latency-tracker-events-$recorder" "sessions while recording"
reads slow 3 0
stop traces
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
grep -E "^recorded [0-9,]+ events .*: $trace\$" /tmp/traces.log || fail "what was recorded is not said"
grep "^next: latency-tracker analyze io $trace\$" /tmp/traces.log || fail "no next command"
# The expected cost is printed before the recording starts. The sample for the estimate is not kept.
sed '/recording until/q' /tmp/traces.log >/tmp/before
grep '^buffers: 8 x .* on each of [0-9]* CPUs, .* of memory$' /tmp/before || fail "the buffers are not said"
grep '^cost: .* [1-9][0-9]* events/s, .*/s on disk$' /tmp/before || fail "the cost is not estimated"
grep '^disk: .* free of ' /tmp/before || fail "the free space is not said"
assert_eq "$(ls /tmp/traces/0001)" trace "what is kept"
latency-tracker analyze io $trace --csv >/tmp/io.csv
assert_eq "$(grep -c '^device,.*slow' /tmp/io.csv)" 1 "rows of the disk"

# If another program ends the session, what the session has recorded is kept.
latency-tracker record --events-for io --num-subbuf 2 --subbuf-size 128K -o /tmp/cut >/tmp/cut.log 2>&1 &
recorder=$!
in_a_while grep 'recording until Ctrl-C$' /tmp/cut.log
grep '^buffers: 2 x 128 KiB ' /tmp/cut.log || fail "not the buffers that were requested"
reads slow 1 0
lttng destroy "$(session_of events)"
stop cut
assert_eq $status 1 "the exit status without a session"
babeltrace2 /tmp/cut/0001/trace | grep 'block_rq_complete: .* sector = 0,' >/dev/null || fail "no trace of the session"
grep 'may be incomplete, and its losses are unknown: /tmp/cut/0001/trace$' /tmp/cut.log || fail "the trace is not named"
! grep 'left behind' /tmp/cut.log || fail "no session is left behind"
wait_until 20 sh -c '! pgrep lttng'

# Each analysis finds its events in what is recorded for it. Analyses with the same events share a recording, and the
# trace for `io` is the one above. All other recordings are made at once, so that one load serves all.
lttng-sessiond --daemonize
small=/sys/fs/cgroup/small
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir $small
echo 20M >$small/memory.max
null_disk quick 0
insmod /lt/lt_works.ko ms=2
ip link set lo up
recordings='path,delays wakeups,cpu sleeps irq syscalls locks work reclaim net'
recorders=
for analyses in $recordings; do
	: >"/tmp/$analyses.log"
	latency-tracker record --events-for "$analyses" --subbuf-size 256K -o "/tmp/for-$analyses" \
		>"/tmp/$analyses.log" 2>&1 &
	recorders="$recorders $!"
done
for analyses in $recordings; do in_a_while grep -q 'recording until Ctrl-C$' "/tmp/$analyses.log"; done
echo slow >/sys/module/lt_works/parameters/run
python3 /lt/tests/calls.py many 2 2
python3 /lt/tests/net.py flood 127.0.0.1 20
# shellcheck disable=SC2016 # for the other shell
sh -c 'echo $$ >/sys/fs/cgroup/small/cgroup.procs; exec dd if=/dev/quick of=/dev/null bs=1M count=40' 2>/dev/null
for recorder in $recorders; do kill -INT "$recorder"; done
for recorder in $recorders; do wait "$recorder" || fail "recorder $recorder failed"; done
# analyzed ANALYSIS ROW [ARGUMENT...]: check that the analysis lacks no event, except those that only perf records, and
# has this row.
analyzed() {
	_analysis=$1 _row=$2
	shift 2
	latency-tracker analyze "$_analysis" "$trace" --csv "$@" >/tmp/rows 2>/tmp/notes ||
		fail "$_analysis: $(cat /tmp/notes)"
	! grep 'record with' /tmp/notes | grep -Ev 'perf|larger buffers' || fail "$_analysis lacks events"
	grep -q "^$_row," /tmp/rows || fail "$_analysis has no $_row: $(cat /tmp/notes /tmp/rows)"
}
trace=/tmp/cut/0001/trace
analyzed io device
for analyses in $recordings; do
	trace=/tmp/for-$analyses/0001/trace
	case $analyses in
		path,delays)
			analyzed path step --tid $$
			analyzed delays state --tid $$ ;;
		wakeups,cpu)
			analyzed wakeups wakeup
			analyzed cpu run ;;
		sleeps) analyzed sleeps sleep ;;
		irq) analyzed irq softirq ;;
		syscalls) analyzed syscalls call ;;
		locks) analyzed locks futex ;;
		work) analyzed work "queued,[0-9]*,process,[^,]*/$$" --by process ;;
		reclaim) analyzed reclaim 'reclaim,[0-9]*,process,dd/[0-9]*' ;;
		net) analyzed net 'backlog,[0-9]*,device,lo' ;;
	esac
done
rmmod lt_works
rmdir $small
kill "$(cat /run/lttng/lttng-sessiond.pid)"
wait_until 120 sh -c '! pgrep lttng'

unload_module
