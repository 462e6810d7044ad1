# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A task is woken on each known path: by an interrupt, its thread, its softirq, a work item that it queues, a function
# called on another CPU, a timer in the interrupt, a timer in a softirq, and a timer of the timer wheel. Each time there
# is one alert, whose path has exactly the steps of this kernel, in order. The longest step is the step that the test
# prolonged. The steps add up to the delay. Nothing is left of a cancelled work item. The second run of a work item that
# queues itself is on no path, unless it got another function. A softirq raised by a task belongs to no interrupt, and a
# path continues after a wait for a lock; the lock's owner starts no path for another thread. Setting the clock makes no
# timer late. Causes that a busy thread handles along the way are counted. Afterwards, no tip, the end of an open chain,
# is left.
# kernels: stock rt
# cpus: 2
# root: full
# icount: 1
# arm64: no, lt_causes can send NMIs only on x86
# timeout: 400
# worth: the steps of each kind of wake chain; no other test has all of them
# abi-alert: sleep 0.01
# abi-has:  path="timer:

. /lt/tests/lib.sh

load_module
# shellcheck source=tests/tree.sh
. /lt/tests/tree.sh
case $(uname -r) in *-rt-*) rt=1 ;; *) rt='' ;; esac
line=$(cat $parameters/number) threaded=$(cat $parameters/threaded)

# Warm up: the first run of anything is slow under emulation, and the thread moves to its CPU.
for word in handler softirq thread hard soft work job call wheel; do target 1 $word; done

# There is a threshold, since other causes wake the task, too, but never late.
control "t tree threshold=${late}us comm=lt_target"
# Only one thread calls timers on that CPU.
timers="raise:HRTIMER waking:\\d+ switch:\\d+\\(ktimers/1\\)/98 softirq:HRTIMER"
[ -n "$rt" ] || timers=$(softirq HRTIMER)
by handler "irq:$line $woken" 'waking:\d+'
grep -q " end=switch state=running origin=irq irq=$line action=\"lt_cause\" target_cpu=1 prio=120 policy=other preempted=0 merged=0 more=0 path=" \
	/tmp/alerts || fail "what they say"
by softirq "irq:$line $(softirq HI) $woken" 'raise:HI'
by thread "irq:$threaded waking:\\d+ switch:\\d+\\(irq/$threaded-lt_\\w+\\)/\\d+ $woken" 'waking:\d+'
assert_eq "$(grep -c " origin=irq irq=$threaded action=\"lt_threaded\" " /tmp/alerts)" 3 "the name that ends with its page"
# An interrupt whose thread is busy with an earlier interrupt wakes nothing, and the chain shows that.
by busy "irq:$threaded waking:\\d+ switch:\\d+\\(irq/$threaded-lt_\\w+\\)/\\d+ $woken" 'waking:\d+'
assert_eq "$(grep -c ' merged=1 ' /tmp/alerts)" 3 "interrupts that a busy thread has taken along"
# Wakeups by a handler after it has called another handler belong to the outer handler.
by nested "irq:$line $woken" 'waking:\d+'
# Wakeups by a local interrupt after its handler has returned do not belong to the handler.
by after "vector:irq_work $woken" 'waking:\d+'
# A worker that the kernel has started inside a process never returns to user space.
if [ "$(cat $parameters/workers)" = Y ]; then
	by worker "irq:$line waking:\\d+ switch:\\d+\\(lt_worker\\)/120 $woken" 'waking:\d+'
