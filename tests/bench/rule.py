#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""rule: what a simpler rule says to the cases of tests/truth.py: what ended a wait is its cause.

usage: rule.py KNOWN ALERTS <TEXT     TEXT is the trace as `babeltrace2 --clock-cycles --no-delta` prints it

It restates the rule of Trace Compass's critical path: in whose context a waking comes is what the thread waited for. A
timer's interrupt or softirq is a timer, one of packets the network, one of blocks a block device; of other contexts,
and of a thread that waits for a processor, it names no cause. A thread that wakes another is followed. Prints lines as
`truth.py judge` does.
"""

import json
import re
import sys

EVENT = re.compile(r"\[(\d+)\] \S+ (\w+): \{ cpu_id = (\d+) \}(?:, \{ (.*?) \})?$")
FIELD = re.compile(r'(\w+) = (?:"([^"]*)"|(?:\( "[^"]*" : container = )?(-?\d+))')
TIMER, NETWORK, DISK = "a timer", "the network", "a block device"
LEAVES = {"1": TIMER, "8": TIMER, "2": NETWORK, "3": NETWORK, "4": DISK, "5": DISK}
INTERRUPTS = ("irq_handler", "x86_irq_vectors")


class Trace:
    """The states of all threads: (begin, end, state, waker), where a waker is a thread or a leaf."""

    def __init__(self, lines):
        self.states, self.names, self.open = {}, {}, {}
        contexts, current = {}, {}
        for line in lines:
            match = EVENT.match(line)
            if not match:
                continue
            time, name, cpu = int(match[1]), match[2], match[3]
            fields = {key: text or number for key, text, number in FIELD.findall(match[4] or "")}
            stack = contexts.setdefault(cpu, [])
            if name == "sched_switch":
                out, to = fields["prev_tid"], fields["next_tid"]
                self.names[out], self.names[to] = fields["prev_comm"], fields["next_comm"]
                self.become(out, time, "preempted" if fields["prev_state"] in ("0", "256") else "blocked")
                self.become(to, time, "ran")
                current[cpu] = to
            elif name == "sched_waking":
                if self.open.get(fields["tid"], (0, ""))[1] == "blocked":
                    self.become(fields["tid"], time, "preempted", stack[-1] if stack else current.get(cpu))
            elif name == "irq_softirq_entry":
                stack.append(("leaf", LEAVES.get(fields["vec"])))
            elif name == "timer_hrtimer_expire_entry":
                stack.append(("leaf", TIMER))
            elif name.startswith(INTERRUPTS) and name.endswith("_entry"):
                stack.append(("leaf", None))
            elif name in ("irq_softirq_exit", "timer_hrtimer_expire_exit") or name.startswith(INTERRUPTS):
                del stack[-1:]

    def become(self, tid, time, state, waker=None):
        begin, before = self.open.get(tid, (None, None))
        if begin is not None:
            self.states.setdefault(tid, []).append((begin, time, before, waker))
        self.open[tid] = (time, state)

    def path(self, tid, begin, end, chain=()):
        """(thread, what it did, for how long) in that time."""
        for since, until, state, waker in self.states.get(tid, []):
            since, until = max(since, begin), min(until, end)
            if since >= until:
                continue
            if state != "blocked":
                yield tid, state, until - since
            elif isinstance(waker, str) and waker not in (*chain, tid):
                yield from self.path(waker, since, until, (*chain, tid))
            else:
                yield tid, waker[1] if isinstance(waker, tuple) else None, until - since

    def verdict(self, tid, begin, end):
        sums = {}
        for thread, what, time in self.path(tid, begin, end):
            sums[thread, what] = sums.get((thread, what), 0) + time
        (thread, what), _ = max(sums.items(), key=lambda item: item[1], default=((tid, None), 0))
        if what in (None, "preempted"):
            return None
        what = what if what == "ran" else f"waited for {what}"
        who = f"{self.names.get(tid)}/{tid} "
        return who + (what if thread == tid else f"waited for {self.names.get(thread)}/{thread}, which {what}")


def result_of(case, verdicts):
    culprit = case["without"]["rule"]
    results = ["unknown" if v is None else "right" if re.fullmatch(culprit, v) else "wrong" for v in verdicts]
    return next(result for result in ("wrong", "unknown", "right") if result in (results or ["unknown"]))


def main(known, alerts):
    trace = Trace(sys.stdin)
    said = {}
    with open(alerts, encoding="utf-8") as file:
        for line in file:
            fields = {key: text or word for key, text, word in re.findall(r'(\w+)=(?:"([^"]*)"|(\S+))', line)}
            if {"time", "delay", "tid", "instance"} <= fields.keys():
                end = int(fields["time"])
                verdict = trace.verdict(fields["tid"], end - int(fields["delay"]), end)
                said.setdefault(fields["instance"], []).append(verdict)
    with open(known, encoding="utf-8") as file:
        cases = json.load(file)
    for case in cases:
        verdicts = said.get(case["name"], [])
        result = result_of(case, verdicts)
        first = verdicts[0] if verdicts else ""
        print(result, "rule", "two" if case["two"] else "one", case["name"], first, "", sep="\t")


if __name__ == "__main__":
    main(*sys.argv[1:])
