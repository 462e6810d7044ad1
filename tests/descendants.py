#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Which processes the filter tree=1 accepts, for a test inside the virtual machine.

usage: descendants.py kinds          descendants of a process, of every kind, and other processes make calls; the alerts
                                     must be exactly the calls of those that a tree can find
       descendants.py race ROUNDS N  in each round, an instance is created while the process that it names and another
                                     one fork N children each; the alerts must be exactly the calls of the named
                                     process and its descendants
       descendants.py serve NAME     does what `descendants.py kinds` asks for, until that program ends

In `kinds`, each process connects to a socket and executes the requests that it receives there, so it does not matter
which parent it has by then.
"""

import collections
import ctypes
import os
import random
import re
import signal
import socket
import struct
import sys
import threading
import time
import traceback

LT = "/proc/latency_tracker"
PATH = "/tmp/descendants"
# No other program makes this call.
CALL = "sched_rr_get_interval"
CLONE3 = 435
CLONE_PARENT = 0x8000

LIBC = ctypes.CDLL(None, use_errno=True)


def control(line):
    with open(f"{LT}/control", "w", encoding="ascii") as file:
        file.write(line + "\n")


def call():
    """Makes the call, once."""
    os.sched_rr_get_interval(0)


def seen(name):
    """Returns the number of alerts of an instance for each (process, thread)."""
    descriptor = os.open(f"{LT}/{name}/alerts", os.O_RDONLY | os.O_NONBLOCK)
    # Reads from the oldest alert on.
    os.lseek(descriptor, 0, os.SEEK_SET)
    text = b""
    try:
        while part := os.read(descriptor, 1 << 16):
            text += part
    except BlockingIOError:
        pass
    os.close(descriptor)
    found = re.findall(r" pid=(\d+) tid=(\d+) ", text.decode())
    return collections.Counter((int(pid), int(tid)) for pid, tid in found)


def clone3(flags, tid):
    """Forks with these flags. The child gets the id `tid`, unless that is 0."""
    wanted = (ctypes.c_int * 1)(tid)
    # A child that gets the caller's parent also gets the caller's exit signal.
    end = 0 if flags & CLONE_PARENT else signal.SIGCHLD
    given = (ctypes.addressof(wanted), 1) if tid else (0, 0)
    arguments = (ctypes.c_uint64 * 11)(flags, 0, 0, 0, end, 0, 0, 0, *given, 0)
    pid = LIBC.syscall(ctypes.c_long(CLONE3), arguments, ctypes.c_size_t(ctypes.sizeof(arguments)))
    if pid < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return pid


# What a process can be asked to do. A new process or thread never returns.


def do_call():
    call()


def do_fork(name):
    if os.fork() == 0:
        serve(name)


def do_daemon(name):
    """A grandchild with a session of its own, whose parent has exited."""
    pid = os.fork()
    if pid == 0:
        parent = os.getpid()
        if os.fork() == 0:
            os.setsid()
            while os.getppid() == parent:
                time.sleep(0.01)
            serve(name)
        os._exit(0)
    os.waitpid(pid, 0)


def do_inside(name):
    """The first process of a PID namespace, a grandchild."""
    if os.fork() == 0:
        os.unshare(os.CLONE_NEWPID)
        pid = os.fork()
        if pid == 0:
            serve(name)
        os.waitpid(pid, 0)
        os._exit(0)


def do_thread(name):
    threading.Thread(target=serve, args=(name,), daemon=True).start()


def do_exec(name):
    """Becomes another program, by a thread that is not the leader."""
    words = [sys.executable, os.path.abspath(__file__), "serve", name]
    threading.Thread(target=os.execv, args=(sys.executable, words), daemon=True).start()
    time.sleep(3600)


def do_clone(name, flags, tid):
    if clone3(int(flags), int(tid)) == 0:
        serve(name)


def do_exit():
    os._exit(0)


def do_reap(pid):
    os.waitpid(int(pid), 0)


def serve(name):
    """Does what it is asked to do, and never returns."""
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(PATH)
        # No thread is started in another PID namespace, so other processes see the same id.
        tid = 0 if threading.get_native_id() == os.getpid() else threading.get_native_id()
        connection.send(f"{name} {tid}".encode())
        while words := connection.recv(200).decode().split():
            globals()["do_" + words[0]](*words[1:])
            connection.send(b"done")
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


class Agent:
    """A process or a thread that does what it is asked to do."""

    def __init__(self, listener, name):
        listener.settimeout(60)
        self.connection, _ = listener.accept()
        self.name, tid = self.connection.recv(200).decode().split()
        assert self.name == name, f"{self.name}, not {name}"
        peer = self.connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self.pid = struct.unpack("iii", peer)[0]
        self.tid = int(tid) or self.pid

    def send(self, *words):
        self.connection.send(" ".join(map(str, words)).encode())

    def ask(self, *words):
        self.send(*words)
        self.finish(words)

    def finish(self, words):
        assert self.connection.recv(200) == b"done", f"{self.name}: {words}"


class Truth:
    """The agents' calls that must raise an alert, and those that must not."""

    def __init__(self):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(PATH)
        self.listener.listen(64)
        self.expected = collections.Counter()
        self.refused = collections.Counter()

    def new(self, creator, what, name, *words, answers=True):
        """Returns a process or thread that `creator` creates."""
        creator.send(what, name, *words)
        agent = Agent(self.listener, name)
        if answers:
            creator.finish((what, name))
        return agent

    def call(self, is_member, *agents):
        """Lets each agent make a call, and notes whether there must be an alert for it."""
        for agent in agents:
            agent.ask("call")
            calls = self.expected if is_member else self.refused
            calls[agent.pid, agent.tid] += 1
            print(f"{agent.name}: pid={agent.pid} tid={agent.tid}", "descendant" if is_member else "no descendant")

    def check(self, name):
        found = seen(name)
        assert found == self.expected, f"missing: {self.expected - found}, wrong: {found - self.expected}"


