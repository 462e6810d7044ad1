# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The parameter `measure` of the module: each run of a probe is a sample, or discarded, and the
# number of runs that started or ended an event equals the counters of the instance. The invariants
# of the distributions hold. A machine without hardware counters reports that, but counts the
# cycles. A run that an NMI interrupts is discarded. An unknown counter is refused. Without the
# parameter, the file does not exist.
# kernels: stock
# long: rt
# cpus: 2
# arm64: no, lt_causes can send NMIs only on x86
# timeout: 300

. /lt/tests/lib.sh

COMMAND=/lt/bin/latency-tracker
M=$LT/measure
# runs TRACKER HOOK KIND: print the number of measured and discarded runs of one probe.
runs() {
	awk -v tracker="$1" -v hook="$2" -v kind="$3" '
		$1 == "probe" && $2 == tracker && $3 == hook && $4 == kind {
			sub("samples=", "", $5); sub("discarded=", "", $6); print $5 + $6; found = 1
		}
		END { if (!found) print "none" }' $M
}
# discarded TRACKER: print the number of discarded runs of all its probes.
discarded() { awk -v tracker="$1" '$1 == "probe" && $2 == tracker { sub("discarded=", "", $6); n += $6 } END { print n + 0 }' $M; }
is_discarded() { [ "$(discarded "$1")" -gt 0 ]; }
# load: cause softirqs of timers and RCU, and calls of vfs_read.
load() { for _ in 1 2 3 4 5 6 7 8; do dd if=/dev/zero of=/dev/null bs=512 count=200 2>/dev/null; sleep 0.02; done; }

# The module without the parameter.
load_module
[ ! -e $M ] || fail "without the parameter there is a file"
if $COMMAND measure 2>/tmp/said; then fail "the command shows something without the parameter"; fi
grep -q 'does not measure' /tmp/said || fail "the command says: $(cat /tmp/said)"
unload_module

# Unknown counters; the log names them.
for words in cycle 'cycles,' instructions,bogus 'cycles;x' ','; do
	refused "measure=$words" insmod /lt/latency_tracker.ko "measure=$words"
	kernel_says "measure: no counter '" || fail "the log does not say what is wrong with $words"
done
kernel_says "no counter 'bogus'; expected some of cycles,cpu-cycles,instructions," || fail "the log: $(dmesg | tail -n 3)"
! loaded || fail "it is loaded nevertheless"

load_module measure=instructions,branch-misses
control 'soft softirq threshold=3600s'
control 'read func function=vfs_read threshold=3600s'
control 'both pair begin=tracepoint:softirq_entry end=tracepoint:softirq_exit begin_key=cpu,arg0:32 threshold=3600s'
load
for name in soft read both; do echo 0 >$LT/$name/enabled; done
cat $M

# The emulator has no such counters: the reason is printed, and the cycles are counted.
grep -q '^counter cycles counted cpus=' $M || fail "cycles are not counted"
for counter in instructions branch-misses; do
	grep -qE "^counter $counter (missing why=absent|counted cpus=2)$" $M || fail "$counter: $(grep '^counter' $M)"
done
assert_eq "$(grep '^unmeasured' $M)" 'unmeasured 0' "probes that are not measured"

# Each run is counted, separately if an event started or ended in it.
assert_eq "$(runs empty - none)" 1000 "runs of the probe that does nothing"
for is in "soft softirq softirq_entry softirq_exit" "read func vfs_read vfs_read:return" "both pair softirq_entry softirq_exit"; do
	# shellcheck disable=SC2086 # words
	set -- $is
	[ "$(stat "$1" started)" -gt 0 ] || fail "$1 has seen nothing"
	assert_eq "$(runs "$2" "$3" transition)" "$(stat "$1" started)" "runs of $3 in which an event began"
	assert_eq "$(runs "$2" "$4" transition)" "$(stat "$1" ended)" "runs of $4 in which one ended"
done
assert_eq "$(runs softirq softirq_entry none)" 0 "runs of softirq_entry without an event"

