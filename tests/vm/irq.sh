# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Handlers and a softirq of 20 ms are each reported once, with the line, the action, the CPU and the
# result, even an unusual one. Handlers that share a line are reported separately. A running handler
# is pending, and times out. Filtered handlers are not reported. The log names an invalid parameter.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# icount: 1
# arm64: yes
# timeout: 240
# abi-alert: dd if=/dev/vda of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null

. /lt/tests/lib.sh

load_module
/usr/bin/taskset -p 1 $$ >/dev/null
# Warm up: the first run of anything is slow under emulation.
insmod /lt/lt_irqs.ko times=2
line=$(cat /sys/module/lt_irqs/parameters/number)
rmmod lt_irqs
# interrupts OPTION...: load lt_irqs on CPU 1, check that it gets the same line, and unload it.
interrupts() {
	/usr/bin/taskset -c 1 /sbin/insmod /lt/lt_irqs.ko "$@"
	assert_eq "$(cat /sys/module/lt_irqs/parameters/number)" "$line" "the line"
	rmmod lt_irqs
}

control "i irq threshold=10ms irq=$line"
control "s softirq threshold=10ms vec=hi"
control "i0 irq threshold=0 cpu=0 irq=$line"
control "i1 irq threshold=500us cpu=1 irq=$line"
control "s0 softirq threshold=0 cpu=0 vec=hi"
control "other softirq threshold=0 vec=sched"
exec 3<$LT/i/alerts 4<$LT/s/alerts
interrupts times=5
alerts_of i /tmp/i
cat /tmp/i
# The short handler takes a millisecond, unless it is delayed.
! in_time || assert_eq "$(wc -l </tmp/i)" 5 "alerts of the line"
assert_eq "$(grep -c ' action="lt_long, ' /tmp/i)" 5 "alerts of the handler"
assert_eq "$(grep -c " comm=\"insmod\" irq=$line on=1 action=\"lt_long, ..odd.. name\" ret=handled$" /tmp/i)" 5 "what they say"
exec 3<&4
alerts_of s /tmp/s
exec 3<&- 4<&-
cat /tmp/s
assert_eq "$(wc -l </tmp/s)" 5 "alerts of the softirq"
assert_eq "$(grep -c ' vec=0 name=hi on=1$' /tmp/s)" 5 "what they say"
for delay in $(cat /tmp/i /tmp/s | grep -v ' action="lt_short" ' | field delay); do
	[ "$delay" -ge 20000000 ] || fail "20 ms took $delay ns"
	! in_time || [ "$delay" -lt 60000000 ] || fail "20 ms took $delay ns"
done
assert_eq "$(stat i1 alerts)" 10 "short and long ones"
assert_eq "$(grep -c ' action="lt_short" ret=other$' $LT/i1/wakeup)" 5 "what the short ones return"
assert_eq "$(stat i0 alerts) $(stat s0 alerts)" "0 0" "of others"
: >/tmp/other
[ "$(stat other alerts)" -eq 0 ] || cat $LT/other/wakeup >/tmp/other
# On a slow machine there may be more alerts than the ring holds.
if grep -v -e ' vec=7 name=sched ' -e '^lost=[0-9]*$' /tmp/other; then fail "softirqs of others"; fi
for name in i s i0 i1 s0 other; do
	# Handlers that run at this very moment are pending.
	control "$name $(sed -n "s/^$name \([a-z]*\) .*/\1/p" $LT/control) enabled=0"
	sums_hold $name
	assert_eq "$(stat $name unmatched) $(stat $name full) $(stat $name gone)" "0 0 0" "$name: lost"
done
for name in i0 i1 s0 other; do control -$name; done

# hangs CPU: check that a handler that hangs CPU 1 is found while it hangs. Until then, the
# search for timeouts runs on CPU, which is 0 or 1.
hangs() {
	control "i irq enabled=1 threshold=3600s"
	control "s softirq enabled=1 threshold=3600s"
	for name in i s; do /usr/bin/taskset -c "$1" sh -c "echo 50ms >$LT/$name/timeout"; done
	# The search runs on the CPU on which the timeout was written, and the other CPU watches it.
	sleep 0.2
	exec 3<$LT/i/alerts 4<$LT/s/alerts
	rm -f /tmp/enough /tmp/looking
	while [ ! -e /tmp/enough ]; do
		cat $LT/i/pending
		: >/tmp/looking
		sleep 0.01
	done >/tmp/pending &
	wait_until 10 test -e /tmp/looking
	interrupts times=1 us="$(patiently 400000)"
	: >/tmp/enough
	wait $!
	sort -u -t ' ' -k 3 /tmp/pending
	grep -q " comm=\"insmod\" irq=$line on=1 action=\"lt_[sl][^\"]*.*\" ret=pending$" /tmp/pending || fail "it is not pending"
	alerts_of i /tmp/i
	grep "reason=timeout .* irq=$line on=1 action=\"lt_long.* ret=pending$" /tmp/i || fail "no timeout: $(cat /tmp/i)"
	grep "reason=late .* irq=$line on=1 action=\"lt_long.* ret=handled$" /tmp/i || fail "no end: $(cat /tmp/i)"
	exec 3<&4
	alerts_of s /tmp/s
	exec 3<&- 4<&-
	assert_eq "$(field reason </tmp/s | tr '\n' ' ')" 'timeout late ' "$(cat /tmp/s)"
	# 50 ms, 3.1 ms as promised, and 10 ms until the other CPU takes over.
	for delay in $(cat /tmp/i /tmp/s | grep reason=timeout | field delay); do
		! in_time || [ "$delay" -lt 70000000 ] || fail "found after $delay ns, looked for on CPU $1"
	done
	for name in i s; do
		control "$name $(sed -n "s/^$name \([a-z]*\) .*/\1/p" $LT/control) enabled=0 timeout=0"
		sums_hold $name
	done
}
hangs 0
hangs 1

for bad in 'irq irq=timer' 'irq irq=-1' 'irq irq=2147483648' 'irq cpu=one' 'irq pid=1' 'softirq vec=TIMER' \
	'softirq vec=10' 'softirq irq=1'; do
	refused "$bad" control "bad $bad"
	# Either the value is wrong, or the parameter does not exist.
	kernel_says "\"${bad#*=}\"" || kernel_says "no such parameter (see \`trackers\`): \"$(echo "${bad#* }" | cut -d= -f1)\"" ||
		fail "$bad: $(dmesg | tail -n 1)"
	dmesg -c >/dev/null
done
unload_module
