# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The alerts match the handlers and softirqs that ran, one by one: ftrace records them at the same
# time, and lt-witness pairs the events of ftrace. The load is fio on a disk with interrupts and on
# one with timers, tasks that sleep and wake each other, and a shared line.
#
# The threshold is 0, so every run is an alert. No reader runs meanwhile. The machine's clock counts instructions, so
# other load on the host does not matter.
# kernels: rt
# long: stock
# cpus: 2
# root: full
# icount: 1
# debug: no, sanitizers add more time between two probes than the comparison allows
# arm64: yes
# timeout: 200

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/sched.sh
. /lt/tests/witness.sh

load_module
tracing 20000 irq
null_disk nullb0 500000

load() {
	fio --readonly --rw=randread --bs=4k --direct=1 --ioengine=libaio --iodepth=4 --size=4m --number_ios="$1" \
		--name=real --filename=/dev/vda --name=timer --filename=/dev/nullb0 >/tmp/fio &
	_fio=$!
	waits crowd 2 "$2"
	insmod /lt/lt_irqs.ko times=3 us=2000
	rmmod lt_irqs
	wait $_fio || fail "fio: $(cat /tmp/fio)"
}
# Warm up: the first run of anything is slow under emulation.
load 20 5

for tracker in irq softirq; do
	both $tracker 'threshold=0 ring=65536 events=256' load 400 30
	exact $tracker --rule $tracker --threshold 0 --usual 500us --most 5ms --expect-at-least 100
	sed 's/.* \(irq\|name\)=\([^ ]*\) .*/\1 \2/' /tmp/alerts | sort | uniq -c
	none $tracker full unmatched negative alerts_lost gone replaced
	control -w
done
unload_module
