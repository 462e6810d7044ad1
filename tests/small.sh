# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# small.sh: on the kernel small (scripts/debug-kernel), inside the virtual machine: the command names the trackers that
# this kernel leaves out, with the options that they need, and the module refuses them. Eight of the others report delays
# of known cause and length. For tests/host/own-kernel.sh.

. /lt/tests/lib.sh
. /lt/tests/block.sh

load_module
uname -a
uname -v | grep -q PREEMPT_RT || fail "this kernel is not PREEMPT_RT"

# lacks TRACKER OPTIONS: check that this tracker is left out, since the kernel lacks these options.
lacks() {
	latency-tracker list --trackers "$1" >/tmp/said
	grep -qx "  not on this kernel: this kernel is built without $2" /tmp/said || fail "$1: $(cat /tmp/said)"
	refused_line "x $1" 'not part of this module'
	[ ! -e $LT/x ] || fail "$1 has started"
}
lacks func CONFIG_FPROBE
lacks net 'CONFIG_NET CONFIG_FPROBE'
lacks accept 'CONFIG_INET CONFIG_FPROBE'
latency-tracker list --trackers >/tmp/said
assert_eq "$(grep -c '^  not on this kernel: ' /tmp/said)" 3 "trackers that are left out"
refused_line 'x pair begin=function:vfs_read end=return:vfs_read' \
	'this kernel is built without CONFIG_FPROBE, which follows functions'
for cgroup in / 4711; do
	refused_line "x wakeup cgroup=$cgroup" "this kernel is built without CONFIG_CGROUPS, which this filter needs: \"$cgroup\""
done

# at_least NS FILE: check that every alert in FILE has at least this delay.
at_least() {
	for _delay in $(field delay <"$2"); do [ "$_delay" -ge "$1" ] || fail "$_delay ns, expected at least $1: $(cat "$2")"; done
}

# A process of SCHED_FIFO keeps CPU 1 for half a second. There, one process computes, and another waits for a pipe. We
# write into the pipe meanwhile.
taskset -p 1 $$ >/dev/null
control 'w wakeup threshold=100ms'
control 'q runqueue threshold=100ms'
control 'o offcpu threshold=100ms'
for name in w q o; do follow $LT/$name/alerts /tmp/$name; done
mkfifo /tmp/pipe
taskset 2 cat /tmp/pipe >/dev/null &
reader=$!
exec 4>/tmp/pipe
taskset 2 sh -c 'while :; do :; done' &
computing=$!
wait_until 10 grep -q pipe_read /proc/$reader/stack
cat >/tmp/hog <<-'END'
	now() { read -r time _ </proc/uptime; time=${time%.*}${time#*.}; }
	now
	end=$((time + 50))
	: >/tmp/hogging
	while [ "$time" -lt $end ]; do now; done
END
chrt -f 50 taskset 2 sh /tmp/hog &
hog=$!
wait_until 10 test -e /tmp/hogging
echo >&4
wait $hog
# one INSTANCE TID: wait for the alert of this thread, and copy it to /tmp/alert.
one() {
	wait_until 10 grep -q " tid=$2 " "/tmp/$1"
	grep " tid=$2 " "/tmp/$1" >/tmp/alert
	cat /tmp/alert
	assert_eq "$(wc -l </tmp/alert)" 1 "$1: alerts of $2"
	at_least 100000000 /tmp/alert
}
one w $reader
assert_eq "$(field waker_tid </tmp/alert) $(field policy </tmp/alert)" "$$ other" "w: waker, policy"
one o $reader
assert_eq "$(field waker_tid </tmp/alert)" "$$" "o: waker"
grep -q ' stack="[^"]*pipe_read+' /tmp/alert || fail "o: where did it wait?"
one q $computing
at_least 400000000 /tmp/alert
assert_eq "$(field from </tmp/alert)" 1 "q: CPU"
exec 4>&-
kill $computing $reader
for name in w q o; do control -$name; done

# A system call that takes 300 ms.
control 's syscall threshold=200ms'
follow $LT/s/alerts /tmp/s
/bin/sleep 0.3 &
sleeper=$!
wait $sleeper
one s $sleeper
at_least 300000000 /tmp/alert
assert_eq "$(field call </tmp/alert)" clock_nanosleep "s: call"
control -s

# Interrupt handlers and softirqs of 20 ms, on CPU 1. The short handler of the line takes a millisecond.
control 'i irq threshold=10ms'
control 'h softirq threshold=10ms vec=hi'
for name in i h; do follow $LT/$name/alerts /tmp/$name; done
taskset 2 insmod /lt/lt_irqs.ko times=5
rmmod lt_irqs
for name in i h; do wait_until 10 sh -c "[ \$(grep -c ' on=1 \| on=1\$' /tmp/$name) -ge 5 ]"; done
cat /tmp/i /tmp/h
assert_eq "$(grep -c ' on=1 action="lt_long, ' /tmp/i)" 5 "alerts of the handler"
assert_eq "$(grep -c ' vec=0 name=hi on=1$' /tmp/h)" 5 "alerts of the softirq"
grep ' action="lt_long, ' /tmp/i >/tmp/alert
at_least 20000000 /tmp/alert
at_least 20000000 /tmp/h
for name in i h; do control -$name; done

# Disk requests of 20 ms, measured by block, and by pair with two tracepoints.
null_disk slow 20000000
reads slow 1
control 'b block threshold=10ms dev=slow'
control 'p pair threshold=10ms begin=tracepoint:block_rq_issue end=tracepoint:block_rq_complete begin_key=arg0'
for name in b p; do follow $LT/$name/alerts /tmp/$name; done
reads slow 5
for name in b p; do
	wait_until 10 quiet $name
	wait_until 10 sh -c "[ \$(wc -l </tmp/$name) -ge 5 ]"
	head -n 1 /tmp/$name
	assert_eq "$(wc -l </tmp/$name)" 5 "$name: alerts"
	at_least 20000000 /tmp/$name
	sums_hold $name
	control -$name
done
unload_module
