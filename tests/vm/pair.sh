# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The tracker pair measures from one point to another: between the tracepoints of block, paired by the request, with the
# same alerts as block; from a function to its return, paired by the thread; between two functions, paired by the
# thread, with and without the CPU; from a tracepoint to itself; and between two tracepoints of a module, which stays
# loaded meanwhile. An invalid line is refused, and the log quotes the word.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# icount: 1
# turn: 100
# arm64: yes
# timeout: 180

. /lt/tests/lib.sh
. /lt/tests/block.sh

run() { echo "$*" >/proc/lt_functions; }
# fields FILE NAME...: print some fields of each alert.
fields() {
	_file=$1
	shift
	for _name in "$@"; do field "$_name" <"$_file" >/tmp/fields."$_name"; done
	(cd /tmp && for _name in "$@"; do echo "fields.$_name"; done | xargs paste)
}

load_module
insmod /lt/lt_functions.ko

from='begin=tracepoint:block_rq_issue' to='end=tracepoint:block_rq_complete'
refused_line 'x pair' 'this tracker requires the parameter: "begin"'
refused_line "x pair $from" 'this tracker requires the parameter: "end"'
refused_line "x pair begin=block_rq_issue $to" 'expected tracepoint:NAME, function:NAME or return:NAME: "block_rq_issue"'
missing='no such tracepoint in the kernel or a loaded module (load its module first)'
refused_line "x pair begin=tracepoint:none $to" "begin: $missing: \"tracepoint:none\""
refused_line "x pair begin=tracepoint:alert $to" "cannot trace latency_tracker's own tracepoints: \"tracepoint:alert\""
refused_line "x pair begin=function:none $to" 'no such function: "function:none"'
refused_line "x pair $from end=return:$ASSEMBLY" "this function cannot be traced: \"return:$ASSEMBLY\""
refused_line "x pair $from $to begin_key=arg5" 'expected one or two of arg0 to arg4 (or arg0:32, :16, :8), tid, cpu, ret, comma-separated: "arg5"'
refused_line "x pair $from $to begin_key=arg0,arg1,tid" 'comma-separated: "arg0,arg1,tid"'
refused_line "x pair $from $to begin_key=same" 'comma-separated: "same"'
refused_line "x pair $from $to end_key=none" 'comma-separated, or same: "none"'
refused_line "x pair $from $to end_show=same" 'comma-separated, or none: "same"'
refused_line "x pair $from $to begin_key=arg0,tid end_key=arg0" 'expected as many fields as begin_key has: "end_key"'
refused_line "x pair $from $to begin_key=ret" 'only a return has ret: "begin_key"'
refused_line "x pair $from end=return:lt_fn_delay end_key=arg0" 'a return has no arguments; use ret: "end_key"'
refused_line "x pair $from $to end_show=ret" 'only a return has ret: "end_show"'
[ ! -e $LT/x ] || fail "x is there"

# The alerts equal block's.
ms=$(patiently 20)
null_disk slow "${ms}000000"
# Warm up: the first run of anything is slow under emulation.
reads slow 2
control "b block threshold=10ms dev=slow"
control "p pair $from $to begin_key=arg0 end_show=arg1:8,arg2:32 threshold=10ms"
assert_eq "$(cat $LT/p/begin) $(cat $LT/p/begin_key) $(cat $LT/p/end_key) $(cat $LT/p/end_show) $(cat $LT/p/begin_show)" \
	"tracepoint:block_rq_issue arg0 same arg1:8,arg2:32 none" "what is shown"
refused_line 'p pair begin_key=tid' 'this parameter can only be given at creation: "begin_key"'
exec 3<$LT/p/alerts 4<$LT/b/alerts
reads slow 20
alerts_of p /tmp/pair
exec 3<&4 4<&-
alerts_of b /tmp/block
exec 3<&-
head -n 1 /tmp/pair
assert_eq "$(wc -l </tmp/block)" 20 "alerts of block"
assert_eq "$(wc -l </tmp/pair)" 20 "alerts of pair"
fields /tmp/block time delay >/tmp/a
fields /tmp/pair time delay >/tmp/b
# The two may differ by half a millisecond (on a slow kernel, by half the time that the disk takes).
# The ends of two requests are at least as far apart as the disk takes.
paste /tmp/a /tmp/b | awk -v most="$(if in_time; then echo 500000; else echo $((ms * 500000)); fi)" '
	function far(a, b) { return a - b > most || b - a > most }
	far($1, $3) || far($2, $4) { print "differs:", $0; exit 1 }' || fail "not the same as block"
