# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# recorders.sh: `latency-tracker record` in the background, for tests inside the virtual machine. Sourced after lib.sh.

trap '[ $? -eq 0 ] || tail -n 25 /tmp/*.log' EXIT

# start LOG ARGUMENT...: start a recorder, $!, and wait until it is armed. The words in $RECORDER precede its command.
start() {
	_log=/tmp/$1.log
	shift
	: >"$_log"
	${RECORDER:-} latency-tracker record --cooldown 0s "$@" >"$_log" 2>&1 &
	in_a_while grep -q '^armed' "$_log"
}

# ended PROCESS LOG: wait for a recorder that has reported alerts, and print its log.
ended() {
	wait "$1" && status=0 || status=$?
	cat "/tmp/$2.log"
	assert_eq "$status" 2 "the exit status of $2"
}

# sessions: print the names of the recorders' sessions.
sessions() { lttng --no-sessiond list 2>/dev/null | grep -o 'latency-tracker-[a-z]*-[0-9]*' | sort | xargs; }

# session_of INSTANCE: print the session of this instance's recorder.
session_of() { sessions | tr ' ' '\n' | grep "^latency-tracker-$1-" || fail "$1 has no session"; }

# captured DIRECTORY NUMBER: whether this capture is complete.
captured() { [ -e "$1/$2/alert.json" ]; }

# traced TRACE SECTOR: check that the trace has the request of the alert.
traced() {
	babeltrace2 "$1" | grep "block_rq_complete: .* sector = $2," >/dev/null || fail "$1 has no request of sector $2"
}
