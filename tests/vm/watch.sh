# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A handler hangs CPU 0, which has the search for timeouts, and is found while it hangs. This holds
# even if a real-time task occupies the watching CPU, from before or after the start of the watch,
# or if that CPU was due to check much later.
# kernels: stock
# long: rt
# cpus: 4
# root: full
# icount: 1
# timeout: 240

. /lt/tests/lib.sh
. /lt/tests/sched.sh

load_module
on() { _cpu=$1; shift; /usr/bin/taskset -c "$_cpu" "$@"; }
# The CPU on which a timeout is written gets the search.
looks() { on 0 sh -c "echo $1 >$LT/i/timeout"; }
# hang: let a handler hang CPU 0 for 300 ms.
hang() { on 0 /sbin/insmod /lt/lt_irqs.ko times=1 us="$(patiently 300000)" && rmmod lt_irqs; }
/usr/bin/taskset -p 8 $$ >/dev/null
# Warm up: the first run of anything is slow under emulation.
on 0 /sbin/insmod /lt/lt_irqs.ko times=1
line=$(cat /sys/module/lt_irqs/parameters/number)
rmmod lt_irqs
waits hog 1 5

# found WHAT MS: check that a hanging handler was found after 50 ms, and at most MS more.
found() {
	alerts_of i /tmp/i
	exec 3<&-
	grep "reason=timeout .* on=0 action=\"lt_long" /tmp/i || fail "$1: it was not found: $(cat /tmp/i)"
	grep -q "reason=late .* on=0 action=\"lt_long" /tmp/i || fail "$1: its end was not reported"
	delay=$(grep "reason=timeout .* action=\"lt_long" /tmp/i | field delay)
	! in_time || [ "$delay" -lt $(((50 + $2) * 1000000)) ] || fail "$1: found after $delay ns"
	sums_hold i
	control -i
}
begins() {
	control "i irq threshold=3600s irq=$line"
	exec 3<$LT/i/alerts
}

# The watching CPU was due to check in an hour.
begins
looks 3600s
sleep 0.2
looks 50ms
sleep 0.2
hang
found "a shorter timeout" 20

# On the watching CPU the worker is delayed, and the timer is not.
begins
looks 50ms
sleep 0.2
waits hog 1 900 >/dev/null &
hog=$!
sleep 0.2
hang
found "a watcher that is kept" 40
wait $hog

# The watch never reached the other CPU.
waits hog 1 900 >/dev/null &
hog=$!
sleep 0.1
begins
looks 50ms
sleep 0.2
hang
found "a watcher that was kept before" 40
wait $hog
unload_module
