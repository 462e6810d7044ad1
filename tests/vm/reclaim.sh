# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Each reclaim for a cgroup at its limit, each direct reclaim and each compaction of a zone is an
# event: there are as many as ftrace shows, and no more direct reclaims than the kernel itself
# counts. An alert has the kind, the order, the number of pages, and the stack of the allocation.
# Filtered kinds are not tracked.
# kernels: stock
# long: rt
# cpus: 2
# memory: 512
# root: full
# timeout: 240
# abi-alert: echo 1 >/proc/sys/vm/compact_memory
# abi-has:  stack="

. /lt/tests/lib.sh
. /lt/tests/block.sh

trace=/sys/kernel/tracing
cgroups=/sys/fs/cgroup
grep -qw memory $cgroups/cgroup.controllers || skip "no memory cgroups"
echo +memory >$cgroups/cgroup.subtree_control
mkdir -p $cgroups/small
load_module
null_disk disk 0 size=2048

# follow_points POINT...: clear ftrace and record these tracepoints.
follow_points() {
	echo 0 >$trace/tracing_on
	echo >$trace/set_event
	echo 8192 >$trace/buffer_size_kb
	echo >$trace/trace
	for _point; do echo 1 >"$trace/events/$_point/enable"; done
	echo 1 >$trace/tracing_on
}
# passed POINT: print how often ftrace has recorded it.
passed() { grep -c " $1: " $trace/trace || :; }
# is_as_traced INSTANCE BEGIN END: check that the instance has as many starts and ends as ftrace.
is_as_traced() {
	echo 0 >$trace/tracing_on
	control "$1 reclaim enabled=0"
	grep ": $2: \|: $3: " $trace/trace | tail -n 2 || :
	assert_eq "$(stat "$1" started) $(stat "$1" ended)" "$(passed "$2") $(passed "$3")" "$1: begun and ended"
	assert_eq "$(stat "$1" full) $(stat "$1" negative) $(stat "$1" gone)" "0 0 0" "$1: lost"
	echo >$trace/set_event
}

# A cgroup at its limit: a task that charges a page reclaims.
control 'memcg reclaim threshold=0 kind=memcg comm=dd ring=16384'
control 'direct reclaim threshold=0 kind=direct comm=dd ring=16384'
control 'other reclaim threshold=0 kind=memcg comm=other'
follow_points vmscan/mm_vmscan_memcg_reclaim_begin vmscan/mm_vmscan_memcg_reclaim_end
echo 20M >$cgroups/small/memory.max
# shellcheck disable=SC2016 # for the other shell
sh -c 'echo $$ >/sys/fs/cgroup/small/cgroup.procs; exec dd if=/dev/disk of=/dev/null bs=1M count=100' 2>/dev/null
# The task ends after its last reclaim.
is_as_traced memcg mm_vmscan_memcg_reclaim_begin mm_vmscan_memcg_reclaim_end
[ "$(stat memcg ended)" -gt 10 ] || fail "only $(stat memcg ended) reclaims"
assert_eq "$(stat memcg alerts)" "$(stat memcg ended)" "alerts"
assert_eq "$(stat other alerts) $(stat direct alerts)" "0 0" "alerts of others"
cat $LT/memcg/wakeup >/tmp/alerts
head -n 2 /tmp/alerts
assert_eq "$(grep -cv ' reason=threshold .* comm="dd" kind=memcg order=0 pages=[0-9]* stack="' /tmp/alerts || :)" 0 "other alerts"
grep -q ' stack="[^"]*try_charge_memcg+' /tmp/alerts || fail "who allocated?"
if grep -q 'latency_tracker\|__traceiter' /tmp/alerts; then fail "our own functions"; fi
# The total of pages matches ftrace's.
sum() { awk '{ sum += $1 } END { print sum }'; }
assert_eq "$(sed -n 's/.* pages=\([0-9]*\) .*/\1/p' /tmp/alerts | sum)" \
	"$(sed -n 's/.* nr_reclaimed=\([0-9]*\).*/\1/p' $trace/trace | sum)" "pages"
