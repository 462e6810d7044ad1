#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT

"""Helpers of the `latency-tracker bench` tests, inside the virtual machine.

usage: bench.py report FILE WORD...   checks the invariants of FILE, the output of --json, and what the words claim
       bench.py tasks                 prints policy, priority and CPUs of each task
       bench.py same OLD              checks that no task has changed since OLD, the output of `tasks`
       bench.py runs PID              waits until PID has a thread under test on CPU 1 and a watching thread on CPU 0,
                                      both recognised by their priorities
       bench.py ends PID SIGNAL       sends the signal; prints how many ms the thread under test continued
       bench.py disturb SAID WORD...  once the file SAID shows that the loop runs, runs a slow handler on CPU 1
                                      (lt_causes; `how=tasklet`: its tasklet), repeatedly, until all words are met:
                                      N calls, an `alert` of the tracker irq, a file that exists. With `how=nmi`, NMIs
                                      of CPU 1 are slow instead; with `nmis=N`, N must come while the loop has
                                      interrupts off
       bench.py hostile               checks that the file hwnoise refuses invalid requests, and answers valid ones
"""

import ctypes
import errno
import glob
import json
import os
import re
import signal
import sys
import time

LINE = "lt_cause"


def close(one, other):
    return abs(one - other) <= 1e-9 * max(abs(one), abs(other))


def counted(report):
    return sum(series["peaks"] for series in report["series"])


def invariants(report):
    for series in report["series"]:
        assert sum(b["count"] for b in series["bins"]) == series["loops"], "bins sum to loops"
        assert close(series["mean"] * series["loops"], series["sum"]), "sum = mean x loops"
        assert close(series["deviation"] ** 2, series["variance"]), "variance = sigma squared"
        assert series["min"] <= series["mean"] <= series["max"], "the mean is between the extremes"
        low, high = series["bins"][0], series["bins"][-1]
        assert low["low"] <= series["min"] < low["high"] and high["low"] <= series["max"] < high["high"], "min and max are in the bins"
        assert sorted(series["percentiles"]) == ["p50", "p90", "p99", "p99.9", "p99.99"], series["percentiles"]
    peaks = report["peaks"] if report["bench"] == "loop" else report["late"]
    assert len(peaks) + report["lost"]["peaks"] == counted(report), "each peak is listed or counted as lost"
    assert report["passed"] == (not report["failed"]), report["failed"]


def lines(peak):
    return [moved for moved in peak["moved"] if LINE in moved["counter"]]


