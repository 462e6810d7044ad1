# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker why` names the known cause of a delay, for a command, a process, a disk, and a cgroup with a quota:
# from a trace, and without a trace from the alert alone. A late call is shown with its sleeps, even if each sleep is
# shorter than the threshold. A cgroup that is removed and created again is followed. A process that waits for work is
# not late. Unless SIGKILL ends it, `why` leaves no instance, session, process, directory or module behind, even after
# another signal or an error. The next run removes the instances of a killed run.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root is without LTTng
# timeout: 900
# long-part: a second command, with a chain of locks
# worth: the command that users meet first, from end to end

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/recorders.sh

# The command loads and unloads the module itself.
few_modules /lt/latency_tracker.ko null_blk

# nothing_left: check that a run has removed all that it made.
nothing_left() {
	[ ! -d $LT ] || fail "the module is still loaded"
	assert_eq "$(sessions)" "" "sessions left"
	_found=$(find /tmp /run/latency-tracker -maxdepth 1 -name '*latency-tracker-why*' -o -name '*.json' -path '/run/*' 2>/dev/null) || :
	assert_eq "$_found" "" "what is left"
}
# why STATUS SENTENCE WORD...: check the exit status, and that the output, with lines joined, matches SENTENCE.
why() {
	_want=$1 _sentence=$2 _rc=0
	shift 2
	latency-tracker why "$@" >/tmp/why.log 2>&1 || _rc=$?
	cat /tmp/why.log
	assert_eq "$_rc" "$_want" "the exit status of why $*"
	tr -s ' \n' ' ' </tmp/why.log | grep -qE -- "$_sentence" || fail "why $*: no '$_sentence'"
	nothing_left
}

# Errors come before anything is started.
why 1 '-p 4194303: there is no such process' -p 4194303
unshare --fork --pid --mount-proc latency-tracker why -p 1 >/tmp/why.log 2>&1 && fail "in a PID namespace"
grep -q -- '-p 1: inside a PID namespace, a process has another ID than in the kernel' /tmp/why.log ||
	fail "another process would be watched: $(cat /tmp/why.log)"
nothing_left
why 1 'nosuch' --disk nosuch
why 1 'cannot run /etc/passwd: EACCES' -- /etc/passwd
why 1 'cannot run /no/such/command' --no-trace -- /no/such/command
why 1 'no such cgroup of version 2' --cgroup /nosuch
why 1 'no such cgroup of version 2' --cgroup /../../../tmp
why 1 '--unit none.service: systemd is not running here; use -p PID, -p NAME or --cgroup PATH instead' --unit none.service

# Without a trace: the fields of the alert.
# The program is already in memory. So its execve waits less for the disk than the reader waits for the sleeper.
python3 /lt/tests/late.py pipe
why 2 '(reader|sleeper)/[0-9]+: (read|clock_nanosleep), for [0-9.]+m?s, at [0-9:]{8} ' --no-trace -- python3 /lt/tests/late.py pipe
grep -q 'the command has ended: exit status 0' /tmp/why.log || fail "no exit status of the command"

# A daemon is already running, as on servers that trace.
lttng-sessiond --daemonize

# A command: its longest wait, and the thread that held it up.
why 2 'delay \([^)]*\): (reader/[0-9]+ waited for sleeper/[0-9]+, which|sleeper/[0-9]+) waited for a timer\.' -- python3 /lt/tests/late.py pipe
[ -z "${LT_LONG:-}" ] ||
	why 2 '(victim|middle)/[0-9]+ waited for last/[0-9]+, which ran' --over 300ms -- python3 /lt/tests/late.py futex

# A process that reads from a slow disk; the capture is kept.
null_disk slow 200000000
dd if=/dev/slow of=/dev/null bs=4k count=16000 iflag=direct &
reader=$!
# The stack comes after the cause.
why 2 'dd/[0-9]+ waited for disk slow\. .* in user space: ' --over 100ms -o /tmp/kept -p $reader
grep -q '^latency-tracker: an operation of dd/[0-9]* took .*: saving and reading the trace$' /tmp/why.log ||
	fail "no note before the trace is saved"
rm -rf /tmp/kept/0001/trace
latency-tracker captures -o /tmp/kept
grep -q 'waited for disk slow' /tmp/kept/0001/explanation.txt || fail "the explanation is not kept"

# The disk itself, with a threshold that is learned.
why 2 'LONGEST LOST WHAT .*requests to a disk.* than [0-9.]+ms .* at the device, .*Not seen with --disk: waits before a request exists ' --disk slow -d 60s
kill $reader
wait $reader || :

# A process that waits for work is not late, unless the user asks for such waits.
python3 -c 'import select; select.poll().poll(); ' &
idle=$!
wait_until 60 grep -q poll_schedule_timeout "/proc/$idle/stack"
why 0 'nothing took longer than 200\.0ms in the [0-9.]+m?s since this threshold was set All operations in the [0-9.]+m?s since the start, ' \
	--no-trace -p $idle --over 200ms -d 2s
