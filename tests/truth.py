#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Judges explanations of delays whose cause is known. Each explanation is made from a trace as it was recorded, or from
a copy of the trace from which a part was removed.

usage: truth.py judge KNOWN ALERTS CAPTURE PART...
                                    explains the alerts (the command is $LATENCY_TRACKER) from the trace of the capture
                                    if PART is `whole`, or else from a copy without that part, and compares the
                                    explanations with the culprits in KNOWN, which culprits.py has written. Prints a
                                    line for each case. The exit status is 2 if a sentence is wrong but not listed in
                                    KNOWN_WRONG of culprits.py, or right although it is listed there without a
                                    question mark
       truth.py parts               lists the parts
       truth.py table NAME [JSON]   sums up the output of `judge`, read from standard input

A sentence is right if it names the culprit of the case and, from the whole trace, gives it at least the case's share.
It is unknown if it states that something is not recorded, or that there are several reasons, and names no other thread
and no other disk; or if, in a copy without `raises` or `interrupts`, it is the sentence that the case accepts there.
Everything else is wrong. If a case has several delays, the worst verdict counts.
"""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

# The sentences that name no culprit; Documentation/guide/explain.md lists them.
UNKNOWN = re.compile(
    r"not recorded|slow to leave idle, or a limit|(perhaps|at first because of) cpu\.max|or yielded the rest with sched_yield"
    r"|; io\.max of a cgroup held it back, or another thread had to submit it|raised by several sources|from one of several sources"
    r"|is not in the trace|^No events of|^The trace begins after the alert"
)

# A packet of LTTng has its times, its sizes in bits, its number, and the count of lost events at these offsets.
PACKET = struct.Struct("<32xQQQQQQ")


def others(case, late, words):
    """Threads and disks in a sentence that have no part in the case. The late thread may have been renamed."""
    threads = [name for name, tid in re.findall(r"([a-z]+)\S*/([0-9]+)", words) if int(tid) != late]
    # Threads of one name are together, as in "archiver (193, 195)".
    threads += re.findall(r"([a-z]+)\S* \([0-9]+, [0-9]", words)
    disks = re.findall(r"disk [0-9]+:[0-9]+", words)
    # The name of a disk does not count within the name of a thread (ext in jbd2/ext-8), nor in the sentence about an
    # idle CPU (one of the disks is called slow).
    words = words.replace("slow to leave idle", "")
    named = [disk for disk in case.get("disks", []) if re.search(rf"(?<![\w/]){disk}(?![\w/-])", words)]
    parts = " ".join([case["culprit"], *case.get("part", [])])
    return [who for who in threads + disks + named if who not in parts]


def judged(case, report, without):
    """Returns right, unknown or wrong."""
    # The first sentence that a person reads: the verdict or, if there is none, what is missing.
    words = largest(" ".join(report["text"].split("\n\n")[1].split()))
    verdict = report["verdict"] and largest(report["verdict"])
    assert verdict in (words, None), words
    culprit = case["culprit"]
    if UNKNOWN.search(words):
        return "wrong" if others(case, report["alert"]["tid"], words) else "unknown"
    share = re.fullmatch(r"([0-9]+) % of the delay \([^)]*\): (.*)\.", words)
    if share and re.fullmatch(culprit, share[2]):
        return "right" if without != "whole" or int(share[1]) >= case["share"] else "wrong"
    raised = case["without"].get("raised")
    alone = without in ("raises", "interrupts") and raised and share and re.fullmatch(raised, share[2])
    return "unknown" if alone else "wrong"


def explained(capture, alerts):
    program = os.environ.get("LATENCY_TRACKER", "latency-tracker")
    command = [program, "explain", "-v", "--json", capture, "--alerts", alerts]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return [json.loads(line) for line in done.stdout.splitlines()]


def worst(results):
    return next((result for result in ("wrong", "unknown", "right") if result in results), "wrong")


def judge_one(cases, reports, without):
    """Prints a line for each case, and returns whether every verdict is as expected."""
    good = True
    for case in cases:
        own = [report for report in reports if report["alert"]["instance"] == case["name"]]
        found = {judged(case, report, without): report["verdict"] or report["text"] for report in own}
        result = worst(found)
        why = next((case["wrong"][part] for part in (without, f"{without}?", "any?") if part in case["wrong"]), None)
        note = ""
        if result == "wrong":
            note = f"known: {why}" if why else "NOT KNOWN"
        elif result == "right" and without in case["wrong"]:
            note = "NO LONGER WRONG"
        good &= not note.isupper()
        said = " ".join(found.get(result, "no explanation").split())
        print(result, without, "two" if case["two"] else "one", case["name"], said, note, sep="\t", flush=True)
    return good


def judge(known, alerts, capture, *parts):
    with open(known, encoding="utf-8") as text:
        cases = json.load(text)
    good = True
    for part in parts:
        with tempfile.TemporaryDirectory() as directory:
            copy = capture
            if part != "whole":
                copy = os.path.join(directory, "capture")
                take(part, capture, copy)
            good &= judge_one(cases, explained(copy, alerts), part)
    return 0 if good else 2


def largest(words):
    """Returns the sentence without its smaller parts."""
    return re.sub(r"; [0-9]+ %(:| is not recorded for ).*", ".", words)


def packets(data):
    at = 0
    while at + PACKET.size <= len(data):
        size = PACKET.unpack_from(data, at)[3] // 8
        yield data[at : at + size]
        at += size


def numbered(packet, number, lost):
    *times_and_sizes, _, before = PACKET.unpack_from(packet)
    return packet[:32] + PACKET.pack(*times_and_sizes, number, before + lost)[32:] + packet[PACKET.size :]


def drop_some(data):
    """Drops every third packet. The packet before a dropped packet counts the dropped events as lost."""
    kept, lost = [], 0
    for number, packet in enumerate(list(packets(data))):
        if number % 3 == 2:
            continue
        lost += 100 * (number % 3 == 1)
        kept.append(numbered(packet, len(kept), lost))
    return b"".join(kept)


def drop_first(data):
    """Removes the first half, as if a ring had overwritten it."""
    all_of_it = list(packets(data))
    return b"".join(all_of_it[len(all_of_it) // 2 :])


def cut(data):
    return data[: len(data) // 2]


STREAMS = {"lost": drop_some, "ring": drop_first, "cut": cut, "stream": None}
EVENTS = {
    "wakings": "sched_wak(ing|eup|eup_new)",
    "moves": "sched_migrate_task",
    "raises": "irq_softirq_raise",
    "interrupts": "irq_handler_.*",
    "softirqs": "irq_softirq_.*",
    "vectors": "x86_irq_vectors_.*",
    "timers": "timer_.*",
    "bios": "block_(bio_.*|getrq)",
    "requests": "block_rq_.*",
    "works": "workqueue_.*",
    # Evidence that a limit has held something back.
    "dirty": "writeback_.*",
    "limits": "(power_cpu_idle|timer_hrtimer_expire_.*|workqueue_.*|writeback_.*)",
}
PARTS = [f"{part}-{cpu}" for part in STREAMS for cpu in (0, 1)] + list(EVENTS)


def streams(capture):
    directory = os.path.join(capture, "trace", "kernel")
    # The index would not match a changed trace.
    shutil.rmtree(os.path.join(directory, "index"), ignore_errors=True)
    return {name: os.path.join(directory, name) for name in sorted(os.listdir(directory)) if name[-1].isdigit()}


def load(path):
    with open(path, "rb") as file:
        return file.read()


def save(path, data):
    with open(path, "wb") as file:
        file.write(data)


def take(part, source, target):
    shutil.copytree(source, target)
    kind, _, cpu = part.partition("-")
    if cpu:
        (path,) = [path for name, path in streams(target).items() if name.endswith(f"_{cpu}")]
        data = load(path)
        os.remove(path)
        if STREAMS[kind]:
            save(path, STREAMS[kind](data))
        return
    streams(target)
    # As if an unknown kind of event had been recorded instead.
    path = os.path.join(target, "trace", "kernel", "metadata")
    text, count = re.subn(f'"name": ?"({EVENTS[kind]})"', r'"name":"taken_\1"', load(path).decode())
    assert count > 0, kind
    save(path, text.encode())


# The simpler methods of tests/bench/rule.py, which prints its verdicts in the same form.
RULES = ("rule", "timehist")
FIRST = [f"{kind}, {which}" for kind in ("whole", *RULES) for which in ("one cause", "two causes", "all")]
COPIES = "copies, all"


def table(name, file=None):
    sums, cases, wrong = {row: {} for row in (*FIRST, COPIES)}, set(), {}
    for line in sys.stdin:
        result, without, two, case, said, note = line.rstrip("\n").split("\t")
        cases.add(case)
        rows = [COPIES, f"copy without {without}"]
        if without in ("whole", *RULES):
            rows = [f"{without}, {two} cause{'s' * (two == 'two')}", f"{without}, all"]
        for row in rows:
            counts = sums.setdefault(row, {})
            counts[result] = counts.get(result, 0) + 1
        if result == "wrong" and without not in RULES:
            wrong.setdefault((case, note), []).append((without, said))
    print(f"{name}, {len(cases)} cases")
    print(f"{'':24} {'right':>7} {'unknown':>7} {'wrong':>7} {'% unknown':>10}")
    for row, counts in sums.items():
        right, unknown, bad = (counts.get(result, 0) for result in ("right", "unknown", "wrong"))
        if counts:
            share = 100 * unknown / (right + unknown + bad)
            print(f"{row:24} {right:7} {unknown:7} {bad:7} {share:10.0f}")
    print("wrong:" if wrong else "nothing is wrong")
    for (case, note), sentences in wrong.items():
        print(f"  {case} ({', '.join(without for without, _ in sentences)}): {sentences[0][1]}\n    {note}")
    if file:
        save(file, json.dumps({"name": name, "rows": sums}).encode())


def main(words):
    what, *rest = words
    if what == "parts":
        print(*PARTS)
        return 0
    return {"judge": judge, "table": table}[what](*rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
