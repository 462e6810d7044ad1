#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# job.sh: runs a command from a shell, and marks it as work for latency-tracker.
#
# usage: job.sh COOKIE COMMAND [WORD...]     e.g. job.sh "backup $(date +%F)" tar -cf /backup/home.tar /home
#
# With `latency-tracker start job tree end=work threshold=1h`, an alert reports each job that took
# longer; with `timeout=1h`, also each job that has not ended by then. The exit status is the
# command's, whether or not an instance tracks the work.

set -eu
[ $# -ge 2 ] || { echo "usage: ${0##*/} COOKIE COMMAND [WORD...]" >&2; exit 2; }
cookie=$1
shift

# mark FILE: marks the work with one write(2), in a subshell, since some shells exit when a file
# cannot be opened.
mark() { (printf '%s\n' "$cookie" >"/proc/latency_tracker/$1") 2>/dev/null || :; }

mark work_begin
status=0
"$@" || status=$?
mark work_done
exit $status
