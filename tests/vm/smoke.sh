# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A basic check on this kernel. Requests of 20 ms raise alerts and time out with a stack, and are counted in the
# histogram and the sums. Every tracker except `module`, which is for other modules, starts and counts, and every such
# tracker except `io` raises alerts. The file `trackers` names exactly what a tracker does not see on this
# architecture, and a filter for that is refused. The module is unloaded and loaded again. This test is mainly for
# kernels of other suites (tests/run-suite), and for the small kernel (tests/host/own-kernel.sh), whose options leave
# some trackers out.
# kernels: stock rt
# cpus: 2
# icount: 1
# arm64: yes
# timeout: 120

. /lt/tests/lib.sh
. /lt/tests/block.sh

load_module
uname -a
ms=$(patiently 20)
null_disk slow "${ms}000000"
null_disk fast 100000
# Warm up: the first run of anything is slow under emulation.
reads slow 1
control "slow block threshold=$((ms / 2))ms timeout=$((ms / 4))ms dev=slow"
control 'fast block threshold=10s dev=fast'
follow $LT/slow/alerts /tmp/slow
reads slow 20
writes fast 20
for name in slow fast; do wait_until 10 quiet $name; sums_hold $name; done
wait_until 10 sh -c '[ "$(grep -c " reason=late " /tmp/slow)" -ge 20 ]'
head -n 2 /tmp/slow
assert_eq "$(stat slow started) $(stat slow timed_out) $(stat slow late)" "20 20 20" "started, timed out, late"
assert_eq "$(grep -c ' reason=timeout .* stack="[a-z_]*+0x' /tmp/slow)" 20 "timeouts with a stack"
for delay in $(grep ' reason=late ' /tmp/slow | field delay); do
	[ "$delay" -ge "${ms}000000" ] || fail "a delay of $delay ns on a disk that takes $ms ms"
	! in_time || [ "$delay" -lt $((5 * ms * 1000000)) ] || fail "a delay of $delay ns on a disk that takes $ms ms"
done
assert_eq "$(stat fast started) $(stat fast alerts)" "20 0" "fast: started, alerts"
control -slow
control -fast

# lacks TRACKER: print what this tracker does not see on this architecture.
lacks() { sed -n "s/^$1: .*; lacks: //p" $LT/trackers; }
# A call that was in flight at the start is missed if, and only if, `trackers` lists this.
sleep 1000 &
sleeper=$!
wait_until 30 grep -q '^State:.S' /proc/$sleeper/status
control "sleeper syscall threshold=3600s tid=$sleeper"
case $(lacks syscall) in 'calls in flight at the start, '*) seen=0 ;; *) seen=1 ;; esac
assert_eq "$(stat sleeper before_start)" $seen "calls that were in flight at the start"
kill $sleeper
control -sleeper
case $(lacks tree) in 'local interrupts '*) wanted=missing ;; *) wanted=there ;; esac
assert_eq $wanted "$([ -d /sys/kernel/tracing/events/irq_vectors ] && echo there || echo missing)" \
	"tracepoints of local interrupts"
if [ $wanted = missing ]; then
	refused_line 'v tree origin=irq,vector' 'expected no vector: '
	refused_line 'v tree vec=irq_work' 'expected all: '
fi
[ "$(uname -m)" != x86_64 ] || refused "something is missing" grep '; lacks: ' $LT/trackers

# Instances of all trackers except `module`, all at once. Only the small kernel lacks options that
# some trackers need.
instances=17
case $(uname -r) in *-small) instances=13 ;; esac
# has_all: whether this kernel has what all trackers need.
has_all() { [ $instances -eq 17 ]; }
! has_all || insmod /lt/lt_functions.ko
insmod /lt/lt_works.ko ms=40
while read -r name line; do
	has_all || case $name in func|returns|net|accept) continue ;; esac
	control "of_$name $line" || fail "refused: $line"
done <<-END
	block block threshold=0
	wakeup wakeup threshold=0
	runqueue runqueue threshold=0
	offcpu offcpu threshold=0
	irq irq threshold=0
	softirq softirq threshold=0
	syscall syscall threshold=0
	workqueue workqueue threshold=0
	net net threshold=0
	accept accept threshold=0
	func func threshold=0 function=lt_fn_delay
	returns pair threshold=0 begin=function:lt_fn_delay end=return:lt_fn_delay
	points pair threshold=0 begin=tracepoint:block_rq_issue end=tracepoint:block_rq_complete begin_key=arg0
	tree tree threshold=0
	lock lock threshold=0
	reclaim reclaim threshold=0
	io io
END
names=$(sed 's/ .*//' $LT/control)
assert_eq "$(echo $names | wc -w)" $instances "instances"
# work: give each instance operations to track.
work() {
	insmod /lt/lt_irqs.ko times=2
	rmmod lt_irqs
	reads fast 20
	! has_all || echo delay 3 1 >/proc/lt_functions
	# Writes to a module's parameters are serialised, so the second writer waits for a lock.
	for _ in 1 2; do echo slow >/sys/module/lt_works/parameters/run & done
	wait $!
	echo 1 >/proc/sys/vm/compact_memory
	sync
	if has_all; then
		echo hello | nc -l -p 4711 >/dev/null &
		wait_until 10 sh -c 'netstat -ltn | grep -q ":4711 "'
		nc 127.0.0.1 4711 </dev/null >/dev/null
		wait $!
	fi
	sleep 0.2
}
work
for name in $names; do
	wait_until 10 stat_is $name ended -gt 0
	[ $name = of_io ] || wait_until 10 stat_is $name alerts -gt 0
	assert_eq "$(stat $name alerts_lost) $(stat $name negative)" "0 0" "$name: alerts_lost, negative"
	echo "$name: started $(stat $name started), ended $(stat $name ended), alerts $(stat $name alerts)"
done
for name in $names; do
	control "-$name"
	[ ! -e $LT/$name ] || fail "$name is still there"
done
unload_module
[ ! -e $LT ] || fail "$LT is still there"

for round in 1 2 3; do
	load_module
	control 'w wakeup threshold=0'
	if has_all; then
		control 'f func function=lt_fn_delay threshold=0'
		echo delay 1 1 >/proc/lt_functions
		assert_eq "$(stat f started)" 1 "round $round: started"
	fi
	unload_module
done
