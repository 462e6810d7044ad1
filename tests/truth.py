#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""The judge of explanations whose truth is known: of traces as they were recorded, and of copies with a part taken away.

usage: truth.py judge KNOWN ALERTS TRACE PART...   explains the alerts (the command is $LATENCY_TRACKER), of the trace if PART
                                                   is `whole`, else of a copy without that part, and judges that by
                                                   what culprits.py has written. Prints a line for each case; exit
                                                   status 2 if one is wrong
       truth.py parts                              lists the parts
       truth.py table [JSON]                       sums up what `judge` has printed, from its input

A sentence is right if it names the culprit that the case was made of. It is unknown if it says that something is not
recorded, or that there are several reasons. Everything else is wrong.
"""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

# What a sentence says that names nobody: Documentation/guide/explain.md lists them.
UNKNOWN = re.compile(
    "not recorded|for CPU [0-9]+, which was idle|slow to leave idle, or a limit|waited( in [a-z0-9_]+)? for a completion of disk|from one of several sources"
    "|is not in the trace|^No events of|^The trace begins after the alert"
)

# A packet of LTTng has its times, its sizes in bits, its number, and the count of lost events at these offsets.
PACKET = struct.Struct("<32xQQQQQQ")


def judged(case, report, without):
    """right, unknown or wrong."""
    # It is the first sentence that a person reads. Without one, the text says what is missing.
    words = largest(" ".join(report["text"].split("\n\n")[1].split()))
    verdict = report["verdict"] and largest(report["verdict"])
    assert verdict in (words, None), words
    if UNKNOWN.search(words):
        return "unknown"
    culprit = case["without"].get(without, case["culprit"])
    share = re.fullmatch(r"([0-9]+) % of it \([^)]*\): " + culprit + r"\.", words)
    return "right" if share and (without != "whole" or int(share[1]) >= case["share"]) else "wrong"


def explained(trace, alerts):
    command = [os.environ.get("LATENCY_TRACKER", "latency-tracker"), "explain", "-v", "--json", trace, "--alerts", alerts]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return [json.loads(line) for line in done.stdout.splitlines()]


def judge_one(cases, reports, without):
    """Whether none is wrong."""
    good = True
    for case in cases:
        own = [report for report in reports if report["alert"]["instance"] == case["name"]]
        found = {judged(case, report, without): report["verdict"] or report["text"] for report in own}
        # Where any alert counts, the others are of delays that are not the one that was provoked.
        order = ("right", "unknown", "wrong") if case["any"] else ("wrong", "right", "unknown")
        result = next((key for key in order if key in found), "wrong")
        good &= result != "wrong"
        said = " ".join(found.get(result, "no explanation").split())
        print(result, without, "two" if case["two"] else "one", case["name"], said, sep="\t", flush=True)
    return good


def judge(known, alerts, trace, *parts):
    with open(known, encoding="utf-8") as text:
        cases = json.load(text)
    good = True
    for part in parts:
        with tempfile.TemporaryDirectory() as directory:
            copy = trace
            if part != "whole":
                copy = os.path.join(directory, "trace")
                take(part, trace, copy)
            good &= judge_one(cases, explained(copy, alerts), part)
    return 0 if good else 2


def largest(words):
    """Without what a sentence adds of smaller parts."""
    return re.sub(r"; [0-9]+ %(:| is not recorded:).*", ".", words)


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
    """Every third packet is lost. The one before it counts what has been lost after its last event."""
    kept, lost = [], 0
    for number, packet in enumerate(list(packets(data))):
        if number % 3 == 2:
            continue
        lost += 100 * (number % 3 == 1)
        kept.append(numbered(packet, len(kept), lost))
    return b"".join(kept)


def drop_first(data):
    """As a ring has overwritten the first half."""
    all_of_it = list(packets(data))
    return b"".join(all_of_it[len(all_of_it) // 2 :])


def cut(data):
    return data[: len(data) // 2]


STREAMS = {"lost": drop_some, "ring": drop_first, "cut": cut, "stream": None}
EVENTS = {
    "wakings": "sched_wak(ing|eup|eup_new)",
    "moves": "sched_migrate_task",
    "raises": "irq_softirq_raise",
    "vectors": "x86_irq_vectors_.*",
    "bios": "block_(bio_.*|getrq)",
}
PARTS = [f"{part}-{cpu}" for part in STREAMS for cpu in (0, 1)] + list(EVENTS)


def streams(trace):
    directory = os.path.join(trace, "kernel")
    # It would be that of another trace.
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
    # As if another kind of event had been recorded instead, of which nothing is known.
    path = os.path.join(target, "kernel", "metadata")
    text, count = re.subn(f'"name": ?"({EVENTS[kind]})"', r'"name":"taken_\1"', load(path).decode())
    assert count > 0, kind
    save(path, text.encode())


def table(file=None):
    sums = {}
    for line in sys.stdin:
        result, without, two, *_ = line.split("\t")
        causes = {"one": "one cause", "two": "two causes"}[two]
        row = {"whole": f"whole, {causes}", "rule": f"the rule, {causes}"}.get(without, f"without {without}")
        sums.setdefault(row, {"right": 0, "unknown": 0, "wrong": 0})[result] += 1
    print(f"{'':24} {'right':>7} {'unknown':>7} {'wrong':>7}")
    for row, counts in sums.items():
        print(f"{row:24} {counts['right']:7} {counts['unknown']:7} {counts['wrong']:7}")
    if file:
        save(file, json.dumps(sums).encode())


def main(words):
    what, *rest = words
    if what == "parts":
        print(*PARTS)
        return 0
    return {"judge": judge, "table": table}[what](*rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
