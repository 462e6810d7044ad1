# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# 100 times, an instance is created, tracks requests, and is removed while requests are in flight,
# some of which have timed out. No memory leaks, and the requests end normally.
# kernels: stock
# long: rt
# cpus: 2
# timeout: 240

. /lt/tests/lib.sh
. /lt/tests/block.sh

load_module
null_disk disk 100000
null_disk slow 100000000
touch /tmp/run
# There are always some requests in flight.
load() { while [ -e /tmp/run ]; do reads slow 10 "$1"; done; }
for n in 1 2 3 4; do load $((n * 100)) & done

# kernel_memory: print the kernel memory that instances could leak, in KiB: unreclaimable slab,
# vmalloc, per-CPU.
kernel_memory() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	awk '/^(SUnreclaim|VmallocUsed|Percpu):/ { n += $2 } END { print n }' /proc/meminfo
}

timed_out=0 cleared=0
once() {
	control 'one block threshold=1ms timeout=5ms events=2000 wakeup_interval=0'
	reads disk 2
	sleep 0.02
	timed_out=$((timed_out + $(stat one timed_out)))
	# Requests in flight are dropped with the instance; if it is disabled first, they are counted.
	if [ $(($1 % 2)) = 0 ]; then
		echo 0 >$LT/one/enabled
		cleared=$((cleared + $(stat one cleared)))
		sums_hold one
		[ "$(stat one started)" -ge 2 ] || fail "round $1: nothing was tracked"
	fi
	control -one
	[ ! -e $LT/one ] || fail "round $1: $LT/one is still there"
}

for round in $(seq 20); do once "$round"; done
before=$(kernel_memory)
for round in $(seq 21 100); do once "$round"; done
rm /tmp/run
wait
after=$(kernel_memory)
echo "timed out $timed_out, cleared $cleared; unreclaimable kernel memory: $before KiB after 20 rounds, $after KiB after 100"
[ "$timed_out" -gt 0 ] || fail "nothing had timed out"
[ "$cleared" -gt 0 ] || fail "nothing was in flight"
# One instance of 2000 events takes 300 KiB and more. A leak of each instance, or of 13 KiB in each
# round, would exceed this limit.
[ $((after - before)) -lt 1024 ] || fail "$((after - before)) KiB leaked in 80 rounds"
unload_module
