# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A call of 20 ms is reported once, with its delay, caller, arguments and result. Each of several nested calls has its
# own depth and delay. A call in an interrupt has no owner. If a task sleeps in the function, the call times out, with
# the stack. If a task exits in it, the call is gone. The module of a followed function cannot be unloaded. A call that
# is in flight when its instance is removed, or turned off and on, returns normally, even if other probes are registered
# meanwhile, by latency_tracker or another module, before and after latency_tracker is unloaded. A function that cannot
# be followed is refused, and the log quotes the word.
# kernels: stock
# long: rt
# cpus: 2
# icount: 1
# arm64: yes
# timeout: 200

. /lt/tests/lib.sh

run() { echo "$*" >/proc/lt_functions; }
# lasted MS FILE: check that the delay in the only line of FILE is at least MS, and not much more.
lasted() {
	assert_eq "$(wc -l <"$2")" 1 "alerts: $(cat "$2")"
	_delay=$(field delay <"$2")
	[ "$_delay" -ge "$1"000000 ] || fail "$1 ms took $_delay ns"
	! in_time || [ "$_delay" -lt $(($1 * 1000000 + 500000000)) ] || fail "$1 ms took $_delay ns"
}

load_module
insmod /lt/lt_functions.ko

# Functions that do not exist, or cannot be followed.
refused_line 'x func' 'this tracker requires the parameter: "function"'
refused_line 'x func function=no_such_function' 'no such function: "no_such_function"'
refused_line 'x func function=vfs_*' 'expected the name of a function: "vfs_*"'
refused_line 'x func function=' 'expected the name of a function: ""'
refused_line "x func function=$ASSEMBLY" "this function cannot be traced: \"$ASSEMBLY\""
refused_line 'x func function=lt_current' 'a function of latency_tracker that a probe may call cannot be traced: "lt_current"'
[ ! -e $LT/x ] || fail "x is there"

# A call has its caller, arguments and result. A short call must stay below the threshold even if
# the host delays it.
ms=$(patiently "$(patiently 20)")
control "w func function=lt_fn_delay threshold=$((ms / 2))ms"
assert_eq "$(cat $LT/w/function)" lt_fn_delay function
grep -q '^w func enabled=1 .* function=lt_fn_delay$' $LT/control || fail "control: $(cat $LT/control)"
refused_line 'w func function=lt_fn_sleep' 'this parameter can only be given at creation: "function"'
control "w func function=lt_fn_delay threshold=$((ms / 2))ms"
refused "its module is in use" rmmod lt_functions
exec 3<$LT/w/alerts
run delay 1 "$ms"
run delay 3 1
alerts_of w /tmp/alerts
cat /tmp/alerts
lasted "$ms" /tmp/alerts
grep -q " tid=$$ comm=\"sh\" function=lt_fn_delay depth=1 context=task args=0,$ms,[0-9a-f]* caller=\"lt_[a-z_]*+0x[0-9a-f]*/0x[0-9a-f]* \\[lt_functions\\]\" ret=0$" /tmp/alerts ||
	fail "what it says"
exec 3<&-
assert_eq "$(stat w attempts) $(stat w ended) $(stat w missed)" "4 4 0" "attempts, ended, missed"
control -w

# Of nested calls, the innermost ends first.
control 'w func function=lt_fn_recurse threshold=0'
exec 3<$LT/w/alerts
run recurse 8 5
alerts_of w /tmp/alerts
cat /tmp/alerts
awk '{ for (i = 1; i <= NF; i++) { split($i, w, "="); f[w[1]] = w[2] } print f["depth"], f["args"], f["ret"], f["delay"] }' /tmp/alerts |
	sed 's/,/ /g' | awk '{ n++; want = 9 - n
		if ($1 != want || $2 != n || $NF < n * 5000000 || $(NF - 1) != n || $NF <= last) { print "wrong:", $0; exit 1 }
		last = $NF } END { exit n != 8 }' || fail "recursion"
exec 3<&-
# If the recursion is too deep for the shadow stack, the outer calls are reported correctly, and the
# inner ones are not followed.
run recurse 100 0
[ "$(stat w started)" -ge 30 ] || fail "only $(stat w started) of 108"
assert_eq "$(stat w started)" "$(stat w ended)" "started, ended"
sums_hold w
control -w

# A call in a hard interrupt.
control 'w func function=lt_fn_tick threshold=10ms'
control 'mine func function=lt_fn_tick threshold=10ms comm=sh'
exec 3<$LT/w/alerts
run tick 1 20
alerts_of w /tmp/alerts
cat /tmp/alerts
lasted 20 /tmp/alerts
grep -q ' pid=0 tid=0 comm="" function=lt_fn_tick depth=1 context=hardirq ' /tmp/alerts || fail "an interrupt"
assert_eq "$(stat mine filtered) $(stat mine started)" "1 0" "mine: filtered, started"
exec 3<&-
control -w
control -mine

# A task that sleeps in the function: there is a timeout with the stack, then the end.
control 'w func function=lt_fn_sleep threshold=3600s timeout=100ms'
exec 3<$LT/w/alerts
run sleep 1 "$(patiently 1000)" &
wait_until 5 grep -q "^age=.* tid=.* function=lt_fn_sleep depth=1 context=task args=0,$(patiently 1000)," $LT/w/pending
wait
alerts_of w /tmp/alerts
cat /tmp/alerts
grep -q ' reason=timeout .* stack="[^"]*,lt_fn_sleep+' /tmp/alerts || fail "no timeout"
if grep ' reason=timeout .* ret=' /tmp/alerts; then fail "it has not returned"; fi
grep -q ' reason=late .* ret=0$' /tmp/alerts || fail "no end"
exec 3<&-
control -w