fi
# A work item for a sleeping worker, and for a worker that is busy with another item.
by work "irq:$line queue:lt_on_item waking:\\d+ switch:\\d+\\(kworker/\\S+\\)/\\d+ work:lt_on_item $woken" 'queue:lt_on_item'
by queue "irq:$line queue:lt_on_item work:lt_on_item $woken" 'work:lt_on_item'
# An item for a kthread worker, which is not woken for items that are already queued.
by job "irq:$line queue:lt_on_job waking:\\d+ switch:\\d+\\(lt_jobs\\)/\\d+ work:lt_on_job $woken" 'queue:lt_on_job'
by jobs "irq:$threaded queue:lt_on_job work:lt_on_job $woken" 'work:lt_on_job'
# An item that queues itself with another function continues its work.
by next "irq:$line queue:lt_on_item waking:\\d+ switch:\\d+\\(kworker/\\S+\\)/\\d+ work:lt_on_item queue:lt_on_next_item work:lt_on_next_item $woken" 'queue:lt_on_item'
by next-job "irq:$line queue:lt_on_job waking:\\d+ switch:\\d+\\(lt_jobs\\)/\\d+ work:lt_on_job queue:lt_on_next_job work:lt_on_next_job $woken" 'queue:lt_on_job'
by call "irq:$line call:lt_on_call (vector:call_function_single )?called:lt_on_call $woken" 'call:lt_on_call'
by hard "timer:lt_on_timer vector:local_timer expire:lt_on_timer $woken" 'vector:local_timer'
by soft "timer:lt_on_timer vector:local_timer $timers expire:lt_on_timer $woken" 'vector:local_timer'
control -t

# A timer of the timer wheel is an origin if requested. Its chain starts with the tick whose timer
# advances the wheel.
control "t tree threshold=${late}us comm=lt_target origin=wheel"
wheel="expire:tick_\\w+ raise:TIMER waking:\\d+ switch:\\d+\\(ktimers/1\\)/98 softirq:TIMER"
[ -n "$rt" ] || wheel="expire:tick_\\w+ $(softirq TIMER)"
by wheel "wheel:lt_on_wheel vector:local_timer $wheel expire:lt_on_wheel $woken" 'vector:local_timer'
grep -q ' origin=wheel ' /tmp/alerts || fail "its origin"
awk -v tick="$(cat $parameters/tick)" '{ match($0, / time=[0-9]+/); time = substr($0, RSTART + 6, RLENGTH - 6)
	match($0, / delay=[0-9]+/); delay = substr($0, RSTART + 7, RLENGTH - 7)
	if ((time - delay) % tick) exit 1 }' /tmp/alerts || fail "it does not begin with a tick"
control -t

# The chain to a wanted timer may lead through the tick, a timer that the filter refuses.
control "t tree threshold=0 comm=lt_target origin=timer,wheel timer=lt_on_wheel from=vector"
by wheel "vector:local_timer $wheel expire:lt_on_wheel $woken"
control -t

# Chains can be limited to timers of one function, and can start at the interrupt of the timer.
for timer in lt_on_timer hrtimer_wakeup; do
	control "t tree threshold=${late}us comm=lt_target origin=timer timer=$timer"
	case $timer in
		lt_on_timer) by hard "timer:lt_on_timer vector:local_timer expire:lt_on_timer $woken" ;;
		*) target 3 hard && assert_eq "$(stat t alerts)" 0 "alerts of timers with another function" ;;
	esac
	control -t
done
control "t tree threshold=0 comm=lt_target origin=timer timer=lt_on_timer from=vector"
by hard "vector:local_timer expire:lt_on_timer $woken"
by soft "vector:local_timer $timers expire:lt_on_timer $woken"
control -t

# A cancelled work item is no longer in flight, and does not hang.
control "t tree threshold=3600s timeout=1s origin=irq irq=$line"
for word in cancel cancel-job; do target 3 $word; done
wait_until 20 stat_is t pending -eq 0
[ "$(stat t gone)" -ge 6 ] || fail "the work items were not followed"
assert_eq "$(stat t alerts)" 0 "alerts of cancelled work items"
control -t

# The second run of a work item that queues itself is on no chain.
control "t tree threshold=0 comm=lt_target origin=irq irq=$line"
for word in again again-job; do target 3 $word; done
wait_until 20 stat_is t pending -eq 0
[ "$(stat t gone)" -ge 6 ] || fail "the work items were not followed"
assert_eq "$(stat t alerts)" 0 "alerts of work items that queue themselves"
control -t

# A thread that repeatedly sleeps in the state D does not stay on a chain forever.
control "t tree threshold=3600s origin=timer"
target 1 drowse
[ "$(stat t endless)" -ge 4 ] || fail "after 200 sleeps $(stat t endless) chains were dropped"
[ "$(stat t gone)" -ge "$(stat t endless)" ] || fail "endless chains are gone, too"
control -t

# Another line, which the filter rejects, has raised the softirq first.
control "t tree threshold=${late}us comm=lt_target irq=$line"
by shared "irq:$line $(softirq HI) $woken" 'raise:HI'
control -t