def first(truth, name):
    """Returns a new child of this process, as an agent."""
    if os.fork() == 0:
        truth.listener.close()
        serve(name)
    return Agent(truth.listener, name)


def kinds():
    truth = Truth()
    new = truth.new
    other = first(truth, "other")
    root = first(truth, "root")

    # Before the instance exists.
    before = new(root, "fork", "before")
    below = new(before, "fork", "below")
    threaded = new(root, "fork", "threaded")
    thread = new(threaded, "thread", "thread")
    # Loses its parent before the instance exists.
    early = new(root, "daemon", "early")
    other_child = new(other, "fork", "other_child")
    gone = new(other, "fork", "gone")
    control(f"t syscall calls={CALL} threshold=0 pid={root.pid} tree=1")
    with open(f"{LT}/t/pid", encoding="ascii") as file:
        assert file.read().split() == [str(root.pid)], "the value of pid"
    truth.call(True, root, before, below, threaded, thread)
    truth.call(False, early, other, other_child, gone)

    # Once the instance exists.
    child = new(root, "fork", "child")
    daemon = new(before, "daemon", "daemon")
    of_daemon = new(daemon, "fork", "of_daemon")
    inside = new(root, "inside", "inside")
    sibling = new(root, "clone", "sibling", CLONE_PARENT, 0)
    late_thread = new(child, "thread", "late_thread")
    execs = new(root, "fork", "execs")
    runs = new(execs, "exec", "runs", answers=False)
    assert runs.pid == execs.pid == runs.tid, "execve has changed the process"
    truth.call(True, child, daemon, of_daemon, inside, sibling, late_thread, runs)
    of_early = new(early, "daemon", "of_early")
    of_other = new(other, "fork", "of_other")
    truth.call(False, of_early, of_other, early, other)

    # Ids are reused: a descendant's by another process, and another process's by a descendant.
    ends = new(root, "fork", "ends")
    truth.call(True, ends)
    ends.send("exit")
    root.ask("reap", ends.pid)
    taken = new(other, "clone", "taken", 0, ends.pid)
    assert taken.pid == ends.pid, "the id was not reused"
    truth.call(False, taken)
    gone.send("exit")
    other.ask("reap", gone.pid)
    got = new(before, "clone", "got", 0, gone.pid)
    assert got.pid == gone.pid, "the id was not reused"
    truth.call(True, got)

    # The set is kept up to date while the instance is disabled.
    control("t syscall enabled=0")
    off = new(before, "fork", "off")
    control("t syscall enabled=1 threshold=0")
    truth.call(True, off, got)
    truth.call(False, taken)

    # The first process exits, and another process gets its id.
    root.send("exit")
    os.waitpid(root.pid, 0)
    usurper = new(other, "clone", "usurper", 0, root.pid)
    assert usurper.pid == root.pid, "the id was not reused"
    truth.call(False, usurper, other)
    last = new(before, "fork", "last")
    truth.call(True, before, below, daemon, sibling, thread, last)
    truth.check("t")
    control("-t")
    print(f"{truth.expected.total()} calls of descendants, {truth.refused.total()} of others")


def breed(count, gate, results, ready):
    """Keeps forking; each process makes the call when the gate is opened, and reports its id."""
    is_breeder = True
    for number in range(count):
        if os.fork() == 0:
            is_breeder = False
            # Every other child forks a grandchild.
            if number % 2:
                os.fork()
            break
        if number == 0:
            os.write(ready, b"x")
    os.read(gate, 1)
    call()
    os.write(results, struct.pack("i", os.getpid()))
    if is_breeder:
        try:
            while True:
                os.wait()
        except ChildProcessError:
            pass
    os._exit(0)


def everything(descriptor):
    """Returns what is read from a pipe until all writers have closed it."""
    parts = []
    while part := os.read(descriptor, 4096):
        parts.append(part)
    os.close(descriptor)
    return b"".join(parts)


def race_once(name, count):
    """Plays one round, and returns the number of processes in the tree."""
    gate, opener = os.pipe()
    ready, is_ready = os.pipe()
    pids, results = [], []
    for _ in range(2):
        result, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(opener)
            breed(count, gate, writer, is_ready)
        os.close(writer)
        pids.append(pid)
        results.append(result)
    for _ in pids:
        os.read(ready, 1)
    time.sleep(random.uniform(0, 0.03))
    control(f"{name} syscall calls={CALL} threshold=0 pid={pids[0]} tree=1")
    for descriptor in (gate, opener, ready, is_ready):
        os.close(descriptor)
    ours, others = ([pid for (pid,) in struct.iter_unpack("i", everything(result))] for result in results)
    for pid in pids:
        _, status = os.waitpid(pid, 0)
        assert status == 0, f"process {pid} ended with status {status}"
    assert pids[0] in ours and len(ours) == len(others), f"{len(ours)} and {len(others)} processes"
    found, expected = seen(name), collections.Counter((pid, pid) for pid in ours)
    assert found == expected, f"missing: {expected - found}, wrong: {found - expected}"
    control(f"-{name}")
    return len(ours)


def race(rounds, count):
    for number in range(int(rounds)):
        print(f"round {number}: {race_once(f'r{number}', int(count))} processes in the tree", flush=True)


def main(what, *words):
    {"kinds": kinds, "race": race, "serve": serve}[what](*words)


if __name__ == "__main__":
    main(*sys.argv[1:])
