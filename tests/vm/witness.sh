# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The alerts match the slow requests one by one: ftrace records every request at the same time, and
# lt-witness computes from its trace which requests were slow. fio runs on three disks of known
# speed, with thousands of fast requests (2 ms) and a few hundred slow ones (100 ms). The gap is
# wide because emulation stretches time.
#
# Two probes on one tracepoint run one after another. The task that submits the requests has a
# real-time priority, so no other task runs between the two, and the machine's clock counts
# instructions, so other load on the host does not matter.
# kernels: rt
# long: stock
# cpus: 2
# root: full
# icount: 1
# turn: 100
# debug: no, sanitizers add more time between two probes than the comparison allows
# arm64: yes
# timeout: 240

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/witness.sh

rounds=${LT_ROUNDS:-2}
load_module
null_disk fast 2000000
null_disk slow 100000000
# With a scheduler, requests are inserted and merged, and wait for a device that takes four at a
# time.
null_disk queued 100000000 hw_queue_depth=4
modprobe mq-deadline 2>/dev/null || :
echo mq-deadline >/sys/block/queued/queue/scheduler
# On PREEMPT_RT, threads run timers and softirqs: they get a higher priority than the tasks that
# wait for them.
urgent 50 '^(ktimers|ksoftirqd|irq_work)/'

tracing 20000 block/block_rq_issue block/block_rq_insert block/block_rq_complete block/block_rq_requeue block/block_rq_merge

# instances ACTION: call ACTION NAME DISK FROM for each instance.
instances() { "$1" fast fast issue; "$1" slow slow issue; "$1" queued queued insert; }
start() {
	control "$1 block threshold=50ms dev=$2 from=$3 events=256"
	follow $LT/"$1"/alerts /tmp/"$1".alerts
}
# both_times_are_exact NAME DISK: check that each alert has the trace's times in the queue and in
# the device. Only sectors that were inserted, issued and completed once are checked, so that the
# request is unambiguous.
both_times_are_exact() {
	sed -n 's/.* sector=\([0-9]*\) .* queue=\([0-9]*\) device=\([0-9]*\) .*/alert \1 \2 \3/p' /tmp/"$1".alerts |
		awk -v dev="$(dev_of "$2" | tr : ,)" '
			function differ(a, b) { return a > b ? a - b : b - a }
			FNR == NR {
				for (i = 4; i < NF && $i !~ /^block_rq_/; i++);
				step = $i
				if ($(i + 1) != dev || !match($0, / [0-9]+ \+ [0-9]+ /)) next
				sector = substr($0, RSTART + 1) + 0
				count[step, sector]++
				time[step, sector] = $(i - 1) * 1e9
				next
			}
			{
				inserted = "block_rq_insert:" SUBSEP $2
				issued = "block_rq_issue:" SUBSEP $2
				completed = "block_rq_complete:" SUBSEP $2
				if (count[inserted] != 1 || count[issued] != 1 || count[completed] != 1) next
				judged++
				queue = differ($3, time[issued] - time[inserted])
				device = differ($4, time[completed] - time[issued])
				if ($3 > 1e6) waited++
				if (queue <= 2e5 && device <= 2e5) usual++
				if (queue > 2e6 || device > 2e6) { print "sector", $2, "queue", $3, "device", $4; wrong++ }
			}
			END {
				print judged + 0, "requests judged,", waited + 0, "waited in the queue,", usual + 0, "within 200us"
				exit !(judged >= 50 && waited >= 50 && !wrong && (judged - usual) * 100 <= judged)
			}' /tmp/trace - || fail "queue and device times of $1 differ from the trace"
}
is_exact() {
	wait_until 10 sh -c "[ \$(wc -l </tmp/$1.alerts) -ge $(stat "$1" alerts) ]"
	least=200
	[ "$1" != fast ] || least=0
	lt-witness --threshold 50ms --expect-at-least $least --from "$3" --dev "$(dev_of "$2")" /tmp/trace /tmp/"$1".alerts ||
		{ cp /tmp/trace /tmp/*.alerts /lt/out; fail "round $round: $1 is not exact"; }
	[ "$3" = issue ] || both_times_are_exact "$1" "$2"
	sums_hold "$1"
	for key in full replaced cleared unmatched negative alerts_lost; do assert_eq "$(stat "$1" $key)" 0 "$1: $key"; done
	assert_eq "$(stat "$1" started)" "$(($(stat "$1" ended) + $(stat "$1" gone)))" "$1: started = completed"
	control "-$1"
}

# Warm up: the first run of anything is slow under emulation.
for disk in fast slow queued; do reads $disk 3; done

for round in $(seq "$rounds"); do
	echo 0 >$TRACE/tracing_on
	echo >$TRACE/trace
	instances start
	sleep 0.2
	echo 1 >$TRACE/tracing_on
	chrt --fifo 10 fio --output=/tmp/fio.log --direct=1 --bs=4k --ioengine=libaio --rw=randrw --norandommap \
		--name=fast --filename=/dev/fast --iodepth=8 --number_ios=2000 --io_size=1g \
		--name=slow --filename=/dev/slow --iodepth=8 --number_ios=200 --io_size=1g \
		--name=queued --filename=/dev/queued --iodepth=8 --number_ios=200 --io_size=1g ||
		{ cat /tmp/fio.log; fail "fio failed"; }
	for name in fast slow queued; do wait_until 10 quiet $name; done
	echo 0 >$TRACE/tracing_on
	cat $TRACE/trace >/tmp/trace
	instances is_exact
	wait
done
unload_module
as_usual
