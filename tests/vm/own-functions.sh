# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The module can trace itself: ftrace and its own tracker func can follow the module's C functions
# that control it and show its files, but none that runs in a probe. To find the functions that run
# in probes, the test enables every tracker, makes each operation late, and puts the function tracer
# on all functions of the module. Functions that the load's tasks then call run in probes.
# kernels: stock
# long: rt
# long-part: five times as many operations
# cpus: 2
# timeout: 300
# worth: every tracker must be on and every operation late, or a function of a probe is not found

. /lt/tests/lib.sh

trace=/sys/kernel/tracing
traceable() { grep -q "^$1 \[latency_tracker\]$" /tmp/traceable; }

load_module
# The kernel looks up each of the tens of thousands of lines of these files for each reader, so they are read once.
grep -F '[latency_tracker]' $trace/available_filter_functions >/tmp/traceable
grep -F lt_ /proc/kallsyms >/tmp/symbols
for name in lt_may_open lt_fprobe_new lt_tracepoint_find lt_waker_new lt_periodic_work; do
	traceable $name || fail "$name cannot be traced"
done
for name in lt_current lt_context lt_stack_here lt_stack_of lt_fprobe_enter lt_trace_alert lt_waker_irq_work lt_queue_memory_work; do
	grep -qw "$name" /tmp/symbols || fail "there is no $name"
	! traceable $name || fail "$name can be traced, and runs in probes"
done

# All trackers that need no parameter, and the trackers of functions with a function that the load
# calls.
for tracker in $(sed -n 's/^\([a-z]*\).*/\1/p' $LT/trackers); do
	case $tracker in
		module) ;;
		func) control 'i_func func function=vfs_read threshold=0' ;;
		pair) control 'i_pair pair begin=function:vfs_write end=return:vfs_write threshold=0' ;;
		*) control "i_$tracker $tracker threshold=0" 2>/dev/null || echo "without $tracker: $(dmesg | tail -n 1)" ;;
	esac
done
[ "$(wc -l <$LT/control)" -ge 8 ] || fail "only these trackers: $(cat $LT/control)"
echo 8192 >$trace/buffer_size_kb
echo ':mod:latency_tracker' >$trace/set_ftrace_filter
echo function >$trace/current_tracer
echo >$trace/trace
blocks=100
[ -z "${LT_LONG:-}" ] || blocks=500
for _ in 1 2 3 4 5; do
	dd if=/dev/zero of=/tmp/file bs=4096 count=$blocks 2>/dev/null
	dd if=/tmp/file of=/dev/null bs=4096 2>/dev/null
	sleep 0.01
done
cat $LT/version >/dev/null
echo 0 >$trace/tracing_on
cat $trace/trace >/tmp/trace
echo nop >$trace/current_tracer
echo >$trace/set_ftrace_filter
for tracker in syscall func pair wakeup offcpu; do
	[ "$(stat i_$tracker alerts)" -gt 0 ] || fail "$tracker has raised no alert"
done
# An interrupt in any task may call the timers of searches, which are not probes.
grep -E ' (dd|sleep)-[0-9]+ .*: lt_' /tmp/trace | grep -v ': lt_periodic_' >/tmp/probes || true
assert_eq "$(cat /tmp/probes)" '' "functions that ran in probes"
grep -q ' cat-[0-9]* .*: lt_may_open <-' /tmp/trace || fail "the tracer has not seen who opened a file: $(head -n 40 /tmp/trace)"

for instance in $(sed 's/ .*//' $LT/control); do control "-$instance"; done
echo 1 >$trace/tracing_on

# The module is traced by its own tracker func until it is unloaded.
control 'own func function=lt_may_open comm=cat threshold=0'
follow $LT/own/alerts /tmp/own
cat $LT/version >/dev/null
wait_until 5 grep -q ' comm="cat" function=lt_may_open .*\[latency_tracker\]' /tmp/own
if control 'x func function=lt_current' 2>/dev/null; then fail 'a function that runs in probes is followed'; fi
unload_module
