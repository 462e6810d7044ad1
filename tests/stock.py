#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Starts instances while tasks fall asleep, wake and run: no task that has run since the start may be pending.

usage: stock.py ROUNDS INSTANCE:TRACKER[,KEY=VALUE...]...

Children sleep and wake all the time. In each round the instances are created and enabled in the middle of that; then
each child computes, without another call, until the round is over. No child may be pending in an instance then.
"""

import mmap
import os
import sys
import time

ROOT = "/proc/latency_tracker/"
CHILDREN = 2


def child(shared, number):
    """Sleeps and wakes until a round is announced, then confirms it and computes until it is over."""
    shown = 1 + number
    while True:
        while shared[0] == 0:
            time.sleep(0.0003)
        shared[shown] = 1
        while shared[0] == 1:
            pass
        if shared[0] == 2:
            os._exit(0)
        shared[shown] = 0


def control(line):
    with open(ROOT + "control", "w") as file:
        file.write(line + "\n")


def read(name):
    with open(ROOT + name) as file:
        return file.read()


def stats(name):
    return {key: int(value) for key, value in (line.split() for line in read(name + "/stats").splitlines())}


def check(name, pids):
    """Checks that no child is pending while the children compute."""
    pending = [line for line in read(name + "/pending").splitlines() if any(f" tid={pid} " in line for pid in pids)]
    assert not pending, f"{name}: {pending}"


def sums(name):
    """Checks the counters of a disabled instance; returns its operations from before the start."""
    v = stats(name)
    counted = sum(int(line.split()[2]) for line in read(name + "/histogram").splitlines())
    assert v["started"] == v["ended"] + v["pending"] + v["replaced"] + v["cleared"] + v["gone"], v
    assert v["ended"] == v["negative"] + v["before_start_ended"] + counted, (v, counted)
    assert v["before_start"] <= v["started"] and v["pending"] == 0, v
    return v["before_start"]


def main():
    rounds = int(sys.argv[1])
    shared = mmap.mmap(-1, mmap.PAGESIZE)
    pids = []
    for number in range(CHILDREN):
        pid = os.fork()
        if pid == 0:
            child(shared, number)
        pids.append(pid)
    instances = [word.split(":") for word in sys.argv[2:]]
    found = {name: 0 for name, _ in instances}
    for _ in range(rounds):
        for name, values in instances:
            tracker, *more = values.split(",")
            control(" ".join([name, tracker] + more))
        shared[0] = 1
        while not all(shared[1 + number] for number in range(CHILDREN)):
            time.sleep(0.001)
        for name, _ in instances:
            check(name, pids)
        shared[0] = 0
        while any(shared[1 + number] for number in range(CHILDREN)):
            time.sleep(0.001)
        for name, values in instances:
            control(f"{name} {values.split(',')[0]} enabled=0")
            found[name] += sums(name)
            control("-" + name)
    shared[0] = 2
    for pid in pids:
        os.waitpid(pid, 0)
    print(" ".join(f"{name}={count}" for name, count in found.items()))


main()
