#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""overhead: measures what trackers, BPF programs and LTTng add to the cost of loads.

usage: overhead.py [--clock soak|wall] [--small] [--rounds N] [--loads LOAD,...] [--contenders NAME,...]

scripts/bench runs it, in a virtual machine or, with --here, on this one. In each round the contenders take
turns with each load, in a shuffled order (which is the same in each call of overhead.py). The loads are

  hackbench  groups of processes that send each other messages over sockets
  fio        random reads on a disk whose requests a timer completes
  iperf3     packets between two network namespaces
  oltp       SQLite on ext4 on such a disk: transactions as in TPC-B, each synced

and the contenders

  absent     the module is not loaded
  idle       the module is loaded, without an instance
  TRACKER    an instance tracks everything, and nothing is late
  TRACKER!   an instance tracks everything, and each end raises an alert
  bpf        BPF programs measure what `wakeup+offcpu` (with hackbench and oltp) or `tree` (with fio and iperf3) does
  lttng      LTTng records events of the scheduler, interrupts, timers, disks and network into its ring buffer in memory
  lttng-syscalls  LTTng records all system calls there

The clock `soak` is for a machine with one processor whose time is the number of instructions. The cost of a
load is what the program soak does not get, so waiting costs nothing. The clock `wall` is for real machines:
the time that a fixed amount of work takes. With --small, each load does a hundredth of the
work or less.

Prints a line for each run, `run LOAD CONTENDER ROUND COST EVENTS LOST`. COST is in instructions or
nanoseconds; EVENTS and LOST are what the contender has measured and lost, or `-`. Unless SIGKILL ends it,
overhead.py ends its processes, and removes its instances, sessions, disks, mounts and network namespace. The module
null_blk and the empty directory /tmp/lt-oltp stay. With `soak`, two settings under /proc/sys stay changed.
"""

import argparse
import os
import random
import signal
import sqlite3
import struct
import subprocess
import sys
import time

LT = "/proc/latency_tracker"
NULLB = "/sys/kernel/config/nullb"
# load: its trackers, and the object with the BPF programs that do the same as the last tracker
CONTENDERS = {
    "hackbench": (("wakeup", "offcpu", "tree", "wakeup+offcpu"), "sched-facts.bpf.o"),
    "fio": (("block", "irq", "io", "tree"), "chain.bpf.o"),
    "iperf3": (("net", "softirq", "tree"), "chain.bpf.o"),
    "oltp": (("wakeup", "block", "syscall", "offcpu", "tree", "wakeup+offcpu"), "sched-facts.bpf.o"),
}
LTTNG = {
    "lttng": ("--kernel", "sched_switch,sched_waking,sched_wakeup,irq_handler_entry,irq_handler_exit,"
              "irq_softirq_raise,irq_softirq_entry,irq_softirq_exit,timer_hrtimer_expire_entry,timer_hrtimer_expire_exit,"
              "block_rq_issue,block_rq_complete,net_dev_queue,net_if_receive_skb"),
    "lttng-syscalls": ("--kernel", "--syscall", "--all"),
}


def call(*words):
    """Runs a command. If it fails, prints the command's output and exits."""
    # If this program ends early, the command and its children are killed.
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, process_group=0)
    try:
        said, _ = process.communicate()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if process.returncode:
        sys.exit(f"overhead: {' '.join(words)}: exit status {process.returncode}\n{said}")


def attempt(*words):
    """Runs a command that may fail."""
    subprocess.run(words, capture_output=True, check=False)


def control(line):
    """Writes a line to the module's control file."""
    with open(f"{LT}/control", "w", encoding="ascii") as file:
        file.write(line + "\n")


def write(path, value):
    """Writes a setting of the kernel."""
    with open(path, "w", encoding="ascii") as file:
        file.write(value)


