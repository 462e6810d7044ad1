#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""report: makes a table, and a JSON file, of what the parts of scripts/bench measured.

usage: report.py [--json FILE] [--set KEY=VALUE]... <ROWS

A line of input is a figure: PART NAME LIVE TOTAL CALLS, of which TOTAL / CALLS is the value; LIVE is
how many events were live, or how many threads ran, or 0. A row that is not described below, or a
described row of a part that ran and did not come, is an error: nothing vanishes silently.
"""

import argparse
import json
import sys

# part: (unit, title)
PARTS = {
    "engine": ("instructions", "instructions an operation, its loop included"),
}

# (part, name): (what, goal)
ROWS = {
    ("engine", "pair"): ("event_in + event_out", 240),
    ("engine", "unknown_out"): ("event_out, unknown key", 45),
    ("engine", "update_unknown"): ("update, unknown key", 45),
    ("engine", "update_known"): ("update, known key", None),
    ("engine", "pair_no_timeout"): ("event_in + event_out, many live", None),
    ("engine", "pair_timeout"): ("the same with a search for timeouts", None),
    ("engine", "expiry_event"): ("that search, a live event", None),
    ("engine", "pool"): ("pool get + put", None),
    ("engine", "objpool"): ("lib/objpool pop + push", None),
    ("engine", "table"): ("table insert + find + remove", None),
    ("engine", "hash"): ("hash of a 16-byte key", None),
    ("engine", "clock"): ("clock read", None),
    ("engine", "guard"): ("preemption off + on", None),
    ("engine", "count"): ("one counter", None),
    ("engine", "record"): ("histogram, sum, extremes", None),
    ("engine", "key"): ("making a key", None),
    ("engine", "loop"): ("the loop itself", None),
    ("engine", "memory"): ("memory of an event", 128),
}

# name: unit, where it is not the part's
UNITS = {"memory": "bytes"}

# (part, name, unit, what, goal): a figure made of others, by a function of value(name, live).
RATIOS = [
    ("engine", "timeout_ratio", "ratio", "timeouts on / off", 1.08,
     lambda value: value("pair_timeout") / value("pair_no_timeout")),
    ("engine", "flatness", "ratio", "most / least live", 1.10,
     lambda value: value("pair", max) / value("pair", min)),
]


def parse(lines):
    """Rows of the input, in its order."""
    rows = []
    for line in lines:
        part, name, live, total, calls = line.split()
        if (part, name) not in ROWS:
            sys.exit(f"report: a row that nobody described: {part} {name}")
        what, goal = ROWS[part, name]
        rows.append({
            "part": part, "name": name, "live": int(live), "what": what,
            "value": round(float(total) / float(calls), 3),
            "unit": UNITS.get(name, PARTS[part][0]), "goal": goal,
        })
    return rows


def missing(rows):
    """What was described, belongs to a part that ran, and did not come."""
    ran = {row["part"] for row in rows}
    came = {(row["part"], row["name"]) for row in rows}
    return [key for key in ROWS if key[0] in ran and key not in came]


def ratios(rows):
    """The figures that are made of others."""
    for part, name, unit, what, goal, make in RATIOS:
        mine = {(row["name"], row["live"]): row["value"] for row in rows if row["part"] == part}
        if not mine:
            continue

        def value(name, choose=max, mine=mine):
            return mine[name, choose(live for (other, live) in mine if other == name)]

        yield {"part": part, "name": name, "live": 0, "what": what,
               "value": round(make(value), 3), "unit": unit, "goal": goal}


def show(rows):
    """The table, 80 columns at the most."""
    order = {key: at for at, key in enumerate(ROWS)}
    for part, (_, title) in PARTS.items():
        mine = [row for row in rows if row["part"] == part]
        if not mine:
            continue
        print(f"{part}: {title}")
        print(f"  {'':40} {'live':>8} {'value':>10} {'goal':>8}  ")
        mine.sort(key=lambda row: (order.get((part, row["name"]), len(order)), row["live"]))
        for row in mine:
            digits = 3 if row["unit"] == "ratio" else 0 if row["unit"] == "bytes" else 1
            live = f"{row['live']:,}" if row["live"] else ""
            goal, met = "", ""
            if row["goal"] is not None:
                goal = f"{row['goal']:g}"
                met = "met" if row["value"] <= row["goal"] else "missed"
            unit = "" if row["unit"] in (PARTS[part][0], "ratio") else f" ({row['unit']})"
            print(f"  {row['what'] + unit:40} {live:>8} {row['value']:>10,.{digits}f}"
                  f" {goal:>8}  {met}".rstrip())


def main():
    """See the head of this file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json")
    options.add_argument("--set", action="append", default=[])
    options = options.parse_args()
    rows = parse(sys.stdin)
    if not rows:
        sys.exit("report: nothing was measured")
    absent = missing(rows)
    rows += list(ratios(rows)) if not absent else []
    show(rows)
    if options.json:
        result = dict(pair.split("=", 1) for pair in options.set)
        result["rows"] = rows
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
    if absent:
        sys.exit("report: missing: " + ", ".join(" ".join(key) for key in absent))


if __name__ == "__main__":
    main()
