# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Compared with cyclictest: for each sample there is an alert of the sample's timer, whose start is
# exactly the time that cyclictest had requested, and the sampling thread has no other alerts. Only a
# timer that is due as soon as it is started may have no alert. The delay until the thread is
# switched in is never longer than the sample, or than the delay until it returns to user space. The
# difference is the cost of one switch to user space.
#
# The comparison uses a real-time thread and an ordinary thread, whose timers PREEMPT_RT calls in
# different places. It is made on a quiet machine, and on a machine whose CPU is busy and repeatedly
# keeps interrupts off for 3 ms.
#
# The machine's clock counts instructions, so other load on the host does not matter. The machine
# has one CPU: the emulator would alternate between two, which looks like disabled interrupts.
# kernels: rt
# long: stock
# cpus: 1
# root: full
# icount: 1
# debug: no, sanitizers delay the return to user space more than the comparison allows
# kcsan: no, as debug
# arm64: no, lt_causes can send NMIs only on x86
# timeout: 200

. /lt/tests/lib.sh

load_module
insmod /lt/lt_causes.ko us=3000
interval=2500000

# LOAD_load PROCESS LOOPS: run the load until the process ends.
quiet_load() { wait "$1"; }
# A computing task, and periods with interrupts off, from before the first sample until most samples are taken.
disturbed_load() {
	sh -c 'while :; do :; done' &
	_busy=$!
	for _ in $(seq 200); do
		stat_is s alerts -lt "$2" || break
		echo hard >/sys/module/lt_causes/parameters/run
	done
	_status=0
	wait "$1" || _status=$?
	kill $_busy
	wait $_busy || :
	return $_status
}

# samples LOOPS LOAD: take this many samples of each kind of thread, in files named after the load and the kind.
samples() {
	for policy in fifo other; do
		control "s tree threshold=0 origin=timer comm=cyclictest ring=4096"
		control "u tree threshold=0 origin=timer comm=cyclictest ring=4096 end=user"
		exec 3<$LT/s/alerts 4<$LT/u/alerts
		case $policy in fifo) priority=--priority=90 ;; *) priority='' ;; esac
		# shellcheck disable=SC2086 # one option, or none
		cyclictest --threads=1 --policy=$policy $priority --interval=$((interval / 1000)) --loops="$1" --verbose \
			--nsecs --mlockall >/tmp/$policy-"$2".samples &
		"$2_load" $! "$1" || fail "cyclictest ended with $?"
		alerts_of s /tmp/$policy-"$2".switches
		exec 3<&4
		alerts_of u /tmp/$policy-"$2".returns
		exec 3<&- 4<&-
		assert_eq "$(grep -c '^ *0:' /tmp/$policy-"$2".samples)" "$1" "samples"
		for name in s u; do
			control "$name tree enabled=0"
			sums_hold $name
			for key in full replaced negative alerts_lost unserved; do assert_eq "$(stat $name $key)" 0 "$key"; done
			control -$name
		done
	done
}
# Warm up: the first run of anything is slow under emulation.
cyclictest --threads=1 --loops=5 --quiet --mlockall
samples 60 quiet
samples 100 disturbed
rmmod lt_causes
unload_module
cd /tmp || exit
python3 /lt/tests/cyclictest.py $interval 50000 fifo-quiet=90 other-quiet=90 fifo-disturbed=90 other-disturbed=90 || {
	cp /tmp/*.samples /tmp/*.switches /tmp/*.returns /lt/out
	fail "cyclictest has seen something else"
}
# Interrupts that were off delayed some samples, of both kinds.
for policy in fifo other; do
	late=$(awk -F: 'NF == 3 && $3 > 1000000' /tmp/$policy-disturbed.samples | wc -l)
	[ "$late" -ge 5 ] || fail "only $late samples of $policy were late"
done
