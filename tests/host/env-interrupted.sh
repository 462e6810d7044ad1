#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# A set-up that is killed halfway leaves no tree that passes for complete, no running process, and
# nothing that obstructs the next set-up.
# timeout: 280

. "$(dirname "$0")/../host.sh"
export XDG_CACHE_HOME=$work LT_PACKAGES=$work/packages
unset LT_CACHE
echo busybox-static >"$LT_PACKAGES"
env=$work/latency-tracker/env

"$LT_TOP/scripts/env" >"$work/first" 2>&1 &
pid=$!
for _ in $(seq 600); do
	[ ! -e "$(echo "$env"/*.part/tree/usr/bin/dpkg)" ] || break
	kill -0 "$pid" 2>/dev/null || { echo "the set-up ended before it was killed:"; cat "$work/first"; exit 1; }
	sleep 0.1
done
kill -KILL "$pid"
wait "$pid" 2>/dev/null || :
for _ in $(seq 600); do
	pgrep -f "$env" >/dev/null || break
	sleep 0.1
done
! pgrep -f "$env" || { echo "still running after the kill"; exit 1; }
! grep -F "$work" /proc/mounts || { echo "still mounted after the kill"; exit 1; }
! "$LT_TOP/scripts/env" --print 2>/dev/null || { echo "the half tree is taken for a whole one"; exit 1; }

"$LT_TOP/scripts/env"
tree=$("$LT_TOP/scripts/env" --print)
[ "$("$LT_TOP/scripts/in-tree" busybox echo whole)" = whole ] || { echo "$tree does not work"; exit 1; }
[ "$(find "$env" -mindepth 1 -maxdepth 1 | wc -l)" = 1 ] || { echo "left behind:"; ls "$env"; exit 1; }
before=$(stat -c %Z "$tree")
"$LT_TOP/scripts/env" >"$work/said" 2>&1 || { cat "$work/said"; exit 1; }
[ "$(stat -c %Z "$tree")" = "$before" ] || { echo "made twice"; exit 1; }
[ ! -s "$work/said" ] || { echo "something was to do:"; cat "$work/said"; exit 1; }
