# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker record` and `explain` name a known cause in the first sentence, for alerts of different trackers: a
# real-time thread that has the CPU, a pipe whose writer sleeps, a late reader, a work item that sleeps, a long
# interrupt and a long softirq.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root has no LTTng
# timeout: 900
# worth: record and explain, from end to end, for each kind of alert

. /lt/tests/lib.sh

load_module
ip link set lo up
late() { python3 /lt/tests/late.py "$@"; }
# case_of COMMAND SENTENCE TRACKER KEY=VALUE...: the explanation of an alert that the command causes
# must match the sentence.
case_of() {
	command=$1 sentence=$2
	shift 2
	# The log is removed, too, since it says that an earlier recorder was armed.
	rm -rf /tmp/captures /tmp/record.log
	latency-tracker record -n 1 --duration 60 -o /tmp/captures late "$@" >/tmp/record.log 2>&1 &
	recorder=$!
	wait_until 600 grep -q '^armed' /tmp/record.log
	$command
	wait $recorder && status=0 || status=$?
	cat /tmp/record.log
	assert_eq $status 2 "the exit status of record"
	latency-tracker explain /tmp/captures/0001 >/tmp/again
	cmp /tmp/again /tmp/captures/0001/explanation.txt || fail "explain says something else than record"
	latency-tracker explain --json /tmp/captures/0001 >/tmp/json
	python3 - "$sentence" <<-'END' || fail "$*: not what caused it"
		import json, re, sys
		reports = [json.loads(line) for line in open("/tmp/json", encoding="utf-8")]
		sentence = re.compile(r"[0-9]+ % of the delay \([^)]*\): " + sys.argv[1] + r"\.")
		for report in reports:
		    print(report["verdict"])
		    # The verdict is the first sentence that a person reads.
		    words = report["text"].split("\n\n")[1].split()
		    assert " ".join(words) == report["verdict"], words
		assert any(sentence.fullmatch(report["verdict"]) for report in reports), sentence.pattern
	END
}
ran='(CPU 1, which ran hog/\d+)'
for_sleeper='reader/\d+ waited for sleeper/\d+, which waited for a timer'
case_of 'late hog' "victim/\d+ had been woken, and waited for $ran" wakeup threshold=300ms comm=victim
# The other cases use a daemon that is already running, as on servers that use LTTng.
lttng-sessiond --daemonize
case_of 'late preempt' "victim/\d+ was switched out while runnable, and waited for $ran" runqueue threshold=300ms comm=victim
case_of 'late pipe' "$for_sleeper" offcpu threshold=300ms comm=reader
case_of 'late pipe' "$for_sleeper" syscall threshold=300ms comm=reader
case_of 'late pipe' "$for_sleeper" func function=vfs_read threshold=300ms comm=reader
case_of 'python3 /lt/tests/net.py read udp 127.0.0.1 600' 'python3/\d+ waited for a timer' net threshold=300ms
insmod /lt/lt_works.ko ms=600
work() { echo slow >/sys/module/lt_works/parameters/run; }
case_of work 'kworker/\S+ waited for a timer' workqueue part=running threshold=300ms
rmmod lt_works
interrupt() {
	/usr/bin/taskset -c 1 /sbin/insmod /lt/lt_irqs.ko times=1 us=500000
	rmmod lt_irqs
}
case_of interrupt 'CPU 1 worked for lt_long, "odd" name \(interrupt \d+\)' irq threshold=300ms
# On PREEMPT_RT, a thread runs the softirq.
case_of interrupt 'CPU 1 (worked for softirq HI raised by interrupt irq_work|ran (ksoftirqd|ktimers)/1/\d+)' softirq vec=hi threshold=300ms

# Any trace is accepted if --alerts names the file of alerts.
latency-tracker explain /tmp/captures/0001/trace --alerts /dev/null 2>/tmp/err && fail "no alerts: explained"
grep -q 'there is no such alert' /tmp/err || fail "no alerts: $(cat /tmp/err)"
kill "$(cat /run/lttng/lttng-sessiond.pid)"
wait_until 120 sh -c '! pidof lttng-sessiond >/dev/null'
refused "a directory that is no capture" latency-tracker explain /tmp
unload_module
