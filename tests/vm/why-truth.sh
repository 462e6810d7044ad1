# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker why` names the right culprit, with its share, in eleven cases whose cause is known, five of which
# have two causes at once. It names no innocent task. tests/why_truth.py has the cases, and states the truth of each
# before `why` runs. A cause that is called unknown counts separately, and is accepted only where the case allows it.
# long: stock rt
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root is without LTTng
# timeout: 1800
# worth: each case starts a flight recorder, and no other test gives `why` two causes at once

. /lt/tests/lib.sh
. /lt/tests/block.sh

load_module
null_disk slow 400000000
null_disk quick 100000000
null_disk other 3000000
# Start the daemon here, so that no case has to wait for it.
lttng-sessiond --daemonize
python3 -B /lt/tests/why_truth.py >/tmp/truth 2>&1 && status=0 || status=$?
cat /tmp/truth
assert_eq $status 0 "the judge's exit status"
[ "$(grep -c ', two causes\. Truth: ' /tmp/truth)" -ge 5 ] || fail "too few cases have two causes"
grep -Eq '^right (9|1[0-9]), unknown [0-9]+, wrong 0$' /tmp/truth || fail "too few cases"
kill "$(cat /run/lttng/lttng-sessiond.pid)"
wait_until 120 sh -c '! pidof lttng-sessiond >/dev/null'
unload_module
