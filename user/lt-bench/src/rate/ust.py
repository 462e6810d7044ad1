# SPDX-License-Identifier: GPL-2.0 OR MIT

# Generates events of LTTng's user-space tracer; `python3 -c` runs it with a CPU and a priority. A
# line on standard input is a plan, as in emit.rs. The result is a line on standard output, followed
# by the time of each event in 8 bytes. LTTng's own library has the tracepoint, in a function that
# instrumented programs call at the entry of each of their functions.

import array
import ctypes
import gc
import os
import signal
import sys
import time

PR_SET_PDEATHSIG = 1

# Dies with its parent: during a run, nothing reads standard input, so the end of the parent would
# go unnoticed.
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
event = ctypes.CDLL("liblttng-ust-cyg-profile-fast.so.1").__cyg_profile_func_enter
event.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
event.restype = None
# Pins this thread only: the threads of the library keep their CPUs.
cpu, priority = int(sys.argv[1]), int(sys.argv[2])
os.sched_setaffinity(0, {cpu})
if priority:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
gc.disable()
# The results go to this pipe, so nothing else may be written to standard output.
out = os.fdopen(os.dup(1), "wb")


def run(gap, length, least, longest, most):
    each = array.array("Q")
    now, add, make = time.monotonic_ns, each.append, event
    begin = before = anchor = now()
    events = due = took = 0
    while events < most:
        if gap:
            at = anchor + int(due * gap)
            while before < at:
                before = now()
            if before > at + gap:
                anchor, due = before, 0
            due += 1
        make(events, None)
        after = now()
        add(after - before)
        events += 1
        before = after
        took = after - begin
        if took >= longest or (took >= length and events >= least):
            break
    out.write(b"%d %d\n" % (events, took))
    out.write(each.tobytes())
    out.flush()


out.write(b"ready\n")
out.flush()
for line in sys.stdin:
    gap, *rest = line.split()
    run(float(gap), *map(int, rest))
