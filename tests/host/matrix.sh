#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# scripts/matrix turns the results of a suite into rows of the table, a line for each failure, and
# an exit status. The rows of other suites stay. A suite without kernels of its own has no rows. No
# module is built for a kernel that is too old, or that was built without Rust; the kernel's row has
# the reason. The suites and their results are simulated.
# timeout: 60

. "$(dirname "$0")/../host.sh"
mkdir -p "$work"/{scripts,tests,Documentation,packaging/dkms}
cp "$LT_TOP/packaging/dkms/dkms.conf" "$work/packaging/dkms/"
cp "$LT_TOP"/scripts/{matrix,lib.sh} "$work/scripts/"
printf '%s\n' before '<!-- matrix -->' '' '| Debian | Kernel | Compilers | Builds | vm/smoke | Date |' '|---|---|---|---|---|---|' \
	'| sid | 7.1.1-amd64 | old | yes | yes | 2026-01-01 |' \
	'| experimental | 9.9-amd64 | odd | yes | yes | 2026-01-01 |' '<!-- end -->' after >"$work/Documentation/status.md"

# The tree of each suite, its releases, and its results; experimental is not installed.
cat >"$work/scripts/env" <<-'END'
	#!/bin/sh
	[ "${LT_SUITE:-forky}" != experimental ] || [ -e "$LT_TOP/experimental" ] || exit 1
	echo "$LT_TOP/tree"
END
cat >"$work/scripts/kernel-tree" <<-'END'
	#!/bin/sh
	case ${LT_SUITE:-forky} in
		trixie-backports) version=7.3.4 ;;
		experimental) [ "$2" = rt ] && version=7.10+odd || version=6.12.94+odd ;;
		*) version=7.2.12 ;;
	esac
	case $2 in stock) echo "$version-amd64" ;; rt) echo "$version-rt-amd64" ;; esac
END
cat >"$work/tests/run" <<-'END'
	#!/bin/sh
	for kernel in stock rt; do
		echo "PASS build/module@$kernel (60 s)"
		[ $kernel = rt ] || echo "PASS vm/smoke@$kernel (20 s, 9 s of CPU time)"
	done
	echo "AGAIN vm/smoke@rt (failed after 20 s: a reason): it runs again, alone, after all others"
	echo "FLAKY vm/smoke@rt (failed after 20 s: a reason; passed alone)"
END
cat >"$work/tests/run-suite" <<-'END'
	#!/bin/sh
	[ -z "${LT_SUITE:-}" ] || exit 9
	[ "$1" = trixie-backports ] || { echo "run-suite $1"; exit 9; }
	echo "PASS build/module@stock (60 s)"
	echo "FAIL vm/smoke@stock (20 s)"
	echo "FAIL build/module@rt (60 s)"
	exit 1
END
chmod +x "$work"/scripts/* "$work"/tests/*
for release in 7.{2.12,3.4}-{,rt-}amd64; do
	mkdir -p "$work/tree/usr/src/linux-headers-$release"
	printf '%s\n' 'CONFIG_CC_VERSION_TEXT="x86_64-linux-gnu-gcc-16 (Debian 16.2.0-3) 16.2.0"' \
		CONFIG_RUST=y 'CONFIG_RUSTC_VERSION_TEXT="rustc 1.97.1 (8bab26f4f 2026-07-14)"' >"$work/tree/usr/src/linux-headers-$release/.config"
done
mkdir -p "$work"/tree/usr/src/linux-headers-{6.12.94,7.10}+odd{,-rt}-amd64
touch "$work"/tree/usr/src/linux-headers-{6.12.94,7.10}+odd{,-rt}-amd64/.config
# matrix ARGUMENT...: sets said and rows.
matrix() {
	local rc=0
	LT_TOP=$work LT_BUILD=$work/build "$work/scripts/matrix" "$@" >"$work/said" 2>&1 || rc=$?
	said=$(<"$work/said")
	rows=$(sed -n '/^<!-- matrix -->/,/^<!-- end -->/s/^\(| [a-z].*\) [-0-9]* |$/\1/p' "$work/Documentation/status.md")
	return "$rc"
}
tools='rustc 1.97.1, gcc-16'

matrix forky || fail "failed with good results: $said"
want="| forky | 7.2.12-amd64 | $tools | yes | yes |
| forky | 7.2.12-rt-amd64 | $tools | yes | yes, when run again |
| sid | 7.1.1-amd64 | old | yes | yes |
| experimental | 9.9-amd64 | odd | yes | yes |"
[ "$rows" = "$want" ] || fail "the rows are: $rows"

! matrix --cached || fail "nothing failed, with two failures: $said"
want="| forky | 7.2.12-amd64 | $tools | yes | yes |
| forky | 7.2.12-rt-amd64 | $tools | yes | yes, when run again |
| trixie-backports | 7.3.4-amd64 | $tools | yes | **no** |
| trixie-backports | 7.3.4-rt-amd64 | $tools | **no** | **no** |
| experimental | 9.9-amd64 | odd | yes | yes |"
[ "$rows" = "$want" ] || fail "the rows are: $rows"
grep -q '^FAIL trixie-backports, 7.3.4-amd64: vm/smoke@stock: FAIL vm/smoke@stock' <<<"$said" || fail "what failed is not named: $said"
grep -q '^FAIL trixie-backports, 7.3.4-rt-amd64: vm/smoke@rt: no result' <<<"$said" || fail "what is missing is not named: $said"
[ "$(grep -c '^FAIL t' <<<"$said")" -eq 3 ] || fail "not three failures: $said"
[ "$(sed -n '1p;$p' "$work/Documentation/status.md")" = $'before\nafter' ] || fail "something else changed"

! matrix experimental || fail "a suite that cannot be installed is not one that failed"
grep -q '^FAIL experimental: not installed' <<<"$said" || fail "it does not say: $said"
touch "$work/experimental"
matrix experimental || fail "failed without a kernel to build for: $said"
[[ $rows = *'| experimental | 6.12.94+odd-amd64 | | no: older than 7.2 | |
| experimental | 7.10+odd-rt-amd64 | | no: built without Rust | |'* ]] || fail "the rows are: $rows"
! grep run-suite <<<"$said" || fail "it builds for a kernel that the module is not for"
! matrix nonsense || fail "took an unknown suite"
sed -i '/^<!-- matrix -->/d' "$work/Documentation/status.md"
! matrix forky || fail "wrote the table into a page without a place for it"
[ "$(wc -l <"$work/Documentation/status.md")" -gt 5 ] || fail "the page is lost"
