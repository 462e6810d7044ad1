# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# One of fifty interrupts has a handler that takes a second. This is the only alert, and `watch`,
# `record` and `explain` all show its path, with the handler as the long step. The saved trace has
# the events of each kind of step enabled. A job of five seconds is found while it hangs, and
# reported when it is done.
# kernels: rt
# long: stock
# cpus: 2
# root: full
# icount: 1
# debug: no, LTTng's modules are not built for this kernel
# kcsan: no, as debug
# arm64: no, lt_causes can send NMIs only on x86
# timeout: 600

. /lt/tests/lib.sh

load_module
# shellcheck source=tests/tree.sh
. /lt/tests/tree.sh
line=$(cat $parameters/number)
# Warm up: the first run of anything is slow under emulation.
target 1 softirq

latency-tracker record -n 1 --duration 300 -o /tmp/captures late tree threshold=500ms comm=lt_target irq="$line" >/tmp/record.log 2>&1 &
recorder=$!
wait_until 120 grep -q '^armed' /tmp/record.log
control "t tree threshold=500ms comm=lt_target irq=$line"
control "all tree threshold=3600s comm=lt_target irq=$line"
exec 3<$LT/t/alerts
target 24 softirq
echo 1000000 >$parameters/us
target 1 softirq
echo "$us" >$parameters/us
target 25 softirq
wait $recorder && status=0 || status=$?
cat /tmp/record.log
assert_eq $status 2 "the exit status of record"
assert_eq "$(stat all ended) $(stat t ended) $(stat t alerts)" "50 50 1" "interrupts; alerts"
alerts_of t /tmp/alerts
exec 3<&-
cat /tmp/alerts
python3 /lt/tests/tree.py are /tmp/alerts 1 "irq:$line $(softirq HI) $woken" 'raise:HI' 1000000000 || fail "not the chain of the late one"

# says WHAT FILE: check that FILE has the chain and the sentence.
says() {
	cat "$2"
	for text in "handler of interrupt $line (lt_cause) is called" 'softirq HI' 'lt_target/[0-9]* runs' \
		"[Mm]ost of the delay (1\.[0-9]*s, 9[0-9] %) passed in the handler of interrupt $line (lt_cause), CPU 1"; do
		tr -s ' \n' '  ' <"$2" | grep -q "$text" || fail "$1 does not say: $text"
	done
	grep -Eq '^ +\+0ns +1\.[0-9]+s +9[0-9] +#{14,16}\.* +1 +handler of' "$2" || fail "$1 has no bar of the step that took long"
}
latency-tracker watch t --count 1 >/tmp/watched && status=0 || status=$?
assert_eq $status 2 "the exit status of watch"
says watch /tmp/watched
says record /tmp/captures/0001/explanation.txt
latency-tracker explain /tmp/captures/0001 >/tmp/explained
cmp /tmp/explained /tmp/captures/0001/explanation.txt || fail "explain says something else than record"
latency-tracker explain --json /tmp/captures/0001 >/tmp/json
python3 - <<-'END' || fail "not the verdict: $(cat /tmp/json)"
	import json
	reports = [json.loads(line) for line in open("/tmp/json", encoding="utf-8")]
	assert len(reports) == 1 and "passed in the handler of interrupt" in reports[0]["verdict"], reports
END
# The metadata of the trace names each enabled event, whether or not it has occurred.
for event in irq_handler_entry irq_softirq_raise irq_softirq_entry timer_hrtimer_start timer_hrtimer_expire_entry timer_expire_entry \
	workqueue_queue_work workqueue_execute_start sched_waking sched_switch x86_irq_vectors_local_timer_entry \
	x86_irq_vectors_irq_work_entry x86_irq_vectors_call_function_entry x86_irq_vectors_thermal_apic_entry; do
	grep -aqr "$event" /tmp/captures/0001/trace || fail "no $event was recorded"
done
control -t
control -all

# One write starts the job, another write ends it.
control 't tree end=work origin=work threshold=4s timeout=2s'
exec 3<$LT/t/alerts
sh -c "echo job >$LT/work_begin; echo \$\$; sleep 5; echo job >$LT/work_done" >/tmp/pid
alerts_of t /tmp/alerts
exec 3<&-
cat /tmp/alerts
pid=$(cat /tmp/pid)
assert_eq "$(sed 's/.* reason=\([a-z]*\) .* state=\([a-z]*\) .*/\1 \2/' /tmp/alerts | tr '\n' ' ')" "timeout working late working " "what was reported"
python3 /lt/tests/tree.py sums /tmp/alerts || fail "they do not add up"
sed -n 1p /tmp/alerts | grep -q " path=\"begin:$pid@[01]+0 working:$pid@[01]+2[0-9]\{9\}\" cookie=\"job\" stack=\"" || fail "where it hangs"
sed -n 2p /tmp/alerts | grep -q " path=\"begin:$pid@[01]+0 done:$pid@[01]+5[0-9]\{9\}\" cookie=\"job\"" || fail "how long it took"
control -t
rmmod lt_causes
unload_module
