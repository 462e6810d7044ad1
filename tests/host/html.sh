#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# The pages of --html, of each analysis and of explain, in a real browser, without a network: clicks, the wheel and keys
# have their effects, the texts match the terminal's, no name of a thread is markup, no resource is loaded, and no
# element reaches beyond the edge of the window. The traces come from lt-ctf's tests, or are made up. (cargo/test checks
# the content of the pages.)
# timeout: 600
# long: yes
# worth: a browser

. "$(dirname "$0")/../host.sh"
[ -x "$LT_BUILD/test/latency-tracker" ] || "$LT_TOP/scripts/build-user" --only latency-tracker
"$LT_TOP/scripts/env" --with html
tar -C "$work" -xJf "$LT_TOP/user/lt-ctf/testdata/perf.tar.xz"
# in a network namespace of its own: the browser reaches nothing but the program that drives it
"$LT_TOP/scripts/in-tree" --with html unshare --net sh -c 'ip link set lo up; exec "$@"' sh \
	timeout 500 python3 "$LT_TOP/tests/pages.py" "$LT_BUILD/test/latency-tracker" "$work"
