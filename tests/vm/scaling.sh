# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The study of how the cost of analyses grows with the trace (make bench B='analyze --only
# scaling'), on traces of 0.04 to 0.16 s: the traces are recorded without a loss, and each command
# is measured, `path` and `delays` also with a limit on memory. The lines through known figures have their
# slopes, and a curve is not taken for a line. If a run is missing, or the page has no place for the
# section, nothing is written.
# long: stock
# cpus: 1
# root: full
# icount: 0
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root has no LTTng
# timeout: 300

. /lt/tests/lib.sh

sh /lt/tests/bench/scaling.sh /tmp/scaling 2 0.04 0.08 0.16
python3 -B /lt/tests/bench/scaling.py /lt/bin/latency-tracker /tmp/scaling 1 2 >/tmp/said || fail "the measurement failed"
assert_eq "$(tail -n 1 /tmp/said)" complete "the last line"
grep -E '^(run|at) ' /tmp/said >/tmp/runs
grep '^run ' /tmp/runs
python3 -B - <<'END' || fail "see above"
import sys
import xml.dom.minidom
from pathlib import Path

sys.path.insert(0, "/lt/tests/bench")
import report
import scaling_table as table

SERIES = ((1, 2), (2, 2), (2, 8))


def refuses(what, call, *arguments):
    try:
        call(*arguments)
    except SystemExit as refusal:
        print(f"{what}: {refusal}")
        return
    sys.exit(f"accepted {what}")


def values(runs):
    table.check(runs)
    return {name: total / calls for name, total, calls in table.rows(runs)}


real, seen = table.parse(["/tmp/runs"])
assert len(real) == 3 * len(table.WAYS), real
assert all(run.events > 100 and run.lost == 0 and run.cost > 100_000 and run.peak > 1 << 20 for run in real), real
events = {run.seconds: run.events for run in real}
assert events[0.04] < events[0.16], events
for command in table.LIMITED:
    for whole, limited in zip(table.of(real, command), table.of(real, command, limited=True)):
        assert limited.seconds == whole.seconds and limited.limit > 0, limited
assert {key[2:] for key in seen} == set(table.WAYS), seen.keys()

# The same figures stand for other series.
runs = [run._replace(cpus=cpus, clients=clients) for cpus, clients in SERIES for run in real]
samples = {(*series, *key[2:]): points for series in SERIES for key, points in seen.items()}
assert sorted(values(runs)) == sorted(name for part, name in report.ROWS if part == "scaling")
drawing = table.picture(runs, samples)
assert len(xml.dom.minidom.parseString(drawing).getElementsByTagName("polyline")) == 2 * 3 + 2 * len(SERIES), drawing


def made(cost):
    return [table.Run(cpus, clients, seconds, cpus * seconds * 1000, 0, command, int(limited),
                      cost(cpus * seconds * 1000), 10 * cpus * seconds * 1000 + 5000)
            for cpus, clients in SERIES for seconds in (1, 2, 4, 8) for command, limited in table.WAYS]


line = values(made(lambda events: 500 * events + 70_000))
assert abs(line["delays_event"] - 500) < 1e-6 and abs(line["path_bytes"] - 10) < 1e-6, line
assert line["delays_bent"] < 1e-9 and line["wakeups_series"] < 1e-9 and line["path_clients"] == 1, line
assert line["events_cpus"] == 2 and line["path_limit_cost"] == 1 and line["lost"] == 0, line
assert line["wakeups_growth"] == (10 * 16_000 + 5000) / (10 * 2000 + 5000), line
curve = values(made(lambda events: events ** 2))
assert curve["delays_bent"] > 0.01 and curve["path_series"] > 0.01, curve

refuses("a missing run", table.check, runs[1:])
refuses("two lengths", table.check, [run for run in runs if run.seconds > 0.05])
refuses("one series", table.check, real)
refuses("nothing", table.check, [])

page, facts = Path("/tmp/page.md"), {"kernel": "7.2", "commit": "0000000"}
old = Path("/lt/Documentation/performance.md").read_text(encoding="utf-8")
page.write_text(old, encoding="utf-8")
text = table.section(runs, facts, "2026-01-01")
head, tail = old.partition("<!-- scaling -->\n")[0], old.partition("<!-- end scaling -->\n")[2]
for _ in range(2):
    table.put(page, text, drawing)
    new = page.read_text(encoding="utf-8")
    assert new == f"{head}<!-- scaling -->\n\n{text}\n<!-- end scaling -->\n{tail}", new
picture = page.with_name("scaling.svg")
assert picture.read_text(encoding="utf-8") == drawing
picture.unlink()
page.write_text("no place\n", encoding="utf-8")
refuses("a page without the place", table.put, page, text, drawing)
assert page.read_text(encoding="utf-8") == "no place\n" and not picture.exists()
END
