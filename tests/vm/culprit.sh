# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker explain` never names a wrong culprit. Each delay is provoked, so its cause is
# known. tests/culprits.py lists the causes: locks, other waits for a thread, disks, limits, CPUs,
# interrupts and the network, and combinations of two. One recording, with the default events of
# `record`, has them all. The first sentence of each explanation must name the cause, or state that
# the cause is not recorded, even if a part of the trace is removed: some packets, or a class of
# events. `make bench B=truth` removes more. With the whole trace, at most one cause in five may be
# unknown. Known errors are listed in KNOWN_WRONG of tests/culprits.py until they are fixed.
# long: stock rt
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, lt_causes can send NMIs only on x86
# timeout: 1800
# worth: no other test has real traces of these causes on both kernels

. /lt/tests/lib.sh
. /lt/tests/block.sh

truth() { python3 -B /lt/tests/truth.py "$@"; }

load_module
ip link set lo up
null_disk slow 400000000
null_disk fast 0
null_disk throttled 60000000 hw_queue_depth=1
null_disk ext 100000000
null_disk cached 400000000 cache_size=1
modprobe ext4
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/ext
mkdir -p /tmp/ext
mount -t ext4 /dev/ext /tmp/ext
modprobe fuse
insmod /lt/lt_works.ko ms=1500
insmod /lt/lt_causes.ko us=400000

# The recorder's own alert comes last, after all others.
latency-tracker record -n 1 --subbuf-size 128K --num-subbuf 128 --no-explain -o /tmp/captures \
	last offcpu threshold=300ms comm=last >/tmp/record.log 2>&1 &
recorder=$!
wait_until 400 sh -c "grep -q '^armed' /tmp/record.log || ! kill -0 $recorder"
python3 -B /lt/tests/culprits.py /tmp/alerts /tmp/known ||
	{ cat /tmp/record.log; fail "not everything was provoked"; }
( cd /lt/tests && python3 -B -c 'import late, time; late.called("last"); time.sleep(0.5)' )
wait $recorder && status=0 || status=$?
cat /tmp/record.log
assert_eq "$status" 2 "the exit status of record"
capture=/tmp/captures/0001
if [ -n "${LT_KEEP:-}" ]; then
	# For scripts/bench, which removes parts itself.
	cp -r /tmp/alerts /tmp/known /lt/out/
	cp -r $capture /lt/out/capture
	exit
fi
truth judge /tmp/known /tmp/alerts $capture whole >/tmp/whole 2>/tmp/speed || fail "of the whole trace: $(cat /tmp/whole /tmp/speed)"
cat /tmp/whole /tmp/speed
grep -q ' events in .* a second$' /tmp/speed || fail "explain -v does not say how fast it was"
awk '{ n[$1]++ } END { exit n["right"] == 0 || 5 * n["unknown"] > NR }' /tmp/whole || fail "too much of the whole trace is unknown"
truth judge /tmp/known /tmp/alerts $capture lost-1 requests >/tmp/parts || fail "of a part: $(grep -E '(NOT KNOWN|NO LONGER WRONG)$' /tmp/parts)"
cat /tmp/whole /tmp/parts | truth table "$(uname -r)"
umount /tmp/ext
rmmod lt_works
rmmod lt_causes
unload_module