def report(file, *words):
    with open(file, encoding="utf-8") as text:
        found = json.load(text)
    invariants(found)
    by_handler = [peak for peak in found.get("peaks", []) if lines(peak)]
    for word in words:
        if word == "calm":
            assert not counted(found) and found["passed"] and found["complete"], found["failed"]
        elif word.startswith("loops="):
            assert [series["loops"] for series in found["series"]] == [int(word[6:])], "as many as asked for"
        elif word.startswith("peaks="):
            # The handler takes this many ms or longer, and was called once for each peak.
            least = float(word[6:]) * 1e6
            assert by_handler and not found["passed"], found["peaks"]
            for peak in by_handler:
                assert peak["took"] >= least and peak["cpu"] == 1 and peak["window"] >= peak["took"], peak
                assert all(moved["unusual"] and moved["by"] == 1 for moved in lines(peak)), peak
                assert LINE in peak["cause"], peak["cause"]
        elif word == "alert":
            armed = [peak for peak in by_handler if peak["phase"] == "armed"]
            assert armed, "no peak while armed"
            for peak in armed:
                mine = [a for a in peak["alerts"] if a["tracker"] == "irq" and a["action"] == LINE]
                assert mine and mine[0]["delay"] <= peak["took"] <= 2 * mine[0]["delay"], peak
                assert "irq took" in peak["cause"], peak["cause"]
            phases = {series["phase"]: series for series in found["series"]}
            assert sorted(phases) == ["armed", "baseline"], sorted(phases)
            assert "p99.99" in found["added"] and "max" in found["added"], found["added"]
            assert phases["armed"]["events"] > 0 and phases["baseline"]["events"] > 0, "events"
            assert not any(found["lost"].values()) and found["complete"], found["lost"]
        elif word == "inside":
            assert found["in_kernel"] and found["clock"]["source"] == "kernel", found["clock"]
        elif word.startswith("nmi="):
            # NMIs took this many ms. Nothing else is a cause where interrupts are off.
            least = float(word[4:]) * 1e6
            assert found["peaks"] and not found["passed"], found["failed"]
            for peak in found["peaks"]:
                assert "interrupt NMI" in peak["cause"], peak
                assert peak["took"] >= least and peak["cpu"] == 1 and peak["window"] >= peak["took"], peak
                assert [moved["counter"].split()[1] for moved in peak["moved"]] == ["NMI"], peak
                assert peak["took"] < 2 * least, "one NMI for each"
        elif word.startswith("captured="):
            # One peak has the flight recorder's trace around it, whose explanation names the cause.
            captured = [peak for peak in found["peaks"] if "capture" in peak]
            assert len(captured) == 1 and captured[0]["phase"] == "armed" and captured[0]["cpu"] == 1, found["peaks"]
            text = " ".join(captured[0]["explanation"].split())
            assert re.search(word[9:], text), text
            assert os.path.isfile(captured[0]["capture"] + "/trace/kernel/metadata"), captured[0]["capture"]
        elif word.startswith("late="):
            # The handler held off a timer for this many ms or longer.
            least = float(word[5:]) * 1e6
            late = [cycle for cycle in found["late"] if cycle["late"] >= least]
            assert late and not found["passed"] and found["complete"], found
            assert found["missed"] > 0, "the handler takes longer than an interval"
            for cycle in late:
                alert = cycle["alert"]
                assert alert and alert["tid"] == cycle["tid"] and cycle["cpu"] == 1, cycle
                assert abs(alert["time"] - alert["delay"] - cycle["due"]) < 1e6, "they are the same timer"
                assert 0.9 * cycle["late"] < alert["delay"] <= cycle["late"], cycle
                steps = re.findall(r"(\w+):\S+?@1\+(\d+)", alert["path"])
                assert steps[0][0] == "timer" and steps[-1][0] == "switch", alert["path"]
                assert sum(int(took) for _, took in steps) == alert["delay"], alert["path"]
                assert max(int(took) for _, took in steps) > 0.8 * alert["delay"] and "most of the delay" in cycle["cause"], cycle
            # The second step has most of the delay: the timer was due, and the interrupt was held off. Rarely, the
            # handler comes between the wakeup and the switch.
            kept = [cycle["alert"] for cycle in late]
            assert any(int(re.findall(r"@1\+(\d+)", alert["path"])[1]) > 0.8 * alert["delay"] for alert in kept), kept
        elif word.startswith("compared="):
            cyclictest, *rtla = found["compared"]
            assert cyclictest["name"].startswith("cyclictest") and cyclictest["samples"] == int(word[9:]), cyclictest
            with open("/sys/kernel/tracing/available_tracers", encoding="ascii") as file:
                kinds = ("IRQ", "Thr", "Usr") if "timerlat" in file.read().split() else ()
            assert [tool["name"] for tool in rtla] == [f"rtla timerlat {kind}-001" for kind in kinds], rtla
            # rtla's duration is in whole seconds.
            assert all(tool["samples"] >= int(word[9:]) for tool in rtla), rtla
        else:
            raise ValueError(word)


def policy(tid):
    """Returns policy, priority and CPUs. SCHED_RESET_ON_FORK is not part of the policy."""
    return (
        os.sched_getscheduler(tid) & ~os.SCHED_RESET_ON_FORK,
        os.sched_getparam(tid).sched_priority,
        sorted(os.sched_getaffinity(tid)),
    )


def threads(pid):
    for task in glob.glob(f"/proc/{pid}/task/[0-9]*"):
        tid = int(os.path.basename(task))
        try:
            yield tid, policy(tid)
        except ProcessLookupError:
            pass


def tasks():
    for tid, what in threads("[0-9]*"):
        print(tid, what)


def same(old):
    with open(old, encoding="utf-8") as text:
        before = dict(line.rstrip("\n").split(" ", 1) for line in text)
    after = {str(tid): str(what) for tid, what in threads("[0-9]*")}
    changed = {tid: (what, after[tid]) for tid, what in before.items() if after.get(tid, what) != what}
    assert not changed, changed


LOOP = (os.SCHED_FIFO, 95, [1])
WATCH = (os.SCHED_FIFO, 45, [0])


def until(condition, what):
    """Waits, with the time limit of tests/lib.sh."""
    end = time.monotonic() + 30 * int(os.environ.get("PATIENCE", "1"))
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)


def loop_of(pid):
    there = dict(threads(pid))
    loops = [tid for tid, what in there.items() if what == LOOP]
    return loops if there.get(int(pid)) == WATCH else []


def runs(pid):
    until(lambda: loop_of(pid), f"a loop {LOOP} and its watch {WATCH}")


def ends(pid, name):
    loops = until(lambda: loop_of(pid), "a loop")
    begin = time.monotonic()
    os.kill(int(pid), getattr(signal, "SIG" + name))
    while any(os.path.exists(f"/proc/{pid}/task/{tid}") for tid in loops):
        assert time.monotonic() < begin + 10, "the loop goes on"
    print(int((time.monotonic() - begin) * 1000))


def alerted():
    """Returns whether the tracker irq has raised an alert."""
    for file in glob.glob("/proc/latency_tracker/bench_*_irq/stats"):
        with open(file, encoding="utf-8") as stats:
            if any(line.split()[0] == "alerts" and int(line.split()[1]) > 0 for line in stats):
                return True
    return False


RUN = "/sys/module/lt_causes/parameters/run"
NMIS = "/sys/module/lt_causes/parameters/nmis"
# Interrupts are off in the idle task and in other handlers, too: the loop is known by its priority.
NMI_PRIORITY = "/sys/module/lt_causes/parameters/nmi_priority"


