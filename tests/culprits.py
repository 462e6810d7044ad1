#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Delays with a known cause for `latency-tracker explain`, inside the virtual machine: what makes a task late is known
by construction, and the explanation must name it, or state that it is not recorded.

usage: culprits.py ALERTS KNOWN [CASE...]   makes every case of the table happen, or those named, and adds their alerts
                                            to the file ALERTS. The file KNOWN gets the cases, each with the culprit
                                            that may be named, for truth.py
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
KERNEL = "rt" if RT else "stock"


@dataclass
class Case:
    """A provoked delay, and the only culprit that may be named."""

    name: str
    do: Callable
    # The line that starts the instance, without the instance's name.
    tracker: str
    # Expression for the first sentence after the share and the time. DISK(name) is that disk, by name or number.
    culprit: str
    # The least share of the delay, in percent, that the sentence must give to the cause.
    share: int = 50
    # Two causes at once.
    two: bool = False
    # An accepted sentence if the raise of a softirq, or the handler, is not recorded: it names no culprit.
    raised: str = ""
    # The case is repeated until an alert contains this text.
    until: str = ""
    # Requirements of the case.
    needs: str = ""
    # Other tasks and disks with a part in the case by construction: a sentence that leaves the cause unknown may name
    # them, too.
    part: tuple = ()


def call(call_names, more=""):
    return f"syscall threshold=300ms comm=victim calls={call_names} {more}"


def parameter(module, name):
    with open(f"/sys/module/{module}/parameters/{name}", encoding="ascii") as file:
        return file.read().strip()


OFFCPU = "offcpu threshold=300ms comm=victim"
# For short thresholds, only waits count: the victim may also be without a CPU for that long.
SLEEPS = "offcpu when=blocked comm=victim"
VICTIM = r"victim/\d+ "
WAITED = r"waited( in \w+)? for "


def of(name, did=r"ran( in \w+)?", late=VICTIM):
    return late + WAITED + rf"{name}/\d+, which {did}"


def ran(name):
    return rf"CPU 1, which ran {name}/\d+"


TIMER = WAITED + "a timer"
WOKEN = "had been woken, and waited for "
RUNNABLE = "was switched out while runnable, and waited for "
# A tasklet scheduled by a handler runs when the handler ends, or in a softirq thread if the handler has interrupted
# another softirq. On PREEMPT_RT any softirq thread that runs next may run it.
BY_THREAD = r"ksoftirqd/1/\d+, which (waited for|was interrupted:)"
if RT:
    BY_THREAD = BY_THREAD.replace("ksoftirqd", "(ksoftirqd|ktimers)")
CAUSE = r"lt_cause \(interrupt LINE\)"
# The handler is called in an irq_work, as hardware would call it: without its events, only the irq_work is seen.
RAISED = VICTIM + WAITED + f"({BY_THREAD} )?(softirq HI( raised by interrupt irq_work)?|interrupt irq_work)"
# On PREEMPT_RT hog also delays the thread in which the victim's timers expire: the thread's priority is 1.
KEPT = ("hog", "ktimers") if RT else ()
HOG = VICTIM + (rf"({WAITED}ktimers/1/\d+, which )?" if RT else "") + f"({WOKEN}|{RUNNABLE})" + ran("hog")


def owner_of_spinlock():
    # On PREEMPT_RT the interrupt thread waits for the spinlock; elsewhere it waits for the CPU, since the owner of a
    # spinlock is not preempted.
    if RT:
        return of("lt_beside")
    return of(r"irq/\d+-lt_\w+", WOKEN + ran("lt_beside"))


def cause(word):
    return lambda: late.cause(word)


def reads(disk, block):
    os.execvp("dd", ["dd", f"if=/dev/{disk}", "of=/dev/null", "bs=4k", "count=1", f"skip={block}", "iflag=direct"])


def storm():
    late.storm()


PAIR = "begin=tracepoint:block_rq_issue end=tracepoint:block_rq_complete begin_key=arg0"
AT_DEVICE = "the request was at the device, which had no other request before it and completed none meanwhile"

