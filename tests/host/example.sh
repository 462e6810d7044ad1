#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# scripts/example.py draws each thread of the sentence and each thread that waits, even if its own steps are too short
# to be seen, and each disk by its name. host/example-pages checks the pages that it has written.
# timeout: 60

. "$(dirname "$0")/../host.sh"
page=$work/page.md
printf '%s\n' before '<!-- output fsync-record -->' old '<!-- end output -->' after >"$page"
mkdir "$work/run"
echo '# record' >"$work/run/fsync-record.txt"

# explained SENTENCE: write the explanation of an fsync: a write of 40 ms, then a commit, whose own steps are short.
# Then hog has the CPU of the late thread for 9 of 10 ms.
explained() {
	python3 - "$1" >"$work/run/fsync.json" <<-'END'
		import json, sys
		late, commit, hog = ({"comm": c, "tid": t} for c, t in (("database", 7), ("jbd2/slow-8", 18), ("hog", 9)))
		disk = {"kind": "blocked", "by": "disk", "name": "253:0", "disk": "slow"}
		runs, no_cpu = {"kind": "running"}, {"kind": "waiting"}
		steps = [(0, 40000, 0, late, disk), (40000, 40012, 0, late, runs), (40012, 40030, 1, commit, runs),
		         (40030, 80000, 1, commit, disk), (80000, 80020, 1, commit, runs), (80020, 110000, 1, commit, disk),
		         (110000, 120000, 0, late, no_cpu)]
		path = [{"begin": 1000 * a, "end": 1000 * b, "depth": d, "thread": t, "cause": c} for a, b, d, t, c in steps]
		path[-1]["instead"] = {"kind": "thread", "thread": hog, "time": 9_000_000}
		print(json.dumps({"verdict": sys.argv[1], "path": {"thread": late, "from": 0, "to": 120_000_000, "path": path}}))
	END
}

# draws: draw the explanation; sets said.
draws() { said=$(python3 "$LT_TOP/scripts/example.py" "$work/run" "$page" 2>&1); }

# lanes: print the names of the lanes, from top to bottom.
lanes() { sed -n 's/^<text x="120".*>\(.*\)<\/text>$/\1/p' "$work/page-fsync.svg" | paste -sd ' '; }

# bars N: print the start, the width and the colour of each bar of lane N.
bars() {
	sed -nE "s/^<rect x=\"(.*)\" y=\"$((34 + 46 * $1))\" width=\"(.*)\" height=\"22\" fill=\"(.*)\".*/\1 \2 \3/p" \
		"$work/page-fsync.svg"
}

explained '58 % of the delay (70.0ms): database/7 waited for jbd2/slow-8/18, which waited for disk slow.'
draws || fail "$said"
[ "$(lanes)" = "database/7 jbd2/slow-8/18 disk slow" ] || fail "lanes: $(lanes)"
diff - <(bars 0) <<-'END' || fail "the late thread: see above"
	130.0 550.0 #dddddd
	680.0 50.0 #777777
END
diff - <(bars 1) <<-'END' || fail "the thread of the journal: see above"
	330.1 349.9 #dddddd
END
diff - <(bars 2) <<-'END' || fail "the disk: see above"
	130.0 550.0 #b5451c
END
grep -q '>waits<' "$work/page-fsync.svg" || fail "no wait is named"
diff - "$page" <<-'END' || fail "the page: see above"
	before
	<!-- output fsync-record -->

	    # record

	<!-- end output -->
	after
END

# A thread that had the CPU has a lane if the sentence names it; its bar is as long as it had the CPU.
explained 'database/7 had been woken, and waited for CPU 1, which ran hog/9.'
draws || fail "$said"
[ "$(lanes)" = "database/7 jbd2/slow-8/18 disk slow hog/9" ] || fail "lanes: $(lanes)"
[ "$(bars 3)" = "680.0 45.0 #777777" ] || fail "the thread that had the CPU: $(bars 3)"

# A time that rounding raises to 1000 of a unit is shown in the next unit.
for at in '999499 999 us' '999500 1 ms' '999499999 999 ms' '999999999 1 s'; do
	sed -i -E "s/\"to\": [0-9]+/\"to\": ${at%% *}/" "$work/run/fsync.json"
	draws || fail "$said"
	grep -q "waited for: ${at#* }<" "$work/page-fsync.svg" || fail "a path of ${at%% *} ns is not drawn as ${at#* }"
done

# A sentence about a thread that the path does not have is an error, and the picture stays as it is.
cp "$work/page-fsync.svg" "$work/old"
explained 'database/7 waited for kworker/0:1-events/45, which ran.'
! draws || fail "drew a path without a thread of the sentence"
grep -q 'names kworker/0:1-events/45, which the path does not have' <<<"$said" || fail "the thread is not named: $said"
cmp "$work/old" "$work/page-fsync.svg" || fail "the picture has changed"
