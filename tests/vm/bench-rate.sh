# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker bench rate` counts the events that LTTng loses: none if the events fit into the buffers. If they do
# not fit while the consumer sleeps, many are lost, and LTTng and the trace report the loss, too. Rates are not judged.
# However the run ends, no session, daemon or trace is left. A daemon that was running before stays.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root has no LTTng
# timeout: 300

. /lt/tests/lib.sh
need lttng

helper() { python3 /lt/tests/bench_rate.py "$@"; }
rate() { latency-tracker bench rate -c 1 --json --repeat 1 "$@" >/tmp/json 2>/tmp/said; }
# gives STATUS OPTION...: run bench rate and check its exit status.
gives() {
	_want=$1 _got=0
	shift
	rate "$@" || _got=$?
	assert_eq "$_got" "$_want" "bench rate $*: $(cat /tmp/said)"
}
no_trace() { [ -z "$(ls -d /var/tmp/latency-tracker-rate-* 2>/dev/null)" ]; }
no_daemon() { ! pgrep lttng-sessiond >/dev/null; }
nothing_left() {
	wait_until 120 no_daemon
	wait_until 10 no_trace
}
sessions() { lttng --no-sessiond --mi xml list 2>/dev/null | grep -o '<session>' | wc -l; }
records() { lttng --no-sessiond --mi xml list 2>/dev/null | grep -q '<enabled>true</enabled>'; }
# begin OPTION...: start bench rate, and wait until it records.
begin() {
	latency-tracker bench rate -c 1 "$@" >/tmp/out 2>/tmp/said & pid=$!
	wait_until 120 records
}
# ends SIGNAL: end bench rate by a signal, and check its exit status.
ends() {
	kill "-$1" $pid
	_got=0
	wait $pid || _got=$?
	case $1 in
		KILL) assert_eq $_got 137 "exit status" ;;
		*)
			assert_eq $_got 1 "exit status: $(cat /tmp/said)"
			grep -q '^ended early' /tmp/out || fail "SIG$1: $(cat /tmp/out)"
			;;
	esac
}

# These options are refused before anything is changed.
gives 1 -b 4096x1G
grep -q 'more than four fifths of the' /tmp/said || fail "$(cat /tmp/said)"
PATH=/nowhere /lt/bin/latency-tracker bench rate -b 2x4K 2>/tmp/said && fail "without lttng"
grep -q 'install the package lttng-tools' /tmp/said || fail "$(cat /tmp/said)"
gives 1 -b 2x4K --traces /nowhere
gives 1 -b 2x4K --read-timer 0ms
refused "two CPUs" latency-tracker bench rate -c 0-1
nothing_left

# The command is killed while a daemon that it has started is running.
begin -r 100 -t 1h -b 8x64K
ends KILL
nothing_left

# There is a foreign daemon with a session.
lttng-sessiond --daemonize
lttng create other --output=/tmp/other
begin --kind kernel -r 100 -t 1h -b 8x64K
assert_eq "$(sessions)" 2 "sessions while it runs"
ends INT

# Events that fit into the buffers are not lost, read or not. This holds for a search, too, which
# starts with the highest rate.
gives 0 --kind kernel --rate 500 --events 200 -b 8x64K --read-timer 200ms
helper /tmp/json kind=kernel verdict=found lossless events=200 phase=paced || fail "$(cat /tmp/json)"
gives 0 --events 1000 -b 8x64K --read-timer 200ms,4ms
helper /tmp/json kind=syscall verdict=no_loss lossless modes=2 events=1000 || fail "$(cat /tmp/json)"

# Events that do not fit are lost while the consumer sleeps, and LTTng and the trace report it. The consumer would wake
# often enough only if these runs took a minute.
for kind in syscall kernel; do
	gives 2 --kind $kind --rate full --events 10000 -b 2x4K --read-timer 2s
	helper /tmp/json kind=$kind verdict=lossy lossy events=10000 phase=full || fail "$(cat /tmp/json)"
done

assert_eq "$(sessions)" 1 "sessions"
lttng destroy other
no_trace || fail "a trace is left"
