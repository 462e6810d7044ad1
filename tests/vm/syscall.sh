# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A long call is reported once, with its arguments and result. A call that hangs is reported at its
# timeout, with its stack, and at its end; with stacks=switch, also each time its task is switched
# in after the threshold. A call that never returns is dropped, and not found at the start. A task
# whose thread ID changes is still tracked, even if its execve fails. Calls of 32-bit programs are
# distinguished. Lists of calls work, and errors in a list are reported.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# icount: 1
# arm64: yes
# timeout: 150

. /lt/tests/lib.sh
. /lt/tests/sched.sh

trace=/sys/kernel/tracing
read=$(number_of read) write=$(number_of write)
# calls WORD...: run tests/calls.py with these words; its thread ID is then in $tid.
calls() { tid=$(python3 /lt/tests/calls.py "$@"); tid=${tid#*=}; }

need /usr/bin/unshare
load_module
# Warm up: the first run of anything is slow under emulation.
calls write 10 3

# A nanosleep, and a read that times out. Other calls are shorter, unless the host delays us.
control "w syscall threshold=$(patiently 40)ms timeout=$(patiently 200)ms comm=python3"
control "out syscall threshold=$(patiently 40)ms comm=python3 calls=!read,clock_nanosleep,write,wait4,waitid"
control "waits syscall threshold=$(patiently 40)ms comm=python3 waits=0"
exec 3<$LT/w/alerts 4<$LT/out/alerts 5<$LT/waits/alerts
sleeper=$(waits sleep "$(patiently 50)")
sleeper=${sleeper#*=}
reader=$(waits pipe "$(patiently 400)")
reader=${reader##*=}
alerts_of w /tmp/alerts
exec 3<&4 4<&-
alerts_of out /tmp/out
exec 3<&5 5<&-
alerts_of waits /tmp/waits
exec 3<&-
cat /tmp/alerts
# of CALL TID FILE: print the alerts of this call of this thread, and check that the thread has no
# others.
of() {
	! in_time || assert_eq "$(grep " tid=$2 " "$3" | grep -vc " call=$1 ")" 0 "alerts of other calls: $(grep " tid=$2 " "$3")"
	grep " tid=$2 .* call=$1 " "$3"
}
of clock_nanosleep "$sleeper" /tmp/alerts >/tmp/sleeper
assert_eq "$(wc -l </tmp/sleeper)" 1 "alerts of the sleeping task"
grep -q " reason=threshold .* call=clock_nanosleep number=$(number_of clock_nanosleep) abi=native arg0=0x1 arg1=0x1 arg2=0x[0-9a-f]* ret=0\$" \
	/tmp/sleeper || fail "its call"
delay=$(field delay </tmp/sleeper)
[ "$delay" -ge "$(patiently 50000000)" ] || fail "it slept $delay ns"
! in_time || [ "$delay" -lt 80000000 ] || fail "it slept $delay ns"
of read "$reader" /tmp/alerts >/tmp/reader
assert_eq "$(field reason </tmp/reader | tr '\n' ' ')" 'timeout late ' "alerts of the reading task"
grep -q " reason=timeout .* call=read number=$read abi=native arg0=0x[0-9a-f]* arg1=0x[0-9a-f]* arg2=0x1 stack=\"anon_pipe_read+" \
	/tmp/reader || fail "where it waits"
grep -q ' reason=late .* call=read .* arg2=0x1 ret=1$' /tmp/reader || fail "its end"
assert_eq "$(grep -c ' call=\(read\|clock_nanosleep\|write\|wait4\|waitid\) ' /tmp/out)" 0 "calls that are not followed"
assert_eq "$(grep -c ' call=\(clock_nanosleep\|wait4\|waitid\) ' /tmp/waits)" 0 "calls that are made to wait"
assert_eq "$(of read "$reader" /tmp/waits | wc -l)" 1 "calls that are not made to wait"
! in_time || assert_eq "$(stat out alerts) $(stat waits alerts)" "0 1" "calls that take long"
for name in w out waits; do
	control "$name syscall enabled=0"
	sums_hold $name
	assert_eq "$(stat $name unmatched) $(stat $name full)" "0 0" "$name: unmatched, full"
	control -$name
done

# Late switch-ins are reported as often as the scheduler's events show.
echo mono >$trace/trace_clock
echo 1 >$trace/events/sched/sched_switch/enable
echo 1 >$trace/events/raw_syscalls/enable
control "w syscall threshold=$(patiently 50)ms stacks=switch calls=write comm=python3"
exec 3<$LT/w/alerts
calls write "$(patiently 30)" 8
echo 0 >$trace/tracing_on
alerts_of w /tmp/alerts
exec 3<&-
cat /tmp/alerts
awk -v tid="$tid" -v threshold="$(patiently 50)" -v write="$write" '
	function now() { match($0, / [0-9]+\.[0-9]+: /); return substr($0, RSTART + 1, RLENGTH - 3) + 0 }
	$0 ~ "-" tid " .* sys_enter: NR " write " " { began = now() }
	$0 ~ "-" tid " .* sys_exit: NR " write " " { began = 0 }
	began && /: sched_switch: / && $0 ~ " next_pid=" tid " " && now() - began > threshold / 1000 { n++ }
	END { print n + 0 }' $trace/trace >/tmp/switches
assert_eq "$(grep -c " reason=stack .* tid=$tid .* call=write .* stack=\"[^\"]*anon_pipe_write+" /tmp/alerts)" \
	"$(cat /tmp/switches)" "stacks, one for each time that it was switched in"
[ "$(cat /tmp/switches)" -ge 5 ] || fail "it was hardly switched in"
assert_eq "$(grep -c " reason=threshold .* tid=$tid .* call=write number=$write .* arg2=0x90000 ret=589824$" /tmp/alerts)" 1 "its end"
assert_eq "$(stat w stacks)" "$(cat /tmp/switches)" "stacks counted"
assert_eq "$(stat w alerts)" "$(($(cat /tmp/switches) + 1))" "alerts counted"
control -w

# A call that never returns.
control 'w syscall threshold=0 calls=exit_group comm=true'
for _ in 1 2 3; do /bin/true; done
assert_eq "$(stat w started) $(stat w gone) $(stat w pending) $(stat w alerts)" "3 3 0 0" "exits: started, gone, pending, alerts"
control -w

# The first process of a PID namespace exits. After sched_process_exit, it sleeps until the other process is reaped:
# nothing would end an event that starts then.
mkfifo /tmp/end
/usr/bin/unshare --pid sh -c '(read -r _ </tmp/end) & sleep 1000 & exec sleep 1000' &
holder=$!
wait_until 30 grep -qs nanosleep /proc/$holder/stack
echo >/tmp/end
is_exiting() { grep -qs zap_pid_ns_processes /proc/[0-9]*/stack; }
wait_until 30 is_exiting
control 'w syscall threshold=3600s calls=exit_group'
assert_eq "$(stat w before_start) $(stat w pending)" "0 0" "a task that exits: before_start, pending"
control -w
kill $holder

# The thread ID changes during the call.
control 'w syscall threshold=0 calls=execve'
exec 3<$LT/w/alerts
calls exec
assert_eq "$(grep -c "call=execve" $LT/w/pending)" 0 "calls pending"
# Otherwise, reading the alerts would cause more alerts.
control 'w syscall enabled=0'
alerts_of w /tmp/alerts
exec 3<&-
cat /tmp/alerts
assert_eq "$(stat w renamed) $(stat w gone)" "1 0" "renamed, gone"
# The shell's own execve in this thread has an earlier alert, which does not count.
assert_eq "$(grep " pid=$tid tid=$tid " /tmp/alerts | grep -v ' comm="sh" ' | grep -c " call=execve number=$(number_of execve) .* ret=0\$")" 1 "its execve"
sums_hold w
control -w

# The thread ID changes, and then the execve fails: no tracepoint has shown the new ID.
control 'w syscall threshold=0 calls=execve'
exec 3<$LT/w/alerts
calls exec-fail || :
control 'w syscall enabled=0'
alerts_of w /tmp/alerts
exec 3<&-
cat /tmp/alerts
assert_eq "$(grep -c " tid=$tid .* call=execve .* ret=-[0-9]*\$" /tmp/alerts)" 1 "an execve that fails"
assert_eq "$(stat w renamed) $(stat w gone) $(stat w cleared)" "0 0 0" "renamed, gone, cleared"
sums_hold w
control -w

# said WORD PARAMETER...: the error message quotes WORD.
said() {
	_word=$1
	shift
	refused_line "bad syscall $*" ": \"$_word\""
}

# Another ABI: number 20 is getpid() there, but another call in the native ABI, writev() on x86.
# The kernel of tests/run-debug has only one ABI.
other_abi() {
	control 'w syscall threshold=0 abi=compat'
	control 'n syscall threshold=0 calls=getpid'
	control 'v syscall threshold=0 calls=writev comm=python3'
	exec 3<$LT/n/alerts
	calls compat 3
	control 'n syscall enabled=0'
	alerts_of n /tmp/alerts
	exec 3<&-
	cat /tmp/alerts
	assert_eq "$(grep " tid=$tid " /tmp/alerts | grep -c " call=getpid number=20 abi=compat .* ret=$tid$")" 3 "calls by the entry for 32-bit programs"
	if [ "$(uname -m)" = x86_64 ]; then
		# Python makes this call on its own, too.
		[ "$(grep " tid=$tid " /tmp/alerts | grep -c " call=getpid number=$(number_of getpid) abi=native .* ret=$tid$")" -ge 3 ] || fail "calls by the native entry"
		assert_eq "$(stat w ended) $(stat v ended)" "3 0" "calls of abi=compat, and of writev"
		# A waiting call that only 32-bit programs have.
		control 's syscall threshold=0 abi=compat waits=0'
		calls compat 2 1
		assert_eq "$(stat w ended) $(stat s ended)" "6 2" "with sigsuspend, and without"
		control -s
	else
		# A separate program, which ends with exit().
		assert_eq "$(stat w started) $(stat w ended) $(stat v ended)" "4 3 0" "calls of abi=compat, and of writev"
		said x32 abi=x32
	fi
	for name in w n v; do control -$name; done
}
case $(uname -r) in *-debug) ;; *) other_abi ;; esac

# A reader of alerts makes calls: these raise no alerts.
control 'w syscall threshold=0 wakeup_interval=0 comm=cat'
cat $LT/w/alerts >/tmp/alerts &
# The reader has read the alerts about its own start.
wait_until 10 grep -q latency_tracker /proc/$!/stack
before=$(stat w alerts)
sleep 1
assert_eq "$(stat w alerts)" "$before" "alerts about the reader: $(tail -n 3 /tmp/alerts)"
control -w

# Lists.
control 'w syscall calls=write,read'
assert_eq "$(cat $LT/w/calls)" write,read "a list"
echo '!futex,io_uring_enter,ugetrlimit' >$LT/w/calls
assert_eq "$(cat $LT/w/calls)" '!futex,io_uring_enter,ugetrlimit' "all but a list"
echo all >$LT/w/calls
assert_eq "$(cat $LT/w/calls)" all "all"
said reed calls=read,reed,write
said 'read,,write' calls=read,,write
said '!' 'calls=!'
said READ calls=READ
said munmap calls=read,write,open,close,stat,fstat,lstat,poll,lseek,mmap,mprotect,brk,munmap
said i386 abi=i386
said on stacks=on
said 2 waits=2
refused "stacks cannot be changed" control "w syscall stacks=switch"
unload_module