# Our own calls, in a probe or to wake a reader, are not followed: they would recurse forever.
control 'delays func function=lt_fn_delay threshold=0 wakeup_interval=0'
follow $LT/delays/alerts /dev/null
reader=$!
for function in arch_irq_work_raise __wake_up try_to_wake_up stack_trace_save_tsk; do
	control "$function func function=$function threshold=0 wakeup_interval=0"
	follow $LT/$function/alerts /tmp/$function
done
run delay 200 0
sleep 1
[ "$(stat delays alerts)" -ge 200 ] || fail "delays: $(stat delays alerts) alerts"
# Each alert queues an irq_work, which wakes a reader.
wait_until 5 stat_is arch_irq_work_raise own -ge 1
wait_until 5 stat_is __wake_up own -ge 1
for function in arch_irq_work_raise __wake_up try_to_wake_up stack_trace_save_tsk; do
	echo "$function: $(stat $function attempts) calls, $(stat $function own) of our own"
	control -$function
done
control -delays
wait $reader || :

# A task that exits inside the function.
control 'w func function=lt_fn_exit threshold=0'
run exit 5 0
wait_until 5 stat_is w gone -eq 5
assert_eq "$(stat w started) $(stat w ended) $(stat w pending)" "5 0 0" "exit: started, ended, pending"
control -w
control 'w func function=do_exit threshold=0 comm=true'
control 'last func function=do_task_dead threshold=0 comm=true'
for _ in 1 2 3 4 5; do /bin/true; done
wait_until 10 stat_is w pending -eq 0
wait_until 10 stat_is last pending -eq 0
assert_eq "$(stat w gone) $(stat w ended)" "5 0" "do_exit: gone, ended"
assert_eq "$(stat last gone) $(stat last ended)" "5 0" "do_task_dead: gone, ended"
control -w
control -last

# A call in flight returns normally when its instance is removed, or briefly turned off.
control 'w func function=lt_fn_sleep threshold=0'
run sleep 1 "$(patiently 1500)" &
wait_until 5 stat_is w pending -eq 1
control 'w func enabled=0'
assert_eq "$(stat w cleared) $(stat w pending)" "1 0" "off: cleared, pending"
control 'w func enabled=1'
wait
[ "$(stat w unmatched)" -le 1 ] || fail "one call was under way"
run sleep 1 1
assert_eq "$(stat w ended) $(stat w pending)" "1 0" "on again: ended, pending"
run sleep 1 "$(patiently 1500)" &
wait_until 5 stat_is w pending -eq 1
control -w
rmmod latency_tracker || fail "unloading while a task is inside"
kernel_says ' stay allocated, ' || fail "what stays allocated: $(dmesg | tail -n 1)"
wait

# The call returns through the address of its probe. If a probe without an exit handler had been allocated at that
# address, the kernel would call its exit handler, at NULL. On one CPU the next allocation gets the memory that was
# freed last.
others() { for cpu in 0 1; do taskset -c $cpu sh -c "echo '$*' >/proc/lt_functions"; done; }
entries() {
	for i in $(seq 4); do
		control "e$i pair begin=function:lt_fn_delay end=tracepoint:sched_process_exit end_key=tid begin_key=tid events=16 max_events=16 ring=2"
	done
}
load_module
run keep 1 0
for i in $(seq 4); do control "w$i func function=lt_fn_sleep threshold=0 events=16 max_events=16 ring=2"; done
run sleep 1 600000 2>/dev/null &
first=$!
run sleep 1 600000 2>/dev/null &
second=$!
wait_until 10 stat_is w4 pending -eq 2
for i in $(seq 4); do control "-w$i"; done
# If a probe of another function gets that memory, the return is not counted.
for i in $(seq 4); do
	control "r$i pair begin=return:lt_fn_delay end=tracepoint:sched_process_exit end_key=tid begin_key=tid events=16 max_events=16 ring=2"
done
kill $first
wait $first 2>/dev/null || :
for i in $(seq 4); do
	assert_eq "$(stat r$i attempts)" 0 "returns of lt_fn_sleep, counted as returns of lt_fn_delay"
	control "-r$i"
done
entries
others probes 12 96
kill $second
wait $second 2>/dev/null || :
for i in $(seq 4); do control "w$i func function=lt_fn_sleep threshold=0 events=16 max_events=16 ring=2"; done
run sleep 1 600000 2>/dev/null &
third=$!
wait_until 10 stat_is w4 pending -eq 1
rmmod latency_tracker || fail "unloading while a task is inside"
dmesg | grep 'stay allocated' | tail -n 1 | grep -q ' 4 probes of returns stay allocated, 96 bytes each$' || fail "what stays allocated: $(dmesg | tail -n 1)"
load_module
entries
others probes 12 96
kill $third
wait $third 2>/dev/null || :
rmmod latency_tracker
if dmesg | tail -n 1 | grep -q 'stay allocated'; then fail "no return was hooked: $(dmesg | tail -n 1)"; fi
rmmod lt_functions || fail "it is still in use"
