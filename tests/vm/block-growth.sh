# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A pool that runs low grows, up to its limit. Requests that a burst loses before the growth are
# counted, and none is lost afterwards. A CPU that goes offline keeps no cells.
# kernels: rt
# long: stock
# cpus: 2
# arm64: yes
# timeout: 180

. /lt/tests/lib.sh
. /lt/tests/block.sh

REQUESTS=768

# burst INSTANCE...: submit REQUESTS requests of 4 KiB at the same time, and wait until none is in flight.
burst() {
	_pids=''
	for _i in 0 1 2 3 4 5; do
		dd if=/dev/deep of=/dev/null bs=512k count=1 skip="$_i" iflag=direct 2>/dev/null &
		_pids="$_pids $!"
	done
	# shellcheck disable=SC2086 # a list
	wait $_pids
	for _name in "$@"; do wait_until 20 quiet "$_name"; done
}

load_module
null_disk deep 3000000000 hw_queue_depth=1024 submit_queues=1
echo 4 >/sys/block/deep/queue/max_sectors_kb
control 'deep block dev=deep threshold=1000s events=8 max_events=2000'
control 'little block dev=deep threshold=1000s events=8 max_events=20'
control 'fixed block dev=deep threshold=1000s events=8 max_events=8'
assert_eq "$(stat deep capacity) $(stat deep max_capacity) $(stat deep grown)" "8 2000 0" "capacity, max_capacity, grown"

# Each burst that loses requests makes the pool grow, until a burst loses none.
rounds=0
lost=0
until burst deep little fixed; [ "$(stat deep full)" -eq "$lost" ]; do
	lost=$(stat deep full)
	rounds=$((rounds + 1))
	[ $rounds -lt 12 ] || fail "it still loses: $(cat $LT/deep/stats)"
done
cat $LT/deep/stats
assert "it has grown" [ "$(stat deep grown)" -ge 6 ]
assert "it is large enough" [ "$(stat deep capacity)" -ge $REQUESTS ]
assert "it is not too large" [ "$(stat deep capacity)" -le 2000 ]
assert_eq "$(stat deep grow_failed)" 0 "grow_failed"
assert_eq "$(stat little capacity) $(stat little grown)" "20 2" "capacity at the limit, grown"
assert_eq "$(stat fixed capacity) $(stat fixed grown)" "8 0" "capacity without growth, grown"
assert "the smallest lost most" [ "$(stat fixed full)" -gt "$(stat little full)" ]
for name in deep little fixed; do
	sums_hold $name
	assert_eq "$(stat $name free)" "$(stat $name capacity)" "free of $name when nothing is pending"
	assert_eq "$(stat $name attempts)" $(((rounds + 1) * REQUESTS)) "attempts of $name"
done

# With one CPU offline.
online 1 0
assert_eq "$(stat deep free)" "$(stat deep capacity)" "free without CPU 1"
burst deep little fixed
assert_eq "$(stat deep full)" "$lost" "lost without CPU 1"
online 1 1
burst deep little fixed
assert_eq "$(stat deep full)" "$lost" "lost with CPU 1 again"
for name in deep little fixed; do sums_hold $name; done

# The instance is disabled and enabled while its pool grows, and then removed.
for round in 1 2; do
	control "deep$round block dev=deep threshold=1000s events=1 max_events=1000"
	burst deep &
	sleep 0.2
	echo 0 >$LT/deep$round/enabled
	echo 1 >$LT/deep$round/enabled
	wait $!
	burst "deep$round"
	sums_hold "deep$round"
	control "-deep$round"
done
unload_module
