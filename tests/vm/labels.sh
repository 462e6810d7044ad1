# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# With by=, each value of a field has exactly the delays of its operations. The first values that occur get rows of
# their own, and all further values share the row `other`. The rows add up exactly to the histogram. Every field that a
# tracker lists for by= can be used; other words are refused, and the error lists the fields.
# kernels: stock
# long: rt
# cpus: 2
# timeout: 150

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/labels.sh

load_module

# program NAME: make a program of this name that calls chdir(2) exactly as many times as its argument requests.
program() {
	printf '#!/bin/sh\nn=$1\nwhile [ $n -gt 0 ]; do cd /; n=$((n - 1)); done\n' >"/tmp/$1"
	chmod +x "/tmp/$1"
}

# By the name of the task: four rows for five programs.
for name in alpha beta gamma delta epsilon; do program $name; done
control 's syscall calls=chdir by=comm max_labels=4 threshold=10s'
control 'p syscall calls=chdir threshold=10s'
awk '/^other/' $LT/s/labels | grep -qx 'other count=0 sum=0 min=0 max=0 buckets=' || fail "not empty at first"
n=10
for name in alpha beta gamma delta epsilon; do /tmp/$name $n; n=$((n + 10)); done
/tmp/epsilon 7
/tmp/alpha 5
cat $LT/s/labels
assert_eq "$(count s 'comm="alpha"') $(count s 'comm="beta"') $(count s 'comm="gamma"') $(count s 'comm="delta"')" "15 20 30 40" "counts"
assert_eq "$(count s other) $(count s 'comm="epsilon"')" "57 0" "the fifth label"
head -n 1 $LT/s/labels | grep -q '^by=comm labels=4 max_labels=4 full=1 memory=[0-9]*$' || fail "the head"
whole s
assert_eq "$(stat p ended)" "$(stat s ended)" "an instance without labels"

# A reset shows the delays since the previous reset, and the module goes on counting.
period() { latency-tracker hist s --json "$@" | sed -E 's/^.*"instance":"s"(,"interval":[0-9]+)?,"count":([0-9]+),.*/\2/'; }
assert_eq "$(period --reset)" 162 "delays up to the first reset"
/tmp/beta 4
assert_eq "$(period --since-reset) $(period --reset) $(period --reset)" "4 4 0" "delays since then"
latency-tracker hist s --by --since-reset >/tmp/period
! grep -q alpha /tmp/period || fail "$(cat /tmp/period)"
assert_eq "$(period)" 166 "delays of the instance"

# Without by=, an instance shows no labels; with it, its line in `control`, written back, creates the same instance.
[ ! -e $LT/p/labels ] && [ ! -e $LT/p/by ] || fail "files of labels without by="
! grep '^p ' $LT/control | grep -q 'by=\|max_labels=' || fail "by= without by="
line=$(grep '^s ' $LT/control)
case $line in *' by=comm max_labels=4') ;; *) fail "the line: $line" ;; esac
assert_eq "$(cat $LT/s/by $LT/s/max_labels | tr '\n' ' ')" "comm 4 " "the files"
control "$line"
created=$(cat $LT/s/created)
control "-s"
control "$line"
[ "$(cat $LT/s/created)" -gt "$created" ] || fail "the time of the creation: $created, then $(cat $LT/s/created)"
assert_eq "$(grep '^s ' $LT/control)" "$line" "the line, written back"
assert_eq "$(sed -n 1p $LT/s/labels | cut -d' ' -f1-4)" "by=comm labels=0 max_labels=4 full=0" "a new instance"

# A change of the instance keeps the rows.
/tmp/alpha 10
control 's syscall enabled=0 threshold=1s'
/tmp/alpha 10
control 's syscall enabled=1'
/tmp/alpha 3
assert_eq "$(count s 'comm="alpha"')" 13 "while it was on"
assert_eq "$(period --reset 2>/tmp/err)" 13 "delays of the new instance"
grep -q 's was started after its last reset' /tmp/err || fail "$(cat /tmp/err)"

# Each late operation is in its row, too. Operations on different CPUs have different rows.
control 'late syscall calls=chdir by=cpu threshold=0'
control 'call syscall calls=chdir,umask by=call threshold=10s'
taskset 1 /tmp/alpha 10
taskset 2 /tmp/alpha 20
assert_eq "$(count late cpu=0) $(count late cpu=1) $(stat late alerts)" "10 20 30" "by CPU"
assert_eq "$(awk '/ call="?chdir"? / { sub(/.* count=/, ""); print $1 }' $LT/call/labels)" 30 "by call"
whole late
whole call
for name in s p late call; do control "-$name"; done

# By cgroup: the cgroup of the alert's task when the operation ends.
cgroups=/tmp/cgroups
mkdir $cgroups
mount -t cgroup2 none $cgroups
control 'g syscall calls=chdir by=cgroup threshold=10s'
control 'w wakeup by=cgroup threshold=10s'
for group in one three; do
	mkdir $cgroups/$group
	sh -c "echo \$\$ >$cgroups/$group/cgroup.procs; exec /tmp/alpha ${#group}0"
	assert_eq "$(count g "cgroup=$(command stat -c %i $cgroups/$group)")" "${#group}0" "cgroup $group"
