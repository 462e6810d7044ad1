# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# chains.sh: measures the cost that following each wake chain from an interrupt or a timer to a task adds to loads, inside
# the virtual machine; scripts/bench runs it.
#
# usage: chains.sh ROUNDS
#
# In each round the contenders take turns with each load: no tracer, our `tree`, and the BPF
# programs of chain.bpf.c. Nothing is late. The loads are hackbench, iperf3 between two network
# namespaces, and fio on a disk whose requests a timer completes. The machine has one processor,
# whose clock counts instructions, and soak takes all idle time. The cost of a load is therefore the
# time that soak does not get, however long the load waits in between. fio makes ten thousand
# requests, so a tracer adds many times the variation of fio's start-up. The server of iperf3 has a
# real-time priority. Otherwise the scheduler would decide whether it preempts its client, which
# changes a whole run as much as a tracer does.
#
# Prints `result LOAD_NAME 0 MEDIAN 1000000` in instructions, and how many wake chains each contender has
# measured and lost in all runs: `result paths_LOAD_NAME 0 NUMBER ROUNDS` and `result lost_LOAD_NAME
# 0 NUMBER 1`. `result ours_to_bpf_LOAD 0 MEDIAN 1` is what our tracker adds to a load divided by
# what BPF adds, both compared with the run of the same round without a tracer. From 6 rounds on,
# the same name with `from_` and `to_` is the interval in which the median lies with 95 %
# confidence. The lines `time` are the single runs.

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/net.sh
rounds=$1

# busy: instructions of all tasks except soak, whose loop takes three per round.
busy() {
	_now=$(awk '/^now at/ { now = $3 } END { print now }' /proc/timer_list)
	echo $((_now - 3 * $(od -An -tu8 /dev/shm/soak)))
}

# At a real-time priority, hackbench makes the same number of task switches with each contender.
hackbench_load() { chrt --fifo 1 hackbench --process --groups 2 --fds 4 --loops 3000 >/dev/null; }
iperf3_load() { iperf3 --client 10.9.0.2 --udp --length 1400 --bitrate 20M --time 2 >/dev/null; }
fio_load() {
	fio --readonly --rw=randread --bs=4k --direct=1 --ioengine=libaio --iodepth=1 --size=4m --io_size=40m \
		--name=timer --filename=/dev/nullb0 >/dev/null
}

# run LOAD NAME: run one load, and print its cost.
run() {
	before=$(busy)
	"$1_load"
	echo "time $1_$2 $(($(busy) - before))" | tee -a /tmp/runs
}

# compare LOAD: print the median of the ratios of its rounds, and its 95 % confidence interval: from the k-th smallest
# to the k-th greatest of n ratios. Each ratio is above the true median with a probability of one half, like a coin
# that shows heads. So k is the greatest number for which n coins show fewer than k heads, or fewer than k tails, with
# a probability of at most 0.05.
compare() {
	awk -v load="$1" '
		$1 == "time" && split($2, name, "_") && name[1] == load { took[name[2], ++runs[name[2]]] = $3 }
		END {
			n = runs["none"]
			for (round = 1; round <= n; round++) {
				alone = took["none", round]
				ratio = (took["ours", round] - alone) / (took["bpf", round] - alone)
				for (at = round; at > 1 && sorted[at - 1] > ratio; at--)
					sorted[at] = sorted[at - 1]
				sorted[at] = ratio
			}
			all = ways = 1
			for (coin = 0; coin < n; coin++)
				all *= 2
			for (k = 0; 2 * (less + ways) / all <= 0.05; ways *= (n - k + 1) / k) {
				less += ways
				k++
			}
			k = k ? k : 1
			print "result ours_to_bpf_" load " 0 " sorted[int((n + 1) / 2)] " 1"
			print "result from_ours_to_bpf_" load " 0 " sorted[k] " 1"
			print "result to_ours_to_bpf_" load " 0 " sorted[n + 1 - k] " 1"
		}' /tmp/runs
}

none() { run "$1" none; }

ours() {
	control 't tree threshold=3600s'
	run "$1" ours
	control 't tree enabled=0'
	echo "count $1_ours $(stat t ended) $(stat t full)" >>/tmp/runs
	control -t
}

bpf() {
	rm -f /tmp/in /tmp/out
	mkfifo /tmp/in
	/lt/bench-sched /lt/chain.bpf.o </tmp/in >/tmp/out &
	exec 3>/tmp/in
	until grep -q ready /tmp/out; do
		kill -0 $! || exit 1
		sleep 0.1
	done
	run "$1" bpf
	exec 3>&-
	wait $!
	echo "count $1_bpf $(sed -n 's/delays //p' /tmp/out) $(sed -n 's/lost //p' /tmp/out)" >>/tmp/runs
}

echo 4608 >/proc/sys/net/core/wmem_default
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
load_module
null_disk nullb0 20000
between_namespaces
/lt/soak /dev/shm/soak &
soak=$!
# The server preempts its client.
ip netns exec inner chrt --fifo 1 iperf3 --server >/dev/null &
server=$!
sleep 1
for load in hackbench iperf3 fio; do
	# Warm up: the first run of anything is slow.
	run $load warm
	run $load warm
	round=0
	while [ $round -lt "$rounds" ]; do
		none $load
		ours $load
		bpf $load
		round=$((round + 1))
	done
	compare $load
	for name in none ours bpf; do
		echo "result ${load}_$name 0 $(awk -v name=${load}_$name '$1 == "time" && $2 == name { print $3 }' /tmp/runs |
			sort -n | awk '{ time[NR] = $1 } END { print time[int((NR + 1) / 2)] }') 1000000"
		[ $name = none ] || awk -v name=${load}_$name -v rounds="$rounds" '
			$1 == "count" && $2 == name { paths += $3; lost += $4 }
			END { print "result paths_" name " 0 " paths " " rounds; print "result lost_" name " 0 " lost " 1" }' /tmp/runs
	done
done
kill $server $soak
echo complete
