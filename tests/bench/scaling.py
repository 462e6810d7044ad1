#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""scaling: measures instructions and memory of `analyze` for traces of different lengths, in the virtual machine.

usage: scaling.py LATENCY-TRACKER DIRECTORY CPUS CLIENTS

DIRECTORY has the traces of scaling.sh, recorded on CPUS CPUs with CLIENTS clients. `path` and `delays` are requested
for the thread of hackbench that ran the most, over the whole trace, `wakeups` for all threads. `path` and `delays` run
again with --max-memory: with 1 KiB, and then with the limit that the error advises, until it suffices.

The machine has one processor, whose clock counts instructions, so the processor time of a command is the number of
its instructions, in user mode and in the kernel. Its memory is read from /proc every 5 ms of that clock; what it
allocates in its last 5 ms is missed.

Prints for each run that succeeded (LIMIT is in MiB, or `-`)

  run CPUS CLIENTS SECONDS EVENTS LOST COMMAND LIMIT INSTRUCTIONS PEAK
  at CPUS CLIENTS COMMAND LIMIT INSTRUCTIONS BYTES

where `at` is the memory after INSTRUCTIONS, for the longest trace alone. Prints `complete` at the end. A trace
with missing packets, or one that cannot be read to its end, is an error.
"""

import collections
import os
import re
import subprocess
import sys
import tempfile
import time

PERIOD = 0.005  # seconds between two looks at the memory
SAMPLES = 100  # approximate number of lines `at` for a run
ATTEMPTS = 5  # of finding a sufficient limit
NO_THREAD = "4194304"  # larger than any thread ID

# exit status, messages, instructions, peak memory in bytes, and (instructions, bytes) from time to time
Done = collections.namedtuple("Done", "status said cost peak samples")


def look(pid):
    """Returns the processor time of a process, ns, its memory and its peak memory, bytes; None if it has ended."""
    memory = {}
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        for line in file:
            key, value = line.split(":", 1)
            if key in ("VmRSS", "VmHWM"):
                memory[key] = int(value.split()[0]) * 1024
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        ran = int(file.read().split()[0])
    return (ran, memory["VmRSS"], memory["VmHWM"]) if len(memory) == 2 else None


def run(command):
    """Runs a command and discards its standard output."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as messages:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=messages)
        ended, peak, samples = 0, 0, []
        while not ended:
            # a process that is not waited for keeps its directory in /proc
            seen = look(process.pid)
            if seen:
                samples.append(seen[:2])
                peak = seen[2]
            time.sleep(PERIOD)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        messages.seek(0)
        cost = round((usage.ru_utime + usage.ru_stime) * 1e9)
        return Done(process.returncode, messages.read(), cost, peak, samples)


def succeed(command):
    """Runs a command; ends the program if it fails."""
    done = run(command)
    if done.status:
        sys.exit(f"scaling: {' '.join(command)}: exit status {done.status}: {done.said}")
    return done


def limited(command):
    """Runs a command with the --max-memory that it advises; returns this limit in MiB, and the run."""
    limit = "1K"
    for _ in range(ATTEMPTS):
        done = run([*command, "--max-memory", limit])
        advised = re.search(r"set --max-memory (\d+)M", done.said)
        if done.status == 0:
            return limit.removesuffix("M"), done
        if not advised:
            break
        limit = f"{advised[1]}M"
    sys.exit(f"scaling: {' '.join(command)} --max-memory {limit}: exit status {done.status}: {done.said}")


def read(said, trace):
    """Returns the numbers of recorded and of lost events of a trace, from the messages of `path --verbose`."""
    if re.search(r"are missing|cannot be read|still being written", said):
        sys.exit(f"scaling: {trace} is damaged, record it again: {said}")
    events = re.search(r"([\d,]+) events in", said)
    lost = re.search(r"the tracer lost ([\d,]+) events", said)
    return tuple(int(found[1].replace(",", "")) if found else 0 for found in (events, lost))


def main():
    """Runs the program; the head of this file describes it."""
    command, directory, cpus, clients = sys.argv[1:]
    lengths = sorted(os.listdir(directory), key=float)
    for seconds in lengths:
        trace = os.path.join(directory, seconds)
        said = run([command, "analyze", "path", trace, "--tid", NO_THREAD]).said
        # the error lists the threads that ran the most
        tid = re.search(r"hackbench/(\d+)", said)
        if not tid:
            sys.exit(f"scaling: {trace}: expected the busiest threads, one of them hackbench: {said}")
        thread = ["--tid", tid[1]]
        path = [command, "analyze", "path", trace, *thread, "--verbose"]
        delays = [command, "analyze", "delays", trace, *thread]
        wakeups = [command, "analyze", "wakeups", trace]
        whole = succeed(path)
        events, lost = read(whole.said, trace)
        for what, limit, done in (("path", "-", whole), ("path", *limited(path)),
                                  ("delays", "-", succeed(delays)), ("delays", *limited(delays)),
                                  ("wakeups", "-", succeed(wakeups))):
            print(f"run {cpus} {clients} {seconds} {events} {lost} {what} {limit} {done.cost} {done.peak}")
            if seconds == lengths[-1]:
                for cost, size in done.samples[:: max(1, len(done.samples) // SAMPLES)]:
                    print(f"at {cpus} {clients} {what} {limit} {cost} {size}")
    print("complete")


main()
