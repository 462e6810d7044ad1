# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Real NMIs, hard interrupts and softirqs enter the engine while the same CPU is in the middle of an
# operation on the same bucket and free list. Nothing is lost, every counter matches the results of
# the operations, and the pool is complete.
# kernels: stock rt
# cpus: 2
# arm64: no, lt_contexts can send NMIs only on x86
# timeout: 400
# worth: the only test with real NMIs in the middle of the engine

. /lt/tests/lib.sh

insmod /lt/lt_contexts.ko || { dmesg | grep lt_contexts; fail "a test of the engine failed"; }
dmesg | grep lt_contexts
assert_eq "$(dmesg | grep -c 'lt_contexts: .*: ok')" 3 "tests that passed"
rmmod lt_contexts
