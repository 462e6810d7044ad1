# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker run` counts exactly the operations of a command and its descendants, and of no other process,
# starting with the wakeup that starts the command's process. It shows the longest operation, the counters of losses,
# and unfinished operations, and passes on the command's exit status. Unless SIGKILL ends it, it leaves no instance,
# note or module behind, even after another signal or an error.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# icount: 1
# timeout: 300
# worth: each run loads and unloads the module, and every way to end a run is tried

. /lt/tests/lib.sh
. /lt/tests/block.sh

# `latency-tracker run` loads and unloads the module itself.
few_modules /lt/latency_tracker.ko null_blk

# nothing_left: check that a run has removed all that it made.
nothing_left() {
	[ ! -d $LT ] || fail "the module is still loaded"
	_found=$(find /run/latency-tracker -name '*.json' 2>/dev/null) || :
	assert_eq "$_found" "" "what is left"
}
# run STATUS WORD...: check that the command exits with STATUS and leaves nothing behind; its output is in /tmp/run.log.
run() {
	_want=$1 _rc=0
	shift
	latency-tracker run "$@" >/tmp/run.log 2>&1 || _rc=$?
	cat /tmp/run.log
	assert_eq "$_rc" "$_want" "the exit status of run $*"
	nothing_left
}
says() { tr -s ' \n' ' ' </tmp/run.log | grep -qE -- "$1" || { cat /tmp/run.log; fail "no '$1'"; }; }
# result STATUS EXPRESSION WORD...: as run; also check that EXPRESSION, in Python, is true of the JSON object r.
result() {
	_want=$1 _expression=$2 _rc=0
	shift 2
	latency-tracker run --json "$@" >/tmp/run.json || _rc=$?
	cat /tmp/run.json
	assert_eq "$_rc" "$_want" "the exit status of run $*"
	nothing_left
	tail -n 1 /tmp/run.json | python3 -c 'import json, sys; r = json.load(sys.stdin); assert eval(f"({sys.argv[1]})"), sys.argv[1]' "$_expression"
}

# An error leaves nothing behind, whenever it occurs.
run 1 sycall
says 'unknown tracker .*"sycall"; did you mean syscall'
run 1 syscall thresholds=1ms
says 'no parameter "thresholds"; did you mean threshold='
run 1 func function=no_such_function -- true
says 'no_such_function'
run 1 syscall -- /no/such/command
says 'cannot run /no/such/command'
run 1 syscall -- /etc/passwd
says 'cannot run /etc/passwd: EACCES'
run 1 syscall pid=1 -- true
says 'pid=1: the process is that of COMMAND'
unshare --fork --pid --mount-proc latency-tracker run syscall -- true >/tmp/run.log 2>&1 && fail "in a PID namespace"
says 'COMMAND: inside a PID namespace, a process has another ID than in the kernel'
nothing_left
if [ -x /usr/bin/setpriv ]; then
	/usr/bin/setpriv --reuid 1000 --regid 1000 --clear-groups latency-tracker run syscall >/tmp/run.log 2>&1 && fail "without rights"
	says 'not loaded.*as root, .modprobe latency_tracker. loads it'
	modprobe latency_tracker
	/usr/bin/setpriv --reuid 1000 --regid 1000 --clear-groups latency-tracker run syscall >/tmp/run.log 2>&1 && fail "without rights"
	says 'this user may not use .*run it as root'
	rmmod latency_tracker
fi

# A command: exactly its calls and the calls of its descendants, regardless of sessions and parents. Other processes
# sleep meanwhile.
sh -c 'while :; do sleep 0.01; done' &
other=$!
result 0 'r["count"] == 7 and r["max"] >= 30e6 and r["status"] == 0 and r["not_ended"] == 0
	and r["longest"]["call"] == "clock_nanosleep" and r["longest"]["delay"] == r["max"] and r["longest"]["comm"] == "longest"' \
	syscall calls=clock_nanosleep threshold=5ms -- python3 -c '
import time
for _ in range(6):
    time.sleep(0.01)
open("/proc/self/comm", "w").write("longest")
time.sleep(0.03)'
mkfifo /tmp/orphan
result 0 'r["count"] == 3 and r["longest"] is None' syscall calls=clock_nanosleep threshold=1h -- \
	sh -c 'sleep 0.1; setsid sh -c "(sleep 0.2; echo >/tmp/orphan) & exec sleep 0.1" & read -r x </tmp/orphan; wait'
kill $other
wait $other || :
# The command's process is stopped until the command starts. This stop does not count.
result 0 'r["count"] > 0 and "before_start_ended" not in r["missing"]
	and all(one["label"]["state"] != "T" for one in r["labels"]["labels"])' \
	offcpu --by state threshold=1h -- sh -c 'sleep 0.1'
