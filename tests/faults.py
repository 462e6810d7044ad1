# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Fails each allocation while an instance is created, changed, opened, read and removed (vm/fault-injection)."""

import errno
import os
import sys

from readers import LT, control

MOST = 2000
# fail one allocation, which the kernel may tolerate; or several in a row, so that its fallbacks fail, too
COUNTS = (1, 8)
faults = os.open("/proc/lt_faults", os.O_RDWR)


def fail(text):
    sys.exit(f"FAIL: {text}")


def with_faults(nth, count, action):
    """Runs the action with failing allocations; returns its result or OSError, and how many failed."""
    arm, disarm = f"{nth} {count}".encode(), b"0 0"
    os.pwrite(faults, arm, 0)
    try:
        result = action()
    except OSError as error:
        result = error
    os.pwrite(faults, disarm, 0)
    return result, int(os.pread(faults, 16, 0))


def each(what, action, undo, state, before_each=lambda: None):
    """Runs the action with its first allocation failing, then its second, and so on, until none fails."""
    most_refused = 0
    for count in COUNTS:
        refused = survived = 0
        for nth in range(1, MOST):
            before_each()
            before = state()
            result, failed = with_faults(nth, count, action)
            if isinstance(result, OSError):
                if result.errno != errno.ENOMEM:
                    fail(f"{what}: allocation {nth} fails: {result}")
                if failed == 0:
                    fail(f"{what}: ENOMEM though no allocation failed")
                if state() != before:
                    fail(f"{what}: allocation {nth} fails: left behind: {before} -> {state()}")
                refused += 1
                continue
            undo(result)
            if failed == 0:
                break
            # it used a fallback: a smaller allocation, or less memory
            survived += 1
        else:
            fail(f"{what}: no end after {MOST} allocations")
        print(f"{what}: {nth - 1} allocations, {count} failing: {refused} refused, {survived} did without", flush=True)
        most_refused = max(refused, most_refused)
    return most_refused


def instances():
    return sorted(os.listdir(LT)), open(f"{LT}/control").read()


# Opened once, before allocations fail.
control_fd = os.open(f"{LT}/control", os.O_WRONLY)
write = lambda line: os.write(control_fd, line)

refused = 0
for what, line in {
    "creation": b"f block threshold=1ms timeout=5s dev=vda events=64 ring=16\n",
    "creation, large": b"f block threshold=1ms events=3000 ring=1024\n",
    "creation, disabled": b"f block from=insert enabled=0 events=1\n",
}.items():
    refused += each(what, lambda: write(line), lambda _: control("-f"), instances)
if refused < 40:
    fail(f"only {refused} times was an instance refused")

control("here block threshold=1ms events=100")


def settings():
    return {name: open(f"{LT}/here/{name}").read() for name in os.listdir(f"{LT}/here")
            if name not in ("alerts", "wakeup", "stats", "histogram", "pending")}


def reset(_):
    control("here block threshold=1ms enabled=1 timeout=0 wakeup_interval=0 dev=all")


each("a change", lambda: write(b"here block threshold=2ms enabled=0 timeout=1s wakeup_interval=1s dev=vda\n"), reset, settings)
for name, value in {"threshold": b"3ms\n", "enabled": b"0\n", "timeout": b"7s\n", "dev": b"vda\n", "wakeup_interval": b"1s\n"}.items():
    fd = os.open(f"{LT}/here/{name}", os.O_WRONLY)
    each(f"a write to {name}", lambda: os.write(fd, value), reset, settings)
    os.close(fd)

for name in ("trackers", "version", "control", "here/stats", "here/histogram", "here/pending", "here/threshold",
             "here/dev", "here/alerts", "here/wakeup", "alerts", "wakeup"):
    opened = lambda: os.open(f"{LT}/{name}", os.O_RDONLY | os.O_NONBLOCK)
    each(f"opening {name}", opened, os.close, instances)
    if name.endswith(("alerts", "wakeup")):
        continue
    holder = []

    def reopen():
        while holder:
            os.close(holder.pop())
        holder.append(opened())

    each(f"reading {name}", lambda: os.read(holder[0], 65536), lambda _: None, instances, reopen)
    os.close(holder.pop())

# A removal that fails leaves the other instances alone.
def remove(_=None):
    if "gone" in os.listdir(LT):
        control("-gone")


def make():
    remove()
    control("gone block threshold=1ms timeout=1s events=64")


each("removal", lambda: write(b"-gone\n"), lambda _: None,
     lambda: [i for i in instances()[0] if i != "gone"], make)
remove()
control("-here")
if any(os.path.isdir(f"{LT}/{name}") for name in ("f", "here", "gone")):
    fail("something is left")
