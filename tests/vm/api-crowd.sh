# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# No call of the interface keeps preemption off for more than 1 ms, however many events of one key are live: neither a
# start of that key or of another key, nor an end, nor the end of all events. The test tries 8,000 events, 200,000, and
# 300 each time that the capacity of a growing pool doubles.
#
# The test of lt_api measures each call with interrupts off and prints the longest of each kind. The machine's clock
# counts executed instructions, 1 ns each.
# kernels: stock rt
# cpus: 1
# root: full
# icount: 0
# timeout: 240
# debug: no, it measures in instructions, which that machine does not count

. /lt/tests/lib.sh

LIMIT=1000000
load_module
insmod /lt/lt_api.ko only=a_crowd_is_bounded || { dmesg | grep lt_api; fail "the test of the interface failed"; }
dmesg | grep 'lt_api: .* of one key: ' >/tmp/times
rmmod lt_api
cat /tmp/times
assert_eq "$(sed -E 's/.*lt_api: ([0-9]+) of.*/\1/' /tmp/times | tr '\n' ' ')" "8000 8000 200000 6300 6300 " "how many of one key"
for kind in in 'another key' out all; do
	longest=$(sed -E "s/.*[:,] $kind ([0-9]+).*/\\1/" /tmp/times | sort -n | tail -n 1)
	[ "$longest" -gt 0 ] || fail "$kind: no time"
	[ "$longest" -le $LIMIT ] || fail "$kind: $longest instructions with interrupts off, at most $LIMIT promised"
done