# The execve of the command itself counts, once.
result 0 'r["count"] == 1' syscall calls=execve -- /bin/true
# The tracker block cannot be restricted to a command: it filters by disk.
null_disk slow 20000000
run 0 block dev=slow threshold=5ms -- dd if=/dev/slow of=/dev/null bs=4k count=5 iflag=direct
says 'block cannot tell the command from other processes'
says 'count 5 p50 [0-9.]+ms p99 [0-9.]+ms max [0-9.]+ms '
says 'The longest over 5ms dd/[0-9]+: slow RS? sector [0-9]+ 4K, for [0-9.]+ms [^ ]+ in the queue, [0-9.]+ms at the device'

# The exit status and the signal of the command.
run 7 syscall -- sh -c 'exit 7'
run 143 syscall -- sh -c 'kill -TERM $$'
says 'the command has ended: signal 15'

# A duration instead of a command, without and with a late operation.
run 0 syscall calls=clock_nanosleep threshold=1h -d 1s
says 'measuring for 1s .*syscall, for [0-9.]+s .*Nothing that ended took longer than'
python3 -c '
import time
while True:
    time.sleep(0.02)' &
sleeper=$!
wait_until 60 grep -q nanosleep "/proc/$sleeper/stack"
run 2 syscall calls=clock_nanosleep threshold=10ms pid=$sleeper -d 1s -o /tmp/result
grep -q 'The longest over 10ms' /tmp/result || fail "no result in the file"
kill $sleeper
wait $sleeper || :

# Losses: a pool of one event, and eight simultaneous sleeps.
result 0 'r["missing"]["full"] > 0 and r["count"] + r["missing"]["full"] == 8' \
	syscall calls=clock_nanosleep threshold=1h events=1 max_events=1 -- python3 -c '
import threading, time
threads = [threading.Thread(target=time.sleep, args=[0.2]) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()'
run 0 syscall calls=clock_nanosleep threshold=1h events=1 max_events=1 -- sh -c 'sleep 0.2 & sleep 0.2 & sleep 0.2 & wait'
says 'Lost, dropped or not counted.* full [1-9][0-9]* operations lost, since the pool was full'

# Unfinished operations; the command continues.
run 0 syscall calls=clock_nanosleep threshold=1h -d 1s -- sleep 1000
says 'the command, process [0-9]+, is still running.*Not ended: 1,.*sleep/[0-9]+, syscall, for [0-9.]+m?s'
pid=$(sed -n 's/.*the command, process \([0-9]*\), is still running.*/\1/p' /tmp/run.log)
kill "$pid" || fail "the command does not run"

# Signals: the result is shown, and nothing is left. A cgroup that was removed meanwhile is reported.
mkdir /sys/fs/cgroup/lt-run
for cgroup in all /lt-run; do
	: >/tmp/run.log
	latency-tracker run offcpu "cgroup=$cgroup" -d 10m >/tmp/run.log 2>&1 &
	run=$!
	wait_until 60 grep -q 'measuring for' /tmp/run.log
	[ "$cgroup" = all ] || rmdir /sys/fs/cgroup/lt-run
	kill -INT $run
	wait $run && status=0 || status=$?
	[ $status -ne 1 ] || fail "an error after Ctrl-C"
	says 'offcpu, for [0-9.]+m?s'
	[ "$cgroup" = all ] || says 'not measured to the end: cgroup [0-9]+ does not exist'
	nothing_left
done
: >/tmp/run.log
latency-tracker run syscall -- sh -c 'echo runs; exec sleep 1000' >/tmp/run.log 2>&1 &
run=$!
wait_until 60 grep -q runs /tmp/run.log
kill -TERM $run
wait $run && status=0 || status=$?
assert_eq $status 143 "the exit status of a command that SIGTERM ended"
says 'syscall, for .*count [0-9]+'
nothing_left

# The next run removes the leftovers of a killed run; the module stays, since it was loaded before.
: >/tmp/run.log
latency-tracker run syscall -- sh -c 'echo runs; exec sleep 1000' >/tmp/run.log 2>&1 &
run=$!
wait_until 60 grep -q runs /tmp/run.log
kill -KILL $run
wait $run || :
assert_eq "$(wc -l <$LT/control)" 1 "instances that a killed run left"
latency-tracker run syscall threshold=1h -d 1s || fail "after a killed run"
assert_eq "$(wc -l <$LT/control)" 0 "instances"
rmmod latency_tracker
nothing_left
pkill -f '^sleep 1000' || :

# The module stays if another instance uses it at the end.
latency-tracker run syscall -- sh -c 'echo "mine wakeup threshold=3600s" >/proc/latency_tracker/control'
assert_eq "$(cut -d' ' -f1 $LT/control)" mine "instances of others"
rmmod latency_tracker
