# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# How much memory the module and an instance of each tracker take, as the kernel's free memory shows it: with the default
# pool, and with a small pool, with which each must fit in 256 kB. Removing the instances frees all of it.
# kernels: stock
# long: rt
# cpus: 2
# alone: it measures the free memory of the whole machine
# arm64: yes
# debug: no, that kernel allocates more
# timeout: 180

. /lt/tests/lib.sh

SMALL='events=64 max_events=64 ring=64'
TRACKERS='accept block func irq lock net offcpu pair reclaim runqueue softirq syscall tree wakeup workqueue io'
EACH=16

# used: memory that is not free, kB, once caches are dropped and the lists and counters of all CPUs are drained.
used() {
	sleep 1
	for _ in 1 2; do echo 3 >/proc/sys/vm/drop_caches; done
	echo 1 >/proc/sys/vm/compact_memory
	echo 1 >/proc/sys/vm/stat_refresh
	awk '/^MemTotal/ { total = $2 } /^MemFree/ { free = $2 } END { print total - free }' /proc/meminfo
}
# takes TRACKER WORD...: kB for each of $EACH instances.
takes() {
	_tracker=$1 _i=0
	shift
	case $_tracker in
		func) set -- "$@" function=lt_fn_delay ;;
		pair) set -- "$@" begin=tracepoint:block_rq_issue end=tracepoint:block_rq_complete begin_key=arg0 ;;
	esac
	_before=$(used)
	while [ $_i -lt $EACH ]; do
		control "i$_i $_tracker enabled=0 $*"
		_i=$((_i + 1))
	done
	_after=$(used)
	while [ $_i -gt 0 ]; do
		_i=$((_i - 1))
		control "-i$_i"
	done
	echo $(((_after - _before + EACH / 2) / EACH))
}

insmod /lt/lt_functions.ko
# The first instance of each tracker fills slabs and tables that stay.
load_module
for tracker in $TRACKERS; do takes $tracker >/dev/null; done
unload_module
before=$(used)
load_module
module=$(($(used) - before))
awk '$1 == "latency_tracker" { print "module: text and data", $2 / 1024, "kB" }' /proc/modules
echo "module: $module kB"
for tracker in $TRACKERS; do
	usual=$(takes $tracker)
	# io has no pool, but histograms of each class.
	[ $tracker != io ] || { echo "io: $usual kB"; continue; }
	small=$(takes $tracker $SMALL)
	echo "$tracker: $usual kB, $SMALL: $small kB"
	[ "$small" -le 256 ] || fail "a small $tracker takes $small kB"
done
unload_module
left=$(($(used) - before))
[ "$left" -lt 256 ] || fail "$left kB are left after unloading"
