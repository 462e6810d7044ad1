# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The time of day is set forward and back while calls are in flight, and the machine is suspended
# while another call is in flight. Delays and timeouts are in CLOCK_MONOTONIC: a delay is at most
# 100 ms shorter than the time that the sleeper itself measures, and never longer; a timeout of 2 s
# is reported within 2.5 s. A timer of the clock that was set is not reported as late.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# icount: 1
# debug: no, that kernel cannot suspend
# arm64: no, suspending its machine is untested
# alone: it sets the time of day and suspends the machine
# timeout: 180

. /lt/tests/lib.sh

# Sleeps for 4 s; prints its thread ID, and how long the sleep took in ns of CLOCK_MONOTONIC and of CLOCK_BOOTTIME. With
# a word, it sleeps until a time of day an hour away.
cat >/tmp/sleeper.py <<-'END'
	import sys, threading, time
	clocks = time.CLOCK_MONOTONIC, time.CLOCK_BOOTTIME
	def read():
	    return [time.clock_gettime_ns(clock) for clock in clocks]
	before = read()
	if sys.argv[1:]:
	    import ctypes
	    until = (ctypes.c_long * 2)(int(time.time()) + 3600, 0)
	    ctypes.CDLL(None).clock_nanosleep(time.CLOCK_REALTIME, 1, until, None)
	else:
	    time.sleep(4)
	after = read()
	print(threading.get_native_id(), *(b - a for a, b in zip(before, after)))
END

# slept INSTANCE FILE: check the alerts of the thread in FILE: one at its timeout, and one at its
# end with the delay that it measured.
slept() {
	read -r tid monotonic boot <"$2"
	grep " tid=$tid " /tmp/"$1" >/tmp/its
	cat "$2" /tmp/its
	assert_eq "$(field reason </tmp/its | xargs)" "timeout late" "alerts of $1"
	timeout=$(sed -n 1p /tmp/its | field delay) delay=$(sed -n 2p /tmp/its | field delay)
	[ "$timeout" -ge 2000000000 ] && [ "$timeout" -lt 2500000000 ] || fail "$1: the timeout of 2 s came after $timeout ns"
	[ "$delay" -le "$monotonic" ] && [ "$delay" -gt $((monotonic - 100000000)) ] || fail "$1: $delay ns, by itself $monotonic ns"
}
sleeps() { # FILE [WORD]
	python3 /tmp/sleeper.py ${2:-} >"$1" & sleeper=$!
	wait_until 20 grep -q clock_nanosleep $LT/w/pending
}

load_module
python3 -c 'import ctypes, threading, time'
control 'w syscall threshold=1s timeout=2s calls=clock_nanosleep comm=python3'
control 'timers tree threshold=2s origin=timer'
exec 3<$LT/w/alerts 4<$LT/timers/alerts

echo "== the time of day is set"
sleeps /tmp/forth
shift_date 1
sleep 1
shift_date -2
wait $sleeper
sleeps /tmp/until until
sleep 3
shift_date 1
wait $sleeper

echo "== suspend"
sleeps /tmp/suspended
suspend_for 1
wait $sleeper

control 'w syscall enabled=0'
control 'timers tree enabled=0'
busybox timeout 2 cat <&3 >/tmp/w || :
busybox timeout 2 cat <&4 >/tmp/timers || :
exec 3<&- 4<&-
for file in forth until suspended; do slept w /tmp/$file; done
read -r _ monotonic boot </tmp/suspended
[ $((boot - monotonic)) -gt 1000000000 ] || fail "suspended for $((boot - monotonic)) ns"
cat /tmp/timers
assert_eq "$(stat timers alerts)" 0 "timers that fired 2 s late"
unload_module
