# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Work that programs mark. An interrupt wakes a listener, which puts a job in a queue. The job is
# followed to the worker by its cookie alone. Cookies have 1 to 64 bytes. A `done` without `begin`,
# a second `begin`, and more work than there is room for are counted, and use no memory of the tips
# (the ends of open wake chains).
# Work that is never done is found, and so is a task that hangs after its `begin` was refused. Only
# the group of `gid` may mark work. Without an instance with end=work, a mark is refused. Afterwards,
# all memory for work is free again.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# icount: 1
# arm64: no, lt_causes can send NMIs only on x86
# timeout: 300

. /lt/tests/lib.sh

# marks FILE WORD...: make these marks and print their results in one line. One process makes them
# all, since starting a process is slow under emulation.
marks() {
	case $1 in --group) python3 /lt/tests/work.py mark "$@"; return ;; esac
	(IFS='	'; printf '%s\n' "$*" >&5)
	read -r _answer <&6
	echo "$_answer"
}
# is WANT FILE WORD...: check that the results of these marks are WANT.
is() { _want=$1; shift; assert_eq "$(marks "$@")" "$_want" "$*"; }
perms() { ls -ldn "$1" | awk '{ print substr($1, 1, 10), $3, $4 }'; }

mkfifo /tmp/ask /tmp/answer
python3 /lt/tests/work.py serve </tmp/ask >/tmp/answer &
marker=$!
exec 5>/tmp/ask 6</tmp/answer

load_module gid=77
insmod /lt/lt_causes.ko us=3000
/usr/bin/taskset -p 1 $$ >/dev/null
parameters=/sys/module/lt_causes/parameters
line=$(cat $parameters/number) threaded=$(cat $parameters/threaded)
begin=$LT/work_begin done=$LT/work_done
# Warm up: the first run of anything is slow under emulation.
/usr/bin/taskset -c 1 sh -c "echo handler >$parameters/run"

# Instances that track work, and others.
is ENODEV $begin one
is ENODEV $done one
control 't tree'
is ENODEV $begin one
[ ! -e $LT/t/work ] || fail "an instance that does not wait for work has the file"
control -t
refused "a reserved name" control 'work_begin tree end=work'
control "t tree end=work threshold=3600s work_events=4"
is ok $begin one
is ok $done one
control 't tree enabled=0'
is ENODEV $begin one
is ENODEV $LT/t/work 'begin one'
control 't tree enabled=1'
is "ok ok" $LT/t/work 'begin one' 'done one'

# A cookie may have any bytes; a newline at the end does not count.
is "EINVAL EINVAL ok ok EINVAL EINVAL" $begin '' '\x0a' x '{64}' '{65}' '{4097}'
is "EINVAL EINVAL ok ok EINVAL ok" $done '' '\x0a' 'x\x0a' '{64}' '{65}' '\x00'
is "EINVAL EINVAL EINVAL EINVAL ok EINVAL" $LT/t/work begin 'begin ' 'start x' 'done' 'begin {64}' 'begin {65}'
is ok $LT/t/work 'done {64}\x0a'
# A cookie with an additional zero byte is another cookie.
is "ok ok" $begin 'a' 'a\x00'
is "ok ok ok" $done 'a\x00' 'a' 'a'
assert_eq "$(stat t work_begun) $(stat t work_done) $(stat t work_unmatched) $(stat t work_pending)" "7 7 2 0" "begun, done, unmatched, pending"
assert_eq "$(stat t alerts)" 0 "alerts of what was done in time"

# There is no more work than work_events, and its memory is not taken from the tips.
is "ok ok ok ok ENOSPC" $begin 1 2 3 4 5
assert_eq "$(stat t work_full) $(stat t work_pending) $(stat t work_free)" "1 4 0" "full, pending, free"
before=$(($(stat t started) - $(stat t work_begun)))
/usr/bin/taskset -c 1 sh -c "echo handler >$parameters/run"
[ $(($(stat t started) - $(stat t work_begun))) -gt "$before" ] || fail "no tip while the room for work is used up"
is "ok ok ok ok ok" $done 5 4 3 2 1
is "ok ok ok ok" $begin 6 7 8 9
is "ok ok ok ok" $done 6 7 8 9
assert_eq "$(stat t work_free)" 4 "free afterwards"
# Of two `begin` marks with one cookie, the second counts.
before=$(stat t replaced)
is "ok ok" $begin again again
assert_eq "$(($(stat t replaced) - before)) $(stat t work_pending)" "1 1" "begun again"
is "ok ok" $done again again
control -t

