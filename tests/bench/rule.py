#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""rule: applies a simpler rule to the cases of tests/truth.py: what ended a wait is its cause.

usage: rule.py KNOWN ALERTS <TEXT     TEXT is the trace as `babeltrace2 --clock-cycles --no-delta` prints it

It restates the rule of Trace Compass's critical path: a thread waited for the context in which it was woken. The
interrupt or softirq of a timer means a timer; of packets, the network; of block requests, a block device.
The rule names no cause for other contexts, nor for a thread that waits for a processor. A thread that wakes another one
is followed. Prints lines as `truth.py judge` does, with the part `rule`.

The part `timehist` restates what a person sees of the late thread in `perf sched timehist --wakeups --next`: how long
it slept, waited for a CPU, and ran, and which took longest; and which task was current at the wakeup that ended the
longest sleep, whatever had interrupted that task. It shows nothing of what that task did. It names no cause for a wait
for a CPU, since it does not show which task had the CPU, and none for a sleep if the idle task was current. All numbers
come from the same events; perf itself is not run.
"""

import itertools
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
        # The current task where a thread was woken, by thread and time.
        self.current_at = {}
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
                    self.current_at[fields["tid"], time] = current.get(cpu)
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
        """Yields (thread, what it did, for how long) between begin and end."""
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

    def timehist(self, tid, begin, end):
        sums, longest = {}, (0, None)
        for since, until, state, waker in self.states.get(tid, []):
            since, until = max(since, begin), min(until, end)
            if since < until:
                sums[state] = sums.get(state, 0) + until - since
                if state == "blocked":
                    longest = max(longest, (until - since, self.current_at.get((tid, until))), key=lambda of: of[0])
        state = max(sums, key=sums.get, default=None)
        who = f"{self.names.get(tid)}/{tid} "
        if state == "ran":
            return who + "ran"
        if state != "blocked" or longest[1] in (None, "0"):
            return None
        return who + f"waited for {self.names.get(longest[1])}/{longest[1]}"

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


def is_right(case, part, verdict):
    culprit = case["without"]["rule"]
    named = re.search(r" waited for ([a-z]+)\S*/[0-9]+$", verdict)
    if part == "timehist" and named:
        # Naming the thread is enough.
        return f"{named[1]}/" in culprit or f"({named[1]}|" in culprit
    return re.fullmatch(culprit, verdict)


def result_of(case, part, verdicts):
    results = ["unknown" if v is None else "right" if is_right(case, part, v) else "wrong" for v in verdicts]
    return next(result for result in ("wrong", "unknown", "right") if result in (results or ["unknown"]))


def main(known, alerts):
    trace = Trace(sys.stdin)
    rules = {"rule": trace.verdict, "timehist": trace.timehist}
    said = {}
    with open(alerts, encoding="utf-8") as file:
        for line in file:
            fields = {key: text or word for key, text, word in re.findall(r'(\w+)=(?:"([^"]*)"|(\S+))', line)}
            if {"time", "delay", "tid", "instance"} <= fields.keys():
                end = int(fields["time"])
                for part, rule in rules.items():
                    verdict = rule(fields["tid"], end - int(fields["delay"]), end)
                    said.setdefault((part, fields["instance"]), []).append(verdict)
    with open(known, encoding="utf-8") as file:
        cases = json.load(file)
    for part, case in itertools.product(rules, cases):
        verdicts = said.get((part, case["name"]), [])
        result = result_of(case, part, verdicts)
        first = verdicts[0] if verdicts else ""
        print(result, part, "two" if case["two"] else "one", case["name"], first, "", sep="\t")


if __name__ == "__main__":
    main(*sys.argv[1:])
