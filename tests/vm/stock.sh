# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A process that hangs before an instance starts is pending at once, with since=before-start. Its
# timeout counts from the start of the instance, and so does the delay at its end, which is not in
# the histogram. One process hangs in a system call, another waits for a mutex. A task that only
# seems to be in a call is not listed. Filters apply. While tasks fall asleep and wake up, two
# instances start 50 times, and neither lists a task that has run since its start.
# kernels: stock rt
# cpus: 2
# root: full
# icount: 1
# timeout: 300
# worth: each of 50 starts, while tasks change their state, waits for grace periods

. /lt/tests/lib.sh

load_module
# now: print CLOCK_MONOTONIC in nanoseconds.
now() { python3 -c 'import time; print(time.monotonic_ns())'; }
mkfifo /tmp/fifo
exec 8<>/tmp/fifo
# The process hangs before any instance starts.
dd if=/tmp/fifo of=/dev/null bs=7 count=1 2>/dev/null &
hung=$!
wait_until 10 grep -q pipe_read /proc/$hung/stack

before=$(now)
control "o offcpu threshold=3600s timeout=$(patiently 200)ms pid=$hung"
cat $LT/o/pending >/tmp/o
control "s syscall threshold=3600s timeout=$(patiently 200)ms pid=$hung"
cat $LT/s/pending >/tmp/s
control "named offcpu threshold=0 comm=dd when=blocked"
for values in 'offcpu comm=other' "offcpu when=preempted pid=$hung" 'offcpu uid=4711' \
	"syscall calls=!read pid=$hung" "syscall abi=compat pid=$hung" "syscall comm=other"; do
	control "x $values"
	assert_eq "$(grep -c before-start $LT/x/pending) $(stat x before_start)" "0 0" "$values"
	control -x
done
cat /tmp/o /tmp/s
assert_eq "$(wc -l </tmp/o) $(wc -l </tmp/s)" "1 1" "pending"
grep -q " tid=$hung .* state=S .* stack=\"anon_pipe_read+.*\" since=before-start$" /tmp/o || fail "off the CPU"
grep -q " tid=$hung .* call=read number=0 abi=native arg0=0x0 .* arg2=0x7 stack=\"anon_pipe_read+.*\" since=before-start$" \
	/tmp/s || fail "in a system call"
assert_eq "$(stat o before_start) $(stat s before_start) $(stat named before_start)" "1 1 1" "before_start"
for start in $(field start <"$LT/o/pending") $(field start <"$LT/s/pending"); do
	[ "$start" -ge "$before" ] || fail "the start, $start, is before the instance was created, $before"
done

# The event of the hanging process times out, and ends.
for name in o s; do
	wait_until 10 stat_is $name timed_out -ge 1
	exec 3<$LT/$name/wakeup
	cat <&3 >/tmp/alert
	exec 3<&-
	cat /tmp/alert
	grep -q " reason=timeout .* tid=$hung .* stack=\"anon_pipe_read+.*\" since=before-start$" /tmp/alert || fail "no timeout of $name"
done
exec 3<$LT/o/alerts 4<$LT/s/alerts 5<$LT/named/alerts
printf '1234567' >&8
wait $hung
wait_until 10 stat_is s late -ge 1
for name in o s named; do
	assert_eq "$(stat $name before_start_ended) $(stat $name before_start)" "1 1" "$name: ended"
	[ $name = named ] || assert_eq "$(stat $name late)" 1 "$name: late"
done
after=$(now)
alerts_of o /tmp/o
exec 3<&4 4<&-
alerts_of s /tmp/s
exec 3<&5 5<&-
alerts_of named /tmp/named
exec 3<&-
cat /tmp/o /tmp/s /tmp/named
grep " reason=late .* tid=$hung .* since=before-start$" /tmp/o >/tmp/alert || fail "its end, o"
grep " reason=late .* tid=$hung .* call=read .* ret=7 since=before-start$" /tmp/s >>/tmp/alert || fail "its end, s"
grep " reason=threshold .* tid=$hung .* state=S .* queued=[1-9].* since=before-start$" /tmp/named >>/tmp/alert || fail "its end, named"
assert_eq "$(grep -c since= /tmp/named)" 1 "others began later"
for delay in $(field delay </tmp/alert); do
	[ "$delay" -gt 0 ] && [ "$delay" -lt $((after - before)) ] || fail "a delay of $delay ns, in $((after - before)) ns since the instances were created"
done
for name in o s named; do
	control "$name $([ $name = s ] && echo syscall || echo offcpu) enabled=0"
	sums_hold $name
	control -$name
done

# A task that is stopped on the way back to user space is off the CPU, and in no call.
python3 -c 'import os
while True: os.getppid()' &
busy=$!
wait_until 10 grep -q '^State:	[RT]' /proc/$busy/status
for _ in 1 2 3 4 5 6 7 8; do
	kill -STOP $busy
	wait_until 10 grep -q '^State:	T' /proc/$busy/status
	control "o offcpu pid=$busy"
	control "s syscall pid=$busy"
	assert_eq "$(field state <$LT/o/pending)" T "the state of a stopped task"
	assert_eq "$(stat s before_start)" 0 "system calls of a stopped task"
	control -o
	control -s
	kill -CONT $busy
	wait_until 10 grep -q '^State:	R' /proc/$busy/status
done
kill $busy

# A mutex serialises writers to parameters of a module. On PREEMPT_RT, a task does not record what
# it sleeps on.
insmod /lt/lt_works.ko ms=40
run=/sys/module/lt_works/parameters/run
echo long >$run &
wait_until 10 grep -q __flush_work "/proc/$!/stack"
echo slow >$run &
waiter=$!
wait_until 10 grep -q param_attr_store "/proc/$waiter/stack"
control "l lock threshold=0 tid=$waiter"
cat $LT/l/pending >/tmp/l
echo "waits for a mutex: $(cat /tmp/l)"
wait
case $(uname -r) in
*-rt-*) ;;
*)
	# If the host was slow, the writer has acquired the mutex meanwhile.
	if [ "$(stat l before_start)" = 1 ]; then
		grep -q " tid=$waiter .* kind=mutex ret=0 stack=\"[^\"]*param_attr_store+.*\" since=before-start$" /tmp/l || fail "a mutex: $(cat /tmp/l)"
		assert_eq "$(stat l before_start_ended)" 1 "waits for the mutex that ended"
	fi
	;;
esac
control 'l lock enabled=0'
sums_hold l
control -l
rmmod lt_works

python3 /lt/tests/stock.py 50 r:offcpu,when=blocked,threshold=3600s s:syscall,threshold=3600s >/tmp/found
cat /tmp/found
unload_module
