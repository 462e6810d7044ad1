# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Checks for vm/top: the values of `latency-tracker top`, and its behaviour on a terminal.

usage: top.py once TOP HIST             values since the start equal the values and counters of `hist --json`
       top.py groups TOP SUBJECT        each instance with alerts has one group, SUBJECT, with the sums of its alerts
       top.py between BEFORE TOP AFTER  the age of the oldest operation is between its ages in two readings of
                                        `pending --json`
       top.py shows TOP NAME=ENDED...   the reports before the last one have shown this many ended operations, or more
       top.py total TOP                 print the number of ended operations that the intervals have shown
       top.py sums TOP NAME=ENDED...    the intervals add up to these numbers, and new_alerts to the alerts shown
       top.py terminal COMMAND...       run COMMAND on a terminal, remove the module, check the end
"""

import fcntl
import json
import os
import re
import struct
import subprocess
import sys
import termios

LEAVE = "\x1b[?1049l"


def lines(path):
    """Reads whole lines only: the last one may still be incomplete."""
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file.read().split("\n")[:-1]]


def once(top, hist):
    (report,) = lines(top)
    hists = {one["instance"]: one for one in lines(hist)}
    assert {one["name"] for one in report["instances"]} == set(hists), hists.keys()
    for one in report["instances"]:
        whole = hists[one["name"]]
        stats = whole["stats"]
        for key in ("ended", "alerts", "pending"):
            assert one[key] == stats[key], (one, key)
        for key in ("p50", "p99"):
            assert one[key] == whole["percentiles"].get(key), (one, key)
        assert (one["max"] or 0) == stats["max"], one
        assert one["interval"] is None and one["rate"] is None and one["oldest"] is None, one
        for key in ("full", "crowded", "alerts_lost", "alerts_suppressed", "grow_failed"):
            assert one["lost"].get(key, 0) == stats.get(key, 0), (one, key)
    raised = sum(one["alerts"] for one in report["instances"])
    assert len(report["alerts"]) == raised, (len(report["alerts"]), raised)
    assert all(alert["delay"] > 10_000_000 for alert in report["alerts"])


def groups(top, subject):
    (report,) = lines(top)
    expected = {}
    for alert in report["alerts"]:
        expected.setdefault(alert["instance"], []).append(alert)
    assert expected and report["dropped"] == report["missed"] == 0, report
    assert {group["instance"] for group in report["groups"]} == set(expected), report["groups"]
    assert len(report["groups"]) == len(expected), report["groups"]
    for group in report["groups"]:
        alerts = expected[group["instance"]]
        delays = [alert["delay"] for alert in alerts]
        assert group["subject"] == subject, group
        assert (group["count"], group["total"], group["longest"]) == (len(delays), sum(delays), max(delays)), group
        assert group["last"] == max(alert["time"] for alert in alerts) and not group["is_at_least"], group
    totals = [group["total"] for group in report["groups"]]
    assert totals == sorted(totals, reverse=True), totals


def between(before, top, after):
    (report,), (first,), (last,) = lines(top), lines(before), lines(after)
    (one,) = report["instances"]
    (pending,) = report["pending"]
    assert one["pending"] == 1, one
    assert first["age"] < one["oldest"] < last["age"], (first, one, last)
    assert (pending["start"], pending["tid"]) == (first["start"], first["tid"]), pending


def ended(reports):
    sums = {}
    for report in reports:
        for one in report["instances"]:
            sums[one["name"]] = sums.get(one["name"], 0) + one["ended"]
    return sums


def expected(words):
    return {name: int(count) for name, count in (word.split("=") for word in words)}


def shows(top, *words):
    # A histogram is read before the counters, so the delays of all these operations may be in the next report only.
    sums = ended(lines(top)[:-1])
    missing = [name for name, count in expected(words).items() if sums.get(name, 0) < count]
    sys.exit(1 if missing else 0)


def total(top):
    print(ended(lines(top)))


def sums(top, *words):
    reports = lines(top)
    got = ended(reports)
    for name, count in expected(words).items():
        assert got[name] == count, got
    # The first report counts since the start.
    assert all(one["interval"] is None for one in reports[0]["instances"])
    later = [one for report in reports[1:] for one in report["instances"]]
    assert all(one["interval"] > 0 for one in later)
    for one in later:
        rate = one["ended"] * 1e9 / one["interval"]
        assert abs(one["rate"] - rate) <= 1e-6 * rate, one
    # The histogram is read before the counters, so it may lack the last operations, and be empty. But the last report
    # was made after all operations (see `shows`), so a report has their delays.
    known = [one for one in later if one["p50"] is not None]
    assert known, later
    assert all(one["p50"] <= one["p99"] <= one["max"] for one in known), known
    # An alert may be raised between the readings of the counters and of the alerts.
    new = sum(one["new_alerts"] for report in reports for one in report["instances"])
    seen = sum(len(report["alerts"]) for report in reports)
    assert new == seen, (new, seen)
    assert sum(report["missed"] for report in reports) == 0
    # Another instance was removed for a while.
    names = [{one["name"] for one in report["instances"]} for report in reports]
    assert all("slow" in some for some in names), names


def terminal(*command):
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.environ["TERM"] = "linux"
    take = lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # the controlling terminal, as for a shell
    running = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, preexec_fn=take)
    shown = ""
    # Waits for the second reading.
    while "every" not in plain(shown):
        shown += os.read(master, 4096).decode(errors="replace")
    assert not termios.tcgetattr(slave)[3] & termios.ICANON, "the terminal is not in raw mode"
    text = plain(shown)
    assert re.search(r"slow +block", text), text
    assert re.search(r"slow +dd/\d+ +slow R\w* sector \d+ 4K", text), text
    subprocess.run(["rmmod", "latency_tracker"], check=True)
    status = running.wait()
    mode = termios.tcgetattr(slave)[3]
    os.close(slave)
    try:
        while part := os.read(master, 4096).decode(errors="replace"):
            shown += part
    except OSError:
        # The terminal has been closed.
        pass
    assert status == 0, status
    assert "the latency_tracker module was removed" in shown.rpartition(LEAVE)[2], shown[-300:]
    assert mode & termios.ICANON, "the mode of the terminal is not restored"


def plain(shown):
    """Returns the text without styles. A jump of the cursor counts as a blank: top does not write blanks."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", re.sub(r"\x1b\[[0-9;]+H", " ", shown))


def main(words):
    what, *arguments = words
    functions = (once, groups, between, shows, total, sums, terminal)
    {function.__name__: function for function in functions}[what](*arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
