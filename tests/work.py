#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Programs that mark their work, for tests inside the virtual machine.

usage: work.py mark [--group GID] FILE WORD...   writes each word to a file, as a program with that group alone, and
                                                 prints the result: ok, or the name of the error. In a word, {N} stands
                                                 for N letters, and \\xHH for a byte
       work.py queue WAIT WORD BEGIN DONE MS     a listener writes WORD to the file WAIT, which makes it wait, marks the
                                                 start of a job in the file BEGIN, and leaves the job in a queue. A worker
                                                 polls the queue, does the job in MS, and marks its end in the file DONE.
                                                 They are called lt_listener and lt_worker; prints their ids
       work.py spin WAIT WORD BEGIN MS           the listener alone: it prints the result of its mark, and keeps its CPU
                                                 busy for MS
       work.py serve                             as mark, for each line of the input: FILE and words, with tabs in
                                                 between
       work.py keep FILE WORD... -- COMMAND...   opens a file, runs a command, and then writes as mark
"""

import errno
import mmap
import os
import re
import subprocess
import sys
import time

COOKIE = b"job 1"


def write(descriptor, message):
    """Returns the result of one write(2)."""
    try:
        written = os.write(descriptor, message)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "ok" if written == len(message) else f"{written} bytes"


def message(word):
    word = re.sub(r"\{(\d+)\}", lambda number: "x" * int(number[1]), word)
    return re.sub(rb"\\x([0-9a-f]{2})", lambda byte: bytes.fromhex(byte[1].decode()), word.encode())


def mark(file, *words):
    try:
        descriptor = os.open(file, os.O_WRONLY)
    except OSError as error:
        print(errno.errorcode[error.errno])
        return
    print(*[write(descriptor, message(word)) for word in words])


def serve():
    for line in iter(sys.stdin.readline, ""):
        mark(*line.removesuffix("\n").split("\t"))
        sys.stdout.flush()


def in_group(gid):
    """Leaves all groups but this one, and drops all privileges."""
    os.setgroups([])
    os.setgid(gid)
    os.setuid(65534)


def name(text):
    with open("/proc/self/comm", "w", encoding="ascii") as comm:
        comm.write(text)


def must(file, cookie):
    descriptor = os.open(file, os.O_WRONLY)
    result = write(descriptor, cookie)
    os.close(descriptor)
    if result != "ok":
        sys.exit(f"{file}: {result}")


def queue(wait, word, begin, done, milliseconds):
    # The queue has room for one job. Nothing wakes the worker when there is one.
    jobs = mmap.mmap(-1, 64)
    os.sched_setaffinity(0, {1})
    worker = os.fork()
    if worker == 0:
        name("lt_worker")
        end = time.monotonic() + 60
        while jobs[0] == 0 and time.monotonic() < end:
            time.sleep(0.005)
        time.sleep(int(milliseconds) / 1000)
        must(done, bytes(jobs[1 : 1 + jobs[0]]))
        os._exit(0)
    name("lt_listener")
    must(wait, word.encode())
    must(begin, COOKIE)
    jobs[1 : 1 + len(COOKIE)] = COOKIE
    jobs[0] = len(COOKIE)
    _, status = os.waitpid(worker, 0)
    if status != 0:
        sys.exit("the worker failed")
    print(os.getpid(), worker)


def spin(wait, word, begin, milliseconds):
    os.sched_setaffinity(0, {1})
    name("lt_listener")
    descriptor = os.open(begin, os.O_WRONLY)
    must(wait, word.encode())
    result = write(descriptor, COOKIE)
    end = time.monotonic() + int(milliseconds) / 1000
    while time.monotonic() < end:
        pass
    print(result)


def keep(file, *words):
    at = words.index("--")
    descriptor = os.open(file, os.O_WRONLY)
    subprocess.run(words[at + 1 :], check=True)
    print(*[write(descriptor, message(word)) for word in words[:at]])


def main(words):
    what, *arguments = words
    if what == "mark" and arguments[0] == "--group":
        in_group(int(arguments[1]))
        arguments = arguments[2:]
    {"mark": mark, "serve": serve, "queue": queue, "spin": spin, "keep": keep}[what](*arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
