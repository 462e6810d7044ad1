# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Each filter of `tree` accepts exactly its own paths, whether it is given at creation or later. A
# filter that is set applies from then on, and a filter that is reset no longer applies.
# kernels: rt
# long: stock
# cpus: 2
# root: full
# icount: 1
# arm64: no, lt_causes can send NMIs only on x86
# timeout: 240

. /lt/tests/lib.sh

mkdir -p /sys/fs/cgroup/other /sys/fs/cgroup/ours
load_module
# shellcheck source=tests/tree.sh
. /lt/tests/tree.sh
line=$(cat $parameters/number) threaded=$(cat $parameters/threaded)
# Warm up: the first run of anything is slow under emulation.
target 1 handler

# For each filter, a value that matches the chain, and a value that does not.
for filters in "origin=irq irq=$line:origin=timer" "origin=irq:origin=vector" "irq=$line:irq=$threaded" \
	"prio=120:prio=119" "cpu=1:cpu=0" "uid=0:uid=1" "comm=lt_target:comm=lt_other"; do
	# Only chains of the target count: other chains may be late, too.
	case $filters in comm=*) comm='' ;; *) comm=comm=lt_target ;; esac
	control "yes tree threshold=${late}us $comm ${filters%%:*}"
	control "no tree threshold=${late}us $comm ${filters#*:}"
	target 2 handler
	assert_eq "$(stat yes alerts) $(stat no alerts)" "2 0" "$filters"
	control -yes
	control -no
done

# Filters by the local interrupt.
control "yes tree threshold=${late}us comm=lt_target origin=vector vec=irq_work"
control "no tree threshold=${late}us comm=lt_target origin=vector vec=thermal_apic"
target 2 after
assert_eq "$(stat yes alerts) $(stat no alerts)" "2 0" "vec"
control -yes
control -no

# Filters by a task in a cgroup whose ids are known. The task waits for the interrupt on request.
mkfifo /tmp/ask /tmp/answer
/usr/bin/taskset -c 1 sh -c 'printf lt_target >/proc/$$/comm
	echo $$ >/sys/fs/cgroup/ours/cgroup.procs
	echo $$
	while read -r word; do echo $word >'"$parameters"'/run; echo; done' </tmp/ask >/tmp/answer &
known=$!
exec 5>/tmp/ask 6</tmp/answer
read -r pid <&6
for filters in "pid=$pid:pid=1" "tid=$pid:tid=1" "cgroup=/ours:cgroup=/other"; do
	control "yes tree threshold=${late}us comm=lt_target ${filters%%:*}"
	control "no tree threshold=${late}us comm=lt_target ${filters#*:}"
	for _ in 1 2; do
		echo handler >&5
		read -r _ <&6
	done
	assert_eq "$(stat yes alerts) $(stat no alerts)" "2 0" "$filters"
	control -yes
	control -no
done
exec 5>&- 6<&-
wait $known

# The delay of one timer is measured from the time when it may be called, and from the time when it
# must be called. The difference is the slack of the task.
control "soft tree threshold=0 comm=sleep timer=hrtimer_wakeup origin=timer"
control "hard tree threshold=0 comm=sleep timer=hrtimer_wakeup origin=timer from=expires"
exec 3<$LT/soft/alerts
exec 4<$LT/hard/alerts
sleep 0.01
alerts_of soft /tmp/soft
exec 3<&4
alerts_of hard /tmp/hard
exec 3<&- 4<&-
cat /tmp/soft /tmp/hard
# began FILE: print the start of its last chain.
began() { tail -n 1 "$1" | sed 's/.* time=\([0-9]*\) .* delay=\([0-9]*\) .*/\1 - \2/'; }
assert_eq "$(($(began /tmp/hard) - ($(began /tmp/soft))))" 50000 "nanoseconds of slack"
control -soft
control -hard

# reported WHAT WANTED: check that with WHAT set, WANTED of two waits of the target are reported.
reported() {
	before=$(stat t alerts)
	exec 3<$LT/t/alerts
	target 2 handler
	: >/tmp/alerts
	[ "$(stat t alerts)" -eq "$before" ] || alerts_of t /tmp/alerts
	exec 3<&-
	assert_eq "$(grep -c ' comm="lt_target" ' /tmp/alerts)" "$2" "reports with $1"
}
# At first there is no filter, which takes another path through the probes.
control "t tree threshold=${late}us"
reported "no filter" 2
for filter in pid=1 tid=1 comm=lt_other cgroup=/other cpu=0 uid=1 prio=119 origin=timer irq="$threaded"; do
	control "t tree $filter"
	reported "$filter" 0
	control "t tree ${filter%%=*}=all"
	reported "${filter%%=*}=all" 2
done
# If two filters reject a chain, resetting one is not enough.
control "t tree pid=1 irq=$threaded"
reported "two filters" 0
echo all >$LT/t/pid
reported "one of two" 0
echo all >$LT/t/irq
reported "none of two" 2
assert_eq "$(stat t negative) $(stat t unserved)" "0 0" "lost"
control -t
rmmod lt_causes
unload_module