# A listener puts a job in a queue: only the cookie shows which task does it.
control "t tree end=work threshold=200ms comm=lt_listener irq=$line"
exec 3<$LT/t/alerts
tids=$(python3 /lt/tests/work.py queue $parameters/run handler $begin $done 300)
alerts_of t /tmp/alerts
exec 3<&-
cat /tmp/alerts
listener=${tids% *} worker=${tids#* }
python3 /lt/tests/tree.py sums /tmp/alerts || fail "they do not add up"
# On a slow kernel, the listener is preempted so often that any number of middle steps is left out.
left=''
in_time || left='(more\(\d+\) (switch:\S+ )?)?'
python3 /lt/tests/tree.py like /tmp/alerts 1 "irq:$line waking:$listener switch:$listener\\(lt_listener\\)/120 $left((preempted:\\d+(\\(\\S*\\))?/\\d+ switch:$listener|(sleep|lock):$listener waking:$listener(,by:\\S+)? switch:$listener\\(lt_listener\\))/120 )*begin:$listener done:$worker" ||
	fail "not the chain of the job"
python3 /lt/tests/tree.py longest /tmp/alerts "done:$worker" 250000000 || fail "not the job"
grep -q " tid=$listener comm=\"lt_listener\" end=work state=working origin=irq irq=$line .*\" cookie=\"job 1\"" /tmp/alerts || fail "what it says"
awk '$1 == "begin" { found = $2 == 1 && $3 >= 250000000 } END { exit !found }' $LT/t/steps || { cat $LT/t/steps; fail "the time of the job"; }
assert_eq "$(stat t ended) $(awk '{ n += $3 } END { print n }' $LT/t/histogram)" "1 1" "what came to its end"
# A task that the filter rejects begins no work.
is ok $begin other
[ "$(stat t work_pending)" -eq 0 ] || fail "a task that the filter refuses begins work"
wait_until 10 stat_is t pending -eq 0
control 't tree enabled=0'
sums_hold t
control -t

# One of the tasks that an interrupt wakes starts work. Only its chain remains; the others are
# dropped.
control "t tree end=work threshold=200ms irq=$threaded"
exec 3<$LT/t/alerts
tids=$(python3 /lt/tests/work.py queue $parameters/run fan $begin $done 300)
alerts_of t /tmp/alerts
exec 3<&-
cat /tmp/alerts
python3 /lt/tests/tree.py are /tmp/alerts 1 "irq:$threaded waking:\\d+ switch:\\d+\\(irq/$threaded-lt_\\w+\\)/\\d+ waking:${tids% *} .*begin:${tids% *} done:${tids#* }" "done:${tids#* }" 250000000 ||
	fail "not the chain of the job"
wait_until 10 stat_is t pending -eq 0
control 't tree enabled=0'
sums_hold t
[ "$(stat t gone)" -ge 8 ] || fail "the other threads left $(stat t gone) tips"
assert_eq "$(stat t ended) $(stat t work_pending) $(stat t free)" "1 0 $(stat t capacity)" "what came to its end; what is left"
control -t

# A task that finds no room for its work is still on its chain, and is found if it hangs.
control "t tree end=work irq=$line threshold=3600s timeout=100ms work_events=1"
exec 3<$LT/t/alerts
is ok $begin full
assert_eq "$(python3 /lt/tests/work.py spin $parameters/run handler $begin 400)" ENOSPC "a begin without room"
is ok $done full
alerts_of t /tmp/alerts
exec 3<&-
cat /tmp/alerts
grep -q 'reason=timeout .* comm="lt_listener"' /tmp/alerts || fail "the listener was not found"
control -t

# A task that is on no chain starts a chain. Work that is never done is found while it hangs.
control 't tree end=work origin=work threshold=50ms timeout=100ms'
control "no tree end=work origin=irq irq=$line threshold=0"
exec 3<$LT/t/alerts
is ok $begin 'a "\x00\xff'
grep -q ' state=working origin=work irq=-1 .* path="begin:[0-9]*@[0-9]+0" cookie="a \\"\\x00\\xff"' $LT/t/pending || { cat $LT/t/pending; fail "not among what is pending"; }
wait_until 20 stat_is t timed_out -eq 1
is ok $LT/t/work 'done a "\x00\xff'
alerts_of t /tmp/alerts
exec 3<&-
cat /tmp/alerts
python3 /lt/tests/tree.py sums /tmp/alerts || fail "it hangs, and they do not add up"
sed -n 1p /tmp/alerts | grep -q 'reason=timeout .* comm="python3" end=none state=working origin=work .* path="begin:\([0-9]*\)@[01]+0 working:\1@[01]+[0-9]*" cookie="a \\"\\x00\\xff" stack="[a-z_]*+0x' || fail "work that hangs"
sed -n 2p /tmp/alerts | grep -q 'reason=late .* end=work state=working origin=work .* path="begin:[0-9]*@[01]+0 done:[0-9]*@[01]+[0-9]*" cookie="a \\"\\x00\\xff"$' || fail "work that is done late"
assert_eq "$(stat no alerts) $(stat no work_begun) $(stat t late)" "0 0 1" "origin=irq; late"
# The other fields of the alert match the tracepoint.
echo 1 >/sys/kernel/tracing/events/latency_tracker/alert_tree/enable
control 't tree threshold=0 timeout=0'
is ok $begin traced
is ok $done traced
echo 0 >/sys/kernel/tracing/events/latency_tracker/alert_tree/enable
grep -q ' end=work state=working origin=work ' /sys/kernel/tracing/trace || { cat /sys/kernel/tracing/trace; fail "the tracepoint"; }
control -no
control -t

# Only the group may mark work. A mark through an open file fails once its instance was removed.
control 't tree end=work'
for file in $begin $done $LT/t/work; do
	assert_eq "$(perms "$file")" "--w--w---- 0 77" "$file"
done
is "ok" --group 77 $begin one
is "ok ok" --group 77 $LT/t/work 'done one' 'done one'
for file in $begin $done $LT/t/work; do is EACCES --group 78 "$file" 'begin one'; done
for file in $LT/control $LT/t/threshold; do is EACCES --group 77 "$file" 1; done
refused "reading" cat $LT/t/work
assert_eq "$(python3 /lt/tests/work.py keep $begin one -- sh -c "echo -t >$LT/control")" ENODEV "the instance was removed"
control 't tree end=work'
assert_eq "$(python3 /lt/tests/work.py keep $LT/t/work 'begin one' -- sh -c "echo -t >$LT/control")" EIO "its file is gone"

for bad in 'work_events=0' 'work_events=all' 'end=done' 'origin=job'; do
	refused "$bad" control "bad tree $bad"
done
exec 5>&- 6<&-
wait $marker
rm /tmp/ask /tmp/answer
rmmod lt_causes
unload_module
