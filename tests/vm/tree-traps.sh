# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Cases that give a wrong path if they are overlooked: a softirq that preempts another softirq on
# its CPU, in a task of its own; an interrupt that did not wake its thread, before a local interrupt
# that wakes another thread; and readers of alerts, which alerts wake. The paths are the known
# paths of lt_causes.ko, and none leads to a reader. A handler that queues an irq_work and then
# takes a long time is in no path: the output notes that the delay may have started earlier.
# kernels: stock rt
# cpus: 2
# root: full
# icount: 1
# arm64: no, lt_causes can send NMIs only on x86
# timeout: 240

. /lt/tests/lib.sh

load_module
# shellcheck source=tests/tree.sh
. /lt/tests/tree.sh
line=$(cat $parameters/number) third=$(cat $parameters/third)

# Not every kernel has the softirq that preempts.
chains="other requested"
[ "$(cat $parameters/polls)" = N ] || chains="inner $chains"
for word in $chains; do target 1 $word; done

control "t tree threshold=${late}us comm=lt_target"
# The softirq of the tasklet resumes when the other softirq is over. On PREEMPT_RT, ktimers may also
# run it, if it is switched in first.
served='((waking:\d+ )?switch:\d+\((ksoftirqd|ktimers)/1\)/\d+ )?'
[ "$(cat $parameters/polls)" = N ] || by inner "irq:$line raise:HI ${served}softirq:HI $woken"
# The irq_work wakes the thread, not a handler that has already returned.
by other "vector:irq_work waking:\\d+ switch:\\d+\\(irq/$third-lt_\\w+\\)/\\d+ $woken"
control -t

# The code that queued an irq_work is not known. No chain starts with the handler.
control "t tree threshold=${late}us comm=lt_target origin=irq irq=$line"
target 3 requested
assert_eq "$(stat t alerts)" 0 "alerts of a handler that is not in the chain"
control -t
control "t tree threshold=0 comm=lt_target origin=vector vec=irq_work"
by requested "vector:irq_work $woken"
latency-tracker watch t --count 3 >/tmp/watched || assert_eq $? 2 "the exit status of watch"
cat /tmp/watched
assert_eq "$(tr -s ' \n' '  ' </tmp/watched | grep -o 'most of the recorded part [^;]*; the delay is counted from interrupt irq_work, whose request is not recorded' | wc -l)" \
	3 "sentences that leave the beginning open"
control -t

# Alerts of one instance wake a reader. This is not a chain to the reader, late or not.
control "feed tree threshold=${late}us comm=lt_target"
sh -c 'printf lt_reader >/proc/$$/comm; n=0
	while [ $n -lt 5 ] && read -r alert; do n=$((n + 1)); echo "$alert" >>/tmp/read; done <'$LT/feed/alerts &
reader=$!
wait_until 10 grep -q "^State:.S" /proc/$reader/status
control "t tree threshold=0 comm=lt_reader origin=vector vec=irq_work"
target 5 handler
wait $reader
assert_eq "$(wc -l </tmp/read)" 5 "alerts that were read"
[ "$(stat feed wakes)" -ge 1 ] || fail "the reader was not woken"
assert_eq "$(stat t alerts) $(stat t readers) $(stat t ended)" "0 0 0" "chains that alerts have begun"
control -feed
control -t
rmmod lt_causes
unload_module
judge
