#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# record-ust.sh DIRECTORY: records two traces of program.c there, both with contexts: ust, and
# ust-1.8 in the older format. Runs in the tree with the layer `ust`; make calls it.

set -eu
# LTTng reads the number of CPUs from sysfs. The mount disappears with the mount namespace of the tree.
[ -e /sys/devices ] || mount -t sysfs -o ro sysfs /sys
here=$(cd "$(dirname "$0")" && pwd)
out=$1
work=$(mktemp -d)
LTTNG_HOME=$work
export LTTNG_HOME
sessiond=
trap '[ -z "$sessiond" ] || kill "$sessiond"; wait; rm -rf "$work"' EXIT

gcc -O2 -I"$here" -o "$work/program" "$here/program.c" -llttng-ust
lttng-sessiond --no-kernel >/dev/null 2>&1 &
sessiond=$!
for _ in $(seq 100); do
	lttng list --userspace >/dev/null 2>&1 && break
	sleep 0.1
done

# record NAME OPTION...
record() {
	name=$1
	shift
	lttng create "$name" --output="$work/$name" "$@"
	lttng enable-channel --userspace --subbuf-size=16k --num-subbuf=8 channel
	lttng add-context --userspace --channel=channel --type=vpid --type=vtid --type=procname --type=ip
	lttng add-context --userspace --channel=channel --type='$app.lt_ctf:none'
	lttng enable-event --userspace --channel=channel 'lt_ctf:*'
	lttng start
	"$work/program"
	lttng stop
	lttng destroy
	cp -r "$work/$name" "$out/"
}

record ust
record ust-1.8 --trace-format=ctf-1.8
