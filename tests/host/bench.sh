#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# scripts/bench, which `make bench` calls, runs in a checkout where nothing has been built, and
# prints every promised figure of engine, bpf and native (in make test-long, of hackbench, too),
# also as JSON. No figure is judged, but figures are refused if the counter did not count
# instructions. The cost of by= is written between its marks in a page, unless a figure or a mark is
# missing. On arm64, parts other than engine are refused, and goals in instructions are left out.
# The made-up trace of the part analyze fills each table of the analyses that read it.
# Objects that another test also builds are not compiled twice: the module is copied when
# scripts/bench would build it, and not before. The native benchmark is built with less optimisation
# than for a measurement.
# timeout: 1200
# long-part: hackbench, which needs a machine with the full root
# worth: a missing figure of make bench would otherwise be noticed only when it is needed

. "$(dirname "$0")/../host.sh"
json=$work/json fresh=$work/fresh

mkdir "$fresh"
tar -C "$LT_TOP" --exclude=./build --exclude=./.git -cf - . | tar -C "$fresh" -xf -
"$LT_TOP/scripts/build-module" stock
release=$("$LT_TOP/scripts/kernel-tree" --release stock)
mv "$fresh/scripts/build-module" "$fresh/scripts/build-bench-module"
cat >"$fresh/scripts/build-module" <<END
#!/bin/bash
set -euo pipefail
. "\$(dirname "\$0")/lib.sh"
case \$* in
	stock) ;;
	'--bench stock') exec "\$LT_TOP/scripts/build-bench-module" "\$@" ;;
	*) die "not for a bench: \$*" ;;
esac
mkdir -p "\$LT_BUILD/$release"
cp "$LT_BUILD/$release/latency_tracker.ko" "$LT_BUILD/$release/Module.symvers" "\$LT_BUILD/$release/"
END
chmod +x "$fresh/scripts/build-module"
parts=(engine bpf native) left_out='"hackbench", '
[ -z "${LT_LONG:-}" ] || parts=(--page) left_out=''
env -u LT_BUILD CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
	"$fresh/scripts/bench" --calls 100 --rounds 1 --json "$json" "${parts[@]}"