class Soak:
    """Counts the instructions of all tasks except soak, whose loop takes three per round."""

    def __init__(self):
        self.process = subprocess.Popen(["/lt/soak", "/dev/shm/soak"])
        time.sleep(0.5)

    def now(self):
        """Returns the number of instructions so far."""
        with open("/proc/timer_list", encoding="ascii") as file:
            now = next(int(line.split()[2]) for line in file if line.startswith("now at"))
        with open("/dev/shm/soak", "rb") as file:
            return now - 3 * struct.unpack("=Q", file.read(8))[0]

    def end(self):
        """Ends soak."""
        self.process.kill()
        self.process.wait()


class Wall:
    """Measures nanoseconds."""

    def now(self):
        """Returns nanoseconds since an arbitrary time."""
        return time.monotonic_ns()

    def end(self):
        """Does nothing: there is nothing to release."""


class Loads:
    """The four loads: `prepare` sets them up, `run` runs one by name, and `end` undoes `prepare`."""

    def __init__(self, small, names):
        self.large = not small
        self.names = names
        self.undo = []

    def prepare(self):
        """Sets up what the loads need."""
        if {"fio", "oltp"} & set(self.names):
            call("modprobe", "null_blk", "nr_devices=0")
            if not os.path.isdir(NULLB):
                call("mount", "-t", "configfs", "none", "/sys/kernel/config")
                self.undo.append(lambda: call("umount", "/sys/kernel/config"))
        if "fio" in self.names:
            self.disk("lt_fio")
        if "oltp" in self.names:
            self.disk("lt_oltp")
            call("mkfs.ext4", "-q", "-F", "/dev/lt_oltp")
            os.makedirs("/tmp/lt-oltp", exist_ok=True)
            call("mount", "/dev/lt_oltp", "/tmp/lt-oltp")
            self.undo.append(lambda: call("umount", "/tmp/lt-oltp"))
            self.base = sqlite3.connect("/tmp/lt-oltp/base", isolation_level=None)
            self.undo.append(self.base.close)
            run = self.base.execute
            run("PRAGMA journal_mode=WAL")
            run("PRAGMA synchronous=FULL")
            run("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER)")
            run("CREATE TABLE teller (id INTEGER PRIMARY KEY, balance INTEGER)")
            run("CREATE TABLE branch (id INTEGER PRIMARY KEY, balance INTEGER)")
            run("CREATE TABLE history (account INTEGER, teller INTEGER, branch INTEGER, delta INTEGER)")
            run("BEGIN")
            for table, rows in (("account", 10000), ("teller", 10), ("branch", 1)):
                self.base.executemany(f"INSERT INTO {table} VALUES (?, 0)", ((row,) for row in range(rows)))
            run("COMMIT")
        if "iperf3" in self.names:
            call("ip", "netns", "add", "lt_inner")
            self.undo.append(lambda: call("ip", "netns", "delete", "lt_inner"))
            call("ip", "link", "add", "lt_veth0", "type", "veth", "peer", "name", "lt_veth1", "netns", "lt_inner")
            call("ip", "addr", "add", "10.9.0.1/24", "dev", "lt_veth0")
            call("ip", "link", "set", "lt_veth0", "up")
            call("ip", "-n", "lt_inner", "addr", "add", "10.9.0.2/24", "dev", "lt_veth1")
            call("ip", "-n", "lt_inner", "link", "set", "lt_veth1", "up")
            server = subprocess.Popen(["ip", "netns", "exec", "lt_inner", "iperf3", "--server"], stdout=subprocess.DEVNULL)
            self.undo.append(lambda: (server.kill(), server.wait()))
            time.sleep(1)

    def disk(self, name):
        """Makes a disk in memory, whose requests take 50 us."""
        place = f"{NULLB}/{name}"
        os.mkdir(place)
        self.undo.append(lambda: (write(f"{place}/power", "0"), os.rmdir(place)))
        for setting in ("size=128", "memory_backed=1", "irqmode=2", "completion_nsec=50000", "power=1"):
            key, value = setting.split("=")
            write(f"{place}/{key}", value)
        while not os.path.exists(f"/dev/{name}"):
            time.sleep(0.05)

    def end(self):
        """Undoes all changes, the last first, even if one cannot be undone."""
        while self.undo:
            try:
                self.undo.pop()()
            except (OSError, SystemExit) as error:
                print(f"overhead: {error}", file=sys.stderr)

    def run(self, name):
        """Runs the load once."""
        getattr(self, name)()

    def hackbench(self):
        """Sends messages; if small, at a real-time priority, so that tasks switch equally often with each contender."""
        first = ("hackbench", "--process") if self.large else ("chrt", "--fifo", "1", "hackbench", "--process", "--fds", "4")
        call(*first, *(("--groups", "10", "--loops", "10000") if self.large else ("--groups", "2", "--loops", "400")))

    def fio(self):
        """Reads single pages, one at a time."""
        call("fio", "--readonly", "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=1", "--size=4m",
             f"--number_ios={200000 if self.large else 1500}", "--norandommap", "--io_size=10g", "--name=lt",
             "--filename=/dev/lt_fio")

    def iperf3(self):
        """Sends a TCP stream or, if small, packets at a rate that leaves idle time."""
        call("iperf3", "--client", "10.9.0.2",
             *(("--bytes", "20G") if self.large else ("--udp", "--length", "1400", "--bitrate", "40M", "--bytes", "2M")))

    def oltp(self):
        """Makes transactions, the same in each run."""
        dice = random.Random(1)
        run = self.base.execute
        for _ in range(50000 if self.large else 150):
            account, teller, delta = dice.randrange(10000), dice.randrange(10), dice.randrange(-5000, 5000)
            run("BEGIN IMMEDIATE")
            run("UPDATE account SET balance = balance + ? WHERE id = ?", (delta, account))
            run("SELECT balance FROM account WHERE id = ?", (account,)).fetchone()
            run("UPDATE teller SET balance = balance + ? WHERE id = ?", (delta, teller))
            run("UPDATE branch SET balance = balance + ? WHERE id = 0", (delta,))
            run("INSERT INTO history VALUES (?, ?, 0, ?)", (account, teller, delta))
            run("COMMIT")
        run("DELETE FROM history")
        run("PRAGMA wal_checkpoint(TRUNCATE)")


