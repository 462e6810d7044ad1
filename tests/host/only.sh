#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# A module with some of the trackers (TRACKERS=) and without the API builds, loads, raises an alert,
# and takes at most 1 MiB of memory with a small instance. It lists the other trackers as left
# out. An unknown tracker is refused.
# timeout: 300

. "$(dirname "$0")/../host.sh"

! LT_MODULE_OUT=$work/none "$LT_TOP/scripts/build-module" stock TRACKERS='wakeup softirqs' >"$work/said" 2>&1 ||
	fail "there is a tracker softirqs"
grep -q 'no such tracker: softirqs; there are block module wakeup ' "$work/said" || fail "$(cat "$work/said")"

LT_MODULE_OUT=$work/out "$LT_TOP/scripts/build-module" stock TRACKERS='wakeup irq'
cat >"$work/inside.sh" <<-'END'
	. /lt/tests/fits.sh
	assert_eq "$(grep -c '^[a-z]*:' $LT/trackers)" 17 "trackers, present or not"
	assert_eq "$(sed -n 's/^\([a-z]*\): .*/\1/p' $LT/trackers | head -n 2 | xargs)" "wakeup irq" "trackers of this module"
	assert_eq "$(grep -c '^  unavailable: left out by TRACKERS= of the build$' $LT/trackers)" 15 "trackers left out"
	refused_line 'a block' 'not part of this module'
	! grep -q ' latency_tracker_create' /proc/kallsyms || fail "it has the API"
	rmmod latency_tracker
END
"$LT_TOP/scripts/vm" --kernel stock --timeout 120 --log "$work/log" --add "$work/out/latency_tracker.ko:/lt/only.ko" \
	--add "$work/inside.sh" -- sh /lt/inside.sh || { tail -n 20 "$work/log/console.log"; fail "see above"; }
