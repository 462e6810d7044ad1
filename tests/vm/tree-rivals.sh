# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Four tasks, a storm of interrupts and a softirq, which on PREEMPT_RT runs in ksoftirqd, keep a task from its CPU for
# known times. With interference=1, the task's alert names the three rivals with the longest times, in order, with their
# times. A threaded interrupt is named as the interrupt, with its handler; an interrupt or NMI that preempts the thread
# is named separately.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# icount: 1
# turn: 100
# arm64: no, lt_causes can send NMIs only on x86
# timeout: 300

. /lt/tests/lib.sh

load_module
us=2000
# shellcheck source=tests/tree.sh
. /lt/tests/tree.sh
exact=1
in_time || exact=0
/usr/bin/chrt -f -p 45 "$(pgrep -x ksoftirqd/1)"
line=$(cat $parameters/number)
control "t tree threshold=20ms comm=lt_target interference=1"

# named TASK... -- WHAT=MS...: keep the target from its CPU with these tasks, and check that the
# alert names these rivals.
named() {
	exec 3<$LT/t/alerts
	tasks=
	while [ "$1" != -- ]; do
		tasks="$tasks $1"
		shift
	done
	shift
	# shellcheck disable=SC2086
	python3 -B /lt/tests/rivals.py run $tasks || fail "$tasks"
	alerts_of t /tmp/alerts
	exec 3<&-
	cat /tmp/alerts
	python3 /lt/tests/tree.py sums /tmp/alerts || fail "$tasks: they do not add up"
	python3 -B /lt/tests/rivals.py are /tmp/alerts $exact "$@" || fail "$tasks: see above"
}

# 15 interrupts of 2 ms; each task is interrupted by ticks, too.
echo 15 >$parameters/rounds
named hog_a=12 storm=noise hog_b=40 hog_c=20 hog_d=4 -- 'task/\d+\(hog_b\)=40' "irq/$line\(lt_cause\)=30" 'task/\d+\(hog_c\)=20'
# The softirq is raised after 2 ms, while hog_a runs. If it runs on top of hog_a, both end together.
echo 30000 >$parameters/us
named tasklet=tasklet hog_a=6 hog_b=20 hog_c=12 -- 'softirq/HI=30' 'task/\d+\(hog_b\)=20' 'task/\d+\(hog_c\)=12'
control -t
echo 6000 >$parameters/us
# The scheduler may start the interrupt thread on another CPU, and move the thread when it first runs. So the thread
# runs once before the cases below.
target 1 thread
control "t tree threshold=5ms comm=lt_target interference=1"
# The interrupt thread wakes the task and stays busy; meanwhile the handler of another line, or an NMI, takes as long.
thread="irq/$(cat $parameters/threaded)\(lt_threa\w*\)=6"
for word in late-task late-nmi; do
	case $word in late-nmi) inner=nmi=6 ;; *) inner="irq/$line\(lt_cause\)=6" ;; esac
	exec 3<$LT/t/alerts
	target 1 $word
	alerts_of t /tmp/alerts
	exec 3<&-
	cat /tmp/alerts
	python3 -B /lt/tests/rivals.py are /tmp/alerts $exact "$thread" "$inner" ||
		python3 -B /lt/tests/rivals.py are /tmp/alerts $exact "$inner" "$thread" || fail "$word: see above"
done
control -t
/usr/bin/chrt -o -p 0 "$(pgrep -x ksoftirqd/1)"
rmmod lt_causes
unload_module
