# SPDX-License-Identifier: GPL-2.0 OR MIT
"""structures: the table of the part `structures` for report.py, a line for each structure.

tests/module/structures/measure.c prints the rows, with the letter of the structure; structures.sh prints those of
losses in BPF. The rows for user space are from the part `native`.
"""

STRUCTURES = {
    "A": "list, hlist, spinlock",
    "B": "list, hlist, trylock",
    "C": "llist, hlist, spinlock",
    "D": "llist, hlist, trylock",
    "E": "list, rhashtable, spinlock",
    "F": "list, rhashtable, trylock",
    "G": "llist, rhashtable, spinlock",
    "H": "llist, rhashtable, trylock",
    "I": "list, lock-free, spinlock",
    "J": "list, lock-free, trylock",
    "K": "llist, lock-free, no lock",
    "L": "the engine",
    "M": "BPF, hash map",
    "N": "objpool, hlist_bl",
    "O": "BPF, storage of the task",
}

# rows that are not structures
NONE = {"none": "calls that do nothing", "clocks": "clock, counters, histogram"}

# structures whose objects are free again only after a grace period
LATE = "IJK"

# structures with only one event per task; structures that do not count by CPU
ONE_A_TASK, NOT_BY_CPU = "O", "M"

# in the part native
NATIVE = {
    "engine": "L the engine",
    "lfht": "  cds_lfht, table of I to K",
    "locked": "  Mutex<HashMap>",
}

ROWS = {
    **{f"pair_{letter}": f"{letter}, {what}" for letter, what in {**STRUCTURES, **NONE}.items()},
    **{f"back_{letter}": f"{letter}, given back later" for letter in LATE},
    **{f"{kind}_{letter}": f"{letter}, {title}"
       for kind, title in (("batch", "ended on the same CPU"), ("across", "ended on another CPU"))
       for letter in [*STRUCTURES, "none"] if letter != ONE_A_TASK},
    **{f"{kind}{way}_{letter}": f"{letter}, {title}{where}"
       for way, where in (("", ""), ("_across", ", across CPUs"))
       for kind, title in (("lost", "lost"), ("worst", "lost by the worst CPU"))
       for letter in STRUCTURES if letter != ONE_A_TASK and not (kind == "worst" and letter in NOT_BY_CPU)},
}


def show(rows, native):
    """Prints instructions, without the loop, its keys and calls (in the column `later`, as measured); losses per 1,000
    pairs; and time, if measured."""
    values = {(row["name"], row["live"]): row["value"] for row in rows}

    def cost(kind, letter, live, loop):
        value = values.get((f"{kind}_{letter}", live))
        return "" if value is None else f"{value - values.get((loop, 1 if loop == 'pair_none' else live), 0):,.1f}"

    lives = sorted({live for name, live in values if name.startswith("pair_")})
    print(f"  {'instructions of a pair':30}{'live, ended in order':>{8 * len(lives)}}".rstrip())
    print(f"  {'':30}" + "".join(f"{live:>8,}" for live in lives) + f"{'later':>8}")
    for letter, what in {**STRUCTURES, "clocks": NONE["clocks"]}.items():
        line = "".join(f"{cost('pair', letter, live, 'pair_none'):>8}" for live in lives)
        late = values.get((f"back_{letter}", lives[-1])) if lives else None
        line += "" if late is None else f"{late:>8,.1f}"
        print(f"  {letter if letter in STRUCTURES else '':2}{what:28}{line}".rstrip())

    at_once = sorted({live for name, live in values if name.startswith("across_")})
    print(f"  {'all begin, then end; on CPU':30}"
          + "".join(f"{f'{live:,} live':>16}" for live in at_once))
    print(f"  {'':30}" + f"{'same':>8}{'other':>8}" * len(at_once))
    for letter, what in STRUCTURES.items():
        line = "".join(f"{cost(kind, letter, live, f'{kind}_none'):>8}" for live in at_once
                       for kind in ("batch", "across"))
        if line.strip():
            print(f"  {letter:2}{what:28}{line}")

    show_losses(values)
    show_native({(row["name"], row["live"]): row["value"] for row in native})


def show_losses(values):
    """Prints the losses of all CPUs, and of the CPU that lost the most."""
    crowds = sorted({live for name, live in values if name.startswith("lost_")})
    columns = [(way, cpus) for cpus in crowds for way in ("", "_across")]
    if not columns:
        return
    print(f"  {'lost of 1,000 pairs, worst CPU':30}"
          + "".join(f"{str(cpus) + (', other' if way else ' CPUs'):>12}" for way, cpus in columns))
    for letter, what in STRUCTURES.items():
        cells = []
        for way, cpus in columns:
            lost, worst = (values.get((f"{kind}{way}_{letter}", cpus)) for kind in ("lost", "worst"))
            cell = "" if lost is None else f"{lost:.1f}" + " " * 6 * (worst is None)
            cells.append(cell if worst is None else f"{cell} {worst:>5.0f}")
        if any(cells):
            print((f"  {letter:2}{what:28}" + "".join(f"{cell:>12}" for cell in cells)).rstrip())


def show_native(values):
    """Prints nanoseconds, and the median of each round's ratio to the engine's, since a disturbance of the machine
    affects a whole round alike."""
    lives = sorted({live for name, live in values if name == "engine"})
    if not lives:
        return
    print(f"  {'natively: ns, / the engine':30}" + "".join(f"{f'{live:,} live':>16}" for live in lives))
    for name, what in NATIVE.items():
        line = ""
        for live in lives:
            of = 1 if name == "engine" else values.get((f"engine_to_{name}", live))
            line += f"{values.get((name, live), 0):>9.1f}{1 / of if of else 0:>7.2f}"
        print(f"  {what:30}{line}")
