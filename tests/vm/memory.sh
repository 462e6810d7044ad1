# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The memory of the module and of an instance of each tracker, according to the counters of the kernel's allocators.
# Instances have the default pool, or a pool for small machines. An instance with the small pool must fit in 256 kB,
# and grows with events= by at most 256 bytes per event. Removing all instances and the module frees all memory. The
# table of the guide, which scripts/memory-table makes from the lines printed here, is not out of date.
# long: stock rt
# cpus: 2
# alone: it measures the free memory of the whole machine
# arm64: yes
# debug: no, that kernel allocates more
# timeout: 180

. /lt/tests/lib.sh

SMALL='events=64 max_events=64 ring=64'
EACH=16

# takes TRACKER WORD...: print the kB for each of $EACH instances.
takes() {
	_tracker=$1 _i=0
	shift
	case $_tracker in
		func) set -- "$@" function=lt_fn_delay ;;
		pair) set -- "$@" begin=tracepoint:block_rq_issue end=tracepoint:block_rq_complete begin_key=arg0 ;;
	esac
	_before=$(memory_used)
	while [ $_i -lt $EACH ]; do
		control "i$_i $_tracker enabled=0 $*"
		_i=$((_i + 1))
	done
	_after=$(memory_used)
	while [ $_i -gt 0 ]; do
		_i=$((_i - 1))
		control "-i$_i"
	done
	echo $(((_after - _before + EACH / 2) / EACH))
}

# outdated: print the trackers whose figures in the guide differ from those in /tmp/measured by more than a quarter
# plus 8 kB.
outdated() {
	sed -n '/^<!-- memory -->$/,/^<!-- end -->$/p' /lt/Documentation/guide/embedded.md | awk -F '[| ]+' '
		function far(said, is) { return said - is > 8 + is / 4 || is - said > 8 + is / 4 }
		!measured { usual[$2] = $3; small[$2] = $5; next }
		far(usual[$1], $2) || far(small[$1], $3) { print $1 }' - measured=1 /tmp/measured
}

insmod /lt/lt_functions.ko
# The first instance of each tracker fills slabs and tables that stay.
load_module
# `module` is for other modules.
TRACKERS=$(sed -n 's/^\([a-z]*\): .*/\1/p' $LT/trackers | grep -vx module | sort)
for tracker in $TRACKERS; do takes $tracker >/dev/null; done
unload_module
before=$(memory_used)
load_module
module=$(($(memory_used) - before))
echo "kernel: $(uname -r)"
awk '$1 == "latency_tracker" { print "module: text and data", $2 / 1024, "kB" }' /proc/modules
echo "module: $module kB"
for tracker in $TRACKERS; do
	usual=$(takes $tracker)
	small=$(takes $tracker $SMALL)
	echo "$tracker: $usual kB, $SMALL: $small kB"
	echo "$tracker $usual $small" >>/tmp/measured
	[ "$small" -le 256 ] || fail "a small $tracker takes $small kB"
done
for events in 64 256 1024 4096; do
	kb=$(takes wakeup events=$events max_events=$events ring=64)
	echo "wakeup, events=$events: $kb kB"
	# An event takes a cell, an entry in the table and a copy for readers. The other memory has a fixed size.
	[ "$kb" -le $((48 + events / 4)) ] || fail "a wakeup of $events events takes $kb kB"
done
unload_module
# The kernel's own caches keep a small part of the 300 MB or more that were allocated.
left=$(($(memory_used) - before))
[ $left -lt 1024 ] || fail "$left kB are left after unloading"
# The figures of the guide are for the stock kernel of x86-64.
case $(uname -r) in
	*-rt-* | *-arm64) ;;
	*) [ -z "$(outdated)" ] || fail "the guide is out of date for $(outdated | xargs); run scripts/memory-table" ;;
esac
