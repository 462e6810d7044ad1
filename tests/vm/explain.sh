# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker record` and `explain` name a known cause in the first sentence, for alerts of different trackers: a
# real-time thread that has the CPU, a pipe whose writer sleeps, a late reader of a packet, a work item that sleeps, a
# long interrupt and a long softirq. `record` explains the first and the last of these alerts, and prints what
# `explain` prints later. The trace of the last recording covers the other delays, too: `explain` explains them from
# that trace.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root has no LTTng
# timeout: 900
# worth: two recordings from end to end, and explanations for each kind of alert

. /lt/tests/lib.sh

load_module
ip link set lo up
late() { python3 /lt/tests/late.py "$@"; }
# expect NAME SENTENCE: the explanation of an alert of this instance must match SENTENCE.
expect() { printf '%s\t%s\n' "$1" "$2" >>/tmp/sentences; }
# begin NAME SENTENCE TRACKER KEY=VALUE...: start an instance.
begin() {
	expect "$1" "$2"
	_name=$1
	shift 2
	control "$_name $*"
}
# finish NAME...: keep the alerts of these instances, and remove the instances.
finish() {
	for _name; do
		wait_until 10 stat_is "$_name" alerts -gt 0
		cat "$LT/$_name/wakeup" >>/tmp/alerts
		control "-$_name"
	done
}
# record NAME SENTENCE TRACKER KEY=VALUE...: start a recorder with an instance of its own.
record() {
	expect "$1" "$2"
	_name=$1
	shift 2
	# The log is removed, too, since it shows that an earlier recorder was armed.
	rm -rf /tmp/captures /tmp/record.log
	latency-tracker record -n 1 --num-subbuf 16 -o /tmp/captures "$_name" "$@" >/tmp/record.log 2>&1 &
	recorder=$!
	wait_until 600 grep -q '^armed' /tmp/record.log
}
# captured: wait until the recorder has made its capture. `explain` must print the explanation that is in it.
captured() {
	wait $recorder && status=0 || status=$?
	cat /tmp/record.log
	assert_eq $status 2 "the exit status of record"
	latency-tracker explain /tmp/captures/0001 >/tmp/again
	cmp /tmp/again /tmp/captures/0001/explanation.txt || fail "explain says something else than record"
	latency-tracker explain --json /tmp/captures/0001 >>/tmp/json
}
ran='(CPU 1, which ran hog/\d+)'
for_sleeper='reader/\d+ waited for sleeper/\d+, which waited for a timer'
record hog "victim/\d+ had been woken, and waited for $ran" wakeup threshold=300ms comm=victim
late hog
captured

# The second recorder uses a daemon that is already running, as on servers that use LTTng. Its own alert comes last.
lttng-sessiond --daemonize
# On PREEMPT_RT, a thread runs the softirq.
record softirq 'CPU 1 (worked for softirq HI raised by interrupt irq_work|ran (ksoftirqd|ktimers)/1/\d+)' softirq vec=hi threshold=300ms
begin preempted "victim/\d+ was switched out while runnable, and waited for $ran" runqueue threshold=300ms comm=victim
late preempt
finish preempted
begin sleep "$for_sleeper" offcpu threshold=300ms comm=reader
begin call "$for_sleeper" syscall threshold=300ms comm=reader
late pipe
finish sleep call
# Not together with offcpu: the kernel warns if a stack is walked while a followed function returns.
begin function "$for_sleeper" func function=vfs_read threshold=300ms comm=reader
late pipe
finish function
begin packet 'python3/\d+ waited for a timer' net threshold=300ms
python3 /lt/tests/net.py read udp 127.0.0.1 600
finish packet
insmod /lt/lt_works.ko ms=600
begin work 'kworker/\S+ waited for a timer' workqueue part=running threshold=300ms
echo slow >/sys/module/lt_works/parameters/run
finish work
rmmod lt_works
begin handler 'CPU 1 worked for lt_long, "odd" name \(interrupt \d+\)' irq threshold=300ms
/usr/bin/taskset -c 1 /sbin/insmod /lt/lt_irqs.ko times=1 us=500000
finish handler
captured
rmmod lt_irqs

# Any trace is accepted if --alerts names the file of alerts.
latency-tracker explain --json /tmp/captures/0001/trace --alerts /tmp/alerts >>/tmp/json
python3 - <<-'END' || fail "not what caused it: see above"
	import json, re, sys
	reports = [json.loads(line) for line in open("/tmp/json", encoding="utf-8")]
	for report in reports:
	    # The verdict is the first sentence that a person reads.
	    words = report["text"].split("\n\n")[1].split()
	    assert " ".join(words) == report["verdict"], words
	wrong = 0
	for line in open("/tmp/sentences", encoding="utf-8"):
	    name, sentence = line.rstrip("\n").split("\t")
	    verdicts = [report["verdict"] for report in reports if report["alert"]["instance"] == name]
	    print(name, *verdicts, sep="\n  ")
	    if not any(re.fullmatch(r"[0-9]+ % of the delay \([^)]*\): " + sentence + r"\.", verdict) for verdict in verdicts):
	        wrong += 1
	        print(f"  not {sentence}")
	sys.exit(wrong > 0)
END
latency-tracker explain /tmp/captures/0001/trace --alerts /dev/null 2>/tmp/err && fail "no alerts: explained"
grep -q 'there is no such alert' /tmp/err || fail "no alerts: $(cat /tmp/err)"
kill "$(cat /run/lttng/lttng-sessiond.pid)"
wait_until 120 sh -c '! pidof lttng-sessiond >/dev/null'
refused "a directory that is no capture" latency-tracker explain /tmp
unload_module
