#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""report: makes a table, and a JSON file, of what the parts of scripts/bench measured.

usage: report.py [--json FILE] [--page FILE] [--set KEY=VALUE]... <ROWS

A line of input is a figure: PART NAME LIVE TOTAL CALLS. The value is TOTAL / CALLS. LIVE is the number
of live events or, in some rows, of threads or CPUs that ran, of streams, or of MB of a trace; or 0. A row
that is not described below is an error, and so is a described row that is missing from a part that ran:
nothing vanishes silently. The row `counter` is not shown: it is an error if TOTAL steps of the counter are not
CALLS instructions. --page replaces what is between <!-- labels --> and <!-- end labels --> of a page in Markdown;
it needs the parts engine and hackbench. --set: date, kernel, architecture and commit, all or none; --page needs all.
"""

import argparse
import json
import sys
from pathlib import Path

import structures
from scaling_table import replaced, wrapped

# part: (unit, title)
PARTS = {
    "engine": ("instructions", "instructions an operation, its loop included"),
    "bpf": ("instructions", "instructions of the same operations by BPF, with a hash map, jitted"),
    "hackbench": ("million instructions", "million instructions of hackbench while the scheduler is watched"),
    "chains": ("million instructions", "million instructions of loads while each wake chain is followed"),
    "trace": ("nanoseconds", "nanoseconds for an event: processor time, then elapsed; `live` streams"),
    "analyze": ("nanoseconds", "nanoseconds of `analyze` for a byte of a trace; `live` MB of trace"),
    "scaling": ("instructions", "instructions of `analyze` for an event; lines through traces of 1 to 8 s"),
    "structures": ("instructions", "ways to pair events: instructions of a pair, and what is lost"),
    "native": ("nanoseconds", "nanoseconds of a pair in user space; ratios are medians of the rounds"),
}

# what runs while wake chains are followed
LOADS = ("hackbench", "iperf3", "fio")

# the analyses other than `path`, by the prefix of their rows: of a recorded trace, which has no events of reclaim and no
# packets, and of the trace that load.py makes up, which has the events of all
KINDS = {"": ("delays", "wakeups", "sleeps", "cpu", "irq", "syscalls", "io", "locks", "work")}
KINDS["load_"] = (*KINDS[""], "reclaim", "net")

# the contenders that watch hackbench
WATCHED = (("ours", "wakeup and offcpu"), ("offcpu", "offcpu"), ("by_stack", "offcpu by=stack"),
           ("bpf_facts", "BPF, the same facts"), ("bpf_hash", "BPF, hash maps"), ("bpf_storage", "BPF, storage"),
           ("hist", "hist triggers"))

# (part, name): (what, goal)
ROWS = {
    ("engine", "pair"): ("event_in + event_out", 240),
    ("engine", "unknown_out"): ("event_out, unknown key", 45),
    ("engine", "pair_held"): ("event_in + event_out, by reference", None),
    ("engine", "pair_by_word"): ("event_in + event_out, by a label of one word", None),
    ("engine", "pair_by_name"): ("event_in + event_out, by the name of a task", None),
    ("engine", "lookup_unknown"): ("lookup, unknown key", 45),
    ("engine", "lookup_known"): ("lookup, known key, and giving it back", None),
    ("engine", "update_unknown"): ("update, unknown key", None),
    ("engine", "update_known"): ("update, known key", None),
    ("engine", "pair_no_timeout"): ("event_in + event_out, many live", None),
    ("engine", "pair_timeout"): ("the same with timeouts, without a search", None),
    ("engine", "pair_search"): ("the same, one search per set of events", None),
    ("engine", "expiry_event"): ("the search, a live event", None),
    ("engine", "expiry_free"): ("the search, a free cell once in use", None),
    ("engine", "slice_young"): ("the longest slice, nothing is due", None),
    ("engine", "slice_due"): ("the longest slice, all are due", 50_000),
    **{("engine", f"{name}_{cpus}"): (f"{what}, {cpus} CPUs", None)
       for cpus in (2, 16) for name, what in (("begin", "event_in"), ("full", "event_in, pool exhausted"))},
    ("engine", "no_probe"): ("tracepoint, no probe attached", None),
    ("engine", "probe"): ("block probe, request not followed", 80),
    ("engine", "no_switch"): ("calling the probes of a switch: none", None),
    ("engine", "switch_wakeup"): ("wakeup, neither task followed", None),
    ("engine", "switch_runqueue"): ("runqueue, neither task followed", None),
    ("engine", "switch_offcpu"): ("offcpu, neither task followed", None),
    ("engine", "switch_followed"): ("offcpu, both tasks followed", None),
    ("engine", "switch_syscall"): ("syscall stacks=switch, neither in a call", None),
    **{("engine", f"{which}_{name}" if which == "no" else f"{name}_{which}"): (what.format(name), None)
       for name in ("irq", "softirq", "syscall")
       for which, what in (("no", "calling the probes of {}: none"),
                           ("other", "{} begin + end, not followed"),
                           ("followed", "{} begin + end, followed"))},
    ("engine", "io_none"): ("io, another call", None),
    ("engine", "io_other"): ("io, a read, not followed", None),
    ("engine", "io_followed"): ("io, a read, followed", None),
    ("engine", "no_func"): ("calling a function: none", None),
    ("engine", "func_other"): ("func, not followed", None),
    ("engine", "func_followed"): ("func, followed", None),
    ("engine", "no_calls"): ("calling two functions: none", None),
    ("engine", "calls_other"): ("pair of functions, not followed", None),
    ("engine", "calls_followed"): ("pair of functions, followed", None),
    ("engine", "points_other"): ("pair of tracepoints (irq), not followed", None),
    ("engine", "points_followed"): ("pair of tracepoints (irq), followed", None),
    ("engine", "no_workqueue"): ("calling the probes of a work item: none", None),
    ("engine", "workqueue_waiting"): ("workqueue part=waiting", None),
    ("engine", "workqueue_running"): ("workqueue part=running", None),
    ("engine", "workqueue_followed"): ("workqueue part=all", None),
    ("engine", "no_net"): ("calling the probes of a packet: none", None),
    ("engine", "net_other"): ("net, not followed", None),
    ("engine", "net_followed"): ("net, followed", None),
    ("engine", "no_gro"): ("calling the probe of GRO: none", None),
    ("engine", "net_gro"): ("net, a packet passed to GRO, not tracked", None),
    ("engine", "no_accept"): ("calling the probes of a send: none", None),
    ("engine", "accept_other"): ("accept, a send of another socket", None),
    ("engine", "tree_irq"): ("tree, an interrupt that wakes no task", None),
    **{("engine", f"{which}tree_{name}"): (what.format(title), None)
       for name, title in (("switch", "a switch"), ("waking", "a waking"), ("chain", "irq to switch"),
                           ("life", "irq to sleep"), ("preempted", "irq to sleep, preempted"),
                           ("timer", "timer to switch"), ("soft_timer", "timer in ksoftirqd to switch"))
       for which, what in (("no_", "calling the probes of {}"), ("", "tree, {}"))},
    **{("engine", f"tree_timed_{name}"): (f"tree interference=1, {title}", None)
       for name, title in (("irq", "an interrupt that wakes no task"), ("switch", "a switch"),
                           ("chain", "irq to switch"))},
    **{("engine", f"empty_{name}"): (f"the same with empty probes: {title}", None)
       for name, title in (("irq", "an interrupt"), ("switch", "a switch"), ("waking", "a waking"),
                           ("chain", "irq to switch"), ("life", "irq to sleep"),
                           ("preempted", "irq to sleep, preempted"), ("timer", "timer to switch"),
                           ("soft_timer", "timer in ksoftirqd to switch"))},
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
    ("bpf", "pair"): ("start (clock, update) + end (lookup, delete)", None),
    ("bpf", "unknown_out"): ("end, unknown key", None),
    ("bpf", "empty"): ("a program that does nothing", None),
    ("hackbench", "none"): ("no tracer", None),
    ("hackbench", "ours"): ("wakeup and offcpu", None),
    ("hackbench", "offcpu"): ("offcpu", None),
    ("hackbench", "by_stack"): ("offcpu by=stack", None),
    ("hackbench", "bpf_facts"): ("BPF, hash maps, the same facts", None),
    ("hackbench", "bpf_hash"): ("BPF, hash maps, times only", None),
    ("hackbench", "bpf_storage"): ("BPF, storage of the task, times only", None),
    ("hackbench", "hist"): ("hist triggers, times only", None),
    **{("hackbench", f"{what}_{name}"): (f"{what}: {title}", None)
       for what in ("delays", "lost") for name, title in WATCHED},
    ("hackbench", "depth_by_stack"): ("depth of a stack", None),
    **{("chains", f"{load}_{name}"): (f"{load}: {title}", None)
       for load in LOADS for name, title in (("none", "no tracer"), ("ours", "tree"), ("bpf", "BPF"))},
    **{("chains", f"{what}_{load}_{name}"): (f"{words}: {load}, {title}", None)
       for what, words in (("paths", "wake chains"), ("lost", "lost"))
       for load in LOADS for name, title in (("ours", "tree"), ("bpf", "BPF"))},
    **{("chains", f"{which}ours_to_bpf_{load}"): (what.format(load), goal)
       for load in LOADS
       for which, what, goal in (("", "{}: added by tree / BPF", 0.5), ("from_", "  between", None),
                                 ("to_", "  and", None))},
    **{("trace", f"{what}_{name}{time}"): (f"{title}: {which}{how}", None)
       for what, title in (("one", "one trace"), ("old", "CTF 1.8"), ("converted", "converted"), ("many", "merged"))
       for time, how in (("", ""), ("_elapsed", ", elapsed"))
       for name, which in (("count", "lt-ctf decodes"), ("fields", "and takes every field"),
                           ("babeltrace2", "babeltrace2, to dummy"))},
    ("trace", "processors"): ("processors of this machine", None),
    ("analyze", "path"): ("analyze path, a byte", 5),
    ("analyze", "space"): ("peak memory / the trace", 0.5),
    ("analyze", "bent"): ("1 - R2 of time by events", 0.01),
    ("analyze", "read_bent"): ("the same, path of one second", 0.01),
    ("analyze", "load_path"): ("made-up trace: path, a byte", 5),
    ("analyze", "load_space"): ("made-up trace: path, peak memory / trace", 0.5),
    ("analyze", "load_bent"): ("made-up trace: 1 - R2", 0.01),
    ("analyze", "load_read_bent"): ("made-up trace: 1 - R2, path of one second", 0.01),
    **{("analyze", f"{prefix}{kind}{end}"): (f"{title}{kind}, {what}", goal)
       for prefix, title in (("", "analyze "), ("load_", "made-up trace: ")) for kind in KINDS[prefix]
       for end, what, goal in (("", "a byte", 5), ("_space", "peak memory / trace", 0.5))},
    **{("scaling", f"{command}_{name}"): (f"{command}: {what}", goal)
       for command in ("path", "delays", "wakeups")
       for name, what, goal in (("event", "an event", None), ("bent", "1 - R2, all traces", 0.01),
                                ("series", "1 - R2, the worst series", 0.01),
                                ("clients", "by clients, most / least", 1.1),
                                ("cpus", "2 CPUs / 1", 1.1))},
    **{("scaling", f"{command}_{name}"): (f"{command}: {what}", None)
       for command in ("path", "delays")
       for name, what in (("bytes", "peak memory, an event"), ("limit_bytes", "--max-memory, an event"),
                          ("limit_cost", "with --max-memory / without"))},
    ("scaling", "wakeups_growth"): ("wakeups: memory, longest / shortest", None),
    ("scaling", "events_cpus"): ("events: 2 CPUs / 1", None),
    ("scaling", "lost"): ("events that LTTng lost", 0),
    **{("structures", name): (what, None) for name, what in structures.ROWS.items()},
    ("native", "engine"): ("engine", None),
    ("native", "lfht"): ("cds_lfht insert + lookup + delete", None),
    ("native", "locked"): ("Mutex<HashMap> insert + remove", None),
    ("native", "engine_to_lfht"): ("engine / cds_lfht", 0.5),
    ("native", "engine_to_locked"): ("engine / Mutex<HashMap>", None),
    ("native", "threads_engine"): ("engine, threads (not live):", None),
    ("native", "threads_lfht"): ("cds_lfht, threads:", None),
    ("native", "threads_locked"): ("Mutex<HashMap>, threads, without waiting:", None),
    ("native", "threads_ratio"): ("engine, threads / one thread:", 1.15),
}

# name: its unit, if it differs from the part's
UNITS = {
    **{f"{what}_{name}": "number" for what in ("delays", "lost") for name, _ in WATCHED},
    **{f"{what}_{load}_{name}": "number" for what in ("paths", "lost") for load in LOADS for name in ("ours", "bpf")},
    **{f"{which}ours_to_bpf_{load}": "ratio" for which in ("", "from_", "to_") for load in LOADS},
    **{f"{command}_{name}": "ratio" for command in ("path", "delays", "wakeups")
       for name in ("bent", "series", "clients", "cpus", "limit_cost", "growth")},
    **{f"{command}_{name}": "bytes" for command in ("path", "delays") for name in ("bytes", "limit_bytes")},
    **{f"{prefix}{kind}_space": "ratio" for prefix, kinds in KINDS.items() for kind in kinds},
    "events_cpus": "ratio", "lost": "number", "processors": "number", "depth_by_stack": "functions",
    **{name: "of 1,000" for name in structures.ROWS if name.startswith(("lost", "worst"))},
    "memory": "bytes", "engine_to_lfht": "ratio", "engine_to_locked": "ratio",
    "threads_ratio": "ratio", "space": "ratio", "bent": "ratio", "read_bent": "ratio", "load_space": "ratio",
    "load_bent": "ratio", "load_read_bent": "ratio",
}

# (name, name of its row without probes, what): the cost that all probes of a start and its end add
ALONE = [
    *((f"{name}_{which}", f"no_{base}", f"{title}, {what}")
      for name, base, title in (("irq", "irq", "irq"), ("softirq", "softirq", "softirq"),
                                ("syscall", "syscall", "syscall"), ("io", "syscall", "io, a read"),
                                ("func", "func", "func"), ("calls", "calls", "pair of functions"),
                                ("points", "irq", "pair of tracepoints"), ("net", "net", "net"))
      for which, what in (("other", "not followed"), ("followed", "followed"))),
    *((f"workqueue_{which}", "no_workqueue", f"workqueue, part={part}")
      for which, part in (("waiting", "waiting"), ("running", "running"), ("followed", "all"))),
    ("io_none", "no_syscall", "io, another call"),
    ("net_gro", "no_gro", "net, a packet passed to GRO, not tracked"),
    ("accept_other", "no_accept", "accept, a send of another socket"),
]

# (name, base, what, goal). The total cost of all probes is the row NAME minus no_tree_BASE (for irq, no_irq), which has
# no probe. Their cost without the calls is NAME minus empty_BASE, which has the same number of empty probes.
ALONE_TREE = [
    ("tree_irq", "irq", "tree, interrupt without waking", 80),
    ("tree_switch", "switch", "tree, switch of a task without tip", 45),
    ("tree_waking", "waking", "tree, waking by a task without tip", 45),
    ("tree_chain", "chain", "tree, irq to switch", 1200),
    ("tree_timer", "timer", "tree, timer to switch", None),
    ("tree_soft_timer", "soft_timer", "tree, timer in ksoftirqd to switch", None),
    ("tree_life", "life", "tree, irq to sleep", None),
    ("tree_timed_irq", "irq", "tree interference=1, interrupt", None),
    ("tree_timed_switch", "switch", "tree interference=1, switch", None),
    ("tree_timed_chain", "chain", "tree interference=1, irq to switch", None),
]

# (part, name, unit, what, goal, function): a figure that the function computes from other figures. value(part, name)
# returns such a figure, from the row with the most live events, or with the fewest if min is given. A computed figure
# exists only if the parts of all figures that it needs ran.
RATIOS = [
    ("engine", "timeout_ratio", "ratio", "timeouts on / off", 1.08,
     lambda value: value("engine", "pair_timeout") / value("engine", "pair_no_timeout")),
    ("engine", "search_ratio", "ratio", "the same with the search", 1.08,
     lambda value: value("engine", "pair_search") / value("engine", "pair_no_timeout")),
    ("engine", "flatness", "ratio", "most / least live", 1.10,
     lambda value: value("engine", "pair", max) / value("engine", "pair", min)),
    *(("engine", f"more_{name}", "instructions", f"{title}, more than without", 40,
       lambda value, name=name: value("engine", f"pair_{name}") - value("engine", "pair", min))
      for name, title in (("by_word", "by a label of one word"), ("by_name", "by the name of a task"))),
    *(("engine", f"full_more_{cpus}", "instructions", f"pool exhausted minus not exhausted, {cpus} CPUs", 100,
       lambda value, cpus=cpus: value("engine", f"full_{cpus}") - value("engine", f"begin_{cpus}"))
      for cpus in (2, 16)),
    # sched_switch is not exported: its probes are called in a loop, whose cost is not part of their cost
    *(("engine", f"alone_{name}", "instructions", f"{name} probe of a switch, alone", 80,
       lambda value, name=name: value("engine", f"switch_{name}") - value("engine", "no_switch"))
      for name in ("wakeup", "runqueue", "offcpu")),
    # cost added to the run, per measured delay, and relative to other tracers
    *(("hackbench", f"each_{name}", "instructions", f"a delay: {title}", None,
       lambda value, name=name: 1e6 * (value("hackbench", name) - value("hackbench", "none"))
       / value("hackbench", f"delays_{name}"))
      for name, title in WATCHED),
    ("hackbench", "each_more_by_stack", "instructions", "by=stack above offcpu", None,
     lambda value: 1e6 * (value("hackbench", "by_stack") - value("hackbench", "offcpu"))
     / value("hackbench", "delays_by_stack")),
    *(("hackbench", f"ours_to_{name}", "ratio", f"added by ours / {title}", goal,
       lambda value, name=name: (value("hackbench", "ours") - value("hackbench", "none"))
       / (value("hackbench", name) - value("hackbench", "none")))
      for name, title, goal in (("bpf_facts", "BPF, the same facts", 0.5), ("bpf_hash", "BPF, hash maps", None),
                                ("bpf_storage", "BPF, storage", None), ("hist", "hist triggers", 0.5))),
    ("engine", "alone_switch_syscall", "instructions", "syscall probe of a switch, alone", 80,
     lambda value: value("engine", "switch_syscall") - value("engine", "no_switch")),
    *(("engine", f"alone_{name}", "instructions", f"{title}, alone", None,
       lambda value, name=name, base=base: value("engine", name) - value("engine", base))
      for name, base, title in ALONE),
    *(("engine", f"alone_{name}", "instructions", f"{title}, alone", None,
       lambda value, name=name, base=base: value("engine", name)
       - value("engine", "no_irq" if base == "irq" else f"no_tree_{base}"))
      for name, base, title, _ in ALONE_TREE),
    *(("engine", f"bare_{name}", "instructions", f"{title}, without the calls", goal,
       lambda value, name=name, base=base: value("engine", name) - value("engine", f"empty_{base}"))
      for name, base, title, goal in ALONE_TREE),
    ("engine", "tree_transition", "instructions", "tree, each preemption or switch back", None,
     lambda value: (value("engine", "tree_preempted") - value("engine", "no_tree_preempted")
                    - value("engine", "tree_life") + value("engine", "no_tree_life")) / 2),
    ("engine", "bare_tree_transition", "instructions", "the same, without the calls", 300,
     lambda value: (value("engine", "tree_preempted") - value("engine", "empty_preempted")
                    - value("engine", "tree_life") + value("engine", "empty_life")) / 2),
    *(("trace", f"{what}_ratio_{name}{time}", "ratio", f"{title}: {which} / babeltrace2{how}", goal,
       lambda value, what=what, name=name, time=time:
       value("trace", f"{what}_{name}{time}") / value("trace", f"{what}_babeltrace2{time}"))
      for what, title, time, how, goals in (("one", "one trace", "", "", (0.125, None)),
                                            ("one", "one trace", "_elapsed", ", elapsed", (0.0625, 0.1)),
                                            ("old", "CTF 1.8", "", "", (None, None)),
                                            ("old", "CTF 1.8", "_elapsed", ", elapsed", (0.1, 0.125)),
                                            ("converted", "converted", "", "", (None, None)),
                                            ("converted", "converted", "_elapsed", ", elapsed", (0.1, 0.125)),
                                            ("many", "merged", "", "", (0.05, None)),
                                            ("many", "merged", "_elapsed", ", elapsed", (0.033, 0.05)))
      for (name, which), goal in zip((("count", "lt-ctf"), ("fields", "all fields")), goals)),
    ("bpf", "to_engine", "ratio", "BPF pair / pair of the engine", None,
     lambda value: value("bpf", "pair") / value("engine", "pair")),
]


def parse(lines):
    """Returns the rows of the input, in its order."""
    rows = []
    for line in lines:
        part, name, live, total, calls = line.split()
        if name == "counter":
            # the call of these instructions takes a few more
            if not int(calls) <= int(total) <= 1.02 * int(calls):
                sys.exit(f"report: {part}: the figures are not instructions: the counter advanced by {total} during"
                         f" {calls} of them")
            continue
        if (part, name) not in ROWS:
            sys.exit(f"report: an unknown row: {part} {name}")
        what, goal = ROWS[part, name]
        rows.append({
            "part": part, "name": name, "live": int(live), "what": what,
            "value": round(float(total) / float(calls), 3),
            "unit": UNITS.get(name, PARTS[part][0]), "goal": goal,
        })
    return rows


def missing(rows):
    """Returns the described rows that are missing, of parts that ran."""
    ran = {row["part"] for row in rows}
    came = {(row["part"], row["name"]) for row in rows}
    return [key for key in ROWS if key[0] in ran and key not in came]


def ratios(rows):
    """Returns the figures derived from others, if these are present."""
    values = {(row["part"], row["name"], row["live"]): row["value"] for row in rows}

    def value(part, name, choose=max):
        lives = [live for (*key, live) in values if key == [part, name]]
        if not lives:
            raise LookupError
        return values[part, name, choose(lives)]

    for part, name, unit, what, goal, make in RATIOS:
        try:
            made = make(value)
        except LookupError:
            continue
        yield {"part": part, "name": name, "live": 0, "what": what, "value": round(made, 3),
               "unit": unit, "goal": goal}


def heading(facts):
    """Returns the line above the tables."""
    line = f"Linux {facts['kernel']}, {facts['architecture']}, {facts['date']}, commit {facts['commit']}"
    return line + ("; goals in instructions, which are for x86-64, are left out" if is_foreign(facts) else "")


def is_foreign(facts):
    """Returns whether the figures are of another architecture than the goals in instructions."""
    return facts.get("architecture", "x86-64") != "x86-64"


def drop_goals(rows):
    """Removes the goals in instructions."""
    for row in rows:
        if row["unit"] == "instructions":
            row["goal"] = None


def judged(row):
    """Returns `met` or `missed`."""
    return "met" if row["value"] <= row["goal"] else "missed"


def section(rows, facts):
    """Returns the section of the page: what by= adds to the end of an operation."""
    found = {(row["part"], row["name"]): row for row in rows}
    lines = ["Instructions that `by=` adds to the end of an operation:", "",
             "| | | goal, at most | |", "|---|---|---|---|"]
    for part, name, what in (("engine", "more_by_word", "a label of one word"),
                             ("engine", "more_by_name", "the name of a task"),
                             ("hackbench", "each_more_by_stack", "`offcpu by=stack`, in hackbench")):
        row = found.get((part, name))
        if row is None:
            sys.exit(f"report: --page needs the figures of both engine and hackbench: {part} {name} is missing")
        goal = "|" if row["goal"] is None else f"{row['goal']:g} | {judged(row)}"
        lines.append(f"| {what} | {row['value']:,.0f} | {goal} |")
    depth = found["hackbench", "depth_by_stack"]["value"]
    about = (f"With `by=stack`, each end walks a stack; those of hackbench have {depth:.1f} functions on average, and"
             f" deeper ones cost more. Linux {facts['kernel']}, {facts['date']}, commit {facts['commit']}.")
    return "\n".join([*lines, "", *wrapped(about), ""])


def show(rows):
    """Prints the table."""
    order = {key: at for at, key in enumerate(ROWS)}
    for part, (_, title) in PARTS.items():
        mine = [row for row in rows if row["part"] == part]
        if not mine:
            continue
        print(f"{part}: {title}")
        if part == "structures":
            structures.show(mine, [row for row in rows if row["part"] == "native"])
            continue
        print(f"  {'':44} {'live':>9} {'value':>9} {'goal':>5}  ")
        mine.sort(key=lambda row: (order.get((part, row["name"]), len(order)), row["live"]))
        for row in mine:
            digits = {"ratio": 3, "bytes": 0, "number": 0}.get(row["unit"], 1)
            live = f"{row['live']:,}" if row["live"] else ""
            goal, met = "", ""
            if row["goal"] is not None:
                goal = f"{row['goal']:g}"
                met = judged(row)
            unit = "" if row["unit"] in (PARTS[part][0], "ratio", "number") else f" ({row['unit']})"
            print(f"  {row['what'] + unit:44} {live:>9} {row['value']:>9,.{digits}f}"
                  f" {goal:>5}  {met}".rstrip())


def main():
    """See the head of this file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json")
    options.add_argument("--page")
    options.add_argument("--set", action="append", default=[])
    options = options.parse_args()
    rows = parse(sys.stdin)
    if not rows:
        sys.exit("report: nothing was measured")
    absent = missing(rows)
    rows += list(ratios(rows)) if not absent else []
    facts = dict(pair.split("=", 1) for pair in options.set)
    if is_foreign(facts):
        drop_goals(rows)
    if facts:
        print(heading(facts))
    show(rows)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({**facts, "rows": rows}, file, indent=1)
            file.write("\n")
    if absent:
        sys.exit("report: missing: " + ", ".join(" ".join(key) for key in absent))
    if options.page:
        page = Path(options.page)
        page.write_text(replaced(page, "labels", section(rows, facts)), encoding="utf-8")


if __name__ == "__main__":
    main()
