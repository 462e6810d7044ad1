# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# bench.sh: waits for `latency-tracker bench` and ends it, for tests inside the virtual machine.
# Sourced after lib.sh.

helper() { python3 /lt/tests/bench.py "$@"; }

# ended PID STATUS: wait for the command and check its exit status; /tmp/said has its standard error. PID is the
# command itself, not a shell that waits for it.
ended() {
	_got=0
	wait "$1" || _got=$?
	assert_eq "$_got" "$2" "exit status: $(cat /tmp/said)"
}

# signalled PID SIGNAL [PATTERN]: check that the signal ends the command. Unless it is KILL, the thread under test ends
# within 100 ms, the command ends with success, and /tmp/out then has a line that matches PATTERN.
signalled() {
	_took=$(helper ends "$1" "$2") || fail "see above"
	if [ "$2" = KILL ]; then
		ended "$1" 137
		return
	fi
	ended "$1" 0
	[ "$_took" -le 100 ] || fail "SIG$2 ended it after $_took ms"
	[ $# -eq 2 ] || grep -q "$3" /tmp/out || fail "SIG$2: $(cat /tmp/out)"
}

# hogged COMMAND...: start the command while a task with a higher priority has CPU 1, and wait until a thread of the
# command waits for that CPU. The command's standard output is in /tmp/out, its standard error in /tmp/said. -> $pid
hogged() {
	/usr/bin/chrt -f 20 /usr/bin/taskset 2 sh -c 'while :; do :; done' & _hog=$!
	wait_until 10 sh -c "/usr/bin/taskset -p $_hog | grep -q ': 2$'"
	"$@" >/tmp/out 2>/tmp/said & pid=$!
	wait_until 10 waits
}

# end_hog: end that task.
end_hog() {
	kill "$_hog"
	wait "$_hog" || :
}

# waits: whether a thread of the command, other than the main one, which watches, has moved to CPU 1.
waits() {
	for _task in /proc/$pid/task/*; do
		[ "$_task" != /proc/$pid/task/$pid ] || continue
		! grep -q '^Cpus_allowed_list:.1$' "$_task/status" || return 0
	done
	return 1
}
