#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Reads alerts of the tracker tree, for tests inside the virtual machine.

usage: tree.py sums FILE                      checks that the steps of each chain add up to its delay
       tree.py like FILE COUNT PATTERN        checks that this many chains match PATTERN, a regular expression for the
                                              kinds and subjects of all steps, with a space in between, without CPU and time
       tree.py longest FILE STEP NANOSECONDS  checks that the longest step of each chain matches STEP, and takes at
                                              least this time
       tree.py are FILE COUNT PATTERN [STEP NANOSECONDS]
                                              checks all of the above, and that there are no other chains
       tree.py parts FILE SLACK TRACE THREAD [PART=NS...]
                                              checks that the last step of each chain records what its CPU did during
                                              the step: these times in these parts, within SLACK, and at most SLACK in
                                              other parts. With +SLACK all may take longer. TRACE is ftrace's, on the
                                              mono clock. The parts may also contain the time for which tasks other than
                                              THREAD, and softirqs that the test has not raised, had the CPU then
       tree.py roots FILE STEP                checks what `latency-tracker tree --json` has written: one root, STEP, with one
                                              chain, whose steps add up to its age
       tree.py every FILE                     checks all of FILE: a name, a word from above, and its arguments on each line,
                                              with tabs in between
       tree.py live TEXT COMMAND...           runs this on a terminal of 80 columns and 24 lines, until TEXT was shown twice
                                              on a cleared screen, sends Ctrl-C, and checks that this ends it

The stopper (migration/N) may preempt any task at any time; the preemption counts as part of the step in which it comes.
If the machine is timed by the host (PATIENCE is not 1, see in_time in lib.sh), this applies to preemptions by any task.
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

STEP = re.compile(r"^([a-z]+:.*)@(\d+)\+(\d+)(\{\S*\})?$|^(more\(\d+\))\+(\d+)$")
PARTS = re.compile(r"\{irq:(\d+),softirq:(\d+),tasks:(\d+),idle:(\d+)(?:;[^{}]*)?\}")


PATIENCE = int(os.environ.get("PATIENCE", "1"))
# A preemption by a thread of priority 0, which only the stopper has; by any thread, if the machine is timed by the
# host.
PREEMPTED = re.compile(r"preempted:\d+(\(\S*\))?/0" if PATIENCE == 1 else r"preempted:\d+(\(\S*\))?/\d+")


def without_preemption(steps):
    """Returns the steps, where a step that was split by a preemption counts as one."""
    found = []
    before = 0
    while steps:
        what, time, parts = steps.pop(0)
        if PREEMPTED.fullmatch(what) and len(steps) > 1 and steps[0][0].startswith("switch:"):
            before += time + steps.pop(0)[1]
        else:
            found.append((what, before + time, parts))
            before = 0
    return found


def alerts(file):
    """Returns the delay of each alert and its steps: kind, duration, and the recorded parts, if any."""
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            chain = re.search(r' path="((?:[^"\\]|\\.)*)"', line)
            if not chain:
                sys.exit(f"no path=: {line}")
            steps = []
            for text in chain[1].split(" "):
                step = STEP.match(text)
                if not step:
                    sys.exit(f"an odd step, {text}: {line}")
                if step[4] and not step[1].startswith("switch:"):
                    sys.exit(f"parts of a step that ends no wait for a CPU, {text}: {line}")
                # After steps that were left out, the parts add up to a wait that is shorter than the time of the step.
                is_whole = not (steps and steps[-1][0].startswith("more("))
                parts = parts_of(step[4], int(step[3]), is_whole, line) if step[4] else None
                steps.append((step[1] or step[5], int(step[3] or step[6]), parts))
            yield int(re.search(r" delay=(\d+) ", line)[1]), without_preemption(steps), line


def parts_of(text, took, is_whole, line):
    """Returns the parts of a step. Checks that they add up to its time, or to less if steps were left out before it."""
    parts = PARTS.fullmatch(text)
    if not parts:
        sys.exit(f"odd parts, {text}: {line}")
    parts = [int(part) for part in parts.groups()]
    if sum(parts) > took or (is_whole and sum(parts) != took):
        sys.exit(f"the parts {parts} add up to {sum(parts)}, the step took {took}: {line}")
    return dict(zip(("irq", "softirq", "tasks", "idle"), parts))


def sums(file):
    number = 0
    for delay, steps, line in alerts(file):
        if sum(time for _, time, _ in steps) != delay:
            sys.exit(f"the steps add up to {sum(time for _, time, _ in steps)}: {line}")
        number += 1
    if number == 0:
        sys.exit("no alerts")
    print(f"{number} chains add up to their delays")
    return number


def like(file, count, pattern):
    chains = [" ".join(what for what, *_ in steps) for _, steps, _ in alerts(file)]
    found = [chain for chain in chains if re.fullmatch(pattern, chain)]
    if len(found) != int(count):
        sys.exit(f"{len(found)} of {count} chains are like {pattern}:\n" + "\n".join(chains))


def are(file, count, pattern, *step):
    number = sums(file)
    if number != int(count):
        sys.exit(f"{number} chains instead of {count}")
    like(file, count, pattern)
    if step:
        longest(file, *step)