# A softirq thread runs work that is too much for one interrupt. The chain follows the raise, not
# the interrupted task.
control "t tree threshold=0 comm=lt_target irq=$line"
exec 3<$LT/t/alerts
target 20 later
alerts_of t /tmp/alerts
exec 3<&-
cat /tmp/alerts
note later are /tmp/alerts 20 "irq:$line $(softirq HI) $woken"
grep -Eq ' path="irq:[^ ]* raise:HI[^ ]* (waking:[^ ]* )?switch:[0-9]*\((ksoftirqd|ktimers)/1\)[^ ]* softirq:HI' /tmp/alerts ||
	fail "no thread for softirqs"
control -t

# Timers that are due since the clock was set are not late.
control "t tree threshold=1s comm=lt_target origin=timer"
target 3 clock
assert_eq "$(stat t alerts)" 0 "alerts of a clock that was set"
[ "$(stat t ended)" -ge 3 ] || fail "the timers were not followed"
control -t

# The time of each kind of step, late or not.
control "s tree threshold=3600s comm=lt_target irq=$line"
target 3 handler
cat $LT/s/steps
assert_eq "$(stat s alerts) $(awk '{ print $1, $2 }' $LT/s/steps | tr '\n' ' ')" "0 step count irq 3 waking 3 " "kinds of steps"
awk -v least="${late}000" '$1 == "irq" { exit !($3 >= least && $3 <= $5 && $4 >= $3 && $4 <= $5) }' $LT/s/steps || fail "the time in the handler"
latency-tracker steps s
control -s

# Only the task itself raised this softirq.
control "t tree threshold=0 comm=lt_target origin=irq"
target 5 task
assert_eq "$(stat t alerts)" 0 "alerts of what a task does itself"
control -t

if [ -n "$rt" ]; then
	echo 30000 >$parameters/us
	control "t tree threshold=5ms comm=lt_target origin=irq irq=$threaded"
	by wait "irq:$threaded waking:\\d+ switch:\\d+\\(irq/$threaded-lt_\\w+\\)/\\d+ lock:\\d+ waking:\\d+,by:\\d+\\(lt_beside\\) switch:\\d+\\(irq/$threaded-lt_\\w+\\)/\\d+ $woken" \
		'waking:\d+,by:\d+\(lt_beside\)'
	control -t

	# A thread that waits for a lock of the interrupt's thread stays on its own chain, or on none.
	control "t tree threshold=0 comm=lt_target origin=irq irq=$threaded"
	control "s tree threshold=0 comm=lt_target origin=timer"
	exec 3<$LT/s/alerts
	target 3 held
	alerts_of s /tmp/alerts
	exec 3<&-
	cat /tmp/alerts
	assert_eq "$(grep -c ' lock:[0-9].* waking:[0-9]*,by:[0-9]*(irq/' /tmp/alerts)" 3 "waits for the lock"
	assert_eq "$(stat t alerts)" 0 "alerts of what a thread does that has waited for a lock"
	control -s
	control -t
	echo "$us" >$parameters/us
fi

# Chains end in user space, or when the target waits again.
for end in user blocked; do
	control "t tree threshold=${late}us comm=lt_target end=$end"
	case $end in user) last='user:\d+' ;; *) last='blocked:\d+' ;; esac
	# On a slow kernel, the task's own work until its next wait may take longer than its waking.
	longest='waking:\d+'
	[ $end = user ] || in_time || longest=
	# On such a kernel, the task may be preempted so often that any number of middle steps is left out.
	left=''
	in_time || left='(more\(\d+\) ((waking:\d+ )?switch:\S+ )?)?'
	by handler "irq:$line $woken $left((preempted:\\d+(\\(\\S*\\))?/\\d+ switch:\\d+|(sleep|reads):\\d+ waking:\\d+(,by:\\S+)? switch:\\d+\\(lt_target\\))/120 )*$last" \
		${longest:+"$longest"}
	grep -q " end=$end " /tmp/alerts || fail "the end is not $end"
	control -t
done