# A culprit follows from how the case is made. Where several sentences are right, a comment explains why each is.
CASES = [
    # Another thread, which computes, sleeps, or waits itself.
    Case("futex", late.futex, call("futex"), of("last"), part=("middle",)),
    Case("pipe", late.pipe, "offcpu threshold=300ms comm=reader", of("sleeper", TIMER, r"reader/\d+ ")),
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
    # Two delays: the child's first wait (the child is called victim until it executes true), and its parent's wait.
    Case("vfork", causes.vfork, f"{OFFCPU} max_alerts=2", of("opener", late=r"(victim|true)/\d+ ")),
    Case("inversion", causes.inversion, call("flock"), of("holder", RUNNABLE + ran("medium"))),
    Case("inherited", lambda: causes.inherited(lambda: time.sleep(LONG)), call("futex"), of("holder", TIMER)),
    # The victim spins while the owner runs.
    Case("spun", lambda: causes.inherited(causes.computes), call("futex"), of("holder"), share=80),
    # The process called server is the server of this file system.
    Case("fuse", causes.fuse, OFFCPU, rf"({of('server')}|{VICTIM}{WAITED}the server of a FUSE file system \(\w+\))"),
    Case("frozen_disk", lambda: causes.frozen_disk("/tmp/ext"), OFFCPU, of("thawer")),
    # stopper sends SIGSTOP and SIGCONT, and is busy between them.
    Case("stopped", causes.stopped, OFFCPU, rf"({of('stopper')}|{VICTIM}{WAITED}SIGCONT \(a signal had stopped it\))"),
    # pauser freezes the cgroup, is busy, and thaws the cgroup.
    Case("frozen", causes.frozen, OFFCPU,
        rf"({of('pauser')}|{VICTIM}{WAITED}the freezer(: its cgroup is frozen \(\w+\)| of cgroup /lt-frozen))"),
    Case("tcp", late.tcp, call("recvfrom"), of("server", TIMER)),
    # A connection between two network namespaces, as between containers.
    Case("veth", late.veth, call("recvfrom"), of("server", TIMER)),
    Case("accept", lambda: net.serve("127.0.0.1", 1, 600), "accept threshold=300ms", r"python3/\d+ " + TIMER),
    # A timer.
    Case("sleep", late.sleep, OFFCPU, VICTIM + TIMER),
    Case("itimer", causes.itimer, OFFCPU, VICTIM + TIMER),
    Case("delayed_ack", causes.delayed_ack, "syscall threshold=25ms comm=victim calls=recvfrom max_alerts=3",
        # The timer of the acknowledgement expires in a softirq, which sends the packet; on PREEMPT_RT in a thread.
        of("server", WAITED + (rf"(a packet from a local timer; .*|ktimers/\d+/\d+, which {TIMER})" if RT else
            "a packet from a local timer; .*"))),
    # A disk.
    Case("fsync", lambda: late.fsync("/dev/slow"), call("fsync"), VICTIM + WAITED + "DISK(slow)"),
    # The write goes to the disk's cache; the flush after it takes as long as any request.
    Case("flush", lambda: causes.flushed("cached"), call("fsync"), VICTIM + WAITED + "a flush of DISK(cached)"),
    Case("fault", lambda: late.fault("/dev/slow"), OFFCPU, VICTIM + WAITED + "DISK(slow)"),
    # The machine's own disk has an interrupt; the others use timers. This disk is fast, so the case reads a lot. The
    # victim sleeps for nothing else. The interrupts are named after the disk's number on the bus. On PREEMPT_RT the
    # interrupt thread may preempt the victim while it submits reads; this is not a wait for the disk.
    Case("device", lambda: causes.aio("vda", 16, 4 << 20), f"{SLEEPS} threshold=1ms max_alerts=1",
        VICTIM + WAITED + r"(DISK(vda)|VIRTIO(vda)-req\.\d+ \(interrupt \d+\))"),
    Case("pair", lambda: reads("slow", 64), f"pair threshold=300ms comm=dd {PAIR}",
        r"dd/\d+ " + WAITED + "DISK(slow)"),
    # The thread waits only for this disk, which is otherwise idle.
    Case("io", lambda: reads("slow", 96), "io threshold=300ms comm=dd",
        rf"(dd/\d+ {WAITED}DISK(slow)|{AT_DEVICE})"),
    Case("aio", lambda: causes.aio("slow"), call("io_getevents,io_pgetevents", "waits=1"),
        VICTIM + WAITED + "DISK(slow)"),
    Case("journal", lambda: causes.synced("/tmp/ext"), "syscall threshold=80ms comm=victim calls=fsync max_alerts=1",
        # The victim's own request is for the data; then the journal makes two, one after the other.
        of("jbd2/ext-8", WAITED + "DISK(ext)")),
    Case("inode", lambda: causes.inode("/tmp/ext"), "syscall threshold=40ms comm=victim calls=pwrite64 max_alerts=1",
        of("owner", WAITED + "DISK(ext)")),
    # The writes of backup hold all free requests of the disk; once the read has a request, the writes are before it
    # in the queue.
    Case("neighbours", lambda: causes.neighbours("throttled"), call("preadv,preadv2"),
        VICTIM + WAITED + r"a request held back before DISK(throttled): (no free request|no free tag|in its queue); .*", share=30),
    # The file of the loop device is on ext; a worker reads it.
    Case("loop", lambda: causes.loop("/tmp/ext"),
        "syscall threshold=80ms comm=victim calls=preadv,preadv2 max_alerts=1",
        VICTIM + WAITED + rf"(kworker/\S+/\d+, which {WAITED})?DISK(ext)", part=("DISK(loop0)",)),
    Case("io_max", lambda: causes.io_max("fast"), call("preadv,preadv2"),
        VICTIM + WAITED + r"a request held back before DISK(fast) by io\.max of its cgroup"),
    Case("dirty", lambda: causes.dirty("throttled"), "syscall threshold=150ms comm=victim calls=write max_alerts=2",
        VICTIM + WAITED + r"the dirty limit \(data for DISK(throttled)\); .*"),
    # An interrupt, and the work that it defers.
    Case("handler", cause("handler"), OFFCPU, VICTIM + WAITED + CAUSE, raised=RAISED),
    Case("thread", cause("thread"), OFFCPU, of(r"irq/\d+-lt_\w+")),
    Case("tasklet", cause("softirq"), OFFCPU, VICTIM + WAITED + f"(softirq HI raised by|{BY_THREAD}) {CAUSE}",
        raised=RAISED),
    # Another interrupt may come before the thread gets the CPU, and may itself run the softirq.
    Case("later", cause("later"), OFFCPU, VICTIM + WAITED + f"(softirq HI raised by|{BY_THREAD}) {CAUSE}",
        raised=RAISED, until=r"handle_softirqs[^,]*,run_(ksoftirqd|ktimerd)"),
    Case("spinlock", cause("wait"), OFFCPU, owner_of_spinlock()),
    Case("mutex", causes.work, f"lock threshold=300ms kind={'rtmutex' if RT else 'mutex'} comm=victim",
        of(r"kworker/\S+", TIMER)),
    # On PREEMPT_RT, and elsewhere if there are many, a thread runs the softirqs. An irq_work raises them, not a device:
    # a sentence that does not name the irq_work still names what used the CPU. Interrupts and threads may take turns.
    Case("storm", storm, "syscall threshold=600ms comm=victim calls=read",
        VICTIM + RUNNABLE
        + r"CPU 1, which (worked for softirq HI( raised by interrupt irq_work)?|ran (ksoftirqd|ktimers)/1/\d+)"
        + r"( for \S+ of \S+, its longest use)?"),
    Case("membarrier", causes.membarrier, f"{SLEEPS} threshold=1ms max_alerts=1",
        # The victim waits for a grace period. No CPU delays it: the RCU thread checks the CPUs again after a while, or
        # the tick of the last CPU raises the softirq that ends the grace period.
        # On PREEMPT_RT a per-CPU thread runs the callback, and the tick wakes that thread.
        rf"({of('(rcu_preempt|rcuc/[0-9]+)' if RT else 'rcu_preempt', f'({TIMER}|{WAITED}softirq RCU raised by a timer)')}|{VICTIM}{WAITED}an RCU grace period(: readers on all CPUs)? \(\w+\))"),
    # A processor, and limits.
    Case("hog", late.hog, "wakeup threshold=300ms comm=victim", VICTIM + WOKEN + ran("hog")),
    Case("preempt", late.preempt, "runqueue threshold=300ms comm=victim",
        VICTIM + RUNNABLE + ran("hog")),
    # The victim waits for hog first, then longer for other.
    Case("moved", causes.moved, "wakeup threshold=300ms comm=victim",
        VICTIM + WOKEN + rf"(CPU 0, which ran hog/\d+ \([^)]*\), and for {ran('other')} \([^)]*\)|{ran('other')})"),
    Case("deadline", causes.deadline, "runqueue threshold=300ms comm=victim", 
        VICTIM + r"had used up its runtime \(SCHED_DEADLINE\)"),
    Case("quota", causes.quota, "runqueue threshold=200ms comm=victim max_alerts=2",
        # The cgroup is created after `record` has looked for limits; the alert has throttled=1.
        VICTIM + r"was held back by cpu\.max of (cgroup /lt-quota|its cgroup or an ancestor)", needs="quota"),
    Case("owner_quota", causes.owner_quota, call("flock"),
        of("holder", r"was held back by cpu\.max of cgroup /lt-quota"), needs="quota"),
    Case("high", causes.high, f"{OFFCPU} max_alerts=1",
        VICTIM + WAITED + r"memory\.high of its cgroup \(\w+\)", needs="memory"),
    Case("reclaim", lambda: causes.small("fast"), "reclaim threshold=0 kind=memcg comm=dd max_alerts=1",
        r"dd/\d+ ran( in \w+)?"),
    # Two causes at once: the larger is named.
    Case("compute_disk", lambda: causes.held(lambda: late.spin(0.1), lambda: causes.read_block("slow", 200)),
        call("flock"), of("holder", WAITED + "DISK(slow)"), two=True),
    Case("disk_compute", lambda: causes.held(lambda: causes.read_block("slow", 300), lambda: late.spin(1)),
        call("flock"), of("holder"), two=True),
    Case("compute_sleep", lambda: causes.held(lambda: late.spin(SHORT), lambda: time.sleep(LONG)),
        call("flock"), of("holder", TIMER), two=True),
    Case("sleep_compute", lambda: causes.held(lambda: time.sleep(SHORT), lambda: late.spin(LONG)),
        call("flock"), of("holder"), two=True),
    Case("two_disks", lambda: causes.held(
        lambda: causes.read_block("ext", 400), lambda: causes.read_block("slow", 400)), call("flock"),
        of("holder", WAITED + "DISK(slow)"), two=True),
    Case("server_disk", lambda: causes.served(lambda: late.spin(0.1), lambda: causes.read_block("slow", 500)),
        call("recvfrom"), of("server", WAITED + "DISK(slow)"), two=True),
    Case("baton", causes.baton, call("read"), of("second"), two=True),
    Case("busy_owner", causes.busy_owner, call("flock"), of("holder", RUNNABLE + ran("medium")), two=True),
    Case("sleep_hog", lambda: causes.then_hog(time.sleep, SHORT, LONG), call("clock_nanosleep"), HOG, two=True,
        part=KEPT),
    Case("hog_sleep", lambda: causes.then_hog(time.sleep, LONG, 0.4), call("clock_nanosleep"),
        VICTIM + TIMER, two=True, part=KEPT),
    Case("disk_hog", lambda: causes.then_hog(lambda: causes.read_block("slow", 600), 0.3, 1.4),
        "syscall threshold=900ms comm=victim calls=preadv,preadv2",
        HOG, two=True, part=(*KEPT, "DISK(slow)")),
]

