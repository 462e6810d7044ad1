#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""scaling_table: fits lines to what scaling.py measured, and makes rows for report.py, a picture and a page's section.

usage: scaling_table.py [--svg FILE] [--page FILE] [--set KEY=VALUE]... RUNS...

Each of the files RUNS has the lines of scaling.py for one series: the traces of one number of CPUs and clients. A
straight line is fitted by least squares to the instructions of each command by events, through all traces, and through
each series. --page replaces what is between <!-- scaling --> and <!-- end scaling --> of a page in Markdown, and draws
scaling.svg beside it; it needs --set for kernel and commit. If a run is missing, nothing is written. If the page has no
such lines, neither the page nor the picture beside it is written.
"""

import argparse
import collections
import math
import os
import re
import sys
import textwrap
import time
from pathlib import Path

# limit: the value of --max-memory, MiB; 0 without it. cost: instructions. peak: bytes
Run = collections.namedtuple("Run", "cpus clients seconds events lost command limit cost peak")

COMMANDS = ("path", "delays", "wakeups")
LIMITED = ("path", "delays")
WAYS = sorted([(command, False) for command in COMMANDS] + [(command, True) for command in LIMITED])
# Number of lengths that a fit needs: two points always lie exactly on a line.
LENGTHS = 3

COLOURS = {"path": "#2a7f62", "delays": "#b5451c", "wakeups": "#7a4fa3"}
SHADES = ("#888888", "#7fb3d8", "#2f79b5", "#0b3c6f")
# A panel: its size, and its margins
WIDE, TALL, LEFT, RIGHT, TOP, BOTTOM = 430, 300, 58, 18, 82, 40


def number(text):
    """Returns the limit that scaling.py printed."""
    return 0 if text == "-" else int(text)


def parse(files):
    """Returns the runs, and {(cpus, clients, command, is limited): [(instructions, bytes)]}."""
    runs, samples = [], {}
    for name in files:
        with open(name, encoding="ascii") as file:
            for line in file:
                kind, cpus, clients, *words = line.split()
                if kind == "run":
                    seconds, events, lost, command, limit, cost, peak = words
                    runs.append(Run(int(cpus), int(clients), float(seconds), int(events), int(lost), command,
                                    number(limit), int(cost), int(peak)))
                else:
                    command, limit, cost, size = words
                    key = int(cpus), int(clients), command, number(limit) > 0
                    samples.setdefault(key, []).append((int(cost), int(size)))
    return runs, samples


def by_series(runs):
    """Returns {(cpus, clients): runs}, all sorted."""
    series = {}
    for run in sorted(runs):
        series.setdefault((run.cpus, run.clients), []).append(run)
    return series


def extremes(runs):
    """Returns the fewest and the most CPUs, the most clients with a series for both, and the greatest length."""
    low, high = min(run.cpus for run in runs), max(run.cpus for run in runs)
    shared = {run.clients for run in runs if run.cpus == low} & {run.clients for run in runs if run.cpus == high}
    return low, high, max(shared, default=None), max(run.seconds for run in runs)


def check(runs):
    """Ends the program unless each series has each run, and there is something to compare."""
    if not runs:
        sys.exit("scaling_table: nothing was measured")
    lengths = sorted({run.seconds for run in runs})
    if len(lengths) < LENGTHS:
        sys.exit(f"scaling_table: traces of {len(lengths)} lengths: expected at least {LENGTHS}")
    for (cpus, clients), mine in by_series(runs).items():
        for seconds in lengths:
            ways = sorted((run.command, run.limit > 0) for run in mine if run.seconds == seconds)
            if ways != WAYS:
                sys.exit(f"scaling_table: {cpus} CPUs, {clients} clients, {seconds:g} s: runs {ways}: expected {WAYS}")
    if not all(run.peak for run in runs):
        sys.exit("scaling_table: a run without memory: it ended before its memory was read")
    low, high, shared, _ = extremes(runs)
    if low == high or shared is None or sum(cpus == high for cpus, _ in by_series(runs)) < 2:
        sys.exit(f"scaling_table: series {list(by_series(runs))}: expected two numbers of CPUs with the same number of"
                 " clients, and two numbers of clients with the same number of CPUs")


def line(points):
    """Returns slope, intercept and R2 of the line of best fit."""
    n = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    xy = sum((x - mean_x) * (y - mean_y) for x, y in points)
    xx = sum((x - mean_x) ** 2 for x, _ in points)
    yy = sum((y - mean_y) ** 2 for _, y in points)
    slope = xy / xx
    # A horizontal line has no variance to explain.
    return slope, mean_y - slope * mean_x, min(1.0, slope * xy / yy) if yy else 1.0


def of(runs, command, limited=False):
    """Returns the runs of a command, with or without a limit on memory."""
    return [run for run in runs if run.command == command and (run.limit > 0) == limited]


def costs(runs):
    """Returns (events, instructions) of each run."""
    return [(run.events, run.cost) for run in runs]


def peaks(runs):
    """Returns (events, peak memory) of each run."""
    return [(run.events, run.peak) for run in runs]


def rows(runs):
    """Yields name, total and calls of each row for report.py."""
    low, high, shared, longest = extremes(runs)
    for command in COMMANDS:
        mine = of(runs, command)
        slope, _, fit = line(costs(mine))
        worst = min(line(costs(series))[2] for series in by_series(mine).values())
        each = {(run.cpus, run.clients): run.cost / run.events for run in mine if run.seconds == longest}
        by_clients = [cost for (cpus, _), cost in each.items() if cpus == high]
        yield f"{command}_event", slope, 1
        yield f"{command}_bent", 1 - fit, 1
        yield f"{command}_series", 1 - worst, 1
        yield f"{command}_clients", max(by_clients), min(by_clients)
        yield f"{command}_cpus", each[high, shared], each[low, shared]
    for command in LIMITED:
        whole, limited = of(runs, command), of(runs, command, limited=True)
        yield f"{command}_bytes", line(peaks(whole))[0], 1
        yield f"{command}_limit_bytes", line(peaks(limited))[0], 1
        yield f"{command}_limit_cost", sum(run.cost for run in limited), sum(run.cost for run in whole)
    traces = of(runs, "wakeups")
    series = by_series(traces).values()
    yield "wakeups_growth", *max(((mine[-1].peak, mine[0].peak) for mine in series), key=lambda pair: pair[0] / pair[1])
    events = {(run.cpus, run.clients): run.events for run in traces if run.seconds == longest}
    yield "events_cpus", events[high, shared], events[low, shared]
    yield "lost", sum(run.lost for run in traces), 1


def step(most):
    """Returns the distance between the marks on an axis up to `most`: 1, 2 or 5 times a power of ten, so that there are
    at most five after zero."""
    power = 10.0 ** math.floor(math.log10(most / 5))
    return next((power * by for by in (1, 2, 5) if most / (power * by) <= 5), 10 * power)


class Panel:
    """A panel of the picture, whose axes start at zero."""

    def __init__(self, out, at, title, most, marks=None):
        self.out = out
        self.left, self.top = at % 2 * WIDE + LEFT, at // 2 * TALL + TOP
        self.width, self.height = WIDE - LEFT - RIGHT, TALL - TOP - BOTTOM
        self.most = [1.05 * value for value in most]
        self.legend_at = [self.left, self.top - 46]
        self.text(self.left, self.top - 64, title, weight="bold")
        right, bottom = self.left + self.width, self.top + self.height
        out.append(f'<path d="M{self.left} {self.top} V{bottom} H{right}" stroke="black" fill="none"/>')
        for value, words in marks or self.marks(most[0]):
            self.text(self.x(value), bottom + 18, words, anchor="middle")
            out.append(f'<path d="M{self.x(value):.1f} {bottom} v4" stroke="black"/>')
        for value, words in self.marks(most[1]):
            self.text(self.left - 8, self.y(value) + 4, words, anchor="end")
            out.append(f'<path d="M{self.left} {self.y(value):.1f} h-4" stroke="black"/>')

    @staticmethod
    def marks(most):
        """Returns (value, text) of the marks of an axis."""
        by = step(most)
        return [(i * by, f"{i * by:g}") for i in range(int(most / by * (1 + 1e-9)) + 1)]

    def x(self, value):
        """Returns the horizontal position of a value."""
        return self.left + value / self.most[0] * self.width

    def y(self, value):
        """Returns the vertical position of a value."""
        return self.top + self.height - value / self.most[1] * self.height

    def text(self, x, y, words, anchor="start", weight="normal"):
        """Writes words."""
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{words}</text>')

    def dots(self, points, colour, hollow=False):
        """Draws points."""
        for x, y in points:
            self.out.append(f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="3.5" stroke="{colour}"'
                            f' fill="{"white" if hollow else colour}"/>')

    def lines(self, points, colour, dashed=False):
        """Connects points."""
        shape = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        dash = ' stroke-dasharray="5 3"' if dashed else ""
        self.out.append(f'<polyline points="{shape}" stroke="{colour}" fill="none"{dash}/>')

    def legend(self, words, colour=None):
        """Adds an entry to the legend, with a square of a colour."""
        size = 7 * len(words) + 24
        if self.legend_at[0] + size > self.left + self.width + RIGHT:
            self.legend_at = [self.left, self.legend_at[1] + 16]
        x, y = self.legend_at
        if colour:
            self.out.append(f'<rect x="{x}" y="{y - 9}" width="9" height="9" fill="{colour}"/>')
        self.text(x + 13 if colour else x, y, words)
        self.legend_at[0] += size


def scaled(points, x, y):
    """Returns points in other units."""
    return [(a / x, b / y) for a, b in points]


def most(points):
    """Returns the greatest x and y."""
    return [max(x for x, _ in points), max(y for _, y in points)]


def plural(count, what):
    """Returns `1 CPU`, `2 CPUs`."""
    return f"{count} {what}{'s' if count > 1 else ''}"


def picture(runs, samples):
    """Draws four panels: instructions by events and by clients, memory by events and while a trace is read."""
    low, high, _, longest = extremes(runs)
    whole = [run for run in runs if not run.limit]
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDE} {2 * TALL}" font-family="sans-serif"'
        ' font-size="12">',
        "<!-- Made by scripts/bench analyze. -->",
        "<title>Instructions and memory of analyze by the size of the trace</title>",
        '<rect width="100%" height="100%" fill="white"/>',
    ]

    panel = Panel(out, 0, "Billion instructions by million events", most(scaled(costs(whole), 1e6, 1e9)))
    for command in COMMANDS:
        mine = of(runs, command)
        slope, base, _ = line(costs(mine))
        ends = min(run.events for run in mine), max(run.events for run in mine)
        panel.lines(scaled([(x, base + slope * x) for x in ends], 1e6, 1e9), COLOURS[command])
        for cpus in (low, high):
            points = scaled(costs([run for run in mine if run.cpus == cpus]), 1e6, 1e9)
            panel.dots(points, COLOURS[command], hollow=cpus == low)
        panel.legend(command, COLOURS[command])
    panel.legend(f"hollow: {plural(low, 'CPU')}")

    clients = sorted({run.clients for run in runs if run.cpus == high})
    each = {command: [(clients.index(run.clients) + 1, run.cost / run.events) for run in of(runs, command)
                      if run.cpus == high and run.seconds == longest] for command in COMMANDS}
    panel = Panel(out, 1, f"Instructions per event by clients, {high} CPUs, {longest:g} s",
                  [len(clients) + 0.5, max(cost for points in each.values() for _, cost in points)],
                  [(i + 1, str(count)) for i, count in enumerate(clients)])
    for command in COMMANDS:
        panel.lines(sorted(each[command]), COLOURS[command])
        panel.dots(each[command], COLOURS[command])
        panel.legend(command, COLOURS[command])

    panel = Panel(out, 2, "Peak memory, MB, by million events", most(scaled(peaks(runs), 1e6, 1e6)))
    for command in COMMANDS:
        panel.dots(scaled(peaks(of(runs, command)), 1e6, 1e6), COLOURS[command])
        panel.dots(scaled(peaks(of(runs, command, limited=True)), 1e6, 1e6), COLOURS[command], hollow=True)
        panel.legend(command, COLOURS[command])
    panel.legend("hollow: --max-memory")

    mine = {key: scaled(points, 1e9, 1e6) for key, points in sorted(samples.items()) if key[2] == "delays"}
    panel = Panel(out, 3, f"Memory of delays, MB, by billion instructions, {longest:g} s",
                  most([point for points in mine.values() for point in points]))
    for at, series in enumerate(by_series(runs)):
        colour = SHADES[at % len(SHADES)]
        for limited in (False, True):
            panel.lines(mine.get((*series, "delays", limited), []), colour, dashed=limited)
        panel.legend(f"{plural(series[0], 'CPU')}, {plural(series[1], 'client')}", colour)
    panel.legend("dashed: --max-memory")
    return "\n".join([*out, "</svg>\n"])


def listed(words):
    """Joins words as a sentence does."""
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else words[0]


def wrapped(text):
    """Returns the lines of a paragraph."""
    return textwrap.wrap(text, 80, break_long_words=False, break_on_hyphens=False)


def section(runs, facts, day):
    """Returns the section of the page."""
    value = {name: total / calls for name, total, calls in rows(runs)}
    low, high, _, longest = extremes(runs)
    events = [run.events for run in of(runs, "wakeups")]
    clients = {}
    for cpus, count in by_series(runs):
        clients.setdefault(cpus, []).append(str(count))
    loads = [f"{plural(cpus, 'CPU')} with {listed(counts)} clients" for cpus, counts in clients.items()]
    lost = f"{value['lost']:,.0f} events were lost" if value["lost"] else "no event was lost"
    about = (
        f"Instructions that `analyze` executes, and its peak memory, for {len(events)} traces of hackbench, of"
        f" {min(run.seconds for run in runs):g} to {longest:g} s and {min(events) / 1e6:.2f} to {max(events) / 1e6:.2f}"
        f" million events ({'; '.join(loads)}; each client has a server). They were recorded in an emulated machine,"
        f" whose speed determines their sizes; {lost}. Linux {facts['kernel']}, {day}, commit {facts['commit']}.")
    series = (
        "The line of best fit goes through all traces, or through those of one number of CPUs and clients (a series)."
        " The last two columns are ratios of the instructions per event in the longest traces. The ratio by clients is"
        f" measured with {plural(high, 'CPU')}.")
    memory = (
        "With `--max-memory`, the limit is the one that the error of a smaller limit advises. `analyze wakeups` has no"
        " such option; its peak memory for the longest trace of a series is at most"
        f" {value['wakeups_growth']:.2f} times its peak memory for the shortest.")
    lines = ["## Analyses of growing traces", "", *wrapped(about), "",
             "![Instructions and memory by events, by clients and over time](scaling.svg)", "",
             "| | instructions per event | 1 - R2 | 1 - R2, worst series | most / least, by clients |"
             f" {high} CPUs / {low} |", "|---|---|---|---|---|---|"]
    for command in COMMANDS:
        lines.append(
            f"| `analyze {command}` | {value[f'{command}_event']:,.0f} | {value[f'{command}_bent']:.4f} |"
            f" {value[f'{command}_series']:.4f} | {value[f'{command}_clients']:.3f} | {value[f'{command}_cpus']:.3f} |")
    lines += ["", *wrapped(series), "",
              "| | peak memory, bytes per event | with `--max-memory` | instructions, with / without |",
              "|---|---|---|---|"]
    for command in LIMITED:
        lines.append(
            f"| `analyze {command}` | {value[f'{command}_bytes']:.1f} | {value[f'{command}_limit_bytes']:.1f} |"
            f" {value[f'{command}_limit_cost']:.2f} |")
    return "\n".join([*lines, "", *wrapped(memory), ""])


def replaced(page, mark, text):
    """Returns a page with another text between <!-- MARK --> and <!-- end MARK -->."""
    old = page.read_text(encoding="utf-8")
    new, count = re.subn(rf"(<!-- {mark} -->\n).*?(<!-- end {mark} -->\n)",
                         lambda found: f"{found[1]}\n{text}\n{found[2]}", old, flags=re.S)
    if count != 1:
        sys.exit(f"{page}: {count} places <!-- {mark} --> ... <!-- end {mark} -->, expected one")
    return new


def put(page, text, drawing):
    """Replaces the section of a page, and its picture."""
    page = Path(page)
    new = replaced(page, "scaling", text)
    page.with_name("scaling.svg").write_text(drawing, encoding="utf-8")
    page.write_text(new, encoding="utf-8")


def main():
    """Runs the program; the head of this file describes it."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--svg")
    options.add_argument("--page")
    options.add_argument("--set", action="append", default=[])
    options.add_argument("runs", nargs="+")
    options = options.parse_args()
    runs, samples = parse(options.runs)
    check(runs)
    drawing = picture(runs, samples)
    if options.svg:
        Path(options.svg).write_text(drawing, encoding="utf-8")
    if options.page:
        facts = dict(pair.split("=", 1) for pair in options.set)
        day = time.strftime("%Y-%m-%d", time.gmtime(max(os.path.getmtime(name) for name in options.runs)))
        put(options.page, section(runs, facts, day), drawing)
    for name, total, calls in rows(runs):
        print(f"result {name} 0 {total:.6f} {calls:.6f}")
    print("complete")


if __name__ == "__main__":
    main()
