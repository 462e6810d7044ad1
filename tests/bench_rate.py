#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT

"""Checks that the output of `latency-tracker bench rate --json` is consistent, and matches the arguments.

usage: bench_rate.py FILE WORD...   kind=KIND, verdict=WORD of each mode, modes=N, events=N made in each run (each is
                                    `events_each` events of LTTng); phase=WORD of each series; lossless: no run lost
                                    anything; lossy: each run did, and LTTng and the trace report the same loss
"""

import json
import sys


def invariants(found):
    assert found["bench"] == "rate" and found["version"] == 1
    assert found["passed"] == (not found["failed"] and not found["interrupted"]), found["failed"]
    assert len(found["ratios"]) == len(found["modes"]) - 1
    for mode in found["modes"]:
        rates = [mode[key] for key in ("lossless", "lossy", "full") if mode[key] is not None]
        assert all(rate > 0 for rate in rates), mode
        for run in mode["runs"]:
            assert run["events"] == run["kept"] + run["missing"], run
            told = run["discarded"] + run["lost_packets"] + run["told_by_trace"]
            assert run["lossless"] == (run["missing"] == 0 and told == 0), run
            assert run["time"] > 0 and run["made"] > 0, run
            # The pace never exceeds the requested rate.
            assert run["asked"] is None or run["made"] <= run["asked"] * 1.01 + 2, run
        assert mode["verdict"] != "always_loses" or mode["lossless"] is None
    for series in found["series"]:
        assert sum(bin["count"] for bin in series["bins"]) == series["loops"], "bins sum to the events"


def word(found, text):
    runs = [run for mode in found["modes"] for run in mode["runs"]]
    assert runs
    if text == "lossless":
        assert found["passed"] and all(run["lossless"] for run in runs), found
    elif text == "lossy":
        assert not found["passed"] and not any(run["lossless"] for run in runs), found
        for run in runs:
            assert run["missing"] >= run["discarded"] == run["told_by_trace"] > 0, run
            assert run["untold"] == run["missing"] - run["discarded"], run
    else:
        key, value = text.split("=")
        if key == "kind":
            assert found["kind"] == value
        elif key == "verdict":
            assert all(mode["verdict"] == value for mode in found["modes"]), found["modes"]
        elif key == "modes":
            assert len(found["modes"]) == int(value)
        elif key == "phase":
            assert {series["phase"] for series in found["series"]} == {value}, found["series"]
        elif key == "events":
            assert all(run["events"] == int(value) * found["events_each"] for run in runs), runs
        else:
            raise AssertionError(text)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        found = json.load(file)
    invariants(found)
    for text in sys.argv[2:]:
        word(found, text)


main()
