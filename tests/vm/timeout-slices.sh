# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Other tasks get the CPU while many events time out at once: a search never keeps preemption or interrupts off for
# more than 50 us. A real-time thread repeatedly sleeps for 100 us on the only CPU. While 256 requests are reported,
# each with its stack, the thread is at most 50 us later than on an idle machine.
#
# The machine's clock counts executed instructions, 1 ns each.
# kernels: stock rt
# cpus: 1
# root: full
# icount: 0
# timeout: 240
# debug: no, it measures in instructions, which that machine does not count

. /lt/tests/lib.sh
. /lt/tests/block.sh

load_module
null_disk stuck 8000000000 hw_queue_depth=256
control "stuck block dev=stuck threshold=3600s events=512 wakeup_interval=0 stack=32"
echo 1 >/sys/kernel/tracing/events/latency_tracker/alert/enable
echo mono >/sys/kernel/tracing/trace_clock
for event in entry exit; do echo 1 >/sys/kernel/tracing/events/irq/softirq_$event/enable; done
follow $LT/stuck/alerts /dev/null
python3 - <<'EOF' || fail "not as promised"
import mmap, os, re, sys, threading, time

REQUESTS = 256
BOUND = 50_000
LT = "/proc/latency_tracker/stuck/"
disk = os.open("/dev/stuck", os.O_RDONLY | os.O_DIRECT)


def request(n):
    os.preadv(disk, [mmap.mmap(-1, 4096)], n * 4096)


def stat(name):
    with open(LT + "stats", encoding="ascii") as stats:
        return next(int(line.split()[1]) for line in stats if line.startswith(name + " "))


def softirqs(begin, end):
    """Returns how long softirqs ran in this time. They are not part of the search, which a worker does. On PREEMPT_RT
    the sleeper preempts them."""
    if "-rt-" in os.uname().release:
        return 0
    had, since = 0, None
    with open("/sys/kernel/tracing/trace", encoding="ascii") as lines:
        for line in lines:
            event = re.search(r" (\d+)\.(\d{6}): softirq_(entry|exit): ", line)
            if event:
                at = int(event[1]) * 1_000_000_000 + int(event[2]) * 1000
                if event[3] == "exit" and since is not None:
                    had += max(0, min(at, end) - max(since, begin))
                since = at
    return had


def latest(rounds):
    """Returns how late the sleeper was at the most, and for this sleep, when it was due and when it ran."""
    most = 0, 0, 0
    for _ in range(rounds):
        begin = time.monotonic_ns()
        time.sleep(100e-6)
        end = time.monotonic_ns()
        due = begin + 100_000
        most = max(most, (end - due, due, end))
    return most


for n in range(REQUESTS):
    threading.Thread(target=request, args=(n,), daemon=True).start()
while stat("pending") < REQUESTS:
    time.sleep(0.05)
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
latest(500)
idle, *_ = latest(2000)
timeout = os.open(LT + "timeout", os.O_WRONLY)
os.write(timeout, b"1ms")
before = stat("timed_out")
first = latest(5)
between = stat("timed_out")
busy, due, end = max(first, latest(2000))
with open("/sys/kernel/tracing/tracing_on", "w", encoding="ascii") as on:
    on.write("0")
print(f"late by {idle} ns at the most idle, {busy} ns while {REQUESTS} time out")
print(f"timed out before, after five sleeps and at the end: {before} {between} {stat('timed_out')}")
if stat("timed_out") != REQUESTS or before == REQUESTS:
    sys.exit("they did not time out meanwhile")
if busy - idle - softirqs(due, end) > BOUND:
    sys.exit(f"{busy - idle} ns more than idle, of which softirqs had {softirqs(due, end)}")
sys.stdout.flush()
os._exit(0)
EOF
unload_module
