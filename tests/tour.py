#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Runs the commands of a page in order, in one shell, and compares what they print with the page, in shape.

usage: tour.py PAGE [OUT]     OUT gets the page's blocks with the real output

In an indented block, a line that starts with `# ` is a command; a line after it that ends with a backslash is continued.
The lines up to the next command are its output: `...` stands for any lines. Numbers and times may differ, and so may the
length of a bar; all other words must be the same. A command that fails is an error, unless its exit status is 2: an alert.
"""

import re
import subprocess
import sys

END = "--- status "


def steps(page):
    """Returns the commands, each as [number of its line, command, lines of output]."""
    found, goes_on, is_in = [], False, False
    with open(page, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for number, line in enumerate(lines, 1):
        if not line.startswith("    "):
            # A blank line within a block is output, too.
            if line:
                is_in = goes_on = False
            continue
        text = line[4:]
        if goes_on:
            found[-1][1] += "\n" + text
            goes_on = text.endswith("\\")
        elif text.startswith("# "):
            found.append([number, text[2:], []])
            goes_on, is_in = text.endswith("\\"), True
        elif is_in:
            found[-1][2].append(text)
    return found


def shape(line):
    line = re.sub(r"\|[* ]*\|", "|bar|", line)
    line = re.sub(r"\b[0-9][0-9.,]*(ns|us|ms|s)?(?![\w.])|0x[0-9a-f]+", "N", line)
    return " ".join(line.split())


def fits(expected, actual):
    """Returns whether the lines are as expected, where `...` stands for any lines."""
    if not expected:
        return not actual
    if expected[0] == "...":
        return any(fits(expected[1:], actual[at:]) for at in range(len(actual) + 1))
    return bool(actual) and expected[0] == actual[0] and fits(expected[1:], actual[1:])


def shapes(lines):
    return [line if line == "..." else shape(line) for line in lines if line.strip()]


class Shell:
    """One shell for all commands, so that variables and background processes last."""

    def __init__(self):
        self.process = subprocess.Popen(["/bin/bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)

    def run(self, command):
        self.process.stdin.write(f"{command}\necho '{END}'$?\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            before, mark, status = line.rstrip("\n").partition(END)
            if mark:
                return lines + [before] * bool(before), int(status)
            lines.append(line.rstrip("\n"))
        return lines, None


def main(page, out=None):
    shell, bad = Shell(), 0
    log = open(out, "w", encoding="utf-8") if out else None
    for number, command, expected in steps(page):
        actual, status = shell.run(command)
        text = "".join(f"    {line}\n" for line in ["# " + command.replace("\n", "\n    "), *actual])
        print(text, end="", flush=True)
        if log:
            log.write(text)
        if status not in (0, 2):
            bad += 1
            print(f"{page}:{number}: exit status {status}")
        elif not fits(shapes(expected), shapes(actual)):
            bad += 1
            print(f"{page}:{number}: the page has another output:", *expected, sep="\n    ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