# A pointer is shown as a number that stands for it. The result is the number of bytes read.
grep -q ' context=[a-z]* key=[0-9a-f]\{16\} end=0,4096$' /tmp/pair || fail "what it says: $(head -n 1 /tmp/pair)"
for name in b p; do
	control "$name $([ $name = b ] && echo block || echo pair) enabled=0"
	sums_hold $name
	control -$name
done

# A function and its return, with its arguments and its result.
control 'p pair begin=function:lt_fn_delay end=return:lt_fn_delay begin_show=arg0:32,arg1:32 end_show=ret threshold=0'
exec 3<$LT/p/alerts
run delay 5 3
alerts_of p /tmp/alerts
exec 3<&-
cat /tmp/alerts
assert_eq "$(wc -l </tmp/alerts)" 5 "calls"
for nth in 0 1 2 3 4; do
	grep -q " tid=$$ comm=\"sh\" context=task key=$$ begin=$nth,3 end=$nth$" /tmp/alerts || fail "call $nth"
done
awk -v most="$(if in_time; then echo 8e6; else echo 1e12; fi)" '
	{ sub(/.* delay=/, ""); if ($1 < 3e6 || $1 > most) { print $1; exit 1 } }' /tmp/alerts || fail "delays"
control -p

# Two functions, paired by the thread, with and without the CPU: the time between two calls. With again=keep, the first
# start stays.
control 'p pair begin=function:lt_fn_delay end=function:lt_fn_sleep begin_key=tid,cpu threshold=0'
control 'k pair begin=function:lt_fn_delay end=function:lt_fn_sleep again=keep threshold=0'
taskset 1 sh -c "echo delay 4 $(patiently 2) >/proc/lt_functions; echo sleep 2 1 >/proc/lt_functions"
assert_eq "$(stat p replaced) $(stat p ended) $(stat p unmatched) $(stat p again)" "3 1 1 0" "replace: replaced, ended, unmatched, again"
assert_eq "$(stat k replaced) $(stat k ended) $(stat k unmatched) $(stat k again)" "0 1 1 3" "keep: replaced, ended, unmatched, again"
# Four starts, 2 ms apart: one instance measures from the first, another from the last, to one end.
[ "$(stat p max)" -ge "$(patiently 2000000)" ] && [ $(($(stat k max) - $(stat p max))) -ge "$(patiently 5000000)" ] ||
	fail "keep: $(stat k max), replace: $(stat p max)"
! in_time || { [ "$(stat k max)" -ge 8000000 ] && [ "$(stat p max)" -lt 8000000 ]; } ||
	fail "keep: $(stat k max), replace: $(stat p max)"
control -p
control -k

# A tracepoint paired with itself on each CPU: the time without a switch. Each hit is first an end,
# then a start.
control 'p pair begin=tracepoint:sched_switch end=tracepoint:sched_switch begin_key=cpu threshold=3600s'
wait_until 5 stat_is p ended -ge 10
control 'p pair enabled=0'
assert_eq "$(stat p replaced) $(stat p negative)" "0 0" "replaced, negative"
sums_hold p
control -p

# A function paired with itself, at its entry and at its return: the time from one call to the next.
for point in function return; do
	control "p pair begin=$point:lt_fn_delay end=$point:lt_fn_delay threshold=0"
	run delay 4 2
	assert_eq "$(stat p ended) $(stat p unmatched) $(stat p replaced)" "3 1 0" "$point: ended, unmatched, replaced"
	[ "$(stat p min)" -ge 2000000 ] || fail "$point: $(stat p min) ns from one call to the next"
	control -p
done

# A pair that does not end times out, and is dropped.
control 'p pair begin=function:lt_fn_delay end=function:lt_fn_exit threshold=0 timeout=50ms'
exec 3<$LT/p/alerts
run delay 1 0
wait_until 5 stat_is p alerts -ge 1
grep "^age=[0-9]* start=[0-9]* pid=$$ tid=$$ comm=\"sh\" context=task key=$$" $LT/p/pending || fail "pending: $(cat $LT/p/pending)"
alerts_of p /tmp/alerts
grep -q " reason=timeout .* context=task key=$$" /tmp/alerts || fail "timeout: $(cat /tmp/alerts)"
exec 3<&-
control -p