# Known wrong explanations: the parts that were removed from the trace, the cases, the kernels, and the reason. Such a
# sentence counts as wrong. Once the sentence is right, the line must be removed, unless the part has a question mark:
# that sentence is wrong only at times. `any?` stands for every part.
KNOWN_WRONG = [
    ("softirqs?", "storm", "stock rt", "what softirqs did counts for the thread that they interrupted"),
    ("softirqs?", "later", "rt", "what woke the thread of the softirq is named, not what raised it"),
    ("requests?", "device", "rt", "the thread of the disk's interrupt is named; nothing else shows the disk"),
]


def available(case):
    with open("/sys/fs/cgroup/cgroup.controllers", encoding="ascii") as file:
        controllers = file.read().split()
    return {
        "": True,
        "quota": "cpu" in controllers,
        "memory": "memory" in controllers,
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
    # The tasks that the child has started exit on their own; the alert shows that the victim's delay has ended.
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


def pattern(culprit, disk="(disk {name}|disk {number})"):
    """Returns the expression for a culprit, with this machine's numbers; `disk` is the expression for a disk."""

    def known(match):
        with open(f"/sys/block/{match[1]}/dev", encoding="ascii") as dev:
            return disk.format(number=dev.read().strip(), name=match[1])

    def on_bus(match):
        return os.path.basename(os.path.realpath(f"/sys/block/{match[1]}/device"))

    culprit = re.sub("LINE", lambda _: parameter("lt_causes", "number"), culprit)
    culprit = re.sub(r"VIRTIO\((\w+)\)", on_bus, culprit)
    return re.sub(r"DISK\((\w+)\)", known, culprit)


def known(case):
    """Returns a case as truth.py needs it."""
    # The rule of tests/bench/rule.py names no disk, and takes a null_blk disk for a timer.
    less = {"rule": pattern(case.culprit.replace("a flush of ", ""), "(a block device|a timer)")}
    if case.raised:
        less["raised"] = pattern(case.raised, "")
    culprit = pattern(case.culprit)
    share = 0 if case.two else case.share
    wrong = {}
    for parts, names, kernels, why in KNOWN_WRONG:
        if case.name in names.split() and KERNEL in kernels.split():
            wrong.update(dict.fromkeys(parts.split(), why))
    part = [pattern(who) for who in case.part]
    return {"name": case.name, "culprit": culprit, "share": share, "two": case.two, "without": less, "wrong": wrong,
        "part": part, "disks": os.listdir("/sys/block")}


def provoke(alerts, table, *names):
    made = []
    with open(alerts, "a", encoding="ascii") as file:
        for case in CASES:
            if not available(case) or case.name not in (names or [case.name]):
                continue
            begin = time.monotonic()
            control(f"{case.name} {case.tracker}")
            for _ in range(20):
                # On a slow host the disturbance may come too late.
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