# The numbers of each distribution are consistent.
awk '
	function bad(why) { print "line " NR ": " why ": " $0; failed = 1 }
	function ends() { if (probe != "" && in_buckets != cycles) bad(probe " has " cycles " samples, and in buckets " in_buckets) }
	{ split("", v); for (i = 3; i <= NF; i++) if (split($i, pair, "=") == 2) v[pair[1]] = pair[2] + 0 }
	$1 == "probe" { ends(); probe = $2 " " $3 " " $4; samples = v["samples"]; cycles = 0; in_buckets = 0; last = -1; n++ }
	$1 == "value" {
		if ($2 == "cycles") {
			cycles = v["count"]
			if (cycles != samples) bad("samples: " samples)
		}
		if (v["count"] > samples) bad("more than samples")
		if (v["count"] > 0) {
			if (!(v["min"] <= v["p50"] && v["p50"] <= v["p99"] && v["p99"] <= v["max"])) bad("order")
			if (!(v["min"] <= v["mean"] && v["mean"] <= v["max"])) bad("mean")
			if (!(v["mean"] * v["count"] <= v["sum"] && v["sum"] < (v["mean"] + 1) * v["count"])) bad("sum")
		}
	}
	$1 == "bucket" { if ($2 <= last || $2 >= $3 || $4 == 0) bad("bucket"); last = $2; in_buckets += $4 }
	END { ends(); if (n < 13) { print n " probes"; failed = 1 } exit failed }
' $M || fail "see above"
$COMMAND measure >/tmp/said || fail "the command fails"
grep 'softirq, softirq_entry: .* runs in which an event began or ended' /tmp/said || fail "the command says: $(cat /tmp/said)"
$COMMAND measure --json | grep -q '"hook":"softirq_exit"' || fail "no JSON"

# The functions that measure cannot be traced, since a probe on them would be part of what they measure.
grep -qw lt_measure_begin /proc/kallsyms || fail "there is no lt_measure_begin"
grep -F '[latency_tracker]' /sys/kernel/tracing/available_filter_functions >/tmp/traceable
for name in lt_measure_begin lt_measure_end lt_irq_save lt_irq_restore; do
	refused "$name can be traced" grep -q "^$name \[latency_tracker\]$" /tmp/traceable
done

# Attaching to a tracepoint again continues its counts, even after a CPU has gone offline and come
# back.
before=$(runs softirq softirq_entry transition)
control 'soft softirq enabled=1'
online 1 0
online 1 1
load
echo 0 >$LT/soft/enabled
[ "$(runs softirq softirq_entry transition)" -gt "$before" ] || fail "after a CPU was off nothing is measured"
assert_eq "$(runs softirq softirq_entry transition)" "$(stat soft started)" "runs in which an event began, again"

# Every tracker but `module` is measured (func and pair: see above), and three that this load
# exercises still work.
for tracker in $(sed -n 's/^\([a-z]*\): .*/\1/p' $LT/trackers); do
	case $tracker in
	module|func|pair) ;;
	*)
		control "i_$tracker $tracker threshold=3600s"
		grep -q "^probe $tracker " $M || fail "$tracker is not measured"
		;;
	esac
done
load
for tracker in wakeup offcpu syscall; do
	[ "$(stat i_$tracker ended)" -gt 0 ] || fail "$tracker has seen nothing"
done
assert_eq "$(grep '^unmeasured' $M)" 'unmeasured 0' "probes that are not measured, of all trackers"

# NMIs hit some of the runs.
insmod /lt/lt_causes.ko us=0
control 'read func enabled=1'
(while :; do dd if=/dev/zero of=/dev/null bs=512 count=5000 2>/dev/null; done) &
busy=$!
# An NMI is sent to another CPU, and not before the previous one has arrived.
(while :; do echo nmi >/sys/module/lt_causes/parameters/run || :; done 2>/dev/null) &
nmis=$!
wait_until 120 is_discarded func
kill $busy $nmis
wait $busy $nmis 2>/dev/null || true
echo 0 >$LT/read/enabled
assert_eq "$(runs func vfs_read transition)" "$(stat read started)" "runs in which a call began, with NMIs"
rmmod lt_causes
unload_module
[ ! -e $LT ] || fail "something is left"
