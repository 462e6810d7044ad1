#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Storms of wakeups, for tests inside the virtual machine. Each ends with SIGTERM, or after COUNT.

usage: storms.py timers COUNT     1,000 kernel timers of 200 to 390 ms, until COUNT expirations were read
       storms.py crowd COUNT      64 tasks that one timer wakes together, COUNT times; they are killed at the end
       storms.py tasks COUNT      COUNT tasks, a multiple of eight: each eight wait for their parent and end
       storms.py hotplug COUNT    all CPUs but the first one go offline and come back, one after another
"""

import errno
import os
import selectors
import signal
import sys

TIMERS = 1000
CROWD = 64
SHORT = 8


def timers(count):
    """Timers with their own expiry times; many expire in one interrupt."""
    ready = selectors.DefaultSelector()
    for number in range(TIMERS):
        fd = os.timerfd_create(1, flags=os.TFD_NONBLOCK)
        period = 0.2 + number % 20 * 0.01
        os.timerfd_settime(fd, initial=period, interval=period)
        ready.register(fd, selectors.EVENT_READ)
    while count > 0:
        for key, _ in ready.select():
            count -= int.from_bytes(os.read(key.fd, 8), sys.byteorder)


def crowd(count):
    """The kernel wakes all readers of a timer; one reader gets the expiration, and the others keep waiting."""
    shared, own = (os.timerfd_create(1) for _ in range(2))
    os.timerfd_settime(shared, initial=0.02, interval=0.02)
    os.timerfd_settime(own, initial=0.02, interval=0.02)
    pids = []
    for _ in range(CROWD):
        pid = os.fork()
        if pid == 0:
            while True:
                os.read(shared, 8)
        pids.append(pid)
    while count > 0:
        count -= int.from_bytes(os.read(own, 8), sys.byteorder)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def tasks(count):
    """Each task waits for a byte from its parent. The byte wakes the task, and the task's exit wakes the parent."""
    for _ in range(count // SHORT):
        source, sink = os.pipe()
        pids = []
        for _ in range(SHORT):
            pid = os.fork()
            if pid == 0:
                # if the parent is killed, the task must not hold the pipe open itself, and wait forever
                os.close(sink)
                os.read(source, 1)
                os._exit(0)
            pids.append(pid)
        os.write(sink, bytes(SHORT))
        for pid in pids:
            os.waitpid(pid, 0)
        os.close(source)
        os.close(sink)


def hotplug(count):
    """Repeats a write that is refused because the kernel is busy with the last change."""
    for _ in range(count):
        for cpu in range(1, os.sysconf("SC_NPROCESSORS_CONF")):
            for word in "01":
                while True:
                    try:
                        with open(f"/sys/devices/system/cpu/cpu{cpu}/online", "w", encoding="ascii") as online:
                            online.write(word)
                        break
                    except OSError as error:
                        if error.errno != errno.EBUSY:
                            raise


def main(words):
    match words:
        case ["timers" | "crowd" | "tasks" | "hotplug" as kind, count]:
            globals()[kind](int(count))
        case _:
            sys.exit(__doc__)


main(sys.argv[1:])
