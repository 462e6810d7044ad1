# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A task that sleeps for 300 ms is reported once, with that delay, its state, where it slept, and
# what woke it: an interrupt. The alert of a task that waits for a pipe names the writer, and where
# it wrote. Neither sleep is reported if it takes longer than max=, or by an instance that tracks
# only preempted tasks.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# icount: 1
# arm64: no, the stacks of its threads are too small there
# timeout: 240

. /lt/tests/lib.sh
. /lt/tests/sched.sh

load_module
# Warm up: the first run of anything is slow under emulation.
waits pipe 5
ms=$(patiently 300)
threshold=$(patiently 200)ms
control "w offcpu threshold=$threshold comm=python3"
control "short offcpu threshold=$threshold max=$(patiently 250)ms comm=python3"
control "preempted offcpu threshold=$threshold when=preempted comm=python3"
control "blocked offcpu threshold=$threshold when=blocked comm=python3"
# words FILE TID: print the only alert of a thread.
words() {
	assert_eq "$(grep -c " tid=$2 " "$1")" 1 "alerts of $2"
	grep " tid=$2 " "$1"
}
lasted() {
	[ "$2" -ge $(((ms - 10) * 1000000)) ] || fail "$1 took $2 ns"
	! in_time || [ "$2" -lt 320000000 ] || fail "$1 took $2 ns"
}

