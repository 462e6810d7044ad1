# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A handler on one CPU wakes a task on another CPU very often: while the task sleeps, while it is
# awake, just before its switch to sleep is reported, and while it is switched in. Each wake chain
# reaches its end, except doubtful chains whose task turned out to be awake. No wake chain is lost,
# replaced or left behind, and none is reported as hanging.
# kernels: stock rt
# cpus: 2
# root: full
# arm64: no, lt_causes can send NMIs only on x86
# timeout: 300

. /lt/tests/lib.sh

load_module
/usr/bin/taskset -p 1 $$ >/dev/null
insmod /lt/lt_causes.ko us=0 rounds=20000
parameters=/sys/module/lt_causes/parameters
line=$(cat $parameters/number)

for end in switch blocked; do
	# A call that the handler queues for the other CPU would add a chain, which is gone once the call is made.
	control "t tree threshold=3600s timeout=10s origin=irq irq=$line comm=lt_target end=$end hops=!work,call,wheel"
	# The task must be awake at some wakeups and asleep at others, or nothing is tested. How often
	# depends on the host.
	storms=0
	until [ "$(stat t started)" -ge 1000 ] && [ "$(stat t awake)" -ge 1 ] &&
		[ $(($(stat t merged) + $(stat t awake))) -ge 100 ]; do
		storms=$((storms + 1))
		[ $storms -le 10 ] || { cat $LT/t/stats; fail "it was hardly ever awake"; }
		/usr/bin/taskset -c 1 sh -c 'printf lt_target >/proc/$$/comm; echo storm >'$parameters'/run; sleep 0.05'
		wait_until 10 stat_is t pending -eq 0
	done
	control "t tree enabled=0"
	cat $LT/t/stats
	sums_hold t
	assert_eq "$(stat t started)" "$(($(stat t ended) + $(stat t awake)))" "chains that have come to their end"
	assert_eq "$(stat t gone)" "$(stat t awake)" "chains that have gone"
	assert_eq "$(stat t replaced) $(stat t timed_out) $(stat t negative) $(stat t full)" "0 0 0 0" "lost"
	control -t
done
rmmod lt_causes
unload_module
