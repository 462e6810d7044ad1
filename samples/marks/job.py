#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Marks work for latency-tracker, in Python. Each input line is a job; its cookie has the line number.

usage: job.py [INSTANCE] <FILE     e.g. seq 3 | job.py

    latency-tracker start job tree end=work threshold=20ms
"""

import contextlib
import os
import sys
import time

DIR = "/proc/latency_tracker"


class Marks:
    """The files where work is marked: for all instances with end=work, or for one."""

    def __init__(self, instance=None):
        paths = [f"{instance}/work"] if instance else ["work_begin", "work_done"]
        try:
            files = [os.open(f"{DIR}/{path}", os.O_WRONLY | os.O_CLOEXEC) for path in paths]
        except OSError as error:
            print(f"work is not followed: {error}", file=sys.stderr)
            files = [None]
        self.files = files[0], files[-1]
        self.words = (b"begin ", b"done ") if instance else (b"", b"")

    def _mark(self, which, cookie):
        if self.files[which] is None:
            return
        try:
            os.write(self.files[which], self.words[which] + cookie)
        except OSError as error:
            print(f"{cookie}: {error}", file=sys.stderr)

    @contextlib.contextmanager
    def work(self, cookie):
        """Marks the body of a `with` statement as work with this cookie."""
        self._mark(0, cookie)
        try:
            yield
        finally:
            self._mark(1, cookie)


def main(instance=None):
    marks = Marks(instance)
    for number, _ in enumerate(sys.stdin, 1):
        with marks.work(b"job %d" % number):
            time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:])
