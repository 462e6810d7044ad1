#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""overhead_table: makes a table of what overhead.py measured, and a picture and a JSON file.

usage: overhead_table.py [--svg FILE] [--json FILE] [--set KEY=VALUE]... <RUNS

Each run of a contender is compared with the run of `absent` in the same round. The table has the median of the
rounds, in percent of the load alone, and an interval between two order statistics. The median lies in it with
a confidence of at least 95 percent, whatever the distribution. A contender that lacks a round is an error.
"""

import argparse
import json
import math
import statistics
import sys
import xml.etree.ElementTree as xml

# Figures of Desfossez's thesis, on a machine of 2015: what, percent
THESIS = (("OLTP (sysbench), wakeup tracker", 3.31), ("OLTP (sysbench), interrupt tracker", 4.84),
          ("files (sysbench), 16 threads, interrupt tracker", 5.1), ("network, 10 Gb/s, interrupt tracker", 3.89))
COLOURS = {"absent": "#888888", "idle": "#888888", "bpf": "#b8860b", "lttng": "#7a4fa3", "lttng-syscalls": "#7a4fa3"}


def parse(lines):
    """Returns {load: {contender: [(cost, events, lost) of each round]}}"""
    found = {}
    for line in lines:
        words = line.split()
        if len(words) != 7 or words[0] != "run":
            continue
        load, name, number, cost = words[1], words[2], int(words[3]), int(words[4])
        runs = found.setdefault(load, {}).setdefault(name, [])
        if len(runs) != number:
            sys.exit(f"overhead_table: {load} {name}: round {number} follows round {len(runs) - 1}")
        runs.append((cost, *words[5:]))
    return found


def confidence(rounds):
    """Returns (k, c): with confidence c >= 0.95, the median is between the k-th smallest and k-th greatest figure. If
    there are too few rounds for that, k is 0."""
    def outside(k):
        return 2 * sum(math.comb(rounds, i) for i in range(k)) / 2 ** rounds
    best = max((k for k in range(1, rounds // 2 + 1) if outside(k) <= 0.05), default=0)
    return best, 1 - outside(best)


def compare(found):
    """Returns a row for each load and contender."""
    for load, contenders in found.items():
        if "absent" not in contenders:
            sys.exit(f"overhead_table: {load}: no run without a tracer")
        alone = [cost for cost, *_ in contenders["absent"]]
        for name, runs in sorted(contenders.items(), key=lambda item: list(contenders).index(item[0])):
            if len(runs) != len(alone):
                sys.exit(f"overhead_table: {load} {name}: {len(runs)} rounds of {len(alone)}")
            if name == "absent":
                continue
            added = sorted(100 * (run[0] / base - 1) for run, base in zip(runs, alone))
            k, sure = confidence(len(added))
            counted = [run for run in runs if run[1] != "-"]
            yield {
                "load": load, "contender": name, "rounds": len(added), "added": statistics.median(added),
                "low": added[k - 1] if k else None, "high": added[-k] if k else None, "confidence": sure if k else None,
                "alone": statistics.median(alone),
                "events": sum(int(run[1]) for run in counted) / len(counted) if counted else None,
                "lost": sum(int(run[2]) for run in counted) if counted else None,
            }


def order(row):
    """Orders rows: idle, the trackers by name, each before its variant with alerts, and then the others."""
    name = row["contender"]
    return (name != "idle", name in COLOURS, name.rstrip("!"), name)


def show(rows, unit):
    """Prints the table, 80 columns at most."""
    for load in dict.fromkeys(row["load"] for row in rows):
        mine = sorted((row for row in rows if row["load"] == load), key=order)
        print(f"{load}: {mine[0]['alone'] / 1e6:,.1f} million {unit} alone, {mine[0]['rounds']} rounds")
        print(f"  {'':16} {'added, %':>9} {'95 % interval':>20} {'events a run':>13} {'lost':>6}")
        for row in mine:
            between = f"{row['low']:.2f} to {row['high']:.2f}" if row["low"] is not None else "too few rounds"
            events = f"{row['events']:,.0f}" if row["events"] is not None else ""
            lost = f"{row['lost']:,}" if row["lost"] is not None else ""
            print(f"  {row['contender']:16} {row['added']:>9.2f} {between:>20} {events:>13} {lost:>6}".rstrip())
    print("the thesis, other loads on a machine of 2015, % added:")
    for what, added in THESIS:
        print(f"  {what:50} {added:>6.2f}")


def picture(rows):
    """Draws bars, by load."""
    rows = sorted(rows, key=lambda row: (list(dict.fromkeys(r["load"] for r in rows)).index(row["load"]), order(row)))
    most = max([row["added"] for row in rows] + [row["high"] or 0 for row in rows] + [added for _, added in THESIS])
    left, width, step = 330, 560, 18
    lines = []
    for load in dict.fromkeys(row["load"] for row in rows):
        lines.append((load, None))
        lines += [(row["contender"], row) for row in rows if row["load"] == load]
    lines += [("the thesis (2015)", None)] + [(what, {"contender": "absent", "added": added, "low": None}) for what, added in THESIS]
    svg = xml.Element("svg", xmlns="http://www.w3.org/2000/svg", width=str(left + width + 80), height=str(step * len(lines) + 40))
    svg.set("font-family", "sans-serif")
    svg.set("font-size", "12")
    xml.SubElement(svg, "title").text = "Time added to loads by tracing, per cent"

    def x(added):
        return left + max(added, 0) / most * width

    for at, (label, row) in enumerate(lines):
        y = 20 + at * step
        text = xml.SubElement(svg, "text", x="10" if row is None else "30", y=str(y + 12))
        text.text = label
        if row is None:
            text.set("font-weight", "bold")
            continue
        colour = COLOURS.get(row["contender"], "#c0392b" if row["contender"].endswith("!") else "#2e7d32")
        xml.SubElement(svg, "rect", x=str(left), y=str(y + 2), width=f"{x(row['added']) - left:.1f}", height="12", fill=colour)
        if row["low"] is not None:
            xml.SubElement(svg, "line", x1=f"{x(row['low']):.1f}", x2=f"{x(row['high']):.1f}", y1=str(y + 8), y2=str(y + 8), stroke="black")
        xml.SubElement(svg, "text", x=f"{max(x(row['added']), x(row.get('high') or 0)) + 6:.1f}", y=str(y + 12)).text = f"{row['added']:.2f} %"
    return xml.tostring(svg, encoding="unicode") + "\n"


def main():
    """See the head of this file."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--svg")
    options.add_argument("--json")
    options.add_argument("--set", action="append", default=[])
    options = options.parse_args()
    facts = dict(pair.split("=", 1) for pair in options.set)
    rows = list(compare(parse(sys.stdin)))
    if not rows:
        sys.exit("overhead_table: nothing was measured")
    show(rows, facts.get("unit", "nanoseconds"))
    if options.svg:
        with open(options.svg, "w", encoding="utf-8") as file:
            file.write(picture(rows))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({**facts, "rows": rows, "thesis": [{"what": what, "added": added} for what, added in THESIS]}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
