# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Paths come from a thousand timers, one timer that wakes many tasks, a flood of packets, disks, and
# hundreds of short tasks, while CPUs go offline and return. Some instances have a pool that is far
# too small. Each path that started, and each that found no room, is counted, and after the storm
# none is left. Then the module is unloaded three times in the middle of such a storm.
# kernels: rt
# long: stock
# long-part: 2,000 short tasks instead of 400
# cpus: 4
# root: full
# timeout: 400
# worth: each storm must be long enough to exhaust the pool

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/net.sh

# The number of short tasks.
few=400
[ "${LT_LONG:-}" != 1 ] || few=2000
storms() { python3 /lt/tests/storms.py "$@"; }

null_disk nullb0 300000
# A kernel that checks every memory access may lack veth.
net=1
modprobe veth 2>/dev/null || net=
if [ -n "$net" ]; then between_namespaces; elif in_time; then fail "no veth"; fi

# storm TIMES TASKS: start all loads at once, in the background. $storm has their pids, except for
# $tasks, which starts the short tasks.
storm() {
	storms timers $(($1 * 1500)) & storm=$!
	storms crowd $(($1 * 15)) & storm="$storm $!"
	# the process itself, not a shell that runs it
	python3 /lt/tests/storms.py tasks "$2" & tasks=$!
	storms hotplug "$1" & storm="$storm $!"
	: >/tmp/ping
	[ -z "$net" ] || { /lt/guest/busybox ping -A -q -c $(($1 * 100)) 10.9.0.2 >/tmp/ping & storm="$storm $!"; }
	disks $(($1 * 100)) >/tmp/fio & storm="$storm $!"
}
# disks TIMES: read from two disks. A kernel that checks every memory access may lack shared memory
# for fio.
disks() {
	if [ -e /proc/sysvipc/shm ]; then
		fio --readonly --rw=randread --bs=4k --direct=1 --ioengine=libaio --iodepth=4 --size=4m --number_ios="$1" \
			--name=real --filename=/dev/vda --name=timer --filename=/dev/nullb0
	else
		! in_time || fail "no shared memory"
		reads nullb0 "$1" & reads vda "$1"
		wait $!
	fi
}
# over: wait for the end of the storm; each part must succeed.
over() {
	for _pid in $storm; do wait "$_pid" || fail "a part of the storm ended with $?: $(cat /tmp/fio /tmp/ping)"; done
}

# A threshold of 0 makes an alert of each chain.
load_module
ends='switch user blocked'
for end in $ends; do control "$end tree threshold=0 timeout=10s ring=64 end=$end"; done
control "parts tree threshold=0 timeout=10s ring=64 interference=1"
control "few tree threshold=0 timeout=10s ring=64 events=16 max_events=16"
storm "$(many 2 1)" "$(many "$few" 150)"
storm="$storm $tasks"
over
for name in $ends parts few; do
	wait_until 30 stat_is "$name" pending -eq 0
	control "$name tree enabled=0"
	cat "$LT/$name/stats"
	sums_hold "$name"
	assert_eq "$(stat "$name" free)" "$(stat "$name" capacity)" "$name: cells of the pool"
	assert_eq "$(stat "$name" replaced) $(stat "$name" negative)" "0 0" "$name: lost"
	assert_eq "$(stat "$name" alerts)" $(($(stat "$name" ended) + $(stat "$name" timed_out))) "$name: alerts"
done
[ "$(stat switch ended)" -ge 200 ] || fail "only $(stat switch ended) chains"
# One interrupt wakes four times as many tasks as this pool has events.
[ "$(stat few full)" -ge 1 ] || fail "there was always room"
unload_module

# The short tasks continue until the module has been unloaded.
storm 1 1000000
for end in $ends; do
	load_module
	control "t tree threshold=0 timeout=10s ring=64 end=$end interference=1"
	wait_until 30 stat_is t started -ge 50
	kill -0 "$tasks" || fail "the storm was over before the module was unloaded"
	unload_module
done
kill "$tasks"
wait "$tasks" || assert_eq $? 143 "exit status of the short tasks"
over
[ -z "$net" ] || ip netns del inner