def number(file):
    with open(file, encoding="ascii") as text:
        return int(text.read())


def disturb(said, *wanted):
    def loops():
        with open(said, encoding="utf-8") as text:
            return "running; Ctrl-C ends it" in text.read()

    def enough(calls, word):
        if word == "alert":
            return alerted()
        if word.isdigit():
            return calls >= int(word)
        if word.startswith("nmis="):
            return number(NMIS) >= int(word[5:])
        return os.path.exists(word)

    how = [word[4:] for word in wanted if word.startswith("how=")]
    wanted = [word for word in wanted if not word.startswith("how=")]
    until(loops, "the loop")
    with open(NMI_PRIORITY, "w", encoding="ascii") as priority:
        priority.write(str(LOOP[1]))
    # This task gets a higher priority than the loop, to call the handler on the loop's CPU. It uses that CPU only to
    # start the handler and to wait for its end.
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(97))
    calls = 0
    while not all(enough(calls, word) for word in wanted):
        assert calls < 100, f"in vain: {wanted}"
        calls += 1
        # Interrupts other than NMIs are raised on the CPU of the writer.
        os.sched_setaffinity(0, {0 if how == ["nmi"] else 1})
        with open(RUN, "w", encoding="ascii") as run:
            run.write(how[0] if how else "handler")
        os.sched_setaffinity(0, {0})
        time.sleep(0.3)


def hostile():
    path = "/proc/latency_tracker/hwnoise"

    def ask(file, question):
        assert os.write(file, question) == len(question)

    def whole(file, size=4096):
        parts = iter(lambda: os.read(file, size), b"")
        return b"".join(parts).decode()

    file = os.open(path, os.O_RDWR)
    other = os.open(path, os.O_RDWR)
    assert whole(file) == "", "no question, no answer"
    for question, error in [
        (b"", errno.EINVAL),
        (b"\n", errno.EINVAL),
        (b"5", errno.EINVAL),
        (b"5  5", errno.EINVAL),
        (b"-5 5", errno.EINVAL),
        (b"5 5 5", errno.EINVAL),
        (b"1ms 5", errno.EINVAL),
        (b"\xff 5", errno.EINVAL),
        (b"5 \0", errno.EINVAL),
        (b"1 " + b"1" * 79, errno.EINVAL),
        (b"x" * 100000, errno.EINVAL),
        (b"0 5", errno.ERANGE),
        (b"1000001 5", errno.ERANGE),
        (b"18446744073709551615 5", errno.ERANGE),
        (b"99999999999999999999 5", errno.EINVAL),
    ]:
        try:
            os.write(file, question)
            # An empty write may not reach the module.
            assert not question, question
        except OSError as refused:
            assert refused.errno == error, (question, refused)
        assert whole(file) == "", "an error has no answer"
    ask(file, b"1000000 0\n")
    assert whole(other) == "", "an answer belongs to an open file"
    answer = whole(file, 7)
    lines = [line.split() for line in answer.splitlines()]
    only = {words[0]: int(words[1]) for words in lines if len(words) == 2}
    assert only["sum"] >= 1000000 and only["peaks"] == only["loops"] > 1, answer
    assert sum(int(words[2]) for words in lines if words[0] == "bin") == only["loops"], answer
    peaks = [(int(words[1]), int(words[2])) for words in lines if words[0] == "peak"]
    assert len(peaks) == 16 and all(a + b == c for (a, b), (c, _) in zip(peaks, peaks[1:])), answer
    assert whole(file) == "", "it is read once"
    libc = ctypes.CDLL(None, use_errno=True)
    ask(file, b"1 1")
    assert libc.read(file, ctypes.c_void_p(8), ctypes.c_size_t(9)) == -1 and ctypes.get_errno() == errno.EFAULT
    assert whole(file).startswith("loops "), "it is still there"
    ask(file, b"1 1")
    assert libc.write(file, ctypes.c_void_p(8), ctypes.c_size_t(9)) == -1 and ctypes.get_errno() == errno.EFAULT
    assert whole(file) == "", "an error has no answer"
    ask(file, b"1 18446744073709551615")
    ask(file, b"1 18446744073709551615")
    assert whole(file).count("loops ") == 1, "the last question counts"
    os.close(file)
    os.close(other)
    with open(path, "rb") as reader:
        assert reader.read() == b""
    for bad in (lambda: os.pread(os.open(path, os.O_RDONLY), 1, 5), lambda: os.lseek(os.open(path, os.O_RDONLY), 1, 0)):
        try:
            bad()
            assert False, "it has no positions"
        except OSError as refused:
            assert refused.errno == errno.ESPIPE, refused


def main(words):
    what, *rest = words
    functions = (report, tasks, same, runs, ends, disturb, hostile)
    {function.__name__: function for function in functions}[what](*rest)


if __name__ == "__main__":
    main(sys.argv[1:])
