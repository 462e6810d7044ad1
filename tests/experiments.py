#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Programs whose delays are known by construction, for tests/vm/experiments.sh: smaller versions of the case studies
with which P.-M. Fournier and M. Dagenais showed their LTTV Delay Analyzer.

usage: experiments.py run TRUTH          runs all programs, which add to TRUTH what they did, as they timed it
       experiments.py judge TRUTH TRACE  compares TRUTH with what `latency-tracker analyze delays` finds in TRACE

x_start   starter waits in select(2) until a chain of eight processes, each of which forks the next, has started. Each
          naps several times, like an X server that polls a slow device
editor    an editor asks a display in another network namespace by TCP, and waits for each answer in poll(2). netem
          holds each packet back. The fixed editor asks all questions at once
web       a server computes for each request, then lets a worker read from a slow disk
tbench    clients exchange messages with servers through TCP on the loopback device. Each server pauses before it
          answers its client

All bounds of times are lower bounds: a timer, a disk and netem may take longer than requested, but never less. The
shares of the editor are bounded from above, too: the machine's clock counts instructions.
"""

import json
import mmap
import os
import select
import socket
import subprocess
import sys
import time

import causes
from causes import asleep, task

MS = 1_000_000
LINKS, NAPS, NAP = 8, 6, 10 * MS
TRIPS, DELAY = 15, 50 * MS  # the delay of netem in each direction, see experiments.sh
REQUESTS, COMPUTE, DISK = 5, 20 * MS, 50 * MS  # the time that the disk takes, see experiments.sh
CLIENTS, EXCHANGES, PAUSE = 2, 10, 50 * MS

now = time.monotonic_ns


class Truth:
    """What the processes did, one line for each: experiment, role, thread, and times."""

    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def add(self, experiment, role, times, **more):
        line = {"experiment": experiment, "role": role, "tid": os.getpid(), "times": times, **more}
        os.write(self.file, (json.dumps(line) + "\n").encode())


# -- the programs ------------------------------------------------------------------------------------------------------


def nap(ns):
    """Sleeps, and returns the start and the end by the clock of the trace."""
    start = now()
    time.sleep(ns / 1e9)
    return start, now()


def x_start(truth):
    r, w = os.pipe()
    starter = os.getpid()

    def link(number):
        if number == 0:
            asleep(starter)
            # The state that asleep() waits for is set shortly before the switch.
            nap(NAP)
        naps = []
        for _ in range(NAPS):
            with open("/proc/self/stat", encoding="ascii") as file:
                file.read()
            naps.append(nap(NAP))
        truth.add("x_start", f"link{number}", naps)
        if number + 1 < LINKS:
            os.waitpid(task(f"link{number + 1}", link, number + 1), 0)
        else:
            os.write(w, b"x")

    start = now()
    first = task("link0", link, 0)
    select.select([r], [], [])
    truth.add("x_start", "starter", [(start, now())])
    os.waitpid(first, 0)


def editor(truth):
    r, w = os.pipe()

    def display():
        os.setns(os.open("/run/netns/inner", os.O_RDONLY), os.CLONE_NEWNET)
        listener = socket.create_server(("10.9.0.2", 6000))
        os.write(w, b"x")
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while questions := connection.recv(64):
            connection.send(questions)

    peer = task("display", display)
    os.read(r, 1)
    connection = socket.create_connection(("10.9.0.2", 6000))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    poll = select.poll()
    poll.register(connection, select.POLLIN)

    def trip(questions):
        start = now()
        connection.send(questions)
        poll.poll()
        assert connection.recv(64) == questions
        return start, now()

    truth.add("editor", "editor", [trip(b"x") for _ in range(TRIPS)])
    truth.add("editor", "fixed", [trip(b"x" * TRIPS)])
    connection.close()
    os.waitpid(peer, 0)


def web(truth):
    client, server = socket.socketpair()
    (asked, ask), (answered, answer) = os.pipe(), os.pipe()

    def worker():
        disk = os.open("/dev/slow", os.O_RDONLY | os.O_DIRECT)
        memory = mmap.mmap(-1, mmap.PAGESIZE)
        reads = []
        for number in range(REQUESTS):
            os.read(asked, 1)
            start = now()
            os.preadv(disk, [memory], number * mmap.PAGESIZE)
            reads.append((start, now()))
            os.write(answer, b"x")
        truth.add("web", "worker", reads)

    def serve():
        requests = []
        for _ in range(REQUESTS):
            server.recv(1)
            start, ran = now(), time.thread_time_ns()
            while time.thread_time_ns() - ran < COMPUTE:
                pass
            os.write(ask, b"x")
            os.read(answered, 1)
            requests.append((start, now()))
            server.send(b"x")
        truth.add("web", "server", requests)

    tasks = task("worker", worker), task("server", serve)
    for _ in range(REQUESTS):
        client.send(b"x")
        client.recv(1)
    for pid in tasks:
        os.waitpid(pid, 0)


def tbench(truth):
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        number = connection.recv(1)[0]
        truth.add("tbench", f"server{number}", [])
        for _ in range(EXCHANGES):
            connection.recv(1)
            nap(PAUSE)
            connection.send(b"x")

    def ask(number):
        connection = socket.create_connection(listener.getsockname())
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Tells the server which client it has.
        connection.send(bytes([number]))
        nap(PAUSE)
        exchanges = []
        for _ in range(EXCHANGES):
            start = now()
            connection.send(b"x")
            connection.recv(1)
            exchanges.append((start, now()))
        truth.add("tbench", f"client{number}", exchanges)

    tasks = [task("server", serve) for _ in range(CLIENTS)]
    tasks += [task("client", ask, number) for number in range(CLIENTS)]
    for pid in tasks:
        os.waitpid(pid, 0)


# -- what the trace shows about the programs -----------------------------------------------------------------------


def took(part):
    return part["end"] - part["begin"]


def is_during(part, span):
    return span[0] <= part["begin"] and part["end"] <= span[1]


class Judge:
    """The truth, and the reports of `analyze delays`."""

    def __init__(self, truth, trace):
        with open(truth, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.known = {(line["experiment"], line["role"]): line for line in lines}
        assert len(self.known) == len(lines), lines
        self.trace = trace

    def of(self, experiment, role):
        line = self.known[experiment, role]
        return line["tid"], line["times"]

    def delays(self, tid, begin, end):
        """Returns the parts of the report, whose states add up to the range."""
        words = ["latency-tracker", "analyze", "delays", self.trace, "--tid", tid, "--from", begin, "--to", end, "--json"]
        text = subprocess.run([*map(str, words)], stdout=subprocess.PIPE, text=True, check=True).stdout
        parts = json.loads(text)["segments"]
        at = begin
        for part in parts:
            assert part["from"] == at, (part["from"], at)
            at = part["to"]
            assert sum(part["sums"].values()) == sum(map(took, part["states"])) == part["to"] - part["from"], part["sums"]
            assert part["sums"]["unknown"] == 0, part["sums"]
        assert at == end, (at, end)
        return parts

    def whole(self, experiment, role):
        """Returns the only part of the report about a process, for the time from its first to its last action."""
        tid, times = self.of(experiment, role)
        (part,) = self.delays(tid, times[0][0], times[-1][1])
        return part, times


def waker(wait):
    return wait.get("woken_by", {}).get("tid")


def blocked(part, span):
    """Returns the only blocked state of the thread in this time."""
    stays = [s for s in part["states"] if s["class"] == "blocked" and s["begin"] < span[1] and s["end"] > span[0]]
    assert len(stays) == 1 and is_during(stays[0], span), (span, stays)
    return stays[0]


def is_nap(wait, span):
    """Whether this is the sleep that a process asked for in this time, which a timer ended."""
    return is_during(wait, span) and wait.get("cause", {}).get("by") == "timer" and wait["end"] - span[0] >= NAP


def judge_x_start(judge):
    links = [judge.of("x_start", f"link{number}") for number in range(LINKS)]
    tids = [tid for tid, _ in links]
    starter, ((begin, end),) = judge.of("x_start", "starter")
    (part,) = judge.delays(starter, begin, end)
    calls = [s for s in part["states"] if s["class"] == "blocked" and s["cause"].get("syscall") in ("select", "pselect6")]
    waited = max(calls, key=took)
    # The starter waited for all naps of all eight processes, one after another.
    spans = [span for _, naps in links for span in naps]
    assert all(one[1] <= other[0] for one, other in zip(spans, spans[1:])), spans
    assert waited["begin"] <= spans[0][0] and spans[-1][1] <= waited["end"], (waited, spans)
    assert took(waited) >= sum(stop - start for start, stop in spans) >= LINKS * NAPS * NAP, waited
    assert waker(waited) == tids[-1], waited
    below = [w for w in part["waits"] if w["depth"] > 0 and is_during(w, (waited["begin"], waited["end"]))]
    # Each process but the first has a wait `unborn`: until its predecessor in the chain forked it.
    unborn = [(w["thread"]["tid"], waker(w)) for w in below if w["kind"] == "unborn"]
    assert sorted(unborn) == sorted(zip(tids[1:], tids)), (unborn, tids)
    naps = [w for w in below if w.get("syscall") == "clock_nanosleep" and w["begin"] >= spans[0][0]]
    assert len(naps) == len(spans), (len(naps), len(spans))
    for tid, spans in links:
        own = [w for w in naps if w["thread"]["tid"] == tid]
        assert len(own) == NAPS and all(map(is_nap, own, spans)), (tid, own, spans)

    # The time until the last process had started, by ancestors: each ancestor has its own naps.
    parts = judge.delays(tids[-1], begin, links[-1][1][-1][1])
    assert [part["thread"]["tid"] for part in parts] == [starter, *tids], parts
    for part, (tid, spans) in zip(parts[1:], links):
        sleeps = [s for s in part["states"] if s["cause"].get("syscall") == "clock_nanosleep" and s["class"] == "blocked"]
        sleeps = [s for s in sleeps if s["begin"] >= spans[0][0]]
        assert len(sleeps) == NAPS and all(map(is_nap, sleeps, spans)), (tid, sleeps, spans)
    return f"select took {took(waited) / MS:.1f} ms, the naps {sum(map(took, naps)) / MS:.1f} ms"


def polled(part, span):
    """Returns the time of the only wait in this time: in poll, for a packet that went there and back."""
    stay = blocked(part, span)
    cause = stay["cause"]
    # netem is neither a thread nor a device.
    assert cause.get("syscall") == "poll" and cause.get("by") == "packet" and "woken_by" not in stay, stay
    assert cause.get("raised_by") not in ("thread", "device"), stay
    assert stay["end"] - span[0] >= 2 * DELAY, (stay, span)
    return took(stay)


def judge_editor(judge):
    part, trips = judge.whole("editor", "editor")
    assert len(trips) == TRIPS
    sums, whole = part["sums"], sum(part["sums"].values())
    assert whole >= TRIPS * 2 * DELAY and sums["blocked"] == sum(polled(part, span) for span in trips), sums
    # In the case study, poll took 89 % of the time, and the editor worked for 1 %.
    assert sums["blocked"] > 0.85 * whole and sums["working"] < 0.05 * whole, sums
    fixed, (span,) = judge.whole("editor", "fixed")
    polled(fixed, span)
    better = sum(fixed["sums"].values())
    assert better < 0.1 * whole, (better, whole)
    return (f"{TRIPS} trips took {whole / MS:.1f} ms, of which {sums['blocked'] / MS:.1f} ms in poll, for packets;"
            f" one trip {better / MS:.1f} ms")


def judge_web(judge):
    part, requests = judge.whole("web", "server")
    worker, reads = judge.of("web", "worker")
    assert len(requests) == len(reads) == REQUESTS
    computed = waited = 0
    for span, (start, stop) in zip(requests, reads):
        stay = blocked(part, span)
        assert stay["cause"].get("syscall") == "read" and waker(stay) == worker, stay
        # Apart from this wait, the server computed, or was interrupted.
        own = [s for s in part["states"] if s["class"] == "working" or s["cause"]["kind"] == "interrupted"]
        ran = sum(max(0, min(s["end"], span[1]) - max(s["begin"], span[0])) for s in own)
        # The kernel's accounting and the trace place a switch between two threads at slightly different times.
        assert ran >= 0.9 * COMPUTE, (ran, span)
        below = [w for w in part["waits"] if w["depth"] > 0 and is_during(w, (stay["begin"], stay["end"]))]
        disk = [w for w in below if w.get("cause", {}).get("by") == "disk"]
        assert len(disk) == 1 and disk[0]["thread"]["tid"] == worker, below
        assert start + DISK <= disk[0]["end"] <= stop, (disk, start, stop)
        computed += ran
        waited += took(disk[0])
    return f"{REQUESTS} requests: {computed / MS:.1f} ms of its own, {waited / MS:.1f} ms of its worker's disk"


def judge_tbench(judge):
    servers = {judge.of("tbench", f"server{number}")[0] for number in range(CLIENTS)}
    assert len(servers) == CLIENTS
    sums = 0
    for number in range(CLIENTS):
        server, _ = judge.of("tbench", f"server{number}")
        part, exchanges = judge.whole("tbench", f"client{number}")
        assert len(exchanges) == EXCHANGES
        for span in exchanges:
            stay = blocked(part, span)
            # Its own server, and never the other client's, though both use one loopback device.
            assert stay["cause"].get("syscall") == "recvfrom" and waker(stay) == server, (stay, servers)
            assert stay["end"] - span[0] >= PAUSE, (stay, span)
            below = [w for w in part["waits"] if w["depth"] > 0 and is_during(w, (stay["begin"], stay["end"]))]
            pauses = [w for w in below if w.get("syscall") == "clock_nanosleep"]
            assert len(pauses) == 1 and pauses[0]["thread"]["tid"] == server, (below, servers)
            assert pauses[0].get("cause", {}).get("by") == "timer" and pauses[0]["end"] - span[0] >= PAUSE, pauses
            sums += took(stay)
    return f"{CLIENTS * EXCHANGES} answers were waited for {sums / MS:.1f} ms, each for the pause of the client's own server"


EXPERIMENTS = {x_start: judge_x_start, editor: judge_editor, web: judge_web, tbench: judge_tbench}


def main(what, truth, trace=None):
    if what == "run":
        for program in EXPERIMENTS:
            if os.waitpid(task(program.__name__, program, Truth(truth)), 0)[1] != 0:
                sys.exit(f"{program.__name__} failed")
        return
    judge = Judge(truth, trace)
    for program, judged in EXPERIMENTS.items():
        print(f"{program.__name__}: {judged(judge)}", flush=True)


main(*sys.argv[1:])
