# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Each structure that `make bench B=structures` compares works correctly. Every start has one end,
# on its own CPU, on another CPU, and while two CPUs race for it. Losses are counted. The pool is
# complete afterwards.
# kernels: rt
# long: stock
# cpus: 2
# arm64: no, it uses the time stamp counter of x86
# timeout: 120

. /lt/tests/lib.sh

insmod /lt/lt_structures.ko || { dmesg | grep lt_structures; fail "a structure does not do what it should"; }
dmesg | grep lt_structures
for id in A B C D E F G H I J K L N; do
	kernel_says "lt_structures: $id: ok: " || fail "$id was not checked"
done
rmmod lt_structures

# The measurements work on this machine, too, although its times mean nothing.
insmod /lt/lt_structures.ko what=3 calls=2 live=100
assert_eq "$(dmesg | grep -c 'lt_structures: result lost_[A-N] 2 ')" 13 "structures whose losses were counted"
for id in A C E G L N; do
	kernel_says "lt_structures: result lost_$id 2 0 400" || fail "$id loses events"
done
rmmod lt_structures

# The measurements also work with more events than one reading of the counter covers, and with one event.
for live in 1 2500; do
	insmod /lt/lt_structures.ko what=2 "live=$live" || { dmesg | grep lt_structures; fail "$live live events end with a loss"; }
	for way in batch across; do
		assert_eq "$(dmesg | grep -c "lt_structures: result ${way}_[A-N] $live [1-9][0-9]* $live\$")" 13 \
			"structures whose $way of $live was counted"
	done
	rmmod lt_structures
done
