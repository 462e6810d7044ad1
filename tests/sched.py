#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Tasks that wait in known ways, for tests inside the virtual machine.

usage: sched.py crowd PAIRS ROUNDS     processes that wake each other, and some that compute
       sched.py hog CPU MILLISECONDS   a SCHED_FIFO task wakes another task on its CPU, and keeps the CPU for that time
       sched.py newborn CPU MS         a SCHED_FIFO task creates a process on its CPU, and keeps the CPU for that time
       sched.py execve CPU MS          a SCHED_FIFO thread preempts the exiting leader of its process, takes over the
                                       leader's id with execve(2), and sleeps for MS
       sched.py preempt CPU MS         a process computes, and a SCHED_FIFO process preempts it on its CPU for MS
       sched.py quota CPU CENTS MS [PERIOD]
                                       a process in a cgroup of its own computes for MS of CPU time with a quota of
                                       CENTS % of the CPU in each PERIOD (ms, 100 by default)
       sched.py promote CPU MS         as `quota`, but once a line is read from standard input, the process becomes
                                       SCHED_FIFO; when it runs, a process of a higher priority takes its CPU for MS
       sched.py sleep MS [CPU [UID]]   a process sleeps, on a CPU, as a user
       sched.py pipe MS                a process reads from a pipe, to which another process writes after that time
"""

import os
import signal
import sys
import threading
import time


def burn(nanoseconds):
    """Computes for a time."""
    end = time.monotonic_ns() + nanoseconds
    while time.monotonic_ns() < end:
        pass


def child(function, *arguments):
    """Runs a function in a process of its own."""
    pid = os.fork()
    if pid == 0:
        function(*arguments)
        os._exit(0)
    return pid


def wait_for(pids):
    for pid in pids:
        _, status = os.waitpid(pid, 0)
        if status != 0:
            sys.exit(f"process {pid} ended with status {status}")


def answer(receive, send, rounds):
    for number in range(rounds):
        os.write(send, os.read(receive, 1))
        if number % 8 == 0:
            burn(200_000)


def ask(receive, send, rounds):
    for number in range(rounds):
        os.write(send, b"x")
        if number % 16 == 0:
            time.sleep(0.001)
        os.read(receive, 1)


def crowd(pairs, rounds):
    pids = [child(burn, 300_000_000)]
    for _ in range(pairs):
        there, back = os.pipe(), os.pipe()
        pids.append(child(answer, there[0], back[1], rounds))
        pids.append(child(ask, back[0], there[1], rounds))
    wait_for(pids)


def hog(cpu, milliseconds):
    os.sched_setaffinity(0, {cpu})
    receive, send = os.pipe()
    victim = child(os.read, receive, 1)
    # Gives the reader time to fall asleep.
    time.sleep(0.2)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    print(f"hog={os.getpid()} victim={victim}", flush=True)
    os.write(send, b"x")
    burn(milliseconds * 1_000_000)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    wait_for([victim])


def newborn(cpu, milliseconds):
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(50))
    victim = child(os.getpid)
    print(f"hog={os.getpid()} victim={victim}", flush=True)
    burn(milliseconds * 1_000_000)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    wait_for([victim])


def execve(cpu, milliseconds):
    os.sched_setaffinity(0, {cpu})

    def replace():
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
        os.execv("/bin/sleep", ["sleep", str(milliseconds / 1000)])

    print(f"leader={os.getpid()}", flush=True)
    thread = threading.Thread(target=replace)
    thread.start()
    thread.join()


def preempt(cpu, milliseconds):
    os.sched_setaffinity(0, {cpu})
    victim = child(burn, (2 * milliseconds + 500) * 1_000_000)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    print(f"hog={os.getpid()} victim={victim}", flush=True)
    # Gives the victim time to start to compute.
    time.sleep(0.2)
    burn(milliseconds * 1_000_000)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    wait_for([victim])


CGROUPS = "/sys/fs/cgroup"
CGROUP = "lt-quota"


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def quota(cpu, cents, milliseconds, period=100):
    path = f"{CGROUPS}/{CGROUP}"
    write(f"{CGROUPS}/cgroup.subtree_control", "+cpu")
    os.makedirs(path, exist_ok=True)
    write(f"{path}/cpu.max", f"{cents * period * 10} {period * 1000}")
    os.sched_setaffinity(0, {cpu})
    write(f"{path}/cgroup.procs", str(os.getpid()))
    print(f"member={os.getpid()}", flush=True)
    end = time.process_time_ns() + milliseconds * 1_000_000
    while time.process_time_ns() < end:
        pass


def seize(cpu, milliseconds, ready, start):
    """Occupies a CPU with a high priority, once there is something to read from `start`."""
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    os.write(ready, b"x")
    os.read(start, 1)
    burn(milliseconds * 1_000_000)


def ran_for(pid):
    """Returns the CPU time of a process, in ns, as of its last tick or switch."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0])


def promote(cpu, milliseconds):
    # This process must run while the others keep their CPU busy.
    os.sched_setaffinity(0, os.sched_getaffinity(0) - {cpu})
    (is_ready, ready), (start, go) = os.pipe(), os.pipe()
    rival = child(seize, cpu, milliseconds, ready, start)
    os.read(is_ready, 1)
    # Even if this process is killed, the member does not compute for longer than half a second.
    member = child(quota, cpu, 1, 500, 1000)
    try:
        if not os.read(0, 1):
            sys.exit("the input has ended")
        before, now = ran_for(member), time.monotonic_ns()
        os.sched_setscheduler(member, os.SCHED_FIFO, os.sched_param(10))
        while ran_for(member) == before:
            time.sleep(0.001)
        os.write(go, b"x")
        wait_for([rival])
        print(f"hog={rival} promoted={now}", flush=True)
    finally:
        os.kill(member, signal.SIGKILL)
        os.waitpid(member, 0)


def sleep(milliseconds, cpu=None, uid=None):
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    if uid is not None:
        os.setuid(uid)
    print(f"sleeper={os.getpid()}", flush=True)
    time.sleep(milliseconds / 1000)


def pipe(milliseconds):
    receive, send = os.pipe()
    reader = child(os.read, receive, 1)
    print(f"writer={os.getpid()} reader={reader}", flush=True)
    time.sleep(milliseconds / 1000)
    os.write(send, b"x")
    wait_for([reader])


def main(words):
    what, *numbers = words
    functions = [crowd, hog, newborn, execve, preempt, quota, promote, sleep, pipe]
    {function.__name__: function for function in functions}[what](*map(int, numbers))


if __name__ == "__main__":
    main(sys.argv[1:])