done
whole g
[ "$(count w "cgroup=$(command stat -c %i $cgroups)")" -gt 0 ] || fail "no wakeup in the root: $(cat $LT/w/labels)"
latency-tracker hist g --by >/tmp/out
cat /tmp/out
grep -q '^/one  *30 ' /tmp/out && grep -q '^/three  *50 ' /tmp/out || fail "no paths of cgroups"
control -g
control -w
rmdir $cgroups/one $cgroups/three
umount $cgroups
rmdir $cgroups

# By disk: a field of 32 bits that shares its word, and a field of four words.
null_disk one 100000
null_disk two 100000
control 'd block by=dev threshold=10s'
control 'n block by=disk threshold=10s'
control 'o block by=op max_labels=2 threshold=10s dev=two'
reads one 11
reads two 22
writes two 3
wait_until 10 stat_is d ended -eq 36
assert_eq "$(count d "dev=$(dev_of one)") $(count d "dev=$(dev_of two)")" "11 25" "by number"
assert_eq "$(count n 'disk="one"') $(count n 'disk="two"')" "11 25" "by name"
assert_eq "$(awk '/^label/ { sub(/.* count=/, ""); print $1 }' $LT/o/labels | tr '\n' ' ')" "22 3 " "by operation"
for name in d n o; do
	whole $name
	control "-$name"
done

# `hist --by` prints the longest total first, and `other` last.
control 's syscall calls=chdir by=comm max_labels=2 threshold=10s'
/tmp/alpha 10
/tmp/beta 200
/tmp/gamma 5
latency-tracker hist s --by >/tmp/out
cat /tmp/out
first=$(sed -n 's/^label comm="\(.*\)" count=\([0-9]*\) sum=\([0-9]*\) .*/\3 \1 \2/p' $LT/s/labels | sort -rn | cut -d' ' -f2-)
assert_eq "$(sed -n '3,5p' /tmp/out | awk '{ print $1, $2 }')" "$(echo "$first"; echo other 5)" "hist --by"
grep -q '^full: 2 labels' /tmp/out || fail "full is not shown"
latency-tracker hist s --by --json | grep -q '"label":{"comm":"beta"}.*"count":200,' || fail "--json"
latency-tracker hist s --by -i 2 1 >/tmp/out &
# hist sleeps once it has read the file.
wait_until 10 grep -q '^State:.S' /proc/$!/status
sleep 0.2
/tmp/alpha 4
wait $!
cat /tmp/out
assert_eq "$(sed -n '3p' /tmp/out | awk '{ print $1, $2 }')" "alpha 4" "an interval"
! latency-tracker hist missing --by 2>/dev/null || fail "an instance that is not there"

# Every value that is listed can be used.
awk '/^[a-z]+:/ { tracker = $1; sub(":", "", tracker) }
	/^  by=/ { sub(/:$/, "", $2); n = split($2, names, "|"); for (i = 2; i <= n; i++) print tracker, names[i] }' $LT/trackers >/tmp/all
[ "$(wc -l </tmp/all)" -gt 60 ] || fail "few labels"
while read -r tracker by; do
	words=
	case $tracker in
	func) words='function=vfs_fsync' ;;
	pair) words='begin=tracepoint:sched_waking end=tracepoint:sched_switch' ;;
	esac
	if ! sed -n "/^$tracker:/{n;p}" $LT/trackers | grep -q unavailable; then
		control "z $tracker $words by=$by enabled=0"
		control -z
	fi
done </tmp/all

# Wake chains by their target and by their origin: the sleeps of a program are in one row of each.
control 't tree by=comm origin=timer max_labels=64 threshold=10s'
control 'o tree by=origin comm=late-fp threshold=10s'
for _ in 1 2 3 4 5; do late-fp exit 10; done
for name in t o; do
	control "$name tree enabled=0"
	whole $name
done
cat $LT/o/labels
[ "$(count o origin=timer)" -ge 5 ] || fail "five sleeps have $(count o origin=timer) wake chains"
assert_eq "$(count t 'comm="late-fp"')" "$(count o origin=timer)" "wake chains from a timer"
control -t
control -o

# A refused line changes nothing.
before=$(cat $LT/control)
for line in 'x syscall by=nothing' 'x syscall by=comm max_labels=1' 'x syscall by=comm max_labels=1025' 'x syscall by=ret' \
	'x syscall max_labels=8' 's syscall by=pid' 's syscall max_labels=8' 's syscall by=none' 'x tree end=work by=comm' \
	'x tree by=action' 'x syscall by=stack' 'x block by=stack' 'x offcpu by=stack stack=0'; do
	refused "$line" control "$line"
	assert_eq "$(cat $LT/control)" "$before" "after $line"
	[ ! -e $LT/x ] || fail "$line made something"
done
kernel_says 'by: expected one of none|cpu|comm|pid|tid|cgroup|call|arg: "nothing"' || fail "the fields are not named"
kernel_says 'expected none, since the delays of work (end=work) have no labels: "by"' || fail "end=work"
kernel_says 'with by=stack this parameter must be at least 1: "stack"' || fail "stack=0 is not named"
unload_module