# Chains with many tips end completely: pending is 0 when no chain is in flight.
control "t tree threshold=3600s comm=lt_target events=16384"
target 5 fan
wait_until 10 stat_is t pending -eq 0
control "t tree enabled=0"
sums_hold t
[ "$(stat t gone)" -ge 40 ] || fail "the other threads left $(stat t gone) tips"
assert_eq "$(stat t full) $(stat t negative) $(stat t unserved)" "0 0 0" "lost"
control -t

# A worker that is the target ends its chain when it is switched in: it never returns from a system call.
if [ "$(cat $parameters/workers)" = Y ]; then
	control "t tree threshold=0 comm=lt_worker kthreads=1 end=user origin=irq irq=$line"
	target 3 worker
	wait_until 10 stat_is t ended -eq 3
	control -t
fi

# A chain that does not reach its end is found, with its last step.
echo 300000 >$parameters/us
control "t tree threshold=3600s timeout=50ms comm=lt_target irq=$threaded origin=irq"
exec 3<$LT/t/alerts
target 1 thread
alerts_of t /tmp/alerts
exec 3<&-
cat /tmp/alerts
note 'a chain that hangs' sums /tmp/alerts
grep -q "reason=timeout .* comm=\"irq/$threaded-lt_[a-z]*\" end=none state=running origin=irq irq=$threaded .* path=\"irq:$threaded@1+0 waking:" \
	/tmp/alerts || fail "the thread that hangs is not found"
control -t

# Chains in flight, grouped by origin.
if in_time; then echo 5000000; else echo 15000000; fi >$parameters/us
control "t tree threshold=3600s irq=$threaded origin=irq"
target 1 thread & waiting=$!
thread="irq/$threaded-lt_[a-z]*/[0-9]* (CPU 1) runs"
wait_until 10 sh -c "latency-tracker tree t >/tmp/chain && grep -q '^  $thread, for ' /tmp/chain"
cat /tmp/chain
assert_eq "$(head -n 1 /tmp/chain)" "t: 1 wake chain in flight from 1 origin" "what is under way"
grep -q "^irq:$threaded lt_threaded @1, .* ago\$" /tmp/chain || fail "no root"
grep -q "^    irq:$threaded@1 [0-9]*%, waking:[0-9]*@1 [0-9]*%, switch:.*@1 [0-9]*%\$" /tmp/chain || fail "no steps"
latency-tracker tree t --json >/tmp/chain.json
note 'chains in flight as JSON' roots /tmp/chain.json "irq:$threaded"
python3 /lt/tests/tree.py live 't: 1 wake chain in flight from 1 origin' latency-tracker tree t --live --interval 100ms || fail "on a terminal"
# If the output is not a terminal, the tree is printed once.
latency-tracker tree t --live >/tmp/chain
grep -q "^irq:$threaded lt_threaded @1, .* ago\$" /tmp/chain || fail "$(cat /tmp/chain)"
# All of this was seen, so the thread may stop.
echo 0 >$parameters/us
wait "$waiting"
latency-tracker tree t >/tmp/chain 2>/tmp/said
grep -q 't: no wake chain is in flight' /tmp/said || fail "when it has ended: $(cat /tmp/chain /tmp/said)"
control -t
control "w wakeup threshold=1s"
if latency-tracker tree w 2>/tmp/said; then fail "another tracker has a tree"; fi
grep -q 'w is of the tracker wakeup, and has no tree' /tmp/said || fail "$(cat /tmp/said)"
control -w
if latency-tracker tree t 2>/tmp/said; then fail "it shows what is gone"; fi
grep -q 'no instance named "t"' /tmp/said || fail "$(cat /tmp/said)"

for bad in 'origin=nmi' 'origin=' 'irq=timer' 'vec=reschedule' 'end=done' 'from=entry' 'prio=140' 'prio=low' 'timer=lt_no_function' 'hops=irq' \
	'origin=work' 'origin=wheel hops=work'; do
	refused "$bad" control "bad tree $bad"
done
# An instance with hops=work does not accept origin=wheel later, either.
control "t tree hops=work origin=timer"
refused "a change to origin=wheel" control "t tree origin=wheel"
if echo wheel >$LT/t/origin; then fail "origin=wheel by its file"; fi
assert_eq "$(cat $LT/t/origin)" timer "what was refused changes nothing"
control "t tree origin=irq"
control -t
rmmod lt_causes
unload_module
judge
