# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=bash
#
# costs.sh: the table of the costs of tests, which `cost` in report.sh fills, and its summary at the
# end of tests/run. Needs lib.sh, report.sh, machines.sh, $TESTS and $LOGS.

# CPU seconds above which the head of a test needs a line `worth`.
WORTH=${LT_WORTH:-60}
COSTS=$LOGS/costs.tsv

# new_costs: start an empty table.
new_costs() {
	mkdir -p "$LOGS"
	printf 'name\tcpu_seconds\telapsed_seconds\tresult\n' >"$COSTS"
}

# costs_by_kind: print the sums. CPU time of our children that is in no result was spent on set-up
# and boots.
costs_by_kind() {
	local spent
	spent "$COSTS.times"
	awk -F '\t' -v all="$spent" '
		{ kind = $1; sub("/.*", "", kind); sum[kind] += $2 }
		END {
			builds = sum["build"] + sum["cargo"]
			other = all / 1000 - builds - sum["host"] - sum["vm"]
			printf "CPU time: %.1f s for builds and cargo, %.1f s for host, %.1f s for vm, ", builds, sum["host"], sum["vm"]
			printf "%.1f s for set-up and boots\n", (other > 0 ? other : 0)
		}' "$COSTS"
}

# without_worth: name the expensive tests that have no line `worth`.
without_worth() {
	local name file names=()
	while read -r name; do
		file=$TESTS/${name%@*}.sh
		[ -n "$(head_of "$file" worth '')" ] || names+=("$name")
	done < <(awk -F '\t' -v worth="$WORTH" '$1 ~ "^(host|vm)/" && $2 > worth + 0 && !seen[$1]++ { print $1 }' "$COSTS")
	[ ${#names[@]} -eq 0 ] || echo "More than $WORTH s of CPU time, and no line '# worth: WHY' in the head: ${names[*]}"
}
