# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# bench.sh: waits for `latency-tracker bench` and ends it, for tests inside the virtual machine.
# Sourced after lib.sh.

helper() { python3 /lt/tests/bench.py "$@"; }

# ended PID STATUS: wait for the command and check its exit status; its output is in /tmp/said. PID is the command
# itself, not a shell that waits for it.
ended() {
	_got=0
	wait "$1" || _got=$?
	assert_eq "$_got" "$2" "exit status: $(cat /tmp/said)"
}

# signalled PID SIGNAL [PATTERN]: check that the signal ends the command. Unless it is KILL, the command ends within 100 ms,
# and with success; /tmp/out then has a line that matches PATTERN.
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
