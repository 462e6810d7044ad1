# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# On an idle machine, the alert of a timeout is at most max(1 ms, timeout / 16) late. The timeouts
# are 2 ms, 16 ms and 1 s, for 64 requests each, which start at different times relative to the
# searches. A kernel thread raises the alert, not an interrupt.
#
# ftrace measures the lateness, from the start to the alert's event. The machine's clock counts
# executed instructions, so the result is the same in every run, and does not depend on the host's
# speed.
# kernels: stock rt
# cpus: 1
# root: full
# icount: 0
# timeout: 240
# debug: no, it measures in instructions, which that machine does not count

. /lt/tests/lib.sh
. /lt/tests/block.sh

trace=/sys/kernel/tracing
load_module
null_disk stuck 3000000000 hw_queue_depth=128
reads stuck 1
echo mono >$trace/trace_clock
echo 1 >$trace/events/latency_tracker/alert/enable

# requests APART: make 64 requests, one every APART microseconds. None ends before 3 s.
requests() {
	python3 - "$1" <<-'EOF' || fail "no requests"
		import mmap, os, sys, threading, time

		disk = os.open("/dev/stuck", os.O_RDONLY | os.O_DIRECT)
		begin = time.monotonic() + 0.2

		def request(n):
		    page = mmap.mmap(-1, 4096)
		    time.sleep(begin + n * int(sys.argv[1]) / 1e6 - time.monotonic())
		    os.preadv(disk, [page], n * 4096)

		threads = [threading.Thread(target=request, args=(n,)) for n in range(64)]
		for thread in threads:
		    thread.start()
		for thread in threads:
		    thread.join()
	EOF
}

# detects TIMEOUT NANOSECONDS APART BOUND: check that no alert is later than BOUND.
detects() {
	control "stuck block dev=stuck threshold=3600s timeout=$1 events=256"
	echo >$trace/trace
	requests "$3"
	wait_until 10 quiet stuck
	grep ' reason=timeout ' $trace/trace >/tmp/trace || :
	assert_eq "$(wc -l </tmp/trace) $(stat stuck timed_out)" "64 64" "timeout=$1: alerts, timed_out"
	# COMM-PID [CPU] FLAGS SECONDS.MICROSECONDS: ...; the first flag shows that interrupts are off, the third that
	# this is an interrupt
	sed 's/^ *\(.*\)-[0-9]* *\[[0-9]*\] \([^ ]*\) *\([0-9]*\)\.\([0-9]*\): .* time=\([0-9]*\) .* delay=\([0-9]*\) .*/\3\4000 \5 \6 \2 \1/' \
		/tmp/trace >/tmp/rows
	awk -v timeout="$2" -v bound="$4" '
		$4 !~ /^\..\./ { print "in an interrupt, or with interrupts off: " $0; bad = 1 }
		$5 !~ /^kworker/ { print "not in a kernel worker: " $0; bad = 1 }
		{
			late = $1 - ($2 - $3) - timeout
			if (late < -1000 || late > bound) { print "late by " late " ns: " $0; bad = 1 }
			if (late > most) most = late
			sum += late
		}
		END { printf "timeout %d ns: late by %d ns at the most, %d on average, of %d\n", timeout, most, sum / NR, bound; exit bad }
	' /tmp/rows || { cat /tmp/trace; fail "timeout=$1: late"; }
	control -stuck
}
detects 2ms 2000000 270 1000000
detects 16ms 16000000 270 1000000
detects 1s 1000000000 9700 62500000
unload_module