def longest(file, kind, nanoseconds):
    for _, steps, line in alerts(file):
        what, time, _ = max(steps, key=lambda step: step[1])
        if not re.fullmatch(kind, what) or time < int(nanoseconds):
            sys.exit(f"the longest step is {what}, {time} ns, not {kind} of {nanoseconds} ns or more: {line}")


EVENT = re.compile(r"\[(\d+)\] \S+ +(\d+)\.(\d{6}): (sched_switch|(?:irq_handler|softirq)_(?:entry|exit)): (.*)")
SWITCH = re.compile(r"prev_comm=.* ==> next_comm=(.*) next_pid=")
# The vectors of the tasklets that a test keeps busy itself.
OWN_VECTOR = re.compile(r"action=(HI|TASKLET)\]")


def others(trace, cpu, begin, end, thread):
    """Returns how long other softirqs and other tasks had this CPU, and the trace lines that show it."""
    took = {"softirq": 0, "tasks": 0}
    lines = []
    handlers, softirq, task, since = 0, None, None, begin
    with open(trace, encoding="utf-8", errors="replace") as text:
        for line in text:
            event = EVENT.search(line)
            if not event or int(event[1]) != cpu:
                continue
            at = int(event[2]) * 1_000_000_000 + int(event[3]) * 1000
            if begin <= at <= end:
                lines.append(line)
            has = "" if handlers else "softirq" if softirq == "other" else "" if softirq else "tasks" if task == "other" else ""
            if has:
                took[has] += max(0, min(at, end) - max(since, begin))
            since = at
            what = event[4]
            if what == "sched_switch":
                name = SWITCH.match(event[5])[1]
                task = "own" if name == thread or name.startswith("swapper/") else "other"
            elif what.startswith("softirq"):
                softirq = ("own" if OWN_VECTOR.search(event[5]) else "other") if what.endswith("entry") else None
            else:
                handlers += 1 if what.endswith("entry") else -1
    return took, lines


def parts(file, slack, trace, thread, *expected):
    expected = {part: int(time) for part, time in (word.split("=") for word in expected)}
    most_added = 0
    for _, steps, line in alerts(file):
        _, took, told = steps[-1]
        if told is None:
            sys.exit(f"the last step has no parts: {line}")
        end = int(re.search(r" time=(\d+) ", line)[1])
        cpu = int(re.search(r"@(\d+)\+\d+\{[^}]*\}\"$", line.rstrip())[1])
        added, seen = others(trace, cpu, end - took, end, thread)
        most_added = max(most_added, *added.values())
        if not seen:
            sys.exit(f"the trace has nothing on CPU {cpu} from {end - took} to {end}: {line}")
        interrupts = 0
        for part, time in told.items():
            least = expected.get(part, 0)
            # A busy period ends at a fixed time, so an interruption may take a part of it.
            most = time
            if slack.startswith("+"):
                most, interrupts = time + interrupts, interrupts + time
            upper = least + int(slack) + added.get(part, 0)
            if most < least - int(slack) - added["softirq"] or (time > upper and not slack.startswith("+")):
                sys.exit(f"{part} is {time} ns, not {least} within {slack}, others {added}: {line}\n" + "".join(seen))
    print(f"the parts are as expected; others had the CPU for up to {most_added} ns")


def roots(file, step):
    with open(file, encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    if [root["root"] for root in found] != [step] or len(found[0]["tips"]) != 1:
        sys.exit(f"not one chain from {step}: {found}")
    tip = found[0]["tips"][0]
    if tip["steps"][0]["step"] != step or sum(step["took"] for step in tip["steps"]) != tip["age"] or tip["age"] != found[0]["age"]:
        sys.exit(f"its steps do not add up to its age: {tip}")
    if not all(step["percent"] == step["took"] * 100 // tip["age"] for step in tip["steps"]):
        sys.exit(f"odd shares: {tip}")


def every(file):
    faults = []
    with open(file, encoding="utf-8") as notes:
        for note in notes:
            name, *words = note.rstrip("\n").split("\t")
            try:
                main(words)
            except SystemExit as fault:
                faults.append(f"{name}: {fault}")
    if faults:
        sys.exit("\n".join(faults))


CLEAR = "\x1b[H\x1b[2J"


def live(text, *command):
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.execvp(command[0], command)
    shown = ""
    end = time.monotonic() + 30 * PATIENCE
    while sum(text in screen for screen in shown.split(CLEAR)[1:]) < 2:
        if not select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
            os.kill(pid, signal.SIGKILL)
            sys.exit(f"waited in vain for {text!r}, twice: {shown!r}")
        shown += os.read(terminal, 4096).decode()
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"Ctrl-C ends it with {status:#x}")
    screens = [re.sub(r"\x1b\[[0-9;]*m", "", screen) for screen in shown.split(CLEAR)]
    if any(len(line) > 80 for screen in screens for line in screen.splitlines()):
        sys.exit(f"a line is wider than the terminal: {shown!r}")


def main(words):
    what, *arguments = words
    functions = (sums, like, longest, are, parts, roots, every, live)
    {function.__name__: function for function in functions}[what](*arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
