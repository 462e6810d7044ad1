#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Compares, operation by operation, what `latency-tracker analyze` measured in a trace with the alerts of instances
with threshold 0 that ran while the trace was recorded, for tests/vm/analyze-live.sh.

usage: analyze_live.py BORN AWAKE SLEPT LAST LINE DEVICE PACKETS

The load is the tasks with ids after BORN and up to LAST that are not listed in /tmp/alive. The script compares

- wakeups, waits of preempted tasks, system calls and reclaims of the load, and its futex calls once more, with
  operation and address;
- sleeps of the tasks of the load with ids after AWAKE and up to SLEPT;
- handlers of LINE, softirqs HI, and the time from their raise to their start;
- requests of DEVICE, in the queue and at the device;
- work items of lt_works, waiting and running, with the thread that queued each.

/tmp has the alerts of each instance, and the report of each analysis as JSON. The loopback device sent and received
PACKETS packets; only their numbers are checked.

The probes of the module and of the tracer are two functions on one tracepoint, and read the clock one after the other.
So times differ a little, but no limit is needed: both probes record an operation's start before either records its end,
since the start causes the event that ends it. Operations of one key do not overlap. So each operation must overlap the
one that the other side recorded at its place.
"""

import json
import re
import sys
from collections import Counter

KINDS = {"R": "read", "W": "write"}
# FUTEX_*, without the flags for private futexes and for the clock
FUTEXES = ("wait", "wake", "fd", "requeue", "cmp_requeue", "wake_op", "lock_pi", "unlock_pi", "trylock_pi",
           "wait_bitset", "wake_bitset", "wait_requeue_pi", "cmp_requeue_pi", "lock_pi2")


def nothing(_):
    return ""


def whole(fields):
    """Returns the start and the end of the operation of an alert."""
    end = int(fields["time"])
    return end - int(fields["delay"]), end


def asleep(fields):
    """Returns the time from the switch-out of a task to its wakeup."""
    begin, end = whole(fields)
    return begin, end - int(fields["queued"])


def in_queue(fields):
    """Returns the time from the insertion of a request to its issue."""
    issued = int(fields["time"]) - int(fields["device"])
    return issued - int(fields["queue"]), issued


def waiting(fields):
    """Returns the time from the queueing of a work item to its start."""
    started = int(fields["time"]) - int(fields["running"])
    return started - int(fields["queued"]), started


def running(fields):
    """Returns the time from the start of a work item to its end."""
    end = int(fields["time"])
    return end - int(fields["running"]), end


def work_functions():
    """Returns the functions of work items in lt_works: their addresses, and their names in alerts."""
    found = {}
    with open("/proc/kallsyms", encoding="ascii", errors="replace") as lines:
        for line in lines:
            address, _, name, *module = line.split()
            if module == ["[lt_works]"] and name.startswith("lt_work_"):
                found[int(address, 16)] = f"{name} [lt_works]"
    return found


def alerts(name, key_of, detail_of=nothing, part_of=whole):
    """Returns key, start, end and detail of each alert that is compared, in the order of keys and starts."""
    found = []
    with open(f"/tmp/{name}", encoding="utf-8") as lines:
        for line in lines:
            fields = dict(re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)', line))
            if (key := key_of(fields)) is not None:
                found.append((key, *part_of(fields), detail_of(fields)))
    return sorted(found)


def table_of(analysis, name, reasons=("lost", "identical")):
    """Returns a table. Fails if it lacks an operation for one of these reasons."""
    with open(f"/tmp/{analysis}.json", encoding="utf-8") as file:
        report = json.load(file)
    assert report["caveats"] == [], report["caveats"]
    (table,) = (one for one in report["tables"] if one["table"] == name)
    missed = table["not_measured"]
    assert not any(missed[reason] for reason in reasons), missed
    return table


def recorded(table, key_of, detail_of=nothing):
    """Returns the operations of a table as `alerts` does. Its rows must have the same numbers and sums."""
    found, sums = [], Counter()
    for case in table["worst"]:
        if (key := key_of(case)) is not None:
            found.append((key, case["begin"], case["end"], detail_of(case)))
            sums[key] += case["end"] - case["begin"]
    rows = {key_of(row): row for row in table["rows"]}
    counts = Counter(key for key, *_ in found)
    for key, count in counts.items():
        assert (rows[key]["count"], rows[key]["sum"]) == (count, sums[key]), (rows[key], count, sums[key])
    assert set(rows) - {None} == set(counts), set(rows) ^ set(counts)
    return sorted(found)


def compare(name, trace, live, least):
    """Compares operations one by one, and returns the details of each pair."""
    counts = [Counter(key for key, *_ in side) for side in (trace, live)]
    more = [one - other for one, other in (counts, counts[::-1])]
    assert not any(more), f"{name}: by key, {more[0]} are only in the trace, and {more[1]} only among the alerts"
    assert len(live) >= least, f"{name}: only {len(live)}"
    for one, other in zip(trace, live):
        assert max(one[1], other[1]) <= min(one[2], other[2]), (name, one, other)
    sums = [sum(end - begin for _, begin, end, _ in side) for side in (trace, live)]
    print(f"{name}: {len(trace)} of {len(counts[0])} keys, {sums[0]} ns in the trace and {sums[1]} ns by the alerts")
    return [(one[3], other[3]) for one, other in zip(trace, live)]


def main(born, awake, slept, last, line, device, packets):
    with open("/tmp/alive", encoding="ascii") as file:
        alive = set(map(int, file.read().split()))

    def of_load(tid):
        return tid if int(born) < tid <= int(last) and tid not in alive else None

    def of_alert(fields):
        return of_load(int(fields["tid"]))

    def of_thread(case):
        thread = case.get("thread")
        return of_load(thread["tid"]) if thread else None

    assert int(born) <= int(awake) < int(slept) < int(last), "thread ids started again"
    # By default, the rows are by thread.
    compare("wakeups", recorded(table_of("wakeups", "wakeup"), of_thread), alerts("wakeups", of_alert), 300)

    live = alerts("preempted", of_alert)
    compare("preempted", recorded(table_of("cpu", "preempted"), of_thread), live, 1)

    trace = recorded(table_of("syscalls", "call"), of_thread, lambda case: case.get("call", ""))
    pairs = compare("calls", trace, alerts("calls", of_alert, lambda fields: int(fields["number"])), 1500)
    # The tracer's names of some calls differ from the kernel's, but each number must have one name, and each name one
    # number. A call that is newer than the tracer has the name `unknown` in the trace.
    pairs = {pair for pair in pairs if pair[0] != "unknown"}
    assert len(pairs) == len({name for name, _ in pairs}) == len({number for _, number in pairs}), sorted(pairs)

    def of_futex(fields):
        return of_alert(fields) if fields["call"] == "futex" else None

    live = alerts("calls", of_futex, lambda fields: (FUTEXES[int(fields["arg1"], 16) & 127], int(fields["arg0"], 16)))
    trace = recorded(table_of("locks", "futex"), of_thread,
                     lambda case: (case["operation"], int(case.get("lock", "0x0"), 16)))
    for one, other in compare("futex", trace, live, 20):
        assert one == other, (one, other)

    def is_sleeper(tid):
        return int(awake) < tid <= int(slept)

    def of_asleep(fields):
        # If the task was woken before it was switched out, it was runnable for the whole delay, and did not sleep.
        is_asleep = is_sleeper(int(fields["tid"])) and 0 < int(fields["queued"]) < int(fields["delay"])
        return of_alert(fields) if is_asleep else None

    def of_sleeper(case):
        tid = of_thread(case)
        return tid if tid is not None and is_sleeper(tid) else None

    def woken_by(case):
        is_task = case.get("waker") in ("thread", "thread-or-irq")
        return case["state"], case["woken_by"]["tid"] if is_task else None

    live = alerts("sleeps", of_asleep, lambda fields: (fields["state"], int(fields["waker_tid"])), asleep)
    # If an interrupt woke the task, the alert names the interrupted task as the waker, with another context.
    pairs = compare("sleeps", recorded(table_of("sleeps", "sleep"), of_sleeper, woken_by), live, 40)
    for one, other in pairs:
        assert one[0] == other[0] and one[1] in (None, other[1]), (one, other)
    assert sum(one[1] is not None for one, _ in pairs) >= 5, pairs

    def of_reclaim(fields):
        # LTTng has no events of compaction.
        return of_alert(fields) if fields["kind"] != "compaction" else None

    live = alerts("reclaims", of_reclaim, lambda fields: fields["kind"])
    trace = recorded(table_of("reclaim", "reclaim"), of_thread, lambda case: case["reclaim"])
    for one, other in compare("reclaims", trace, live, 5):
        assert one == other, (one, other)

    functions = work_functions()

    def of_item(case):
        return functions.get(int(case["function"], 16))

    def of_items(fields):
        function = fields["func"].strip('"')
        return function if function in functions.values() else None

    # Other items of the kernel may be queued again before they start. The tracker knows which of them were cancelled,
    # but no event shows it. The items of the load are queued once.
    def queued_by(case):
        # A timer is no thread.
        return case.get("queued_by", {}).get("tid", 0)

    live = alerts("works", of_items, lambda fields: int(fields["by_tid"]), waiting)
    trace = recorded(table_of("work", "queued", ("lost",)), of_item, queued_by)
    for one, other in compare("work items, waiting", trace, live, 50):
        assert one == other, (one, other)
    live = alerts("works", of_items, lambda fields: int(fields["tid"]), running)
    trace = recorded(table_of("work", "work"), of_item, lambda case: case["thread"]["tid"])
    for one, other in compare("work items, running", trace, live, 50):
        assert one == other, (one, other)

    def of_line(case):
        return (case["line"], case["name"]) if case["line"] == int(line) else None

    # The name is quoted in an alert.
    live = alerts("handlers", lambda fields: (int(fields["irq"]), json.loads(fields["action"])))
    compare("handlers", recorded(table_of("irq", "handler"), of_line), live, 10)

    def of_hi(case):
        return 0 if case["vector"] == 0 else None

    live = alerts("softirqs", lambda fields: int(fields["vec"]))
    compare("softirqs", recorded(table_of("irq", "softirq"), of_hi), live, 5)

    # The key is the CPU and the vector.
    live = alerts("raises", lambda fields: 0 if fields["key"].split(",")[1] == "0" else None)
    compare("raises", recorded(table_of("irq", "raise"), of_hi), live, 5)

    def of_device(case):
        return case["operation"] if case["device"] == device else None

    live = alerts("requests", lambda fields: KINDS[fields["op"].strip('"')[0]])
    compare("requests", recorded(table_of("io", "device"), of_device), live, 40)

    # Each request was inserted, and none was given back by the driver.
    live = alerts("requests", lambda fields: KINDS[fields["op"].strip('"')[0]], part_of=in_queue)
    compare("requests in the queue", recorded(table_of("io", "queue"), of_device), live, 40)

    def of_loopback(table):
        (row,) = (row for row in table_of("net", table)["rows"] if row["device"] == "lo")
        return row

    waited, sent = of_loopback("backlog"), of_loopback("transmit")
    assert waited["count"] == int(packets) >= 30, (waited, packets)
    # On PREEMPT_RT, a packet may be received and freed before its driver has returned.
    assert sent["count"] + sent["consumed"] + sent["dropped"] == int(packets), (sent, packets)
    print(f"packets: {packets}")


main(*sys.argv[1:])
