#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""trace: measures how fast lt-ctf and babeltrace2 decode the same trace, without output.

usage: trace.py LT-CTF TRACE OLD DIRECTORY ROUNDS

The programs take turns, and the best round of each counts: processor time, user and system, of all threads, and elapsed
time. The two times differ, since lt-ctf reads a trace of several streams with several threads, if there are several
processors; the number of processors has a row. The traces are TRACE; OLD, which is in the older format, CTF 1.8; OLD
converted to CTF 2 by babeltrace2, in DIRECTORY, which has other event headers than LTTng's; and, also there, the first
packets of each stream of TRACE 100 times, to measure the merging of many streams.
Prints `result` rows for report.py.
"""

import os
import re
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

COPIES = 100
PER_STREAM = 400_000  # bytes, and then to the end of the packet


def seconds(command):
    """Returns the processor time and the elapsed time of a command, and its output."""
    read, write = os.pipe()
    begin = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.dup2(write, 1)
        os.execvp(command[0], command)
    os.close(write)
    with os.fdopen(read) as out:
        said = out.read()
    _, status, usage = os.wait4(pid, 0)
    elapsed = time.monotonic() - begin
    if status != 0:
        sys.exit(f"{command} failed: {status}")
    return usage.ru_utime + usage.ru_stime, elapsed, said


def cut(path, limit):
    """Returns the first packets of a stream of LTTng's kernel tracer, about `limit` bytes."""
    with open(path, "rb") as file:
        data = file.read(16 << 20)
    at = 0
    # header: magic, UUID, stream, instance; context: begin, end, content, total, of 8 bytes each
    while at < limit and at + 64 <= len(data):
        total = struct.unpack_from("<Q", data, at + 32 + 24)[0] // 8
        if total == 0 or at + total > len(data):
            break
        at += total
    return data[:at]


def copies(trace, directory):
    """Writes a trace with COPIES streams for each stream of `trace`."""
    kernel = os.path.join(trace, "kernel")
    os.makedirs(directory)
    shutil.copy(os.path.join(kernel, "metadata"), directory)
    streams = sorted(n for n in os.listdir(kernel) if os.path.isfile(os.path.join(kernel, n)) and n != "metadata")
    for number, name in enumerate(streams):
        packets = bytearray(cut(os.path.join(kernel, name), PER_STREAM))
        for i in range(COPIES):
            at = 0
            while at < len(packets):
                struct.pack_into("<Q", packets, at + 24, COPIES * number + i)
                at += struct.unpack_from("<Q", packets, at + 32 + 24)[0] // 8
            with open(os.path.join(directory, f"{name}_{i:03}"), "wb") as file:
                file.write(packets)


def convert(trace, path):
    """Writes a trace once more with babeltrace2, in the format that it writes by default, CTF 2."""
    subprocess.run(["babeltrace2", trace, "--component=sink.ctf.fs", f'--params=path="{path}",quiet=yes'], check=True)
    with open(next(Path(path).rglob("metadata")), "rb") as file:
        if file.read(1) != b"\x1e":
            sys.exit(f"babeltrace2 has not converted {trace} to CTF 2")


def compare(what, lt_ctf, trace, rounds):
    """Decodes the trace with each program in turn, and prints the rows."""
    ways = {
        "count": [lt_ctf, "count", trace],
        "fields": [lt_ctf, "fields", trace],
        "babeltrace2": ["babeltrace2", trace, "-o", "dummy"],
    }
    best, events, streams = {}, 0, 0
    for _ in range(rounds):
        for name, command in ways.items():
            took, elapsed, said = seconds(command)
            for row, value in ((name, took), (f"{name}_elapsed", elapsed)):
                best[row] = min(best.get(row, value), value)
            found = re.match(r"events (\d+) .* streams (\d+) ", said)
            if found:
                events, streams = int(found[1]), int(found[2])
    said = subprocess.run(["babeltrace2", trace, "--component=sink.utils.counter", "--params=hide-zero=yes,step=+0"],
                          capture_output=True, text=True, check=True).stdout
    theirs = re.findall(r"([\d,]+) Event message", said)[-1]
    if int(theirs.replace(",", "")) != events:
        sys.exit(f"babeltrace2 finds {theirs} events, and lt-ctf {events}")
    for name, took in best.items():
        # nanoseconds an event
        print(f"result {what}_{name} {streams} {int(took * 1e9)} {events}")


def main():
    """Runs the program; the head of this file describes it."""
    lt_ctf, trace, old, directory, rounds = sys.argv[1:]
    shutil.rmtree(directory, ignore_errors=True)
    many, converted = os.path.join(directory, "many"), os.path.join(directory, "converted")
    copies(trace, many)
    convert(old, converted)
    for what, path in (("one", trace), ("old", old), ("converted", converted)):
        compare(what, lt_ctf, path, int(rounds))
    compare("many", lt_ctf, many, max(1, int(rounds) // 2))
    shutil.rmtree(directory)
    print(f"result processors 0 {len(os.sched_getaffinity(0))} 1")
    print("complete")


main()
