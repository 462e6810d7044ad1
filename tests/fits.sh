# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# fits.sh: loads /lt/only.ko, a module with the trackers wakeup and irq, starts and removes a small instance, which must
# raise an alert, and checks that module and instance together take at most 1 MiB. Sourced inside the virtual machine.

. /lt/tests/lib.sh

# memory_of EVENTS: start an instance with a pool of EVENTS, wait for an alert, remove the instance, and set took to its
# size in kB.
memory_of() {
	# The first instance fills slabs and tables that stay.
	for _ in 1 2; do
		_used=$(memory_used)
		control "late wakeup threshold=0 events=$1 max_events=$1 ring=64"
		wait_until 20 stat_is late alerts -gt 0
		took=$(($(memory_used) - _used))
		control -late
	done
}

insmod /lt/only.ko
# The module's size is from /proc/modules, since its code may be in huge pages that modules share.
module=$(awk '$1 == "latency_tracker" { print int(($2 + 1023) / 1024) }' /proc/modules)
memory_of 64
echo "module: $module kB, an instance: $took kB"
[ $((module + took)) -le 1024 ] || fail "more than 1 MiB"
