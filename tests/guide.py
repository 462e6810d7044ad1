#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""The programs of Documentation/guide/why-was-it-slow.md, inside the virtual machine (tests/guide.sh).

usage: guide.py lock                 client asks server, which needs a lock that logger holds; batch preempts logger
       guide.py journal DIRECTORY    database writes to a file in DIRECTORY, and calls fsync(2)
       guide.py quota                ticker wakes up every 20 ms, and batch computes, in the cgroup shop, which may use
                                     10 ms of CPU time in each 100 ms
"""

import fcntl
import os
import socket
import sys
import time

import causes
from causes import on, task
from late import called, spin


def lock():
    client, server = socket.socketpair()
    (started, start), (held, hold) = os.pipe(), os.pipe()

    def log():
        on(1)
        file = os.open("/tmp/log", os.O_RDWR | os.O_CREAT)
        fcntl.flock(file, fcntl.LOCK_EX)
        os.write(hold, b"x")
        # By the end of this time, the server waits for the lock.
        spin(0.05)
        os.write(start, b"x")
        spin(0.01)
        fcntl.flock(file, fcntl.LOCK_UN)

    def batch():
        on(1, 10)
        os.read(started, 1)
        spin(0.4)

    def serve():
        server.recv(1)
        fcntl.flock(os.open("/tmp/log", os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)
        server.send(b"x")

    tasks = [task("batch", batch), task("server", serve), task("logger", log)]
    called("client")
    os.read(held, 1)
    client.send(b"x")
    client.recv(1)
    for pid in tasks:
        os.waitpid(pid, 0)


def journal(directory):
    fd = os.open(f"{directory}/data", os.O_WRONLY | os.O_CREAT)
    os.write(fd, bytes(4096))
    called("database")
    os.fsync(fd)


def quota():
    def tick():
        for _ in range(30):
            time.sleep(0.02)
            spin(0.001)

    # The children inherit the CPU and the cgroup.
    on(1)
    causes.enter(f"{causes.CGROUPS}/shop")
    tasks = [task("batch", spin, 0.8), task("ticker", tick)]
    for pid in tasks:
        os.waitpid(pid, 0)


def main(words):
    what, *rest = words
    {"lock": lock, "journal": journal, "quota": quota}[what](*rest)


main(sys.argv[1:])