"$LT_TOP/scripts/in-tree" python3 -B - <<-END || fail "the JSON, or the section of the page, is not what was promised"
	import json, sys
	from pathlib import Path
	sys.path.insert(0, "$LT_TOP/tests/bench")
	import report
	result = json.loads('''$(<"$json")''')
	assert result["kernel"] and result["date"] and result["commit"], result
	assert result["architecture"] == "x86-64", result
	rows = {(row["part"], row["name"]): row for row in result["rows"]}
	wanted = list(report.ROWS) + [ratio[:2] for ratio in report.RATIOS]
	# these parts run only if named, or in make test-long
	wanted = [key for key in wanted if key[0] not in ($left_out"chains", "trace", "analyze", "scaling", "structures")]
	assert not [key for key in wanted if key not in rows], "rows are missing"
	# nothing is lost, and a start that finds the pool exhausted costs less than a successful start; the cost added
	# to a run of hackbench is a difference of two runs, which may be negative by chance with only one round
	may_be_less = ("lost_", "full_more_", "each_", "ours_to_")
	bad = [row for row in result["rows"]
	       if not row["unit"] or not (row["value"] > 0 or row["name"].startswith(may_be_less))]
	assert not bad, bad
	pairs = sorted((row["part"], row["live"]) for row in result["rows"] if row["name"] == "pair")
	assert pairs == [(part, live) for part in ("bpf", "engine") for live in (1, 1000, 64000)], pairs

	def refuses(call, *arguments):
	    try:
	        call(*arguments)
	    except SystemExit:
	        return
	    raise AssertionError(f"accepted {arguments}")

	# the page's section, of known figures
	keys = ("part", "name", "value", "goal")
	made = [dict(zip(keys, row)) for row in (
	    ("engine", "more_by_word", 118, 40), ("engine", "more_by_name", 39, 40),
	    ("hackbench", "each_more_by_stack", 2500.4, None), ("hackbench", "depth_by_stack", 11.5, None))]
	facts = {"kernel": "7.2", "date": "2026-01-01", "commit": "0000000"}
	text = report.section(made, facts)
	for part in ("| a label of one word | 118 | 40 | missed |", "| the name of a task | 39 | 40 | met |",
	             "in hackbench | 2,500 | | |", "have 11.5 functions", "Linux 7.2, 2026-01-01, commit 0000000."):
	    assert part in " ".join(text.split()), (part, text)
	page = Path("$LT_TOP/Documentation/performance.md")
	new = report.replaced(page, "labels", text)
	assert text in new and "not been measured" not in new, new
	for i in range(3):
	    refuses(report.section, made[:i] + made[i + 1:], facts)
	refuses(report.replaced, page, "no such mark", text)

	# the counter must count instructions; one of 62.5 MHz, for example, does not
	assert report.parse(["engine counter 0 1006 1000"]) == []
	for total in (62, 999, 1500):
	    refuses(report.parse, [f"engine counter 0 {total} 1000"])

	# goals in instructions are for x86-64
	rows = report.parse(["engine pair 1 300 1", "engine memory 1 80 1"])
	report.drop_goals(rows)
	assert [row["goal"] for row in rows] == [None, 128], rows
	for architecture, left_out in (("x86-64", False), ("arm64", True)):
	    facts["architecture"] = architecture
	    line = report.heading(facts)
	    assert line.startswith(f"Linux 7.2, {architecture}, 2026-01-01, commit 0000000"), line
	    assert line.endswith("are left out") == report.is_foreign(facts) == left_out, line
END
[ -z "${LT_LONG:-}" ] || grep -q 'in hackbench | -\?[0-9]' "$fresh/Documentation/performance.md" ||
	fail "--page has written nothing"

# Only the part engine runs on arm64, and no page is written there.
for words in '' bpf 'engine native' 'engine --page'; do
	# shellcheck disable=SC2086 # words
	! "$LT_TOP/scripts/bench" --kernel arm64 $words >"$work/said" 2>&1 || fail "accepted on arm64: $words"
	grep -qE '^bench: (--kernel arm64: only the part engine runs|--page is for x86-64)' "$work/said" ||
		fail "the refusal of '$words' on arm64: $(cat "$work/said")"
done

# Each analysis of the made-up trace finds operations for all its tables; `delays` has no such table.
[ -x "$LT_BUILD/test/latency-tracker" ] || "$LT_TOP/scripts/build-user" --only latency-tracker
python3 -B "$LT_TOP/tests/bench/load.py" "$work/load" 1
kinds=$("$LT_TOP/scripts/in-tree" env PYTHONPATH="$LT_TOP/tests/bench" \
	python3 -B -c 'import report; print(*report.KINDS["load_"])')
declare -A tables=([delays]=0 [cpu]=2 [irq]=3 [io]=2 [work]=2 [net]=3)
for kind in $kinds; do
	"$LT_TOP/scripts/in-tree" "$LT_BUILD/test/latency-tracker" analyze "$kind" "$work/load" >"$work/said" ||
		fail "analyze $kind of the made-up trace"
	found=$(grep -c '^the longest ' "$work/said" || :)
	[ "$found" -eq "${tables[$kind]:-1}" ] || fail "analyze $kind of the made-up trace: $(cat "$work/said")"
done

# Missing and unknown rows are detected.
refused() {
	! "$LT_TOP/scripts/in-tree" python3 "$LT_TOP/tests/bench/report.py" >/dev/null 2>&1 || fail "accepted $1"
}
refused "missing rows" <<<'engine pair 1 100 10'
refused "an unknown row" <<<'engine whatever 1 100 10'
refused "nothing" </dev/null
