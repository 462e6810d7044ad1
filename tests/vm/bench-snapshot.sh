# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker bench loop --snapshot` saves LTTng's flight recorder at a peak, and the explanation names the cause
# of the peak: a handler of known length, and, where softirqs preempt tasks, a softirq. However the loop ends, no
# session, daemon or instance is left.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# icount: 1
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root has no LTTng
# timeout: 400

. /lt/tests/lib.sh
. /lt/tests/bench.sh
need lttng

# nothing_left: check that no session, daemon or instance is left.
nothing_left() {
	wait_until 60 sh -c '! pgrep lttng-sessiond >/dev/null'
	[ ! -e $LT ] || wait_until 10 sh -c "[ \"\$(wc -l <$LT/control)\" -eq 0 ]"
}

# The loop has CPU 1 to itself.
/usr/bin/taskset -p 1 $$ >/dev/null
load_module
insmod /lt/lt_causes.ko us=30000
line=$(cat /sys/module/lt_causes/parameters/number)

# peak HOW NAME: cause peaks of 30 ms until there is a capture. Its explanation must match NAME.
peak() {
	: >/tmp/said
	latency-tracker bench loop -c 1 --json -d 1h -t 20ms --slice 500ms --snapshot /tmp/peaks --max-snapshots 1 \
		>/tmp/json 2>/tmp/said & pid=$!
	helper disturb /tmp/said "how=$1" /tmp/peaks/0001/alert.json || fail "see above: $(cat /tmp/said)"
	kill -INT $pid
	ended $pid 2
	helper report /tmp/json "captured=$2" || fail "see above"
	nothing_left
	# `explain` prints the same explanation later.
	latency-tracker explain /tmp/peaks/0001 >/tmp/later || fail "explain: exit status $?"
	grep -Eq "$2" /tmp/later || fail "explain: $(cat /tmp/later)"
	rm -r /tmp/peaks
}
peak handler "lt_cause \(interrupt $line\)"
case $(uname -r) in
	# On PREEMPT_RT, ksoftirqd runs softirqs, and must wait until the loop ends.
	*-rt-*) ;;
	*) peak tasklet 'softirq HI' ;;
esac
rmmod lt_causes

# Each of these signals ends the loop in a slice with the recorder, or in one without.
for signal in TERM KILL; do
	: >/tmp/said
	latency-tracker bench loop -c 1 -d 1h -t 1h --slice 1h --snapshot /tmp/peaks --arm >/tmp/out 2>/tmp/said & pid=$!
	helper runs $pid || fail "SIG$signal: $(cat /tmp/said)"
	helper ends $pid $signal >/dev/null || fail "see above"
	case $signal in
		KILL) ended $pid 137 ;;
		*) ended $pid 0 ;;
	esac
	nothing_left
done
unload_module
