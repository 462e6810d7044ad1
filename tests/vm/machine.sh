# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The virtual machine has the processors, the nodes and the block devices that tests request.
# kernels: stock
# long: rt
# cpus: 4
# numa: 2
# arm64: yes
# timeout: 60

. /lt/tests/lib.sh

assert_eq "$(grep -c '^processor' /proc/cpuinfo)" 4 processors
assert_eq "$(cat /sys/devices/system/node/online)" 0-1 nodes
assert_eq "$(cat /sys/devices/system/node/node1/cpulist)" 2-3 "processors of node 1"
modprobe null_blk nr_devices=1 completion_nsec=2000000 irqmode=2
assert "null_blk" [ -b /dev/nullb0 ]
dd if=/dev/nullb0 of=/dev/null bs=4k count=4 iflag=direct