for name in memcg other; do control -$name; done

# The zones are compacted. Each compaction is an event of the task that requested it, without an
# order.
control 'zones reclaim threshold=0 kind=compaction comm=compact ring=16384'
control 'nobody reclaim threshold=0 kind=compaction kthreads=0 comm=other'
follow_points compaction/mm_compaction_begin compaction/mm_compaction_end compaction/mm_compaction_migratepages
# A process of this name requests the compaction, with memory to move.
cp "$(command -v python3)" /tmp/compact
/tmp/compact -c '
pages = [bytearray(4096) for _ in range(4000)]
del pages[::2]
open("/proc/sys/vm/compact_memory", "w").write("1")'
# kcompactd may compact, too.
echo 0 >$trace/tracing_on
grep '^ *compact-' $trace/trace >/tmp/trace
is_as_traced_lines() { grep -c ": $1: " /tmp/trace || :; }
control 'zones reclaim enabled=0'
tail -n 2 /tmp/trace
zones=$(is_as_traced_lines mm_compaction_begin)
[ "$zones" -gt 0 ] || fail "nothing was compacted"
assert_eq "$(stat zones started) $(stat zones ended)" "$zones $(is_as_traced_lines mm_compaction_end)" "zones compacted"
cat $LT/zones/wakeup >/tmp/alerts
head -n 2 /tmp/alerts
assert_eq "$(grep -c ' comm="compact" kind=compaction order=-1 pages=[0-9]* stack="' /tmp/alerts)" "$zones" "alerts"
assert_eq "$(sed -n 's/.* pages=\([0-9]*\) .*/\1/p' /tmp/alerts | sum)" \
	"$(sed -n 's/.* nr_migrated=\([0-9]*\).*/\1/p' /tmp/trace | sum | sed 's/^$/0/')" "pages moved"
assert_eq "$(stat nobody started)" 0 "compactions of others"
for name in zones nobody direct; do control -$name; done

# Memory is short: tasks that read faster than kswapd frees memory reclaim it themselves. A reclaim
# may have several tries, and the kernel counts a stall for each.
stalls() { awk '/^allocstall_/ { sum += $2 } END { print sum }' /proc/vmstat; }
follow_points vmscan/mm_vmscan_direct_reclaim_begin vmscan/mm_vmscan_direct_reclaim_end
before=$(stalls)
control 'short reclaim threshold=0 kind=direct ring=16384'
hog() {
	python3 -c '
import mmap, sys, time
free = [int(l.split()[1]) for l in open("/proc/meminfo") if l.startswith("MemAvailable")][0]
held = mmap.mmap(-1, max(free - 60000, 4096) * 1024)
for at in range(0, len(held), 4096):
    held[at] = 1
open("/tmp/held", "w").close()
time.sleep(600)' &
	hog=$!
	wait_until 60 test -e /tmp/held
}
hog
for _ in $(seq 30); do
	for reader in 1 2 3 4; do dd if=/dev/disk of=/dev/null bs=4M count=60 skip=$((reader * 60)) 2>/dev/null & readers="${readers:-} $!"; done
	# shellcheck disable=SC2086 # numbers
	wait $readers
	readers=''
	[ "$(stalls)" -eq "$before" ] || break
	echo 1 >/proc/sys/vm/drop_caches
done
kill $hog
wait $hog || :
is_as_traced short mm_vmscan_direct_reclaim_begin mm_vmscan_direct_reclaim_end
echo "direct reclaims: $(stat short started), of $(($(stalls) - before)) stalls"
[ "$(stat short started)" -gt 0 ] || fail "nobody reclaimed"
[ "$(stat short started)" -le $(($(stalls) - before)) ] || fail "more than the kernel counts"
cat $LT/short/wakeup >/tmp/alerts
head -n 2 /tmp/alerts
if grep -v ' kind=direct order=[0-9]* pages=[0-9]*' /tmp/alerts; then fail "other alerts"; fi

for bad in kind=kswapd kind=3 order=2; do
	refused "$bad" control "bad reclaim $bad"
done
unload_module
