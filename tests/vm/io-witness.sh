# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The profile matches what happened, count for count: while the tracker counts, ftrace records every
# system call and every block request, and lt-witness computes the counts of each class from that
# trace.
# The calls come from a process and its descendants, alone in a cgroup. The requests are all
# requests of a disk: direct ones from that process, and requests of fio, eight at a time.
#
# The threshold is 0: every call and request raises an alert, so each is also compared individually.
# The machine's clock counts instructions, so other load on the host does not matter. The machine has
# one CPU: the emulator would alternate between two, sometimes between the probes of ftrace and of the
# tracker at one tracepoint, and some rows of the profile are only a few microseconds wide.
# kernels: rt
# long: stock
# cpus: 1
# root: full
# icount: 1
# debug: no, sanitizers add more time between two probes than the comparison allows
# timeout: 300

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/witness.sh

cgroup=/sys/fs/cgroup/lt-io
rounds=40
load_module
null_disk d 1000000
mkdir $cgroup
mkfifo /tmp/gate

tracing 30000 raw_syscalls sched/sched_process_fork \
	block/block_rq_insert block/block_rq_issue block/block_rq_complete block/block_rq_requeue block/block_rq_merge
# Warm up: the first run of anything is slow under emulation.
python3 /lt/tests/io.py write /dev/d 2

echo 0 >$TRACE/tracing_on
echo >$TRACE/trace
# At a real-time priority no other task runs between two probes of a tracepoint.
chrt --fifo 10 python3 /lt/tests/io.py mix /tmp/gate /dev/d $rounds &
root=$!
# The process waits in open(2), and is tracked from the next call on.
wait_until 30 grep -q wait_for_partner /proc/$root/stack
echo $root >$cgroup/cgroup.procs
control "calls io threshold=0 ring=65536 stack=0 cgroup=/lt-io"
control "disk io threshold=0 ring=65536 stack=0 dev=d"
exec 3<$LT/calls/alerts 4<$LT/disk/alerts
echo 1 >$TRACE/tracing_on
echo lt-witness begin >$TRACE/trace_marker
: >/tmp/gate
wait $root || fail "the process failed"
chrt --fifo 10 fio --output=/tmp/fio.log --direct=1 --bs=4k --ioengine=libaio --rw=randrw --norandommap --name=d --filename=/dev/d \
	--iodepth=8 --number_ios=400 --io_size=1g || { cat /tmp/fio.log; fail "fio failed"; }
sync
wait_until 10 sh -c "! grep -q ' class=b_' $LT/disk/pending"
echo lt-witness end >$TRACE/trace_marker
echo 0 >$TRACE/tracing_on
cat $TRACE/trace >/tmp/trace

for name in calls disk; do
	control "$name io enabled=0"
	cat $LT/$name/profile >/tmp/$name.profile
done
alerts_of calls /tmp/calls.alerts
exec 3<&4
alerts_of disk /tmp/disk.alerts
exec 3<&- 4<&-

lt-witness --profile /tmp/calls.profile --root $root --threshold 0 --expect-at-least 1000 /tmp/trace /tmp/calls.alerts ||
	{ cp /tmp/trace /tmp/calls.* /lt/out; fail "the calls are not exact"; }
lt-witness --profile /tmp/disk.profile --dev "$(dev_of d)" --threshold 0 --expect-at-least 400 /tmp/trace /tmp/disk.alerts ||
	{ cp /tmp/trace /tmp/disk.* /lt/out; fail "the requests are not exact"; }
cat /tmp/calls.profile

# All classes occurred: each column has a count.
awk 'NR > 2 { for (i = 2; i <= NF; i++) n[i] += $i } END { for (i = 2; i <= 9; i++) if (!n[i]) { print "column", i; exit 1 } }' \
	/tmp/calls.profile || fail "a class has no counts"
# The requests of the process, which are only a part of the disk's requests.
submitted=$(awk 'NR > 2 { n += $8 + $9 } END { print n }' /tmp/calls.profile)
assert_eq "$submitted" $((2 * rounds)) "requests of the process"
for name in calls disk; do
	sums_hold $name
	for key in full replaced negative alerts_lost; do assert_eq "$(stat $name $key)" 0 "$name: $key"; done
done
assert_eq "$(stat calls unmatched)" 1 "the open that began before the instance"
unload_module
