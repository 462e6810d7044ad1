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
