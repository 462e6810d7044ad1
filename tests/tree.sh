# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# tree.sh: lets a task wait for a cause of lt_causes.ko, and checks the chains that an instance `t` of
# the tracker tree reports, for tests inside the virtual machine. Sourced after lib.sh, when the module
# is loaded. Loads lt_causes, and keeps this shell away from CPU 1.

/usr/bin/taskset -p 1 $$ >/dev/null
# How long a cause takes, in us (3000, unless the test has set `us`), and the delay from which a
# chain is late: longer than any other activity of the machine.
us=$(patiently ${us:-3000})
late=$((us * 5 / 6))
insmod /lt/lt_causes.ko us="$us"
parameters=/sys/module/lt_causes/parameters
# The last two steps of each chain.
# shellcheck disable=SC2034 # for the tests
woken='waking:\d+ switch:\d+\(lt_target\)/120'
# softirq NAME: print the chain through a softirq. A thread may run the softirq. On PREEMPT_RT, a
# thread always does, or another task that must serve softirqs at that time.
softirq() { echo "raise:$1 ((waking:\d+ )?switch:\d+\((ksoftirqd|ktimers)/1\)/\d+ )?softirq:$1"; }

# target TIMES WORD: a separate task on CPU 1 waits for WORD this many times, and for something else after each.
target() {
	/usr/bin/taskset -c 1 sh -c 'printf lt_target >/proc/$$/comm
		n=0; while [ $n -lt '"$1"' ]; do n=$((n + 1)); echo '"$2"' >'$parameters'/run; sleep 0.02; done'
}
# note NAME WHAT FILE [ARGUMENT...]: keep a copy of FILE. Later, `judge` runs tree.py, which checks the
# copy by WHAT and the arguments. One interpreter does this for all notes: under emulation, starting
# one takes as long as getting three alerts.
note() {
	_notes=$((${_notes:-0} + 1))
	cp "$3" /tmp/note.$_notes
	printf '%s\t%s\t%s' "$1" "$2" /tmp/note.$_notes >>/tmp/notes
	shift 3
	[ $# -eq 0 ] || printf '\t%s' "$@" >>/tmp/notes
	echo >>/tmp/notes
}
# judge: check all notes. Each fault is named.
judge() { python3 /lt/tests/tree.py every /tmp/notes || fail "see above"; }

# by WORD PATTERN [LONGEST]: get three alerts of a task that waits for WORD. `judge` checks that all match PATTERN. With
# LONGEST, the longest step of each must match it, and take at least $late.
by() {
	exec 3<$LT/t/alerts
	target 3 "$1"
	alerts_of t /tmp/alerts
	exec 3<&-
	cat /tmp/alerts
	note "$1" are /tmp/alerts 3 "$2" ${3:+"$3" "${late}000"}
}
