#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""analyze: measures processor time and memory of `analyze`, and whether `path` takes twice as long for twice the trace.

usage: analyze.py LATENCY-TRACKER TRACE DIRECTORY ROUNDS [PREFIX]

`path` is requested for the thread that ran the most. Shorter traces, made in DIRECTORY, have the first part of each
stream. The best round counts: processor time, user and system. A longer trace need not have a longer path. So the path
is also requested for the first second of the trace alone. A longer trace then only means more to read, unless another
thread ran the most in it. The other analyses get the whole trace, `delays` for the same thread. Peak memory is at least
this program's own, 10 to 20 MB.
Prints `result` rows for report.py, their names with PREFIX.
"""

import os
import re
import shutil
import struct
import subprocess
import sys

from report import KINDS
from scaling_table import line

PARTS = 5


def run(command):
    """Returns the processor time of a command in seconds, its peak memory in bytes, and its messages."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(write, 2)
        os.execv(command[0], command)
    os.close(write)
    with os.fdopen(read) as messages:
        said = messages.read()
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"{command} failed: {status}: {said}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, said


def shorten(trace, directory, part):
    """Makes a trace of the first packets of each stream of LTTng's kernel tracer; returns the size of its streams in
    bytes."""
    kernel = os.path.join(trace, "kernel")
    os.makedirs(directory)
    shutil.copy(os.path.join(kernel, "metadata"), directory)
    size = 0
    for name in sorted(os.listdir(kernel)):
        path = os.path.join(kernel, name)
        if name == "metadata" or not os.path.isfile(path):
            continue
        # In small pieces: the peak memory of a command is at least what this process had when it started the command.
        with open(path, "rb") as file, open(os.path.join(directory, name), "wb") as into:
            at, end = 0, os.path.getsize(path) * part // PARTS
            # header: magic, UUID, stream, instance; context: begin, end, content, total, of 8 bytes each
            while at < end and len(header := os.pread(file.fileno(), 64, at)) == 64:
                at += struct.unpack_from("<Q", header, 32 + 24)[0] // 8
            while (left := at - into.tell()) > 0 and (data := file.read(min(left, 1 << 20))):
                into.write(data)
        size += at
    return size


def main():
    """Runs the program; the head of this file describes it."""
    command, trace, directory, rounds = sys.argv[1:5]
    prefix = "".join(sys.argv[5:])
    points, read = [], []
    for part in range(1, PARTS + 1):
        shutil.rmtree(directory, ignore_errors=True)
        size = shorten(trace, directory, part)
        said = subprocess.run([command, "analyze", "path", directory, "--tid", "4194304"],
                              capture_output=True, text=True, check=False).stderr
        tid = re.search(r"ran the most: [^,]*?/?(\d+)(,|$)", said, re.M)
        path = [command, "analyze", "path", directory, "--tid", tid[1], "--verbose"]
        took, space, said = min(run(path) for _ in range(int(rounds)))
        events = int(re.search(r"([\d,]+) events in", said)[1].replace(",", ""))
        points.append((events, took))
        second, _, _ = min(run(path + ["--from", "+0s", "--to", "+1s"]) for _ in range(int(rounds)))
        read.append((events, second))
        # only for the log
        print(f"part {part}: {events} events, path {took:.3f} s, path of the first second {second:.3f} s")
    # the whole trace, which is the last part
    print(f"result {prefix}path {size // 1_000_000} {int(took * 1e9)} {size}")
    print(f"result {prefix}space {size // 1_000_000} {space} {size}")
    for kind in KINDS[prefix]:
        thread = ["--tid", tid[1]] if kind == "delays" else []
        took, space, _ = min(run([command, "analyze", kind, directory, *thread]) for _ in range(int(rounds)))
        print(f"result {prefix}{kind} {size // 1_000_000} {int(took * 1e9)} {size}")
        print(f"result {prefix}{kind}_space {size // 1_000_000} {space} {size}")
    shutil.rmtree(directory)
    print(f"result {prefix}bent 0 {1 - line(points)[2]:.6f} 1")
    print(f"result {prefix}read_bent 0 {1 - line(read)[2]:.6f} 1")
    print("complete")


main()
