#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Tasks that are late for a known reason, each with its own name, for tests inside the virtual machine.

usage: late.py hog            victim is woken, and must wait, since hog has a real-time priority
       late.py preempt        victim runs, and is preempted by hog, which has a real-time priority
       late.py pipe           reader waits for sleeper, which sleeps before it writes to the pipe
       late.py futex          victim waits for a lock held by middle, which waits for a lock held by last, which computes
       late.py sleep          victim sleeps
       late.py tcp            victim waits for the answer of server, which sleeps first
       late.py veth           as tcp, but server is in a network namespace of its own
       late.py fsync FILE     victim writes, and waits until the data is on the disk
       late.py fault FILE     victim reads a page of a mapped file
       late.py cause WORD     victim waits on CPU 1 for what the module lt_causes does
       late.py storm          victim makes a long system call on CPU 1, where the module lt_irqs keeps softirqs busy
"""

import mmap
import os
import socket
import subprocess
import sys
import threading
import time


def called(name):
    """Names this thread."""
    with open("/proc/thread-self/comm", "w", encoding="ascii") as comm:
        comm.write(name)


def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def wait_for(pid, state):
    """Waits until the victim has its name, and this state."""
    words = []
    while words[1:3] != ["(victim)", state]:
        time.sleep(0.01)
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            words = stat.read().split()


def hog():
    r, w = os.pipe()
    victim = os.getpid()
    if os.fork() == 0:
        called("hog")
        os.sched_setaffinity(0, {0})
        wait_for(victim, "S")
        there, on_it = os.pipe()
        if os.fork() == 0:
            # A write ends the victim's wait, not a timer: on PREEMPT_RT the timer thread of CPU 1 also waits for hog.
            os.read(there, 1)
            os.write(w, b"x")
            os._exit(0)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        os.sched_setaffinity(0, {1})
        os.write(on_it, b"x")
        spin(0.9)
        os._exit(0)
    os.sched_setaffinity(0, {1})
    called("victim")
    os.read(r, 1)


def preempt():
    victim = os.getpid()
    if os.fork() == 0:
        called("hog")
        os.sched_setaffinity(0, {0})
        wait_for(victim, "R")
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        os.sched_setaffinity(0, {1})
        spin(0.6)
        os._exit(0)
    os.sched_setaffinity(0, {1})
    called("victim")
    spin(1.2)


def pipe():
    r, w = os.pipe()
    if os.fork() == 0:
        called("sleeper")
        time.sleep(0.6)
        os.write(w, b"x")
        os._exit(0)
    called("reader")
    os.read(r, 1)


def futex():
    first, second = threading.Lock(), threading.Lock()
    held = threading.Barrier(3)

    def last():
        called("last")
        with second:
            held.wait()
            spin(0.6)

    def middle():
        called("middle")
        with first:
            held.wait()
            with second:
                pass

    for work in last, middle:
        threading.Thread(target=work).start()
    called("victim")
    held.wait()
    with first:
        pass


def sleep():
    called("victim")
    time.sleep(0.6)


def answer_late(server):
    called("server")
    connection, _ = server.accept()
    connection.recv(1)
    time.sleep(0.6)
    connection.send(b"x")
    os._exit(0)


def ask(address):
    called("victim")
    client = socket.create_connection(address)
    client.send(b"x")
    client.recv(1)


def tcp():
    server = socket.create_server(("127.0.0.1", 0))
    if os.fork() == 0:
        answer_late(server)
    ask(server.getsockname())


def link(name, address):
    subprocess.run(["ip", "addr", "add", f"{address}/24", "dev", name], check=True)
    subprocess.run(["ip", "link", "set", name, "up"], check=True)


def veth():
    victim = os.getpid()
    subprocess.run(["modprobe", "veth"], check=True)
    r, w = os.pipe()
    if os.fork() == 0:
        os.unshare(os.CLONE_NEWNET)
        ends = ["lt_far", "type", "veth", "peer", "name", "lt_near", "netns", str(victim)]
        subprocess.run(["ip", "link", "add", *ends], check=True)
        link("lt_far", "10.9.0.1")
        server = socket.create_server(("10.9.0.1", 1))
        os.write(w, b"x")
        answer_late(server)
    os.close(w)
    assert os.read(r, 1) == b"x"
    link("lt_near", "10.9.0.2")
    ask(("10.9.0.1", 1))


def fsync(file):
    called("victim")
    fd = os.open(file, os.O_WRONLY)
    os.write(fd, bytes(mmap.PAGESIZE))
    os.fsync(fd)


def fault(file):
    fd = os.open(file, os.O_RDONLY)
    memory = mmap.mmap(fd, 1 << 20, prot=mmap.PROT_READ)
    memory.madvise(mmap.MADV_RANDOM)
    called("victim")
    # A page that the other cases neither read nor write.
    return memory[1 << 19]


def cause(word):
    called("victim")
    os.sched_setaffinity(0, {1})
    with open("/sys/module/lt_causes/parameters/run", "w", encoding="ascii") as run:
        run.write(word)


def storm():
    os.sched_setaffinity(0, {1})
    with open("/dev/urandom", "rb", buffering=0) as random:
        # Warm up: the first run of anything is slow under emulation.
        random.read(1 << 20)
        begin = time.monotonic()
        random.read(1 << 20)
        # A call that takes 0.3 s if undisturbed.
        size = int((1 << 20) * 0.3 / (time.monotonic() - begin))
        with subprocess.Popen(["/sbin/insmod", "/lt/lt_irqs.ko", "times=60", "us=20000", "handler_us=100"]):
            while not os.path.exists("/sys/module/lt_irqs/parameters"):
                time.sleep(0.01)
            # If a softirq thread runs the softirqs, its priority is then higher than the priority of this thread.
            os.nice(19)
            called("victim")
            random.read(size)


def main(words):
    what, *rest = words
    functions = (hog, preempt, pipe, futex, sleep, tcp, veth, fsync, fault, cause, storm)
    {function.__name__: function for function in functions}[what](*rest)


if __name__ == "__main__":
    main(sys.argv[1:])
