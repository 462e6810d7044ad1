#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# `latency-tracker bench rate --kind ust` in the tree with the layer `ust`, without a kernel tracer.
# No event is lost if the events fit into the buffers, in both modes of waking the consumer. If they
# do not fit, many are lost while the consumer sleeps, and LTTng and the trace report the loss, too.
# The process that generates events, the session and the traces are gone afterwards, even after a
# kill (otherwise the time limit ends the test). Skipped without a second CPU.
# timeout: 600

set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"

# inside COMMAND DIRECTORY: run the part of the test that is in the tree.
inside() {
	local command=$1 work=$2 pid helper signal
	# LTTng reads the number of processors from /sys. Daemons of other runs have their files in /run.
	[ -e /sys/devices ] || mount -t sysfs -o ro sysfs /sys
	mount -t tmpfs none /run
	fail() { echo "FAIL: $*: $(cat "$work/said")" >&2; exit 1; }
	rate() { "$command" bench rate --kind ust --json --repeat 1 --traces "$work" "$@" >"$work/json" 2>"$work/said"; }
	gives() {
		local want=$1 got=0
		shift
		rate "$@" || got=$?
		[ "$got" -eq "$want" ] || fail "bench rate $*: $got"
	}
	sessions() { lttng --no-sessiond --mi xml list | grep -o '<session>' | wc -l; }
	traces() { compgen -G "$work/latency-tracker-rate-*" >/dev/null; }

	lttng-sessiond --no-kernel --daemonize
	trap 'kill "$(cat /run/lttng/lttng-sessiond.pid)"' EXIT
	gives 0 --rate 500 --events 200 -b 8x64K
	python3 tests/bench_rate.py "$work/json" kind=ust verdict=found lossless modes=2 events=200
	gives 0 --events 2000 -b 8x64K --read-timer 0
	python3 tests/bench_rate.py "$work/json" kind=ust verdict=no_loss lossless events=2000
	gives 2 --rate full --events 50000 -b 2x4K --read-timer 2s
	python3 tests/bench_rate.py "$work/json" kind=ust verdict=lossy lossy events=50000
	for signal in INT KILL; do
		"$command" bench rate --kind ust --rate 100 -t 1h -b 8x64K --traces "$work" >"$work/out" 2>"$work/said" & pid=$!
		until lttng --no-sessiond --mi xml list | grep -q '<enabled>true</enabled>'; do
			kill -0 $pid || fail "it has ended"
			sleep 0.1
		done
		helper=$(pgrep -P $pid -f '^python3')
		kill -$signal $pid
		wait $pid || :
		while kill -0 "$helper" 2>/dev/null; do sleep 0.1; done
		while traces || [ "$(sessions)" -gt 0 ]; do sleep 0.1; done
	done
}

if [ -n "${LT_IN_TREE:-}" ]; then
	inside "$@"
	exit
fi
[ "$(nproc)" -ge 2 ] || { echo "SKIP: one CPU"; exit 77; }
"$LT_TOP/scripts/env" --with ust
[ -x "$LT_BUILD/test/latency-tracker" ] || "$LT_TOP/scripts/build-user"
work=$(mktemp -d "$LT_BUILD/rate.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$LT_TOP"
"$LT_TOP/scripts/in-tree" --with ust bash "$LT_TOP/tests/host/bench-rate-ust.sh" "$LT_BUILD/test/latency-tracker" "$work"
