#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Tasks that keep another task from its CPU, each for a known time, for tests inside the virtual machine.

usage: rivals.py run NAME=MS...             starts tasks of these names on CPU 1, all at once, with decreasing real-time
                                            priorities; each takes the CPU for that time. lt_target, with the lowest
                                            priority, is woken 1 ms later. With NAME=WORD, the task writes the word to
                                            the parameter `run` of lt_causes instead
       rivals.py are FILE EXACT WHAT=MS...  checks that the last step of the only alert in FILE names these rivals (WHAT
                                            is a regular expression), in this order; with EXACT 1, times match within a
                                            tenth and 2 ms
"""

import os
import re
import sys
import time

RUN = "/sys/module/lt_causes/parameters/run"
# Long enough for all tasks to sleep.
LATER = 1.0


def task(name, priority, begin, work):
    """Starts a task that does its work at this time."""
    pid = os.fork()
    if pid:
        return pid
    with open("/proc/self/comm", "w", encoding="utf-8") as comm:
        comm.write(name)
    os.sched_setaffinity(0, {1})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    time.sleep(begin - time.monotonic())
    work()
    os._exit(0)


def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def cause(word):
    with open(RUN, "w", encoding="utf-8") as run:
        run.write(word)


def run(*tasks):
    begin = time.monotonic() + LATER * int(os.environ.get("PATIENCE", "1"))
    pids = []
    for nth, (name, what) in enumerate(one.split("=") for one in tasks):
        def work(what=what):
            if what.isdigit():
                spin(int(what) / 1000)
            else:
                cause(what)
        pids.append(task(name, 40 - nth, begin, work))
    pids.append(task("lt_target", 1, begin + 0.001, lambda: None))
    if any(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids):
        sys.exit("one of them has failed")


def are(file, exact, *expected):
    with open(file, encoding="utf-8") as lines:
        alerts = list(lines)
    if len(alerts) != 1:
        sys.exit(f"{len(alerts)} alerts instead of 1: {alerts}")
    braces = re.search(r'\{([^{}]*)\}"$', alerts[0].rstrip())
    named = braces[1].split(";")[1:] if braces else []
    if len(named) != len(expected):
        sys.exit(f"not {len(expected)} are named: {alerts[0]}")
    for told, one in zip(named, expected):
        what, _, milliseconds = one.rpartition("=")
        found = re.fullmatch(what + r"=(\d+)", told)
        if not found:
            sys.exit(f"{told} instead of {what}: {alerts[0]}")
        off = abs(int(found[1]) - int(milliseconds) * 1_000_000)
        if exact == "1" and off > int(milliseconds) * 100_000 + 2_000_000:
            sys.exit(f"{told} is not {milliseconds} ms: {alerts[0]}")
    print(f"named as expected: {' '.join(named)}")


if __name__ == "__main__":
    {"run": run, "are": are}[sys.argv[1]](*sys.argv[2:])
