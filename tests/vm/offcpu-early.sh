# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A handler on one CPU wakes a task on another CPU very often, sometimes before the switch to sleep.
# In that case the task was runnable all the time, and this is counted. Almost every alert of a
# sleep has a waker: the handler, on top of the idle task or of another task of that CPU. A task
# that is preempted on its way to sleep has no waker, and its switch-in is not missed while it is
# woken.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# arm64: no, lt_causes can send NMIs only on x86
# timeout: 200

. /lt/tests/lib.sh

load_module
/usr/bin/taskset -p 1 $$ >/dev/null
insmod /lt/lt_causes.ko us=0 rounds=5000
parameters=/sys/module/lt_causes/parameters
control 'e offcpu threshold=1ns max=3600s stack=0 ring=65536 comm=lt_target'
exec 3<$LT/e/alerts
storms=0
# early COUNT: whether the task was woken on its way to sleep this often.
early() { [ "$(stat e early)" -ge "$1" ]; }
# One storm usually has hundreds of such wakeups. The ring has room for twelve storms.
until early 100 || { early 1 && [ $storms -ge 4 ]; }; do
	storms=$((storms + 1))
	[ $storms -le 12 ] || { cat $LT/e/stats; fail "it was hardly ever woken on its way to sleep"; }
	/usr/bin/taskset -c 1 sh -c 'printf lt_target >/proc/$$/comm; echo storm >'$parameters'/run; sleep 0.05'
done
control 'e offcpu enabled=0'
alerts_of e /tmp/alerts
exec 3<&-
cat $LT/e/stats
sums_hold e
assert_eq "$(stat e alerts_lost) $(stat e overruns)" "0 0" "lost"
assert_eq "$(stat e replaced)" 0 "missed switch-ins"
awk '
	function value(key) { return match($0, " " key "=[^ ]*") ? substr($0, RSTART + length(key) + 2, RLENGTH - length(key) - 2) : "" }
	value("reason") != "threshold" { next }
	value("state") ~ /^R/ {
		if (value("waker_comm") != "\"\"" || value("queued") != 0) { print "runnable, but woken: " $0; bad = 1 }
		next
	}
	{ sleeps++ }
	value("queued") == value("delay") { early++ }
	# An unknown waker is allowed, but rare: the task was switched in at the moment of the wakeup,
	# after a preemption.
	value("waker_comm") == "\"\"" {
		unknown++
		if (value("queued") != value("delay")) { print "no waker: " $0; bad = 1 }
		next
	}
	value("queued") == value("delay") {
		# At the end, the task waits for its child.
		if (value("context") != "hardirq" && value("waker_comm") != "\"sleep\"") { print "not the handler: " $0; bad = 1 }
	}
	END { print sleeps " sleeps, of which " early + 0 " were woken before the switch, " unknown + 0 " without a waker"
		if (unknown * 100 > early) bad = 1
		print early + 0 >"/tmp/early"; exit bad }
' /tmp/alerts || fail "a wrong waker, or none: see above"
[ "$(cat /tmp/early)" -ge "$(stat e early)" ] || fail "only $(cat /tmp/early) were runnable all the time, of $(stat e early)"
control -e
rmmod lt_causes
unload_module
