#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Types lines with a tab at the end into real shells, and checks what they become.

usage: shells.py DIRECTORY SHELL...     bash, zsh or fish; DIRECTORY has the scripts of the command's completions, with
                                        the names of the shells. The command itself is found in $PATH
"""

import os
import pty
import re
import select
import sys
import time

# What is typed, and the whole line after the tab. tests/host/completions.sh makes the instances and the recipe.
LINES = [
    ("latency-tracker wa", "latency-tracker watch "),
    ("latency-tracker watch --ne", "latency-tracker watch --new "),
    ("latency-tracker watch slow", "latency-tracker watch slow_disk "),
    ("latency-tracker stop slow_disk oth", "latency-tracker stop slow_disk other "),
    ("latency-tracker start new blo", "latency-tracker start new block "),
    ("latency-tracker start new block thr", "latency-tracker start new block threshold="),
    ("latency-tracker start new block from=is", "latency-tracker start new block from=issue "),
    ("latency-tracker run jbd2-c", "latency-tracker run jbd2-commit "),
    ("latency-tracker run disk from=ins", "latency-tracker run disk from=insert "),
    ("latency-tracker recipes own-qu", "latency-tracker recipes own-question "),
    ("latency-tracker start p pair begin=tracep", "latency-tracker start p pair begin=tracepoint:"),
]
START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "PS1='> '; bind 'set enable-bracketed-paste off'; . {script}"),
    "zsh": (["zsh", "-f", "-i"], "PS1='> '; unsetopt zle_bracketed_paste; autoload -U compinit; "
            "fpath=({functions} $fpath); compinit -u -D"),
    "fish": (["fish", "--no-config", "--interactive"], "set fish_greeting; set fish_autosuggestion_enabled 0; "
             "function fish_prompt; echo -n '> '; end; source {script}"),
}
# What a shell writes to draw a line, not as a part of it: escape sequences, and then characters that it overwrites.
DRAWN = re.compile(r"\x1b(\[[0-9;?>=]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][A-Z0-9]|[=>78])|\r|\x0f|\x07")
OVERWRITTEN = re.compile(r".\x08")
PATIENCE = 60


class Shell:
    """A shell on a terminal."""

    def __init__(self, name, directory):
        program, first = START[name]
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.environ.update(TERM="xterm", COLUMNS="200", LINES="50")
            os.execvp(program[0], program)
        self.raw = self.text = ""
        self.send(first.format(script=f"{directory}/{name}", functions=f"{directory}/functions") + "\n")
        self.send("echo rea''dy\n")
        self.until(lambda: re.search(r"^ready", self.text, re.M))

    def send(self, text):
        os.write(self.terminal, text.encode())

    def until(self, done):
        """Reads until the condition is true; returns False if that takes too long."""
        end = time.monotonic() + PATIENCE
        while not done():
            if not select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0]:
                return False
            raw = os.read(self.terminal, 65536).decode(errors="replace")
            # fish asks which terminal this is, and waits for the answer
            for _ in range(raw.count("\x1b[c") + raw.count("\x1b[0c")):
                self.send("\x1b[?1;2c")
            self.raw += raw
            self.text = OVERWRITTEN.sub("", DRAWN.sub("", self.raw))
        return True

    def becomes(self, typed, wanted):
        """Types a line and a tab, and then a mark, which shows where the line ended."""
        self.raw = self.text = ""
        self.send(typed + "\t@@")
        found = self.until(lambda: wanted + "@@" in self.text)
        self.send("\x15\n")
        return found


def main(directory, *names):
    wrong = 0
    for name in names:
        shell = Shell(name, directory)
        for typed, wanted in LINES:
            if not shell.becomes(typed, wanted):
                print(f"{name}: {typed!r} does not become {wanted!r}, but {shell.text[-300:]!r}")
                wrong += 1
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
