# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Whichever allocation fails: who asked gets ENOMEM, nothing is left behind, and the next time all is well.
# The kernel fails the first allocation of a system call, then the second, and so on (/proc/self/fail-nth),
# until there are no more.
# kernels: debug
# cpus: 2
# root: full
# timeout: 120

. /lt/tests/lib.sh

[ -e /proc/self/fail-nth ] || skip "the kernel has no fault injection"
for kind in failslab fail_page_alloc; do
	# all allocations, also those that could wait for memory and those of whole pages; only by fail-nth
	for setting in ignore-gfp-wait=N verbose=0 probability=0; do
		echo "${setting#*=}" >/sys/kernel/debug/$kind/"${setting%%=*}"
	done
done
echo N >/sys/kernel/debug/fail_page_alloc/ignore-gfp-highmem
echo 0 >/sys/kernel/debug/fail_page_alloc/min-order
load_module
exec python3 /lt/tests/faults.py
