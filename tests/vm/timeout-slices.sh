# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Others get the CPU while many events time out at once: a search never keeps preemption or interrupts off for
# more than 50 us. A thread with a real-time priority sleeps for 100 us again and again, on the only CPU; while
# 256 requests are reported, each with its stack, it is at most 50 us later than on an idle machine.
#
# The machine's clock counts the instructions that it executes, 1 ns each.
# kernels: stock rt
# cpus: 1
# root: full
# icount: 0
# timeout: 240

. /lt/tests/lib.sh
. /lt/tests/block.sh

load_module
null_disk stuck 8000000000 hw_queue_depth=256
control "stuck block dev=stuck threshold=3600s events=512 wakeup_interval=0 stack=32"
echo 1 >/sys/kernel/tracing/events/latency_tracker/alert/enable
follow $LT/stuck/alerts /dev/null
python3 - <<'EOF' || fail "not as promised"
import mmap, os, sys, threading, time

REQUESTS = 256
BOUND = 50_000
LT = "/proc/latency_tracker/stuck/"
disk = os.open("/dev/stuck", os.O_RDONLY | os.O_DIRECT)


def request(n):
    os.preadv(disk, [mmap.mmap(-1, 4096)], n * 4096)


def stat(name):
    with open(LT + "stats", encoding="ascii") as stats:
        return next(int(line.split()[1]) for line in stats if line.startswith(name + " "))


def latest(rounds):
    """How late the sleeper was at the most."""
    most = 0
    for _ in range(rounds):
        begin = time.monotonic_ns()
        time.sleep(100e-6)
        most = max(most, time.monotonic_ns() - begin - 100_000)
    return most


for n in range(REQUESTS):
    threading.Thread(target=request, args=(n,), daemon=True).start()
while stat("pending") < REQUESTS:
    time.sleep(0.05)
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
latest(500)
idle = latest(2000)
timeout = os.open(LT + "timeout", os.O_WRONLY)
os.write(timeout, b"1ms")
before = stat("timed_out")
first = latest(5)
between = stat("timed_out")
busy = max(first, latest(2000))
print(f"late by {idle} ns at the most idle, {busy} ns while {REQUESTS} time out")
print(f"timed out before, after five sleeps and at the end: {before} {between} {stat('timed_out')}")
if stat("timed_out") != REQUESTS or before == REQUESTS:
    sys.exit("they did not time out meanwhile")
if busy - idle > BOUND:
    sys.exit(f"{busy - idle} ns more than idle")
sys.stdout.flush()
os._exit(0)
EOF
unload_module
