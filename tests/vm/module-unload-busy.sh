# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Under full load, with readers asleep and files open, instances and the module are removed
# cleanly.
# kernels: stock
# long: rt
# long-part: 15 rounds instead of 6
# cpus: 2
# arm64: yes
# timeout: 360

. /lt/tests/lib.sh
. /lt/tests/block.sh

null_disk fast 10000
null_disk slow 3000000
touch /tmp/run
load() { while [ -e /tmp/run ]; do reads "$1" 500; writes "$1" 500; done; }
load fast & l1=$!
load slow & l2=$!
load fast & l3=$!

rounds=6
[ "${LT_LONG:-}" != 1 ] || rounds=15
for round in $(seq $rounds); do
	load_module
	control 'all block threshold=1ms'
	control 'insert block from=insert threshold=20us wakeup_interval=0'
	control 'small block events=1 max_events=1 threshold=1us ring=2'
	readers=''
	for file in alerts wakeup all/alerts insert/alerts small/wakeup; do
		cat $LT/$file >/dev/null 2>&1 & readers="$readers $!"
	done
	exec 7<$LT/all/stats 8<$LT/insert/alerts
	(while [ -e $LT/control ]; do cat $LT/all/pending $LT/all/histogram $LT/control; done >/dev/null 2>&1) &
	prober=$!
	(
		i=0
		while [ -e $LT/control ]; do
			i=$((i + 1))
			{ echo $((i % 2)) >$LT/insert/enabled; } 2>/dev/null
			{ control "extra$((i % 3)) block threshold=1ms"; } 2>/dev/null
			{ control "-extra$(((i + 1) % 3))"; } 2>/dev/null
		done
	) 2>/dev/null &
	changer=$!
	sleep 0.4
	wait_until 20 stat_is all started -gt 0
	# more than one was in flight, so the pool of one was full
	wait_until 20 stat_is small full -gt 0
	# The module may be in use by processes that create instances. Then rmmod fails and the module
	# stays.
	until rmmod latency_tracker 2>/dev/null; do sleep 0.05; done
	exec 7<&- 8<&-
	# shellcheck disable=SC2086 # a list
	wait $readers $prober $changer || :
	[ ! -e $LT ] || fail "round $round: $LT is still there"
done
rm /tmp/run
wait $l1 $l2 $l3
# The disks still work.
reads slow 1
