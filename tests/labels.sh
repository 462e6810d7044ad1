# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# labels.sh: checks the file `labels` of an instance with by=, for tests inside the virtual machine. Sourced after
# lib.sh.

# count INSTANCE LABEL: print the number of delays with a label: 0 if the label is missing.
count() {
	awk -v label="$2" '
		{ text = $0; sub(/ count=.*/, "", text); sub(/^label /, "", text) }
		NR > 1 && text == label { sub(/.* count=/, ""); sub(/ .*/, ""); n += $0 }
		END { print n + 0 }' "$LT/$1/labels"
}

# whole INSTANCE: check that the rows add up to the instance: counts, sums, extremes, and each bucket.
whole() {
	sums_hold "$1"
	awk '
		function field(name) { match($0, " " name "=[^ ]*"); return substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 2) }
		function number(name) { return field(name) + 0 }
		FILENAME ~ /labels$/ && FNR > 1 {
			count += number("count"); sum += number("sum"); own = 0
			if (number("count") > 0 && (!rows++ || number("min") < min)) min = number("min")
			if (number("max") > max) max = number("max")
			n = split(field("buckets"), list, ",")
			for (i = 1; i <= n; i++) { split(list[i], part, /[-:]/); bucket[part[1] " " part[2]] += part[3]; own += part[3] }
			if (own != number("count")) { print "count and buckets differ: " $0; bad = 1 }
		}
		FILENAME ~ /histogram$/ { if (bucket[$1 " " $2] != $3) { print "bucket " $0; bad = 1 } delete bucket[$1 " " $2]; all += $3 }
		FILENAME ~ /stats$/ { stat[$1] = $2 }
		END {
			for (one in bucket) { print "not in the histogram: " one; bad = 1 }
			if (all != count) { print "count", all, count; bad = 1 }
			if (stat["sum_us"] != int(sum / 1000)) { print "sum", stat["sum_us"], sum; bad = 1 }
			if (stat["min"] != min + 0 || stat["max"] != max + 0) { print "extremes", min, max; bad = 1 }
			exit bad
		}' "$LT/$1/labels" "$LT/$1/histogram" "$LT/$1/stats" || { cat "$LT/$1/labels"; fail "the rows of $1 are not the whole"; }
}
