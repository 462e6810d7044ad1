# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The engine on four CPUs in two nodes: cells move between the nodes and return to their own node,
# and none is lost. No litmus test on two or four CPUs has an outcome that its memory orderings
# forbid, and none is skipped.
# kernels: stock
# cpus: 4
# numa: 2
# arm64: yes
# timeout: 240

. /lt/tests/lib.sh

assert_eq "$(cat /sys/devices/system/node/online)" 0-1 nodes
insmod /lt/lt_selftest.ko pairs="$(many 200000 40000)" || { dmesg | grep lt_selftest; fail "a test of the engine failed"; }
dmesg | grep lt_selftest
assert_eq "$(dmesg | grep -c 'lt_selftest: [A-Z]* ordered: .* rounds, 0 weak')" 4 "litmus tests that ran"
rmmod lt_selftest
