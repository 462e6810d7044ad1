# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Repeated loading, use and unloading leaves nothing behind: no entry, no probe, no memory. The
# limit for a leak depends on the number of rounds, so that 13 KiB per round are found in any number
# of rounds.
# kernels: stock
# long: rt
# long-part: 100 rounds instead of 40
# cpus: 2
# arm64: yes
# timeout: 720
# worth: a leak in loading or unloading shows only after many rounds

. /lt/tests/lib.sh
. /lt/tests/block.sh

null_disk disk 100000

# Otherwise, grace periods would take half of the time. (tests/sequence.sh restores the setting.)
echo 1 >/sys/kernel/rcu_expedited

# kernel_memory: print the kernel memory that a module could leak, in KiB: unreclaimable slab,
# vmalloc, per-CPU. Empty slabs are kept for later objects, and freed memory may wait for a worker.
kernel_memory() {
	sleep 1
	sync
	echo 3 >/proc/sys/vm/drop_caches
	for _cache in /sys/kernel/slab/*/shrink; do echo 1 >"$_cache"; done
	awk '/^(SUnreclaim|VmallocUsed|Percpu):/ { n += $2 } END { print n }' /proc/meminfo
}

once() {
	load_module
	control 'a block threshold=50us events=4096'
	control 'b block threshold=10s dev=disk events=20000'
	follow $LT/alerts /dev/null
	cat $LT/a/wakeup >/dev/null &
	reads disk 5
	assert_eq "$(stat b started)" 5 "round $1: started"
	[ $(($1 % 2)) = 0 ] || control '-a'
	unload_module
	wait
	[ ! -e $LT ] || fail "round $1: $LT is still there"
}

# Memory in use proves nothing on a kernel that quarantines freed memory. kmemleak searches for
# leaks there.
if [ "$(many 100 20)" = 20 ]; then
	for round in $(seq 20); do once "$round"; done
	exit
fi
first=8 last=40
[ "${LT_LONG:-}" != 1 ] || { first=20 last=100; }
for round in $(seq $first); do once "$round"; done
before=$(kernel_memory)
for round in $(seq $((first + 1)) $last); do once "$round"; done
after=$(kernel_memory)
# One instance of 20000 events takes megabytes. 80 rounds may leave a megabyte, fewer rounds proportionally less.
most=$(((last - first) * 1024 / 80))
echo "unreclaimable kernel memory: $before KiB after $first rounds, $after KiB after $last; up to $most KiB may be new"
[ $((after - before)) -lt $most ] || fail "$((after - before)) KiB leaked in $((last - first)) rounds"
