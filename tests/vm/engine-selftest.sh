# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The engine on a real kernel: ten million pairs of two CPUs through a pool of 64 events, none lost; one
# winner for each end; a pool of one; a full pool returns an error.
# kernels: stock rt
# cpus: 2
# arm64: yes
# timeout: 400
# worth: a cell that is lost once in ten million pairs is found

. /lt/tests/lib.sh

insmod /lt/lt_selftest.ko pairs="$(many 10000000 400000)" || { dmesg | grep lt_selftest; fail "a test of the engine failed"; }
dmesg | grep lt_selftest
assert_eq "$(dmesg | grep -c 'lt_selftest: .*: ok')" 15 "tests that passed"
rmmod lt_selftest
