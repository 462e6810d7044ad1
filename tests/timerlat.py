#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Compares the measurements of timerlat or rtla with the alerts of the tracker tree.

usage: timerlat.py samples PERIOD LATE TRACE SWITCHES            one by one: TRACE is the tracer's, with the clock mono
       timerlat.py histogram LATE HISTOGRAM SWITCHES RETURNS     by rank: HISTOGRAM is what `rtla timerlat hist -u` prints

SWITCHES and RETURNS are the alerts of instances with origin=timer and threshold=0: with end=switch and with end=user.
PERIOD is the period of the tracer's timer, in ns. By both measurements, the timer's handler must be over 1 ms late in
at least LATE samples.

When the tracer's timer is due, its function reads the clock (irq). The thread that it wakes reads the clock (thread),
and again after it was in user space (user). So

  until the function is called  <=  irq      until the thread is switched in  <=  thread
  until it returns to user space  <=  user

and the differences are at most USUAL, except where something came in between.
"""

import re
import sys

MS = 1_000_000
# Cost of one clock read, one switch, one return to user space and the next call, in ns.
USUAL = {"irq": 10_000, "thread": 50_000, "user": 50_000}
# The least share of samples within that cost, in percent.
MOST = 90


def alerts_of(file):
    """Returns {start: (time until the timer's function was called, delay)} for timerlat's timer."""
    found = {}
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            path = re.search(r' path="(timer:timerlat_irq@[^"]*)"', line)
            if not path:
                continue
            field = {name: int(value) for name, value in re.findall(r" (time|delay)=(\d+)", line)}
            steps = [(step, int(time)) for step, time in re.findall(r"(\S+)@\d+\+(\d+)", path[1])]
            called = next(place for place, (step, _) in enumerate(steps) if step == "expire:timerlat_irq")
            begin = field["time"] - field["delay"]
            if begin in found:
                sys.exit(f"{file}: two alerts of one timer: {line}")
            found[begin] = (sum(time for _, time in steps[: called + 1]), field["delay"])
    return found


def is_close(what, differences):
    """Prints the differences; returns whether they are within the limits."""
    close = sum(difference <= USUAL[what] for difference in differences)
    print(f"{what}: {len(differences)} samples, differences {min(differences)}..{max(differences)} ns, usual={close}")
    return min(differences) >= 0 and 100 * close >= MOST * len(differences)


def samples(period, late, trace, switches):
    alerts = alerts_of(switches)
    first = min(alerts)
    found = {}
    with open(trace, encoding="ascii") as lines:
        for line in lines:
            sample = re.search(r" (\d+)\.(\d{6}): #(\d+) +context +(irq|thread) +timer_latency +(\d+) ns", line)
            if sample:
                seconds, micros, number, context, latency = sample.groups()
                at = int(seconds) * 1000 * MS + int(micros) * 1000
                found.setdefault(int(number), {})[context] = (at - int(latency), int(latency))
    # Tracing may have ended in the middle of a sample.
    if "thread" not in found[max(found)]:
        del found[max(found)]
    assert list(found) == list(range(1, len(found) + 1)), "the tracer's numbers"
    differences = {"irq": [], "thread": []}
    begins = []
    for number, contexts in found.items():
        # The tracer writes a sample a moment after it has read the clock.
        due = first + round((contexts["irq"][0] - first) / period) * period
        assert 0 <= contexts["irq"][0] - due + 1000 < 100_000, f"sample {number} was due at {contexts['irq'][0]}, not {due}"
        assert due in alerts, f"sample {number}, due at {due}, has no alert"
        begins.append(due)
        for what, ours in zip(("irq", "thread"), alerts[due]):
            differences[what].append(contexts[what][1] - ours)
    assert begins == sorted(set(begins)), "two samples of one time"
    assert [begin for begin in sorted(alerts) if begin <= begins[-1]] == begins, "an alert for no sample"
    theirs = sum(contexts["irq"][1] > MS for contexts in found.values())
    ours = sum(alerts[begin][0] > MS for begin in begins)
    assert theirs == ours >= late, f"{theirs} handlers were late for timerlat, {ours} for us"
    return all([is_close(what, differences[what]) for what in differences])


def histogram(late, file, switches, returns):
    kinds = {"irq": "IRQ-000", "thread": "Thr-000", "user": "Usr-000"}
    theirs = {what: [] for what in kinds}
    columns = None
    with open(file, encoding="ascii") as lines:
        for line in lines:
            words = line.split()
            if words[:1] == ["Index"]:
                columns = {what: words.index(name) for what, name in kinds.items()}
            elif words[:1] == ["over:"]:
                assert not any(int(word) for word in words[1:]), line
                break
            elif columns:
                for what, column in columns.items():
                    theirs[what] += [int(words[0])] * int(words[column])
    switches, returns = alerts_of(switches), alerts_of(returns)
    ours = {
        "irq": sorted(called for called, _ in switches.values()),
        "thread": sorted(delay for _, delay in switches.values()),
        "user": sorted(delay for _, delay in returns.values()),
    }
    good = True
    for what, bins in theirs.items():
        # A sample may be in flight when rtla begins or ends, so one side may lack it. The n-th sample of that side is
        # then between the n-th and the next one of the other side.
        more = len(bins) - len(ours[what])
        assert bins and abs(more) <= 1, f"{what}: rtla has {len(bins)}, we have {len(ours[what])}"
        # A bin is a microsecond wide; its upper end counts.
        pairs = zip(ours[what], bins[max(more, 0) :])
        good = is_close(what, [1000 * (micros + 1) - ns for ns, micros in pairs]) and good
    counts = sum(micros * 1000 > MS for micros in theirs["irq"]), sum(ns > MS for ns in ours["irq"])
    assert abs(counts[0] - counts[1]) <= 1 and min(counts) >= late, f"handlers that were late: {counts}"
    return good


def main(what, *words):
    """Runs the comparison that the head of this file describes."""
    if what == "samples":
        good = samples(int(words[0]), int(words[1]), *words[2:])
    else:
        good = histogram(int(words[0]), *words[1:])
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