# Tracepoints of a module, a known time apart: found only while the module is live, as its functions
# are, and only if no other module has one of this name.
hit=/sys/module/lt_points/parameters/run
begin=tracepoint:lt_point_begin_tp end=tracepoint:lt_point_end_tp
points="pair begin=$begin end=$end begin_key=arg0:32 threshold=0"
references() { awk '$1 == "lt_points" { print $3 }' /proc/modules; }
refused_line "x $points" "begin: $missing: \"$begin\""
insmod /lt/lt_points.ko init_ms="$(patiently 2000)" 2>/dev/null &
loading=$!
wait_until 10 grep -qs coming /sys/module/lt_points/initstate
refused_line "x $points" "the module of this tracepoint is being loaded or unloaded (try again): \"$begin\""
refused_line "x pair begin=function:lt_points_run end=$end" 'the module of this function is being loaded or unloaded (try again): "function:lt_points_run"'
if wait $loading; then fail "a module loads whose init function fails"; fi
refused_line "x pair end=$end begin=$begin" "end: $missing: \"$end\""
insmod /lt/lt_points.ko
sed 's/lt_points/lt_double/g' /lt/lt_points.ko >/tmp/lt_double.ko
insmod /tmp/lt_double.ko || fail "the copy does not load"
refused_line "x $points" "several loaded modules have a tracepoint of this name (unload the others): \"$begin\""
rmmod lt_double
[ ! -e $LT/x ] || fail "x is there"
assert_eq "$(references)" 0 "references to the module after refusals"

control "m $points"
assert_eq "$(references)" 2 "references to the module"
exec 3<$LT/m/alerts
for ms in 1 5 20; do echo $ms >$hit; done
alerts_of m /tmp/alerts
exec 3<&-
cat /tmp/alerts
assert_eq "$(wc -l </tmp/alerts)" 3 "alerts"
for ms in 1 5 20; do
	grep -q " tid=$$ comm=\"sh\" context=task key=$ms$" /tmp/alerts || fail "no alert of $ms ms"
done
awk -v more="$(if in_time; then echo 5e6; else echo 1e12; fi)" '
	{
		ms = delay = $0
		sub(/.* key=/, "", ms)
		sub(/.* delay=/, "", delay)
		sub(/ .*/, "", delay)
		if (delay + 0 < ms * 1e6 || delay + 0 > ms * 1e6 + more) { print ms " ms: " delay; exit 1 }
	}' /tmp/alerts || fail "delays"

# The module stays loaded as long as the instance is on. If it is unloaded and loaded again, the
# instance can be turned on again.
refused "a module in use is unloaded" rmmod lt_points
assert_eq "$(references)" 2 "references to the module after rmmod"
control 'm pair enabled=0'
sums_hold m
assert_eq "$(references)" 0 "references to the module while the instance is off"
insmod /tmp/lt_double.ko
refused_line 'm pair enabled=1' 'several loaded modules have a tracepoint of this instance (unload the others): "m"'
assert_eq "$(cat $LT/m/enabled) $(references)" "0 0" "enabled, and references, with two modules"
rmmod lt_double
rmmod lt_points
refused_line 'm pair enabled=1' 'a function or tracepoint of this instance is missing (load its module first): "m"'
assert_eq "$(cat $LT/m/enabled)" 0 "enabled without the module"
insmod /lt/lt_points.ko
control 'm pair enabled=1'
echo 5 >$hit
assert_eq "$(stat m ended)" 4 "events"
refused "a module in use is unloaded" rmmod lt_points
control -m
rmmod lt_points

# The alerts of this instance cause no further alerts, neither about waking the reader nor about
# what the reader does: a loop of alerts would hang the machine.
control 'p pair begin=tracepoint:irq_work_entry end=tracepoint:irq_work_exit begin_key=cpu threshold=0 wakeup_interval=0' 2>/dev/null ||
	control 'p pair begin=tracepoint:sched_waking end=tracepoint:sched_switch begin_key=arg0 end_key=arg2 threshold=0 wakeup_interval=0'
follow $LT/p/alerts /dev/null
reader=$!
sleep 2
kill $reader
control -p

# When latency_tracker is unloaded, it releases the modules that its instances use.
insmod /lt/lt_points.ko
control "m $points"
unload_module
assert_eq "$(references)" 0 "references to the module of an instance that is gone"
rmmod lt_points
rmmod lt_functions
