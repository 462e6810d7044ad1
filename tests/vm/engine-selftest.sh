# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The engine on a real kernel. Two CPUs run ten million pairs of start and end through a pool of 64
# events, and none is lost. Each event is ended exactly once. A pool of one event works. A full pool
# returns an error. No litmus test on two CPUs has an outcome that its memory orderings forbid. The
# operations on atomic words and per-CPU values are exact.
# kernels: stock rt
# cpus: 2
# arm64: yes
# timeout: 400
# worth: it finds a cell that is lost once in ten million pairs

. /lt/tests/lib.sh

insmod /lt/lt_selftest.ko pairs="$(many 10000000 400000)" || { dmesg | grep lt_selftest; fail "a test of the engine failed"; }
dmesg | grep lt_selftest
assert_eq "$(dmesg | grep -c 'lt_selftest: .*: ok')" 19 "tests that passed"
rmmod lt_selftest
