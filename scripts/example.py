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
COLOURS = {"running": "#2a7f62", "blocked": "#b5451c"}
OTHER = "#777777"
WORDS = {"running": "runs ", "preempted": "no CPU ", "waiting": "no CPU ", "limited": "held back "}
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
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns} ns"


def label(step):
    """Returns the lane of a step: the thread, or the device that it waits for."""
    cause = step["cause"]
    if cause["kind"] == "blocked" and "by" in cause:
        return f"{cause['by']} {cause.get('name', '')}".strip()
    return f"{step['thread']['comm']}/{step['thread']['tid']}"


def bars(path):
    """Returns the steps as (begin, end, lane, kind), without invisibly short ones; merges equal neighbours."""
    least = (path["to"] - path["from"]) / WIDTH
    found = []
    for step in path["path"]:
        begin, end, lane, kind = step["begin"], step["end"], label(step), step["cause"]["kind"]
        if end - begin < least:
            continue
        if found and found[-1][2:] == (lane, kind):
            begin = found.pop()[0]
        found.append((begin, end, lane, kind))
    return found


def svg(path):
    """Draws the path: a lane for each thread and device, from the late thread to what it waited for."""
    start, end = path["from"], path["to"]
    late = f"{path['thread']['comm']}/{path['thread']['tid']}"
    found = bars(path)
    lanes = list(dict.fromkeys([late] + [lane for _, _, lane, _ in found]))
    axis = TOP + len(lanes) * LANE

    def x(at):
        return LEFT + (at - start) * WIDTH / (end - start)

    def y(lane):
        return TOP + lanes.index(lane) * LANE

    def bar(begin, end, lane, colour, words, ink):
        width = x(end) - x(begin)
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
    # A thread waits while the path is in a lane below.
    for lane in lanes[:-1]:
        below = [one for one in found if lanes.index(one[2]) > lanes.index(lane)]
        begin, last = below[0][0] if below else end, below[-1][1] if below else end
        bar(begin, last, lane, "#dddddd", "waits", "black")
    at, lane = start, late
    for begin, last, of, kind in found:
        words = WORDS.get(kind, "") + time(last - begin)
        bar(begin, last, of, COLOURS.get(kind, OTHER), words, "white")
    for begin, last, of, _ in found:
        if of != lane:
            arrow(begin, lane, of)
        at, lane = last, of
    # Each waiting thread resumes, up to the late one.
    for above in reversed(lanes[: lanes.index(lane)]):
        arrow(at, lane, above)
        lane = above
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
    picture.write_text(svg(explained["path"]), encoding="utf-8")


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
