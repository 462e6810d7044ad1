# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Whichever allocation fails, the caller gets ENOMEM, nothing is left behind, and the next call
# succeeds. lt_faults.ko makes the first allocation of a system call fail, then the second, and so
# on, until there are no more. In a second pass, the next seven allocations fail, too, so that no
# fallback succeeds.
# kernels: debug
# cpus: 2
# root: full
# timeout: 240

. /lt/tests/lib.sh

insmod /lt/lt_faults.ko || fail "lt_faults does not load"
load_module
exec python3 /lt/tests/faults.py