exec 3<$LT/w/alerts
who=$(waits sleep "$ms")
sleeper=${who#*=}
waits pipe "$ms" >/tmp/who
writer=$(sed 's/writer=\([0-9]*\) .*/\1/' /tmp/who) reader=$(sed 's/.*reader=//' /tmp/who)
alerts_of w /tmp/alerts
cat /tmp/alerts

words /tmp/alerts "$sleeper" >/tmp/alert
lasted sleep "$(field delay </tmp/alert)"
assert_eq "$(field state </tmp/alert)" S "state"
grep -q ' stack="hrtimer_nanosleep+' /tmp/alert || fail "where did it sleep?"
grep -q ' waker_stack="hrtimer_wakeup+\| waker_stack="[^"]*,hrtimer_wakeup+' /tmp/alert || fail "what woke it?"
[ "$(field context </tmp/alert)" != task ] || [ "$(uname -r | grep -c rt)" = 1 ] || fail "a timer is an interrupt"

words /tmp/alerts "$reader" >/tmp/alert
lasted pipe "$(field delay </tmp/alert)"
assert_eq "$(field waker_tid </tmp/alert) $(field context </tmp/alert)" "$writer task" "who wrote"
grep -q ' waker_stack="[^"]*pipe_write+' /tmp/alert || fail "from where was it woken?"
grep -q ' stack="[^"]*pipe_read+' /tmp/alert || fail "where did it read?"
if grep -q 'latency_tracker\|__traceiter' /tmp/alert; then fail "our own functions"; fi
! in_time || [ "$(field queued </tmp/alert)" -lt 50000000 ] || fail "it was queued for 50 ms or longer after its wakeup"

late=$(stat w alerts)
assert_eq "$(($(stat blocked alerts) + $(stat preempted alerts)))" "$late" "blocked, and preempted"
assert_eq "$(($(stat short alerts) + $(stat short over_max)))" "$late" "short: alerts, and over_max"
# On a slow kernel, other sleeps may be late, too.
[ "$(stat blocked alerts)" -ge 2 ] && [ "$(stat short over_max)" -ge 2 ] || fail "too few"
! in_time || assert_eq "$(stat preempted alerts) $(stat short alerts)" "0 0" "preempted; short"
for name in w short preempted blocked; do
	control "$name offcpu enabled=0"
	sums_hold $name
done

# A sleep is pending while it lasts, and times out, with the stack.
echo 3600s >$LT/w/threshold
echo "$(patiently 100)ms" >$LT/w/timeout
control 'w offcpu enabled=1'
who=$(waits sleep "$(patiently 400)")
sleeper=${who#*=}
alerts_of w /tmp/alerts
grep " reason=timeout .* tid=$sleeper .* stack=\"hrtimer_nanosleep+" /tmp/alerts || fail "no timeout: $(cat /tmp/alerts)"
assert_eq "$(grep -c " reason=late .* tid=$sleeper " /tmp/alerts)" 1 "its end"
exec 3<&-

# With max= at or below the threshold, no delay can be reported, only a timeout: so timeout= is required.
for values in 'threshold=2s max=1s' 'threshold=1s max=1s' max=1s; do
	refused_line "x offcpu $values" 'no delay is above threshold and at most max: "max"'
done
control 'x offcpu threshold=2s max=1s timeout=500ms'
refused "no timeout" sh -c "echo 0 >$LT/x/timeout"
control '-x'

# A reader of the alerts sleeps until there is one: that sleep raises no alert.
control -w
control 'w offcpu threshold=100ms timeout=200ms wakeup_interval=0 comm=cat'
cat $LT/w/alerts >/tmp/alerts &
wait_until 10 grep -q latency_tracker /proc/$!/stack
before=$(stat w alerts)
! in_time || assert_eq "$before" 0 "alerts of its start"
sleep 2
wait_until 10 stat_is w readers -ge 1
assert_eq "$(stat w alerts)" "$before" "alerts about the reader: $(cat /tmp/alerts)"
control -w

# Many tasks sleep at once. Each sleep is a line of `pending`, in the order of their starts, whatever the
# size of the reader's buffer. Each stack is walked once.
trace=/sys/kernel/tracing
# Sanitizers call stack_trace_save for each allocation, so it is not counted on their kernels.
for function in $(! in_time || echo stack_trace_save) stack_trace_save_tsk; do echo "p:$function $function" >>$trace/kprobe_events; done
# walks: print how many stacks have been walked.
walks() { awk '$1 ~ /^stack_trace_save/ { sum += $2 } END { print sum + 0 }' $trace/kprobe_profile; }
control 'm offcpu threshold=3600s comm=python3'
python3 -c '
import threading, time
threading.stack_size(65536)
for _ in range(1000):
    threading.Thread(name="python3", target=time.sleep, args=(600,), daemon=True).start()
print("ready", flush=True)
time.sleep(600)' >/tmp/ready &
crowd=$!
wait_until 60 grep -q ready /tmp/ready
wait_until 10 stat_is m pending -ge 1000
echo 1 >$trace/events/kprobes/enable
before=$(walks)
dd if=$LT/m/pending of=/tmp/pending bs=1000 2>/dev/null
walked=$(($(walks) - before)) lines=$(wc -l </tmp/pending)
echo "$lines lines, $walked stacks"
[ "$lines" -ge 1000 ] || fail "only $lines are pending"
assert_eq "$(field tid </tmp/pending | sort -u | wc -l)" "$lines" "tasks"
field start </tmp/pending | sort -cn || fail "they are not in order"
[ "$walked" -ge 1000 ] && [ "$walked" -le $((lines * 13 / 10)) ] || fail "$walked stacks were looked at"
kill $crowd
control -m

# A storm: at most max_alerts alerts in a second; the others are counted, and no stack is walked for them.
control 's offcpu threshold=1 max_alerts=20'
for i in 1 2 3 4; do
	(while :; do sleep 0.001; done) &
	eval "busy$i=$!"
done
before=$(walks) began=$(cut -d. -f1 /proc/uptime)
wait_until 30 stat_is s alerts_suppressed -gt 500
sleep 2
control 's offcpu enabled=0'
seconds=$(($(cut -d. -f1 /proc/uptime) - began)) walked=$(($(walks) - before)) alerts=$(stat s alerts)
echo "$alerts alerts in $seconds s, $(stat s alerts_suppressed) more suppressed, $walked stacks"
[ "$alerts" -ge 20 ] && [ "$alerts" -le $((20 * (seconds + 3))) ] || fail "$alerts alerts in $seconds s"
[ "$walked" -le $((alerts * 4)) ] || fail "$walked stacks for $alerts alerts"
# The last wakeup of a reader may wait for its interval.
all_announced() { [ "$(stat s wakes)" = $((alerts - $(stat s wakes_suppressed))) ]; }
wait_until 10 all_announced
control 's offcpu enabled=1 max_alerts=0'
wait_until 10 stat_is s alerts -gt $((alerts + 200))
control 's offcpu enabled=0'
# shellcheck disable=SC2154 # by eval
kill "$busy1" "$busy2" "$busy3" "$busy4"
sums_hold s
unload_module
