#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Compares the samples of cyclictest with the alerts of the tracker tree, one by one.

usage: cyclictest.py INTERVAL USUAL NAME=PERCENT...

NAME.samples is what `cyclictest --verbose --nsecs` has printed for one thread, whose interval is INTERVAL ns;
NAME.switches and NAME.returns are the alerts of two instances with origin=timer and threshold=0, the first with
end=switch and the second with end=user.

Each sample is the time from when its timer was due until clock_gettime() after clock_nanosleep() had returned. The
time at which a timer was due is not printed, but follows from the start of the first alert, to the nanosecond:

  due       clock_gettime()    next due
   |--- sample ---|               |
   |----- interval -----|-- ... --|   as many intervals as it takes to get past the sample

So for each sample there must be an alert that starts exactly when the sample's timer was due, and

  delay to the switch  <=  delay to the return to user space  <=  sample

At least PERCENT % of the samples are longer than the delay to the switch by at most USUAL ns; in the others, something
came in between. If a sample ended just before the next timer was due, the kernel may find that timer due when it is
started, and then never calls its function. Only in this case is there no alert.
"""

import re
import sys

# Longest time from one reading of the clock to the start of the next timer, in ns.
START = 30_000


def samples_of(file):
    with open(file, encoding="ascii") as lines:
        found = [re.fullmatch(r" *0: *(\d+): *(-?\d+)", line.rstrip("\n")) for line in lines]
    found = [(int(line[1]), int(line[2])) for line in found if line]
    if [number for number, _ in found] != list(range(len(found))):
        sys.exit(f"{file}: not all samples are there")
    return [sample for _, sample in found]


def alerts_of(file):
    """Returns the delays by start time, without the delays of cyclictest's main thread, which takes no samples."""
    delays = {}
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            field = {name: int(value) for name, value in re.findall(r" (time|delay|pid|tid)=(\d+)", line)}
            if field["pid"] == field["tid"]:
                continue
            begin = field["time"] - field["delay"]
            if begin in delays:
                sys.exit(f"{file}: two alerts of one timer: {line}")
            if ' path="timer:hrtimer_wakeup@' not in line:
                sys.exit(f"{file}: not the timer of a sleeping task: {line}")
            delays[begin] = field["delay"]
    return delays


def compare(name, interval, usual, percent):
    samples = samples_of(f"{name}.samples")
    switches, returns = (alerts_of(f"{name}.{end}") for end in ("switches", "returns"))
    if not samples or not switches:
        sys.exit(f"{name}: {len(samples)} samples, {len(switches)} alerts")
    faults, differences, at_once = [], [], 0
    due, last = min(switches), None
    for number, sample in enumerate(samples):
        switch, user = switches.pop(due, None), returns.pop(due, None)
        if switch is None and user is None and last is not None and due - last < START:
            at_once += 1
        elif switch is None or user is None:
            faults.append(f"sample {number}, due at {due}, has no alert; the one before ended at {last}")
        elif not switch <= user <= sample:
            faults.append(f"sample {number} is {sample} ns; switched in after {switch}, in user space after {user}")
        else:
            differences.append(sample - switch)
        last = due + sample
        due += interval
        while due < last:
            due += interval
    faults += [f"an alert for no sample, from {begin}" for begin in sorted(switches.keys() | returns.keys())]
    close = sum(difference <= usual for difference in differences)
    if 100 * close < percent * len(samples):
        faults.append(f"only {close} of {len(samples)} differ by {usual} ns or less")
    for fault in faults:
        print(f"{name}: {fault}")
    print(
        f"{name}: samples={len(samples)} at_once={at_once} longest={max(samples)} "
        f"differences={min(differences, default=0)}..{max(differences, default=0)} usual={close}"
    )
    return not faults


def main(interval, usual, *names):
    results = []
    for word in names:
        name, percent = word.split("=")
        results.append(compare(name, int(interval), int(usual), int(percent)))
    sys.exit(0 if results and all(results) else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
