#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Puts the output of a run into README.md or a page of the guide, and draws the paths (scripts/example).

usage: example.py DIRECTORY README SVG     the alert, the start of its explanation, and one picture
       example.py DIRECTORY PAGE           each FILE.txt at <!-- output FILE -->; each NAME.json as PAGE-NAME.svg beside it
"""

import json
import re
import sys
import textwrap
from pathlib import Path
from xml.sax.saxutils import escape

LEFT, WIDTH, LANE, TOP = 130, 600, 46, 34
COLOURS = {"running": "#2a7f62", "blocked": "#b5451c", "waits": "#dddddd"}
OTHER = "#777777"
WORDS = {
    "running": "runs ",
    "preempted": "no CPU ",
    "waiting": "no CPU ",
    "limited": "held back ",
    "had the CPU": "had the CPU ",
}
# A thread in a sentence: client/581, jbd2/slow-8/186.
THREAD = r"[^\s(,;]+/[0-9]+(?![^\s,;:.)])"
# Number of paragraphs of the explanation that the example shows: the alert, the sentence, the causes.
PARAGRAPHS = 3


def indented(lines):
    """Returns lines as a block of Markdown."""
    return "\n" + "".join(("    " + line).rstrip() + "\n" for line in lines) + "\n"


def example(directory):
    """Returns the alert and the start of the explanation, as Markdown."""
    alert = (directory / "alert.txt").read_text(encoding="utf-8").strip()
    folded = textwrap.wrap(alert, 76, break_long_words=False, break_on_hyphens=False)
    text = (directory / "explanation.txt").read_text(encoding="utf-8").strip()
    paragraphs = text.split("\n\n")[:PARAGRAPHS]
    return indented(folded + [""] + "\n\n".join(paragraphs).splitlines() + ["", "  ..."])


def time(ns):
    """Formats a time of the path, with three digits."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        # Rounding may reach the next unit: 999.9 us are 1 ms.
        rounded = float(f"{ns / size:.3g}")
        if rounded >= 1:
            return f"{rounded:g} {unit}"
    return f"{ns} ns"


def label(thread):
    """Returns the name of a thread, as the explanation writes it."""
    return f"{thread['comm']}/{thread['tid']}" if thread["comm"] else str(thread["tid"])


def device(cause):
    """Returns the name of a disk, a timer or another cause that is not a thread."""
    return f"{cause['by']} {cause.get('disk') or cause.get('name', '')}".strip()


def steps(path, named):
    """Returns each step as its start and its chain: (lane, kind, end) from the late thread to what it waited for.

    A thread of the sentence that had the CPU for which a thread waited follows that thread. The trace shows how long it
    had the CPU in all; its bar starts with the wait.
    """
    found, threads = [], [label(path["thread"])]
    for step in path["path"]:
        begin, end, cause, depth = step["begin"], step["end"], step["cause"], step["depth"]
        # A waiting thread without a step of its own is not in the path.
        threads = threads[:depth] + [None] * (depth - len(threads)) + [label(step["thread"])]
        chain = [(thread, "waits", end) for thread in threads[:-1] if thread]
        if cause["kind"] == "blocked" and "by" in cause:
            chain += [(threads[-1], "waits", end), (device(cause), "blocked", end)]
        else:
            chain.append((threads[-1], cause["kind"], end))
        user = step.get("instead", {})
        if user.get("thread") and label(user["thread"]) in named:
            chain.append((label(user["thread"]), "had the CPU", begin + user["time"]))
        found.append((begin, chain))
    return found


def lanes_of(path, found, named, least):
    """Returns the lanes: threads, each below the threads that wait for it, and then devices.

    A thread or device with less than `least` in all has no lane, unless the sentence names the thread.
    """
    threads = {label(step["thread"]) for step in path["path"]}
    places, times = {}, {}
    for begin, chain in found:
        for depth, (lane, _, end) in enumerate(chain):
            place = (lane not in threads, depth if lane in threads else 0)
            places[lane] = min(places.get(lane, place), place)
            times[lane] = times.get(lane, 0) + end - begin
    late = label(path["thread"])
    places[late] = (False, -1)
    kept = [lane for lane in places if lane == late or lane in named or times[lane] >= least]
    return sorted(kept, key=places.get)


def bars(found, lanes, least):
    """Returns the bars as (begin, end, lane, kind, time of this kind). Bars shorter than `least` join their neighbours."""
    of = {lane: [] for lane in lanes}
    for begin, chain in found:
        for lane, kind, end in chain:
            if lane not in of:
                continue
            last = of[lane][-1] if of[lane] else None
            is_like = last and max(last[2], key=last[2].get) == kind
            if last and begin - last[1] < least and (is_like or min(end - begin, last[1] - last[0]) < least):
                last[1] = max(last[1], end)
                last[2][kind] = last[2].get(kind, 0) + end - begin
            else:
                of[lane].append([begin, end, {kind: end - begin}])
    joined = []
    for lane, each in of.items():
        for begin, end, times in each:
            kind = max(times, key=times.get)
            joined.append((begin, end, lane, kind, times[kind]))
    return joined


