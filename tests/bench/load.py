#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""load: generates a synthetic trace of a busy kernel, of any size.

usage: load.py DIRECTORY MEGABYTES

In DIRECTORY/kernel are metadata (CTF 2) and one stream for each of four CPUs, as LTTng lays them out. Threads in pairs
wake each other, make system calls, sleep for timers and are preempted. In one call of write() in five, they also wait
for a lock, reclaim memory, queue a work item, read from a disk, or send a packet to another thread. Some of the events
are ones that LTTng does not have, and perf does. About one event in ten is a switch, and one in three does not concern
threads. The same size gives the same trace.
"""

import heapq
import itertools
import json
import os
import random
import struct
import sys
from collections import deque

CPUS = 4
THREADS = 400
PACKET = 1 << 18  # bytes
HEADER = 32 + 6 * 8 + 4
UUID = bytes(range(16))


def number(bits, **more):
    """Returns the type of an integer."""
    kind = "fixed-length-signed-integer" if more.pop("signed", False) else "fixed-length-unsigned-integer"
    return {"type": kind, "length": bits, "alignment": 8, "byte-order": "little-endian", **more}


def structure(**members):
    """Returns the type of a structure of these fields."""
    return {"type": "structure", "member-classes": [{"name": n, "field-class": c} for n, c in members.items()]}


S32, S64 = number(32, signed=True), number(64, signed=True)
COMM = {"type": "static-length-string", "length": 16}
REQUEST = structure(dev=S32, sector=S64, nr_sector=S32, rwbs=S32)
SKB_FIELDS = structure(skbaddr=S64, len=S32, name=COMM)
EVENTS = {
    "sched_switch": structure(prev_comm=COMM, prev_tid=S32, prev_prio=S32, prev_state=S64, next_comm=COMM,
                              next_tid=S32, next_prio=S32),
    "sched_waking": structure(comm=COMM, tid=S32, prio=S32, target_cpu=S32),
    "syscall_entry_read": structure(fd=S32, count=S64),
    "syscall_exit_read": structure(ret=S64),
    "syscall_entry_write": structure(fd=S32, count=S64),
    "syscall_exit_write": structure(ret=S64),
    "timer_hrtimer_expire_entry": structure(hrtimer=S64, now=S64),
    "timer_hrtimer_expire_exit": structure(hrtimer=S64),
    "irq_softirq_entry": structure(vec=number(8)),
    "irq_softirq_exit": structure(vec=number(8)),
    "kmem_kfree": structure(call_site=S64, ptr=S64),
    "irq_softirq_raise": structure(vec=number(8)),
    "irq_handler_entry": structure(irq=S32, name=COMM),
    "irq_handler_exit": structure(irq=S32, ret=S32),
    "lock_contention_begin": structure(lock_addr=S64, flags=S32),
    "lock_contention_end": structure(lock_addr=S64, ret=S32),
    "mm_vmscan_direct_reclaim_begin": structure(order=S32, gfp_flags=S32),
    "mm_vmscan_direct_reclaim_end": structure(nr_reclaimed=S64),
    "workqueue_queue_work": structure(work=S64, function=S64),
    "workqueue_execute_start": structure(work=S64, function=S64),
    "workqueue_execute_end": structure(work=S64, function=S64),
    "block_rq_insert": REQUEST,
    "block_rq_issue": REQUEST,
    "block_rq_complete": REQUEST,
    "net_dev_queue": SKB_FIELDS,
    "net_dev_xmit": structure(skbaddr=S64, rc=S32, len=S32, name=COMM),
    "net_if_rx": SKB_FIELDS,
    "net_if_receive_skb": SKB_FIELDS,
    "skb_copy_datagram_iovec": structure(skbaddr=S64, len=S32),
    "skb_consume": structure(skbaddr=S64),
}
(SWITCH, WAKING, READ, READ_END, WRITE, WRITE_END, TIMER, TIMER_END, SOFTIRQ, SOFTIRQ_END, OTHER, RAISE, IRQ, IRQ_END,
 LOCK, LOCK_END, RECLAIM, RECLAIM_END, QUEUE_WORK, WORK, WORK_END, INSERT, ISSUE, COMPLETE, QUEUE_PACKET, SENT, BACKLOG,
 RECEIVED, COPIED, CONSUMED) = range(len(EVENTS))
# enabled, but these events do not occur
EVENTS.update({name: structure(skbaddr=S64) for name in (
    "skb_kfree", "net_napi_gro_receive_entry", "fprobes:__kfree_skb", "fprobes:skb_attempt_defer_free",
    "fprobes:kfree_skb_partial")})
EVENTS.update({f"x86_irq_vectors_irq_work_{end}": structure(vector=S32) for end in ("entry", "exit")})


def metadata():
    """Returns the text of the metadata."""
    stamp = "default-clock-timestamp"
    fragments = [
        {"type": "preamble", "version": 2, "uuid": list(UUID)},
        {"type": "trace-class", "namespace": "lttng.org,2009", "name": "", "uid": "load",
         "environment": {"domain": "kernel", "kernel_release": "7.2.0", "tracer_name": "load"},
         "packet-header-field-class": structure(
             magic=number(32, roles=["packet-magic-number"]),
             uuid={"type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"]},
             stream_id=number(32, roles=["data-stream-class-id"]),
             stream_instance_id=number(64, roles=["data-stream-id"]))},
        {"type": "clock-class", "id": "monotonic", "name": "monotonic", "frequency": 1000000000,
         "origin": "unix-epoch", "offset-from-origin": {"seconds": 0, "cycles": 0}},
        {"type": "data-stream-class", "id": 0, "default-clock-class-id": "monotonic",
         "packet-context-field-class": structure(
             timestamp_begin=number(64, roles=[stamp]),
             timestamp_end=number(64, roles=["packet-end-default-clock-timestamp"]),
             content_size=number(64, roles=["packet-content-length"]),
             packet_size=number(64, roles=["packet-total-length"]),
             packet_seq_num=number(64, roles=["packet-sequence-number"]),
             events_discarded=number(64, roles=["discarded-event-record-counter-snapshot"]),
             cpu_id=number(32)),
         "event-record-header-field-class": structure(
             id=number(16, roles=["event-record-class-id"]), timestamp=number(32, roles=[stamp])),
         "event-record-common-context-field-class": structure(pid=S32, tid=S32, procname=COMM)},
    ]
    fragments += [{"type": "event-record-class", "data-stream-class-id": 0, "id": i, "name": name,
                   "payload-field-class": fields} for i, (name, fields) in enumerate(EVENTS.items())]
    return "".join("\x1e" + json.dumps(f) + "\n" for f in fragments).encode()


class Cpu:
    """The state of a CPU, and its stream."""

    def __init__(self, index, directory):
        self.index, self.now, self.current, self.ready = index, 1_000_000_000 + index, 0, deque()
        self.file = open(os.path.join(directory, f"channel_{index}"), "wb")
        self.packet, self.begin, self.sequence, self.written = [], self.now, 0, 0
        self.size = HEADER
        # work items to execute, requests at the disk, packets in the backlog, and received packets
        self.works, self.requests, self.backlog, self.received = [], [], [], []

    def event(self, kind, payload):
        """Writes an event."""
        event = HEAD.pack(kind, self.now & 0xffffffff, self.current, self.current, NAMES[self.current]) + payload
        if self.size + len(event) > PACKET:
            self.close()
        self.packet.append(event)
        self.size += len(event)
        self.now += random.randrange(200, 3000)

    def close(self):
        """Ends and writes the packet."""
        head = struct.pack("<I16sIQ6QI", 0xc1fc1fc1, UUID, 0, self.index, self.begin, self.now, 8 * self.size,
                           8 * PACKET, self.sequence, 0, self.index)
        self.file.write((head + b"".join(self.packet)).ljust(PACKET, b"\0"))
        self.packet, self.begin, self.size = [], self.now, HEADER
        self.sequence += 1
        self.written += PACKET

    def switch(self, state):
        """Switches to the next thread."""
        following = self.ready.popleft() if self.ready else 0
        self.event(SWITCH, SWITCHED.pack(NAMES[self.current], self.current, 20, state, NAMES[following], following, 20))
        self.current = following


HEAD = struct.Struct("<HIii16s")
SWITCHED = struct.Struct("<16siiq16sii")
WOKEN = struct.Struct("<16siii")
PAIR = struct.Struct("<qq")
ONE = struct.Struct("<q")
CALL = struct.Struct("<iq")
HANDLER = struct.Struct("<i16s")
TWO = struct.Struct("<ii")
LOCKED = struct.Struct("<qi")
SECTORS = struct.Struct("<iqii")
SKB = struct.Struct("<qi16s")
SKB_SENT = struct.Struct("<qii16s")
SKB_COPIED = struct.Struct("<qi")
NAMES = [b"swapper"] + [b"load-%d" % (tid // 2) for tid in range(1, THREADS + 1)]


class Load:
    """All CPUs and the sleeping threads."""

    def __init__(self, directory):
        self.cpus = [Cpu(i, directory) for i in range(CPUS)]
        self.timers = []
        self.asleep = set()
        self.numbers = itertools.count(1)
        for tid in range(1, THREADS + 1):
            self.cpus[tid % CPUS].ready.append(tid)

    def wake(self, cpu, tid):
        """Wakes a thread on its CPU."""
        home = self.cpus[tid % CPUS]
        cpu.event(WAKING, WOKEN.pack(NAMES[tid], tid, 20, home.index))
        self.asleep.discard(tid)
        home.ready.append(tid)

    def due(self, cpu):
        """Expires the timers that are due."""
        cpu.event(TIMER, PAIR.pack(1, cpu.now))
        while self.timers and self.timers[0][0] <= cpu.now:
            self.wake(cpu, heapq.heappop(self.timers)[1])
        cpu.event(TIMER_END, ONE.pack(1))
        if cpu.requests:
            cpu.event(IRQ, HANDLER.pack(30, b"disk"))
            for request in cpu.requests:
                cpu.event(COMPLETE, request)
            cpu.event(IRQ_END, TWO.pack(30, 1))
            cpu.requests.clear()
        if random.random() < 0.5:
            vector = b"\x03" if cpu.backlog else b"\x09"
            cpu.event(RAISE, vector)
            cpu.event(SOFTIRQ, vector)
            for skb in cpu.backlog:
                cpu.event(RECEIVED, SKB.pack(skb, 64, b"lo"))
            cpu.event(SOFTIRQ_END, vector)
            cpu.received += cpu.backlog
            cpu.backlog.clear()

    def operate(self, cpu):
        """Waits for a lock, reclaims memory, or starts an operation that ends later."""
        number, what = next(self.numbers), random.randrange(5)
        if what == 0:
            cpu.event(LOCK, LOCKED.pack(1 + number % 50, 1))
            cpu.event(LOCK_END, LOCKED.pack(1 + number % 50, 0))
        elif what == 1:
            cpu.event(RECLAIM, TWO.pack(0, 0))
            cpu.event(RECLAIM_END, ONE.pack(32))
        elif what == 2:
            cpu.works.append(PAIR.pack(number, 1 + number % 20))
            cpu.event(QUEUE_WORK, cpu.works[-1])
        elif what == 3:
            cpu.requests.append(SECTORS.pack(8 << 20, 8 * number, 8, 1 << 2))
            cpu.event(INSERT, cpu.requests[-1])
            cpu.event(ISSUE, cpu.requests[-1])
        else:
            cpu.event(QUEUE_PACKET, SKB.pack(number, 64, b"lo"))
            cpu.event(BACKLOG, SKB.pack(number, 64, b"lo"))
            cpu.event(SENT, SKB_SENT.pack(number, 0, 64, b"lo"))
            cpu.backlog.append(number)

    def finish(self, cpu):
        """Executes the work items that earlier threads queued, and reads the received packets."""
        for work in cpu.works:
            cpu.event(WORK, work)
            cpu.event(WORK_END, work)
        for skb in cpu.received:
            cpu.event(COPIED, SKB_COPIED.pack(skb, 64))
            cpu.event(CONSUMED, ONE.pack(skb))
        cpu.works.clear()
        cpu.received.clear()

    def go(self, cpu):
        """Runs a thread for a while, or idles."""
        if self.timers and (cpu.current == 0 or random.random() < 0.1):
            if cpu.current == 0 and not cpu.ready:
                cpu.now = max(cpu.now, min(self.timers[0][0], cpu.now + 1_000_000))
            self.due(cpu)
        if cpu.current == 0:
            if cpu.ready:
                cpu.switch(0)
            else:
                cpu.now += 50_000
            return
        tid = cpu.current
        self.finish(cpu)
        for _ in range(random.randrange(1, 3)):
            cpu.event(WRITE, CALL.pack(3, 1))
            if random.random() < 0.2:
                self.operate(cpu)
            for _ in range(random.randrange(1, 5)):
                cpu.event(OTHER, PAIR.pack(1, 2))
            cpu.event(WRITE_END, ONE.pack(1))
        other = tid + 1 if tid % 2 else tid - 1
        what = random.random()
        if what < 0.2 and cpu.ready:
            cpu.ready.append(tid)
            return cpu.switch(0x100)
        if other in self.asleep:
            self.wake(cpu, other)
        cpu.event(READ, CALL.pack(3, 1))
        if what < 0.5 or other in self.asleep:
            heapq.heappush(self.timers, (cpu.now + random.randrange(50_000, 2_000_000), tid))
        else:
            self.asleep.add(tid)
        return cpu.switch(1)


def main():
    """Runs the program; the head of this file describes it."""
    directory, size = os.path.join(sys.argv[1], "kernel"), int(sys.argv[2]) * 1_000_000
    random.seed(1)
    os.makedirs(directory)
    with open(os.path.join(directory, "metadata"), "wb") as file:
        file.write(metadata())
    load = Load(directory)
    while sum(cpu.written for cpu in load.cpus) < size:
        for _ in range(1000):
            load.go(min(load.cpus, key=lambda cpu: cpu.now))
    for cpu in load.cpus:
        cpu.close()
        cpu.file.close()


main()