class Ours:
    """Instances of trackers, or the module without an instance."""

    def __init__(self, trackers, late):
        self.trackers, self.late = trackers, late

    def begin(self):
        """Loads the module and creates the instances."""
        if os.path.exists("/lt/latency_tracker.ko"):
            call("insmod", "/lt/latency_tracker.ko")
        else:
            call("modprobe", "latency_tracker")
        for tracker in self.trackers:
            control(f"lt_{tracker} {tracker} threshold={'0' if self.late else '3600s'}")

    def end(self):
        """Removes the instances and the module; returns (events, lost)."""
        events = lost = 0
        for tracker in self.trackers:
            control(f"lt_{tracker} {tracker} enabled=0")
            with open(f"{LT}/lt_{tracker}/stats", encoding="ascii") as file:
                stats = dict(line.split()[:2] for line in file if len(line.split()) > 1)
            events += int(stats["ended"])
            lost += int(stats["full"])
            control(f"-lt_{tracker}")
        call("rmmod", "latency_tracker")
        return (events, lost) if self.trackers else ("-", "-")

    def abandon(self):
        """Removes the module, and its instances with it."""
        attempt("rmmod", "latency_tracker")


class Bpf:
    """The programs of tests/bench/bpf."""

    def __init__(self, programs):
        self.programs = programs
        self.process = None

    def begin(self):
        """Attaches the programs."""
        place = os.environ.get("LT_BENCH", "/lt")
        self.process = subprocess.Popen([f"{place}/bench-sched", f"{place}/{self.programs}"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            sys.exit(f"overhead: {self.programs} cannot be attached")

    def end(self):
        """Ends the loader; returns (events, lost)."""
        said, _ = self.process.communicate()
        counts = dict(line.split() for line in said.splitlines())
        return counts["delays"], counts["lost"]

    def abandon(self):
        """Kills the loader; the kernel then detaches the programs."""
        if self.process:
            self.process.kill()
            self.process.wait()


class Lttng:
    """A session of LTTng whose buffers are overwritten."""

    def __init__(self, what):
        self.what = what

    def begin(self):
        """Starts the session; its daemon stays."""
        call("lttng", "create", "--snapshot", "lt_overhead", "--output=/tmp/lt-overhead")
        call("lttng", "enable-event", *self.what)
        call("lttng", "start")

    def end(self):
        """Ends the session; overwritten events do not count as lost."""
        call("lttng", "destroy", "lt_overhead")
        return "-", "-"

    def abandon(self):
        """Ends the session, which removes its buffers."""
        attempt("lttng", "--no-sessiond", "destroy", "lt_overhead")


def daemon(undo):
    """Starts LTTng's daemon, which exits if one is already running. Adds its removal to `undo`."""
    process = subprocess.Popen(["lttng-sessiond"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    undo.append(lambda: (process.terminate(), process.wait()))
    for _ in range(300):
        if not subprocess.run(["lttng", "--no-sessiond", "list"], capture_output=True, check=False).returncode:
            return
        time.sleep(0.1)
    sys.exit("overhead: lttng-sessiond does not answer")


class Absent:
    """No tracer."""

    def begin(self):
        """Does nothing."""

    def end(self):
        """Does nothing."""
        return "-", "-"

    def abandon(self):
        """Does nothing."""


def turn(contender, loads, load, clock):
    """Returns the load's cost, and what the contender measured and lost. If anything fails, removes the contender."""
    try:
        contender.begin()
        before = clock.now()
        loads.run(load)
        cost = clock.now() - before
        return cost, *contender.end()
    except BaseException:
        contender.abandon()
        raise


def catch_signals():
    """Turns the first signal into an ordinary exit."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def end(number, _):
        for other in signals:
            signal.signal(other, signal.SIG_IGN)
        sys.exit(f"overhead: ended by {signal.Signals(number).name}")

    for number in signals:
        signal.signal(number, end)


def contenders(load):
    """Returns {name: contender} for a load."""
    trackers, programs = CONTENDERS[load]
    found = {"absent": Absent(), "idle": Ours((), False)}
    for tracker in trackers:
        found[tracker] = Ours(tracker.split("+"), False)
        found[f"{tracker}!"] = Ours(tracker.split("+"), True)
    found["bpf"] = Bpf(programs)
    found.update({name: Lttng(what) for name, what in LTTNG.items()})
    return found


def main():
    """See the head of this file."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--clock", choices=("soak", "wall"), default="wall")
    options.add_argument("--small", action="store_true")
    options.add_argument("--rounds", type=int, default=10)
    options.add_argument("--loads", default=",".join(CONTENDERS))
    options.add_argument("--contenders", default="")
    options = options.parse_args()
    names = options.loads.split(",")
    unknown = [name for name in names if name not in CONTENDERS]
    if unknown:
        sys.exit(f"overhead: no load {unknown[0]}; there are {', '.join(CONTENDERS)}")
    wanted = set(options.contenders.split(",")) - {""}
    known = {name for load in names for name in contenders(load)}
    if wanted - known:
        sys.exit(f"overhead: no contender {min(wanted - known)}; there are {', '.join(sorted(known))}")
    catch_signals()
    if options.clock == "soak":
        write("/proc/sys/kernel/sched_rt_runtime_us", "-1")
        write("/proc/sys/net/core/wmem_default", "4608")
    loads = Loads(options.small, names)
    clock = Soak() if options.clock == "soak" else Wall()
    order = random.Random(1)
    try:
        if not wanted or wanted & set(LTTNG):
            daemon(loads.undo)
        loads.prepare()
        for load in names:
            mine = {name: it for name, it in contenders(load).items() if not wanted or name in wanted | {"absent"}}
            # warm up: the first run of anything is slow
            for contender in mine.values():
                turn(contender, loads, load, clock)
            for number in range(options.rounds):
                turns = list(mine)
                order.shuffle(turns)
                for name in turns:
                    cost, events, lost = turn(mine[name], loads, load, clock)
                    print(f"run {load} {name} {number} {cost} {events} {lost}", flush=True)
    finally:
        clock.end()
        loads.end()
    print("complete", flush=True)


if __name__ == "__main__":
    main()