def svg(path, sentence):
    """Draws the path: a lane for each thread and device, from the late thread to what it waited for.

    Fails if a thread of the sentence has no lane.
    """
    start, end = path["from"], path["to"]
    late = label(path["thread"])
    named = set(re.findall(THREAD, sentence))
    least = (end - start) / WIDTH
    found = steps(path, named)
    lanes = lanes_of(path, found, named, least)
    if missing := named.difference(lanes):
        sys.exit(f"the sentence names {', '.join(sorted(missing))}, which the path does not have: {sentence}")
    axis = TOP + len(lanes) * LANE

    def x(at):
        return LEFT + (at - start) * WIDTH / (end - start)

    def y(lane):
        return TOP + lanes.index(lane) * LANE

    def bar(begin, end, lane, kind, words):
        # A bar that is too short to be seen is drawn as a line.
        width = max(x(end) - x(begin), 1)
        colour, ink = COLOURS.get(kind, OTHER), "black" if kind == "waits" else "white"
        out.append(f'<rect x="{x(begin):.1f}" y="{y(lane)}" width="{width:.1f}" height="22" fill="{colour}"/>')
        if width > 70:
            middle = x(begin) + width / 2
            out.append(f'<text x="{middle:.1f}" y="{y(lane) + 16}" text-anchor="middle" fill="{ink}">{words}</text>')

    def arrow(at, one, other):
        down = y(one) < y(other)
        first, last = (y(one) + 22, y(other)) if down else (y(one), y(other) + 22)
        tip = last - 5 if down else last + 5
        at = x(at)
        out.append(
            f'<path d="M{at:.1f} {first} V{last} M{at - 3:.1f} {tip} L{at:.1f} {last} L{at + 3:.1f} {tip}" '
            'stroke="black" fill="none"/>'
        )

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 30} {axis + 30}" '
        'font-family="sans-serif" font-size="13">',
        "<!-- Made by scripts/example. -->",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{LEFT}" y="20">What {escape(late)} waited for: {time(end - start)}</text>',
    ]
    for lane in lanes:
        out.append(f'<text x="{LEFT - 10}" y="{y(lane) + 16}" text-anchor="end">{escape(lane)}</text>')
    for begin, last, lane, kind, took in bars(found, lanes, least):
        bar(begin, last, lane, kind, "waits" if kind == "waits" else WORDS.get(kind, "") + time(took))
    at, before = start, [late]
    for begin, chain in found:
        last = max(end for _, _, end in chain)
        if last - begin < least:
            continue
        chain = [lane for lane, _, _ in chain if lane in lanes]
        same = next((i for i, (a, b) in enumerate(zip(before, chain)) if a != b), min(len(before), len(chain)))
        # What was waited for ends; each waiting thread resumes, and may then wait for something else.
        for i in range(len(before) - 1, same - 1, -1):
            arrow(begin, before[i], before[i - 1])
        for i in range(same, len(chain)):
            arrow(begin, chain[i - 1], chain[i])
        at, before = last, chain
    for i in range(len(before) - 1, 0, -1):
        arrow(at, before[i], before[i - 1])
    out.append(f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{axis}" y2="{axis}" stroke="black"/>')
    for part in range(5):
        tick = LEFT + part * WIDTH / 4
        words = time((end - start) * part // 4) if part else "0"
        out.append(f'<line x1="{tick}" x2="{tick}" y1="{axis}" y2="{axis + 5}" stroke="black"/>')
        out.append(f'<text x="{tick}" y="{axis + 20}" text-anchor="middle">{words}</text>')
    return "\n".join(out + ["</svg>\n"])


def replace(page, name, block, places):
    """Replaces what is between <!-- NAME --> and <!-- end ... --> by block(NAME); the page must have that many places."""
    text = page.read_text(encoding="utf-8")
    new, count = re.subn(
        rf"(<!-- ({name}) -->\n).*?(<!-- end \w+ -->\n)",
        lambda found: found[1] + block(found[2]) + found[3],
        text,
        flags=re.S,
    )
    if count != places:
        sys.exit(f"{page}: {count} places <!-- {name} --> ... <!-- end ... -->, expected {places}")
    page.write_text(new, encoding="utf-8")


def draw(explanation, picture):
    explained = json.loads(explanation.read_text(encoding="utf-8"))
    picture.write_text(svg(explained["path"], explained["verdict"] or ""), encoding="utf-8")


def main(directory, page, picture=None):
    directory, page = Path(directory), Path(page)
    if picture:
        replace(page, "example", lambda _: example(directory), 1)
        draw(directory / "explanation.json", Path(picture))
        return

    def output(mark):
        file = directory / f"{mark.removeprefix('output ')}.txt"
        return indented(file.read_text(encoding="utf-8").splitlines())

    replace(page, r"output [\w-]+", output, len(list(directory.glob("*.txt"))))
    for explanation in directory.glob("*.json"):
        draw(explanation, page.with_name(f"{page.stem}-{explanation.stem}.svg"))


main(*sys.argv[1:])
