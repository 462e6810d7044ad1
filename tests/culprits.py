#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""A court of known truth for `latency-tracker explain`, inside the virtual machine: what makes a task late is known by
construction, and the explanation has to name it, or say that it is not recorded.

usage: culprits.py ALERTS KNOWN [CASE...]   makes every case of the table happen, or these, and adds its alerts to the
                                            first file. The second gets the cases, each with the culprit that may be
                                            named, for truth.py
"""

import json
import os
import re
import sys
import time
from dataclasses import dataclass
from typing import Callable

import causes
import late
import net
from causes import LONG, SHORT

LT = "/proc/latency_tracker"
RT = "-rt-" in os.uname().release


@dataclass
class Case:
    """What is provoked, and the one culprit that may be named."""

    name: str
    do: Callable
    # The line that starts the tracker, without its name.
    tracker: str
    # What the first sentence says after the share and the time. DISK(name) is the number of that disk.
    culprit: str
    # The least share that the sentence may name: the most of the time, and not only the most of the causes.
    share: int = 50
    # Two causes at once.
    two: bool = False
    # There are alerts of other delays, too.
    any: bool = False
    # The culprit, if it is not recorded who raises softirqs.
    raised: str = ""
    # Provoked again until an alert has this.
    until: str = ""
    # What there has to be.
    needs: str = ""


def call(call_names, more=""):
    return f"syscall threshold=300ms comm=victim calls={call_names} {more}"


def parameter(module, name):
    with open(f"/sys/module/{module}/parameters/{name}", encoding="ascii") as file:
        return file.read().strip()


OFFCPU = "offcpu threshold=300ms comm=victim"
VICTIM = r"victim/\d+ "


def of(name, did="ran"):
    return VICTIM + rf"waited( in \w+)? for {name}/\d+, which {did}( in \w+)?"


def ran(name):
    return rf"CPU 1, which ran {name}/\d+"


TIMER = "waited for a timer"
# What a handler leaves to a tasklet is done when it ends, or by a thread for softirqs, if the handler has interrupted
# another softirq. On PREEMPT_RT it is any such thread that happens to run next, and what woke that is told, perhaps a timer.
BY_THREAD = r"(ksoftirqd|ktimers)/1/\d+, which (waited for|was interrupted:)"
CAUSE = r"lt_cause \(interrupt LINE\)"


def owner_of_spinlock():
    # The thread of an interrupt waits for a spinlock on PREEMPT_RT; elsewhere for the processor, on which the owner is
    # not preempted.
    if RT:
        return of("lt_beside")
    return of(r"irq/\d+-lt_\w+", "had been woken, and waited for " + ran("lt_beside"))


def cause(word):
    return lambda: late.cause(word)


def reads(disk, block):
    os.execvp("dd", ["dd", f"if=/dev/{disk}", "of=/dev/null", "bs=4k", "count=1", f"skip={block}", "iflag=direct"])


def large():
    os.execvp("dd", "dd if=/dev/vda of=/dev/null bs=4M count=16 iflag=direct".split())


def storm():
    late.storm()


PAIR = "begin=tracepoint:block_rq_issue end=tracepoint:block_rq_complete begin_key=arg0"
AT_DEVICE = "it was at the device, which had no other request before it and completed none meanwhile"

CASES = [
    # Another thread, that computes, sleeps, or waits itself.
    Case("futex", late.futex, call("futex"), VICTIM + r"waited( in futex)? for (middle/\d+, which .*)?last/\d+(, which ran)?"),
    Case("pipe", late.pipe, "offcpu threshold=300ms comm=reader", r"reader/\d+ waited for sleeper/\d+, which " + TIMER),
    Case("flock", lambda: causes.locked(causes.flock, causes.computes), call("flock"), of("holder")),
    Case("record_lock", lambda: causes.locked(causes.record_lock, causes.computes), call("fcntl"), of("holder")),
    Case("eventfd", lambda: causes.told_by(causes.eventfd), call("read"), of("writer")),
    Case("unix", lambda: causes.told_by(causes.unix), call("read"), of("writer")),
    Case("epoll", causes.epoll, OFFCPU, of("writer")),
    Case("fifo", causes.fifo, call("openat"), of("opener")),
    Case("semaphore", causes.semaphore, OFFCPU, of("poster")),
    Case("message", causes.message, call("msgrcv"), of("sender")),
    Case("signal", causes.signalled, OFFCPU, of("killer")),
    Case("child", causes.child, call("wait4"), of("child")),
    # Its child, which waits itself, was called victim, too; and it waits for the end of that.
    Case("vfork", causes.vfork, OFFCPU, r"(victim|true)/\d+ waited for (opener|true)/\d+, which ran"),
    Case("inversion", causes.inversion, call("flock"), of("holder", "could have gone on, and waited for " + ran("medium"))),
    Case("inherited", causes.inherited, call("futex"), of("holder", TIMER)),
    Case("fuse", causes.fuse, OFFCPU, of("server")),
    Case("frozen_disk", lambda: causes.frozen_disk("/tmp/ext"), OFFCPU, of("thawer")),
    Case("stopped", causes.stopped, OFFCPU, of("stopper")),
    Case("frozen", causes.frozen, OFFCPU, of("pauser")),
    Case("tcp", late.tcp, call("recvfrom"), of("server", TIMER)),
    # The same between two network namespaces, as containers have them.
    Case("veth", late.veth, call("recvfrom"), of("server", TIMER)),
    Case("accept", lambda: net.serve("127.0.0.1", 1, 600), "accept threshold=300ms", r"python3/\d+ " + TIMER),
    # A timer.
    Case("sleep", late.sleep, OFFCPU, VICTIM + TIMER),
    Case("itimer", causes.itimer, OFFCPU, VICTIM + TIMER),
    Case("delayed_ack", causes.delayed_ack, "syscall threshold=25ms comm=victim calls=recvfrom max_alerts=3",
        VICTIM + r"waited( in recvfrom)? for (server/\d+, which waited( in recvfrom)? for )?"
        r"(a packet of a local timer; .*|ktimers/\d+/\d+, which waited for a timer)"),
    # A disk.
    Case("fsync", lambda: late.fsync("/dev/slow"), call("fsync"), VICTIM + r"waited( in fsync)? for DISK(slow)"),
    Case("fault", lambda: late.fault("/dev/slow"), OFFCPU, VICTIM + "waited for DISK(slow)"),
    # A disk with an interrupt of its own, the machine's; the others have timers. It is fast, so the reads are large, and
    # it may be done with one of them before all of that is requested: there are several.
    Case("device", large, "offcpu threshold=0 comm=dd max_alerts=50", r"dd/\d+ waited( in read)? for DISK(vda)", any=True),
    Case("pair", lambda: reads("slow", 64), f"pair threshold=300ms comm=dd {PAIR}",
        r"dd/\d+ waited( in read)? for DISK(slow)"),
    Case("io", lambda: reads("slow", 96), "io threshold=300ms comm=dd",
        rf"(dd/\d+ waited( in read)? for DISK(slow)|{AT_DEVICE})"),
    Case("aio", lambda: causes.aio("slow"), call("io_getevents,io_pgetevents", "waits=1"),
        VICTIM + r"waited( in \w+)? for DISK(slow)"),
    Case("journal", lambda: causes.synced("/tmp/ext"), "syscall threshold=80ms comm=victim calls=fsync max_alerts=1",
        VICTIM + r"waited( in fsync)? for (jbd2/ext-8/\d+, which waited for )?DISK(ext)"),
    Case("inode", lambda: causes.inode("/tmp/ext"), "syscall threshold=80ms comm=victim calls=pwritev,pwritev2 max_alerts=1",
        VICTIM + r"waited( in \w+)? for (owner/\d+, which waited( in \w+)? for )?DISK(ext)", two=True),
    Case("io_max", lambda: causes.io_max("fast"), call("preadv,preadv2"), ".*io.max.*"),
    # Some of these calls are long because they compute.
    Case("dirty", lambda: causes.dirty("throttled"), "syscall threshold=150ms comm=victim calls=write max_alerts=2",
        VICTIM + r"waited( in write)? for the dirty limit .*", any=True, needs="stock"),
    # An interrupt, and what it leaves to others.
    Case("handler", cause("handler"), OFFCPU, VICTIM + f"waited for {CAUSE}"),
    Case("thread", cause("thread"), OFFCPU, of(r"irq/\d+-lt_\w+")),
    Case("tasklet", cause("softirq"), OFFCPU, VICTIM + f"waited for (softirq HI of|{BY_THREAD}) {CAUSE}", needs="stock",
        raised=VICTIM + "waited for softirq HI"),
    # Another interrupt may come before the thread gets the CPU, and run the softirq when it ends.
    Case("later", cause("later"), OFFCPU, VICTIM + f"waited for (softirq HI of|{BY_THREAD}) {CAUSE}",
        raised=VICTIM + "waited for softirq HI", until=r"handle_softirqs[^,]*,run_(ksoftirqd|ktimerd)"),
    Case("spinlock", cause("wait"), OFFCPU, owner_of_spinlock()),
    Case("mutex", causes.work, f"lock threshold=300ms kind={'rtmutex' if RT else 'mutex'} comm=victim",
        of(r"kworker/\S+", TIMER)),
    # On PREEMPT_RT, and where there are many, a thread does them.
    Case("storm", storm, "syscall threshold=600ms comm=victim calls=read",
        VICTIM + r"could have gone on, and waited for CPU 1, which (worked for softirq HI( of [a-z ]+)?|ran (ksoftirqd|ktimers)/1/\d+)"),
    Case("membarrier", causes.membarrier, "syscall threshold=10ms comm=victim calls=membarrier max_alerts=1",
        VICTIM + r"waited( in membarrier)? for rcu[a-z_]+(/\d+)*, which .*"),
    # A processor, and limits.
    Case("hog", late.hog, "wakeup threshold=300ms comm=victim", VICTIM + "had been woken, and waited for " + ran("hog")),
    Case("preempt", late.preempt, "runqueue threshold=300ms comm=victim",
        VICTIM + "could have gone on, and waited for " + ran("hog")),
    Case("moved", causes.moved, "wakeup threshold=300ms comm=victim",
        VICTIM + r"had been woken, and waited for (CPU 0, which ran hog/\d+ \([^)]*\), and for )?" + ran("other") + r"( \([^)]*\))?"),
    Case("deadline", causes.deadline, "runqueue threshold=300ms comm=victim", ".*deadline.*"),
    Case("quota", causes.quota, "runqueue threshold=200ms comm=victim max_alerts=2", r".*cpu\.max.*", needs="quota"),
    Case("owner_quota", causes.owner_quota, call("flock"), r".*holder.*cpu\.max.*", needs="quota"),
    Case("reclaim", lambda: causes.small("fast"), "reclaim threshold=0 kind=memcg comm=dd max_alerts=1",
        r"dd/\d+ ran( in read)?"),
    # Two at once: the larger is named.
    Case("compute_disk", lambda: causes.held(lambda: late.spin(0.1), lambda: causes.read_block("slow", 200)),
        call("flock"), of("holder", "waited for DISK(slow)"), two=True),
    Case("disk_compute", lambda: causes.held(lambda: causes.read_block("slow", 300), lambda: late.spin(1)),
        call("flock"), of("holder"), two=True),
    Case("compute_sleep", lambda: causes.held(lambda: late.spin(SHORT), lambda: time.sleep(LONG)),
        call("flock"), of("holder", TIMER), two=True),
    Case("sleep_compute", lambda: causes.held(lambda: time.sleep(SHORT), lambda: late.spin(LONG)),
        call("flock"), of("holder"), two=True),
    Case("two_disks", lambda: causes.held(lambda: causes.read_block("ext", 400), lambda: causes.read_block("slow", 400)),
        call("flock"), of("holder", "waited for DISK(slow)"), two=True),
    Case("server_disk", lambda: causes.served(lambda: late.spin(0.1), lambda: causes.read_block("slow", 500)),
        call("recvfrom"), of("server", "waited for DISK(slow)"), two=True),
    Case("baton", causes.baton, call("read"), of("second"), two=True),
    # medium inherits the lock.
    Case("busy_owner", causes.busy_owner, call("flock"),
        VICTIM + r"waited( in flock)? for (holder/\d+, which could have gone on, and waited for CPU 1, which ran )?medium/\d+(, which ran)?",
        two=True),
    # On PREEMPT_RT hog also delays the thread that does what a timer is for.
    Case("sleep_hog", lambda: causes.then_hog(time.sleep, SHORT, LONG), call("clock_nanosleep"),
        ".*" + ran("hog"), two=True, needs="stock"),
    Case("hog_sleep", lambda: causes.then_hog(time.sleep, LONG, 0.4), call("clock_nanosleep"), VICTIM + TIMER, two=True),
    Case("disk_hog", lambda: causes.then_hog(lambda: causes.read_block("slow", 600), 0.3, 1.4),
        "syscall threshold=900ms comm=victim calls=preadv,preadv2",
        ".*" + ran("hog"), two=True, needs="stock"),
]

def available(case):
    return {
        "": True,
        "stock": not RT,
        "quota": "cpu" in open("/sys/fs/cgroup/cgroup.controllers", encoding="ascii").read().split(),
    }[case.needs]


def stat(name, key):
    with open(f"{LT}/{name}/stats", encoding="ascii") as file:
        return int(dict(line.split()[:2] for line in file)[key])


def provoke_once(case):
    pid = os.fork()
    if pid == 0:
        with open(f"/tmp/{case.name}.out", "a", encoding="utf-8") as out:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
        case.do()
        os._exit(0)
    # What it has started ends by itself; the alert shows that the victim has.
    os.waitpid(pid, 0)
    end = time.monotonic() + 5
    while stat(case.name, "alerts") == 0:
        if time.monotonic() > end:
            return ""
        time.sleep(0.05)
    with open(f"{LT}/{case.name}/wakeup", encoding="ascii") as file:
        return file.read()


def control(line):
    with open(f"{LT}/control", "w", encoding="ascii") as file:
        file.write(line + "\n")


def pattern(culprit, disk):
    """The expression for a culprit, with the numbers that this machine has; `disk` is that for a disk."""

    def known(match):
        with open(f"/sys/block/{match[1]}/dev", encoding="ascii") as dev:
            return disk.format(number=dev.read().strip())

    line = parameter("lt_causes", "number")
    return re.sub(r"DISK\((\w+)\)", known, culprit).replace("LINE", line)


def known(case):
    """What truth.py has to know."""
    # The rule of tests/bench/rule.py has no numbers, and the disks of null_blk are timers.
    less = {"rule": pattern(case.culprit, "(a block device|a timer)")}
    if case.raised:
        less["raises"] = pattern(case.raised, "")
    culprit = pattern(case.culprit, "disk {number}")
    share = 0 if case.two else case.share
    return {"name": case.name, "culprit": culprit, "share": share, "two": case.two, "any": case.any, "without": less}


def provoke(alerts, table, *names):
    made = []
    with open(alerts, "a", encoding="ascii") as file:
        for case in CASES:
            if not available(case) or case.name not in (names or [case.name]):
                continue
            begin = time.monotonic()
            control(f"{case.name} {case.tracker}")
            for _ in range(20):
                # On a slow host what should disturb a victim may come too late.
                text = provoke_once(case)
                file.write(text)
                if text and re.search(case.until, text):
                    break
            else:
                with open(f"/tmp/{case.name}.out", encoding="utf-8") as out:
                    sys.exit(f"{case.name}: not provoked. {out.read()}")
            control(f"-{case.name}")
            if case.name == "storm":
                os.system("rmmod lt_irqs")
            print(f"{case.name}: {time.monotonic() - begin:.1f} s", flush=True)
            made.append(known(case))
    with open(table, "w", encoding="utf-8") as file:
        json.dump(made, file)


if __name__ == "__main__":
    provoke(*sys.argv[1:])
