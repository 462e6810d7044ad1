#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Checks what `latency-tracker profile` makes of files against values that are computed here, from the files alone.

usage: profiles.py compared BEFORE AFTER REPORT    REPORT, of `compare --json`, has the statistic, the degrees of
                                                   freedom, the probability and the shares that the files give
       profiles.py drawn FILE PICTURE [CLASS]      PICTURE is well-formed, and has each cell of FILE that has a count,
                                                   once, in its column and its row; of all classes, or of one
       profiles.py total FILE CLASS                how many operations of a class there were
       profiles.py rows FILE CLASS                 the counts of its rows that have any, the shortest delay first
"""

import json
import math
import re
import sys
import xml.etree.ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def sums(file):
    """Returns the rows of each class, summed over all samples."""
    names = list(dict.fromkeys(name for sample in file["samples"] for name in sample["counts"]))
    columns = {name: [sample["counts"][name] for sample in file["samples"]] for name in names}
    return {name: [sum(row) for row in zip(*column)] for name, column in columns.items()}


def merged(before, after):
    """Merges rows until at least 5 operations are expected in each: a row is merged with the following rows, and rows
    that remain at the end with the last merged row."""
    all_before, all_after = sum(before), sum(after)
    if not all_before or not all_after:
        return []
    part = min(all_before, all_after) / (all_before + all_after)
    rows, b, a = [], 0, 0
    for more_b, more_a in zip(before, after):
        b, a = b + more_b, a + more_a
        if (b + a) * part >= 5:
            rows.append([b, a])
            b = a = 0
    if rows:
        rows[-1] = [rows[-1][0] + b, rows[-1][1] + a]
    return rows


def chi_squared(rows):
    """Returns chi-squared of a table of two columns: n times the sum of each squared count divided by the product of
    its margins, minus n. This is another form of Pearson's formula."""
    b, a = (sum(row[side] for row in rows) for side in (0, 1))
    total = b + a
    return total * (sum(x * x / (sum(row) * side) for row in rows for x, side in zip(row, (b, a))) - 1)


def tail(x, degrees):
    """Returns the probability that chi-squared exceeds x: 1 minus the incomplete gamma function, by its series, or for
    large x by a continued fraction."""
    s, z = degrees / 2, x / 2
    if z == 0:
        return 1.0
    if z > s + 1:
        # Uses the continued fraction, from its end: here, 1 minus the series would cancel.
        fraction = 0.0
        for k in range(1000, 0, -1):
            fraction = k * (s - k) / (z + 2 * k + 1 - s + fraction)
        return math.exp(s * math.log(z) - z - math.lgamma(s)) / (z + 1 - s + fraction)
    term = total = 1 / s
    k = 0
    while term > total * 1e-17:
        k += 1
        term *= z / (s + k)
        total += term
    return max(0.0, 1 - total * math.exp(s * math.log(z) - z - math.lgamma(s)))


def near(what, found, expected):
    close = math.isclose(found, expected, rel_tol=1e-6, abs_tol=1e-9)
    assert close, f"{what}: {found}, expected {expected}"


def compared(before, after, report):
    before, after, report = read(before), read(after), read(report)
    low = before["low"]
    before, after = sums(before), sums(after)
    assert set(report["classes"]) == set(before) == set(after), report["classes"].keys()
    differ = False
    for name, said in report["classes"].items():
        b, a = before[name], after[name]
        assert (said["before"], said["after"]) == (sum(b), sum(a)), name
        rows = merged(b, a)
        if len(rows) < 2:
            assert "chi_squared" not in said, f"{name}: tested, with {rows}"
            continue
        x, degrees = chi_squared(rows), len(rows) - 1
        p = tail(x, degrees)
        near(f"{name}: chi-squared", said["chi_squared"], x)
        assert said["degrees"] == degrees, f"{name}: {said['degrees']} degrees, expected {degrees}"
        near(f"{name}: p", said["p"], p)
        assert said["differs"] == (p < report["significance"]), name
        differ = differ or said["differs"]
        # The shares at or above a bound; no other bound separates them better.
        shares = [(sum(b[row:]) / sum(b), sum(a[row:]) / sum(a)) for row in range(len(low))]
        near(f"{name}: before", said["share_before"], shares[low.index(said["bound"])][0])
        near(f"{name}: after", said["share_after"], shares[low.index(said["bound"])][1])
        most = max(abs(x - y) for x, y in shares)
        near(f"{name}: the most", abs(said["share_before"] - said["share_after"]), most)
        print(f"{name}: {rows} chi-squared {x:.3f}, {degrees} degrees, p {p:.3g}: {said['sentence']}")
    assert report["differ"] == differ


def drawn(file, picture, only=None):
    file = read(file)
    root = xml.etree.ElementTree.parse(picture).getroot()
    assert root.tag == SVG + "svg", root.tag
    found = []
    for panel in root.iter(SVG + "g"):
        for cell in panel.iter(SVG + "rect"):
            title = cell.find(SVG + "title")
            if title is not None:
                count = re.fullmatch(r"([\d,]+) of (\S+) (?:to \S+|or more) after \S+", title.text)
                assert count, title.text
                found.append((int(count[1].replace(",", "")), float(cell.get("x")), float(cell.get("y"))))
    expected = [
        (name, number, row, count)
        for name in dict.fromkeys(name for sample in file["samples"] for name in sample["counts"])
        if only in (None, name)
        for number, sample in enumerate(file["samples"])
        for row, count in enumerate(sample["counts"][name])
        if count
    ]
    assert len(found) == len(expected) > 0, f"{len(found)} cells, expected {len(expected)}"
    # Cells are in the file's order; a sample has one column, and a row of a class one place.
    places = {}
    for (count, x, y), (name, number, row, wanted) in zip(found, expected):
        assert count == wanted, f"{name}, sample {number}, row {row}: {count}, expected {wanted}"
        assert places.setdefault(("x", number), x) == x, f"sample {number}"
        assert places.setdefault((name, row), y) == y, f"{name}, row {row}"
    assert len({(x, y) for _, x, y in found}) == len(found), "one cell upon another"
    # Later samples are further right, and longer delays further up.
    columns = [places[key] for key in sorted(key for key in places if key[0] == "x")]
    assert columns == sorted(columns), columns
    for name in {name for name, *_ in expected}:
        rows = [places[key] for key in sorted(key for key in places if key[0] == name)]
        assert rows == sorted(rows, reverse=True), f"{name}: {rows}"
    print(f"{len(found)} cells in {len(columns)} columns")


def total(file, name):
    print(sum(sums(read(file))[name]))


def rows(file, name):
    print(*(count for count in sums(read(file))[name] if count))


if __name__ == "__main__":
    {"compared": compared, "drawn": drawn, "rows": rows, "total": total}[sys.argv[1]](*sys.argv[2:])
