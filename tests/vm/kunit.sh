# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The suites of lt_kunit.ko pass: the engine's computations and the control language give the same results when the
# kernel's build compiles them. Whichever of the engine's allocations fails, the engine stays consistent and can grow
# later.
# kernels: debug
# cpus: 4
# numa: 2
# timeout: 120

. /lt/tests/lib.sh

[ -e /lt/lt_kunit.ko ] || skip "the kernel is built without KUnit"
insmod /lt/lt_kunit.ko || fail "lt_kunit does not load"
results=/sys/kernel/debug/kunit
for suite in lt_hash lt_histogram lt_text lt_control lt_engine_faults; do
	assert "suite $suite" [ -e $results/$suite/results ]
	cat $results/$suite/results
	grep -q "^ok [0-9]* $suite" $results/$suite/results || fail "suite $suite did not pass"
	! grep -q 'not ok' $results/$suite/results || fail "a test of $suite failed"
done
rmmod lt_kunit