grep -q 'the threshold is now' /tmp/why.log && fail "the threshold of the user is changed"
grep -q 'not ended' /tmp/why.log && fail "poll is called stuck"
why 0 'have not ended yet.*python3/[0-9]+, syscall, for at least ' --no-trace --waits -p $idle --over 200ms -d 2s
# A stopped process is shown: it was stopped before the run, and does not run until the end.
kill -STOP $idle
wait_until 60 grep -q '^State:.T' "/proc/$idle/status"
why 0 'have not ended yet: python3/[0-9]+, offcpu, for at least [^:]*: began before the start: [^:]*state=T' \
	--no-trace -p $idle --over 200ms -d 2s
kill -KILL $idle
wait $idle || :

# A call consists of sleeps that are all shorter than the threshold: their stacks are shown.
ip link set lo up
python3 -c '
import socket, threading, time
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server, _ = listener.accept()
def serve():
    while True:
        time.sleep(0.06)
        server.send(b"x")
threading.Thread(target=serve, daemon=True).start()
while True:
    client.recv(5, socket.MSG_WAITALL)
' &
client=$!
wait_until 60 grep -q sk_wait_data "/proc/$client/stack"
why 2 'during this time: python3/[0-9]+: off the CPU in state S, for [0-9.]+ms .*waits in: .*sk_wait_data' \
	--no-trace --over 200ms -p $client
# The filter compares IDs of processes. The ID of another thread is refused.
for thread in "/proc/$client/task"/*; do
	[ "${thread##*/}" = $client ] || break
done
thread=${thread##*/}
[ "$thread" != $client ] || fail "python3 has one thread"
why 1 "-p $thread: a thread of process $client \(.*\); use -p $client" -p "$thread"
kill $client
wait $client || :

# A quota of a cgroup.
if grep -qw cpu /sys/fs/cgroup/cgroup.controllers; then
	python3 /lt/tests/sched.py quota 1 10 600000 &
	member=$!
	wait_until 60 grep -q lt-quota "/proc/$member/cgroup"
	why 2 'held back by cpu.max of cgroup /lt-quota' --over 50ms -p $member
	kill $member
	wait $member || :
fi

# A cgroup that is created again; no other task is in it.
GROUP=/sys/fs/cgroup/lt-again
mkdir $GROUP
: >/tmp/why.log
latency-tracker why --no-trace --waits --over 500ms --cgroup /lt-again -d 10m >/tmp/why.log 2>&1 &
run=$!
in_a_while grep -q '^latency-tracker: waiting for an operation' /tmp/why.log
rmdir $GROUP
wait_until 60 grep -q 'cgroup /lt-again was removed: nothing is watched until it is created again' /tmp/why.log
mkdir $GROUP
wait_until 60 grep -q 'cgroup /lt-again was created again: the new one is watched from now on' /tmp/why.log
sh -c "echo \$\$ >$GROUP/cgroup.procs; exec sleep 1"
wait $run && status=0 || status=$?
cat /tmp/why.log
assert_eq $status 2 "the exit status for a cgroup that was created again"
grep -q 'cgroup /lt-again: operations in up to .* may not have been seen (1 new cgroup)$' /tmp/why.log ||
	fail "why does not say what it may have missed"
rmdir $GROUP
nothing_left

# A signal ends `why`, which leaves nothing behind.
sleep 1000 &
idle=$!
: >/tmp/why.log
latency-tracker why -p $idle --over 1s -d 10m >/tmp/why.log 2>&1 &
run=$!
in_a_while grep -q '^latency-tracker: waiting for an operation' /tmp/why.log
kill -INT $run
wait $run && status=0 || status=$?
cat /tmp/why.log
assert_eq $status 0 "the exit status after Ctrl-C"
nothing_left

# The next run removes the leftovers of a killed run, even if that next run is killed, too. The module stays.
latency-tracker why --no-trace -- sleep 1000 >/tmp/why.log 2>&1 &
run=$!
wait_until 60 pgrep -f '^sleep 1000' -P $run
kill -KILL $run
wait $run || :
assert_eq "$(wc -l <$LT/control)" 5 "instances that a killed run left"
killed=$run
# A command that a killed run had not started yet never starts, and its process does not stay.
latency-tracker why -- touch /tmp/started >/tmp/why.log 2>&1 &
run=$!
wait_until 60 pgrep -f '^/proc/self/exe __run' -P $run
kill -KILL $run
wait $run || :
wait_until 10 sh -c "! pgrep -f '^/proc/self/exe __run' >/dev/null"
removed=$(grep -c "^latency-tracker: removed instance why_${killed}_.*, left by a killed run (process $killed)\$" /tmp/why.log) || :
assert_eq "$removed" 5 "instances that the next run removed"
latency-tracker why --no-trace -p $idle --over 1s -d 1s || fail "after a run that was killed early"
assert_eq "$(wc -l <$LT/control)" 0 "instances"
[ ! -e /tmp/started ] || fail "the command was started"
rmmod latency_tracker
nothing_left
pkill -f '^sleep 1000' || :
kill "$(cat /run/lttng/lttng-sessiond.pid)"
wait_until 120 sh -c '! pidof lttng-sessiond >/dev/null'
