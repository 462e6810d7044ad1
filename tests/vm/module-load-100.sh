# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Loading, working and unloading 100 times leaves nothing behind: no entry, no probe, no memory.
# kernels: stock rt
# cpus: 2
# timeout: 720

. /lt/tests/lib.sh
. /lt/tests/block.sh

null_disk disk 100000

# Half of the time would go to grace periods. (The sequence puts it back.)
echo 1 >/sys/kernel/rcu_expedited

# Kernel memory that a module could leak, in KiB: slab that cannot be reclaimed, vmalloc, per-CPU.
kernel_memory() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
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

# The memory size says nothing on a kernel that keeps freed memory back; there kmemleak searches for
# leaks.
if [ "$(many 100 20)" = 20 ]; then
	for round in $(seq 20); do once "$round"; done
	exit
fi
for round in $(seq 20); do once "$round"; done
before=$(kernel_memory)
for round in $(seq 21 100); do once "$round"; done
sleep 1
after=$(kernel_memory)
echo "unreclaimable kernel memory: $before KiB after 20 rounds, $after KiB after 100"
# One instance of 20000 events alone takes megabytes; 80 lost rounds could not hide below this.
[ $((after - before)) -lt 1024 ] || fail "$((after - before)) KiB leaked in 80 rounds"
