#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# The module leaves enough of the kernel's stack of 16 KiB. Its frames are limited where the stack
# gets deep: when an instance is created, which may have to reclaim memory; when an instance is
# enabled, which attaches probes; and in an alert of `tree`. An alert may come on top of these or of
# any other code.
# timeout: 900

. "$(dirname "$0")/../host.sh"

# frames MODULE: print frame size and name of each function.
frames() {
	"$LT_TOP/scripts/in-tree" objdump --disassemble --no-show-raw-insn "$1" |
		awk 'function number(hex,	at, value) {
				for (at = 1; at <= length(hex); at++) value = value * 16 + index("0123456789abcdef", substr(hex, at, 1)) - 1
				return value
			}
			/^[0-9a-f]+ <.*>:$/ { if (name != "") print pushed + 8, name; name = substr($2, 2, length($2) - 3); pushed = 0; next }
			name == "" { next }
			# the return address, the saved registers, and the locals
			$2 == "push" { pushed += 8 }
			$2 == "sub" && match($3, /^\$0x[0-9a-f]+,%rsp$/) {
				print number(substr($3, 4, length($3) - 8)) + pushed + 8, name
				name = ""
			}'
}

# at_most LIMIT WHAT PATTERN...: check that the largest frames of all patterns together take at most
# LIMIT.
at_most() {
	local limit=$1 what=$2 pattern sum=0 size name
	shift 2
	for pattern; do
		read -r size name < <(grep -E " .*$pattern" "$work/frames" | sort -rn | head -n 1) ||
			{ echo "$kernel: $what: no function matches $pattern"; exit 1; }
		echo "  $size $name"
		sum=$((sum + size))
	done
	echo "$kernel: $what: $sum bytes of stack"
	[ "$sum" -le "$limit" ] || { echo "that is more than $limit"; exit 1; }
}

for kernel in stock rt; do
	"$LT_TOP/scripts/build-module" "$kernel" 2>&1 | cat >&2
	release=$("$LT_TOP/scripts/kernel-tree" --release "$kernel")
	frames "$LT_BUILD/$release/latency_tracker.ko" >"$work/frames"
	[ "$(wc -l <"$work/frames")" -gt 500 ] || { echo "$kernel: only $(wc -l <"$work/frames") frames"; exit 1; }
	at_most 3072 "a line for control that enables an instance" \
		'11ControlFile.*5write$' '8Registry3add' '8Registry5start$' '6Probed.*8Instance5apply' \
		'10Attachment.*3new'
	at_most 4096 "a line for control that makes an instance" '11ControlFile.*5write$' '8Registry3add' '6Probed.*6create'
	at_most 4096 "an alert of tree" \
		'6Engine.*12finish_oddly' '4tree4tips.*6report' '4Core.*5raise' '4Core.*8raise_as[^s]' '4Core.*8raise_ass_0'
done
