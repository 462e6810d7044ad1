#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# scripts/memory-table turns the output of vm/memory into the table of the guide, and changes nothing
# else. A failure because of the old table is ignored. After any other failure, even of the machine or
# the kernel, and after an incomplete run, the page stays as it is.
# timeout: 60

. "$(dirname "$0")/../host.sh"
mkdir -p "$work"/{scripts,Documentation/guide}
cp "$LT_TOP"/scripts/{memory-table,lib.sh} "$work/scripts/"
page=$work/Documentation/guide/embedded.md
printf '%s\n' before '<!-- memory -->' '' '| old |' '|---|' '' '<!-- end -->' after >"$page"
cp "$page" "$work/old"
cat >"$work/log" <<-'END'
	kernel: 7.2.12-amd64
	module: text and data 2604 kB
	module: 3000 kB
	tree: 3100 kB, events=64 max_events=64 ring=64: 97 kB
	wakeup: 1200 kB, events=64 max_events=64 ring=64: 35 kB
	wakeup, events=64: 35 kB
	wakeup, events=256: 60 kB
	wakeup, events=1024: 200 kB
	wakeup, events=4096: 800 kB
	FAIL: the guide is out of date for tree wakeup; run scripts/memory-table
END
# table LOG: sets said.
table() {
	local rc=0
	said=$(LT_TOP=$work "$work/scripts/memory-table" "$1" 2>&1) || rc=$?
	return "$rc"
}
head -n 8 "$work/log" >"$work/short"
! table "$work/short" || fail "took an incomplete run"
grep -q incomplete <<<"$said" || fail "it does not say what is wrong: $said"
while read -r line; do
	{ cat "$work/log"; echo "$line"; } >"$work/failed"
	! table "$work/failed" || fail "took a run that failed: $line"
	grep -qF "$line" <<<"$said" || fail "it does not say what is wrong: $said"
done <<-'END'
	FAIL: a small wakeup takes 257 kB
	vm: time is up: ended after 180 s
	The machine did not get to the end of this test.
	The machine failed after this test:
	The kernel complained (console: build/log/vm/memory@stock/console.log):
END
cmp "$page" "$work/old" || fail "the page has changed"
table "$work/log" || fail "$said"
diff - "$page" <<-'END' || fail "the table differs, see above"
	before
	<!-- memory -->

	Linux 7.2.12-amd64, x86-64, 2 CPUs; the module itself: 2604 kB.

	| Tracker | by default | with `events=64 max_events=64 ring=64` |
	|---|---|---|
	| tree | 3100 kB | 97 kB |
	| wakeup | 1200 kB | 35 kB |

	| `wakeup`, with `ring=64` and `events=` | 64 | 256 | 1024 | 4096 |
	|---|---|---|---|---|
	| memory | 35 kB | 60 kB | 200 kB | 800 kB |

	<!-- end -->
	after
END
cp "$page" "$work/old"
table "$work/log" || fail "$said"
cmp "$page" "$work/old" || fail "a second time it writes another table"
sed -i '/^<!-- end -->$/d' "$page"
! table "$work/log" || fail "took a page without the end of the table"
grep -q 'no line <!-- end -->' <<<"$said" || fail "it does not say what is wrong: $said"
