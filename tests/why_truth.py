#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Cases of known truth for `latency-tracker why`, inside the virtual machine: by construction, the victim is late for one
cause or, in five of the cases, for two. `why` must name the larger cause, with its share.

usage: why_truth.py [CASE...]     runs all cases, or these. The exit status is 2 if a sentence is wrong, or unknown where
                                  that is not accepted

Prints for each case the truth, then the verdict and the sentence of `why` or the fault, and all of its output if that
is bad. Innocent tasks run meanwhile: `bystander` often computes for a short time, and `onlooker` reads from another
disk. They must not be named.
"""

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Callable

import causes
import culprits
import late
import truth
from causes import LONG, SHORT
from culprits import HOG, RUNNABLE, TIMER, VICTIM, WAITED, of, pattern, ran

# The cgroup that `why` watches: only the victim is in it.
GROUP = "lt-why"
INNOCENT = ("bystander", "onlooker")
# Share of the delay, in percent, that a row of the table may have if it names an innocent task.
NOISE = 10
CASE_TIME = 180


@dataclass
class Case:
    """A provoked delay, and what is true about it."""

    name: str
    # In words.
    truth: str
    do: Callable
    # The first sentence after the share and the time, as in culprits.py.
    culprit: str
    # The least share of the delay, in percent, that the sentence must give to the cause.
    share: int
    # The other cause: a row of the table, and its least share.
    second: str = ""
    second_share: int = 0
    over: str = "300ms"
    cgroup: str = GROUP
    # Why the cause may be unknown; empty if it may not.
    unknown: str = ""
    # Other tasks and disks with a part in the case.
    part: tuple = ()
    needs: str = ""

    @property
    def two(self):
        return bool(self.second)


def row(name, cause):
    return rf"{name}/\d+ +.*{cause}"


CASES = [
    Case("lock", "holder has the lock, and computes for 0.5 s",
        lambda: causes.locked(causes.flock, causes.computes), of("holder"), 80),
    Case("event", "writer computes for 0.5 s before it writes to the eventfd",
        lambda: causes.told_by(causes.eventfd), of("writer"), 80),
    Case("disk", "the disk takes 0.4 s for a write",
        lambda: late.fsync("/dev/slow"), VICTIM + WAITED + "DISK(slow)", 80),
    Case("cpu", "hog has the CPU of the victim for 0.9 s, at a real-time priority",
        late.hog, VICTIM + culprits.WOKEN + ran("hog"), 60),
    Case("quota", "the cgroup may use 10 ms of CPU time in each 400 ms",
        causes.quota, VICTIM + r"was held back by cpu\.max of cgroup /lt-quota", 80, over="200ms", cgroup="lt-quota",
        needs="quota"),
    Case("quota_beside", "the cgroup may use 10 ms in each 400 ms; a neighbour has its CPU for 60 ms of each 100 ms",
        causes.quota_beside, VICTIM + r"was held back by cpu\.max of cgroup /lt-quota", 80, over="200ms",
        cgroup="lt-quota", needs="quota"),
    # Two causes at once.
    Case("disk_then_compute", "holder has the lock; it reads for 0.4 s from the disk, and computes for 1 s",
        lambda: causes.held(lambda: causes.read_block("slow", 300), lambda: late.spin(1)),
        of("holder"), 55, row("holder", r"waits( in \w+)? for DISK(slow)"), 15),
    Case("two_disks", "holder has the lock; one disk takes 0.1 s for its read, the other one 0.4 s",
        lambda: causes.held(lambda: causes.read_block("quick", 400), lambda: causes.read_block("slow", 400)),
        of("holder", WAITED + "DISK(slow)"), 60, row("holder", r"waits( in \w+)? for DISK(quick)"), 10),
    Case("two_tasks", "second computes for 0.5 s before it writes, but waits first until first has computed for 0.15 s",
        causes.baton, of("second"), 55, row("first", "runs"), 10),
    Case("sleep_then_cpu", "the victim sleeps for 0.15 s; then hog has its CPU for another 0.4 s or so",
        lambda: causes.then_hog(time.sleep, SHORT, LONG), HOG, 50, row(r"(victim|ktimers/1)", "waits.* timer"), 10,
        part=culprits.KEPT),
    Case("owner_then_cpu", "holder has the lock, and computes for 0.15 s; then medium has its CPU for 0.5 s",
        causes.busy_owner, of("holder", RUNNABLE + ran("medium")), 55, row("holder", "runs"), 10),
]


def say(*words):
    print(*words, flush=True)


def bystander():
    """Wakes up often, and computes for a tenth of the time; on CPU 0, so that it keeps no victim of CPU 1 waiting."""
    causes.on(0)
    while True:
        late.spin(0.001)
        time.sleep(0.009)


def onlooker():
    """Reads from a disk that has no part in any case."""
    causes.on(0)
    while True:
        causes.read_block("other", 7)
        time.sleep(0.02)


def enter_when_victim(name):
    """Gives a thread its name. The victim is in the watched cgroup unless it has its own cgroup; no other thread is."""
    with open("/proc/thread-self/comm", "w", encoding="ascii") as comm:
        comm.write(name)
    with open("/proc/self/cgroup", encoding="ascii") as file:
        own = file.read().rpartition(":")[2].strip().lstrip("/")
    if own in ("", GROUP):
        path = f"{causes.CGROUPS}/{GROUP}" if name == "victim" else causes.CGROUPS
        causes.write(f"{path}/cgroup.procs", str(os.getpid()))


def provoke(case):
    pid = os.fork()
    if pid == 0:
        case.do()
        os._exit(0)
    os.waitpid(pid, 0)


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"{what}: not within {seconds} s")
        time.sleep(0.1)


def why(case):
    """Returns what `why` prints about the case."""
    log = f"/tmp/why-{case.name}.log"
    words = ["latency-tracker", "why", "--waits", "--over", case.over, "--cgroup", f"/{case.cgroup}", "-d", f"{CASE_TIME}s"]
    with open(log, "w", encoding="utf-8") as file:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=file, text=True)

    def is_armed():
        with open(log, encoding="utf-8") as file:
            return "waiting for an operation" in file.read() or process.poll() is not None

    wait_until(is_armed, CASE_TIME, case.name)
    for _ in range(10):
        # On a slow host the disturbance may come too late, so it is repeated.
        if process.poll() is not None:
            break
        provoke(case)
        # `why` ends soon after an alert.
        wait_until_it_ends(process, 5)
    text, _ = process.communicate()
    with open(log, encoding="utf-8") as file:
        notes = file.read()
    if process.returncode != 2:
        sys.exit(f"{case.name}: exit status {process.returncode}: {notes}{text}")
    assert "no trace" not in notes, notes
    return text


def wait_until_it_ends(process, seconds):
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        pass


def table(text):
    """Returns the causes, each with its share in percent."""
    rows = []
    is_in = False
    for line in text.splitlines():
        if re.match(r" *TIME +% +COUNT +THREAD +CAUSE", line):
            is_in = True
        elif is_in and (found := re.match(r" *\S+ +([0-9.]+) +[0-9,]+ +(.*)", line)):
            rows.append((float(found[1]), found[2]))
        elif is_in:
            break
    return rows


def judge(case, text):
    """Returns right, unknown or wrong, and why."""
    owner = re.search(r"^by (\S+)/([0-9]+), ", text, re.MULTILINE)
    if not owner or owner[1] != "victim":
        return "wrong", "the late task is not the victim"
    busier = text.partition("busier than in the rest of the trace")[2]
    blamed = [line for share, line in table(text) if share >= NOISE] + [busier]
    named = [who for who in INNOCENT if any(who in line for line in blamed)]
    if named:
        return "wrong", f"{named[0]} is innocent"
    sentence = " ".join(text.split("\n\n")[1].split())
    if any(who in sentence for who in INNOCENT):
        return "wrong", "the sentence names an innocent task"
    known = {"culprit": pattern(case.culprit), "share": case.share, "without": {}, "disks": os.listdir("/sys/block"),
        "part": [pattern(who) for who in case.part]}
    report = {"text": text, "verdict": None, "alert": {"tid": int(owner[2])}}
    verdict = truth.judged(known, report, "whole")
    if verdict == "right" and case.two:
        other = [share for share, line in table(text) if re.match(pattern(case.second), line)]
        if sum(other) < case.second_share:
            return "wrong", f"the other cause has {sum(other):.1f} %, not {case.second_share}"
    return verdict, sentence


def main(names):
    late.called = causes.called = enter_when_victim
    # A cgroup must exist before it is watched, and so must its counters: `why` compares them with their values at the
    # start of its run.
    for case in filter(culprits.available, CASES):
        causes.cgroup(case.cgroup, **({"cpu_max": "10000 400000"} if case.needs == "quota" else {}))
    innocents = [causes.task(name, does) for name, does in zip(INNOCENT, (bystander, onlooker))]
    counts = {"right": 0, "unknown": 0, "wrong": 0}
    bad = 0
    for case in CASES:
        if case.name not in (names or [case.name]) or not culprits.available(case):
            continue
        say(f"{case.name}, {'two causes' if case.two else 'one cause'}. Truth: {case.truth}.")
        text = why(case)
        verdict, reason = judge(case, text)
        counts[verdict] += 1
        is_bad = verdict == "wrong" or (verdict == "unknown" and not case.unknown)
        bad += is_bad
        say(f"  {verdict}: {reason}")
        if is_bad:
            say(text)
    for pid in innocents:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    say(", ".join(f"{key} {count}" for key, count in counts.items()))
    return 2 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
