# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker explain` names a known cause in its first sentence, for delays that an
# administrator would investigate: locks of user space and of the kernel, chains of locks, a sleep,
# a disk behind fsync and behind a page fault, a disk with an interrupt of its own, a handler, a
# tasklet that it schedules, its thread, a storm of softirqs, a CPU quota, and the other end of a
# connection, in the same and in another network namespace. One recording, with the default events
# of `record`, has them all.
# kernels: stock rt
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, lt_causes can send NMIs only on x86
# timeout: 900
# long-part: all causes on rt, not only those that differ from stock
# worth: no other test has real traces of these causes on both kernels

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/sched.sh

late() { python3 /lt/tests/late.py "$@"; }

case $(uname -r) in *-rt-*) rt=yes mutex=rtmutex ;; *) rt='' mutex=mutex ;; esac
load_module
ip link set lo up
null_disk slow 400000000
null_disk fast 0
insmod /lt/lt_works.ko ms=1500
insmod /lt/lt_causes.ko us=400000
line=$(cat /sys/module/lt_causes/parameters/number)

# The recorder's own alert comes last, after all others.
latency-tracker record -n 1 --num-subbuf 16 -o /tmp/captures last offcpu threshold=300ms comm=reader >/tmp/record.log 2>&1 &
recorder=$!
wait_until 600 grep -q '^armed' /tmp/record.log

# all: true if all causes are tried. Otherwise only the causes that PREEMPT_RT handles differently
# are tried, once each: kernel locks, softirqs, interrupt threads, and with them timers, packets and
# disks.
all() { [ -z "$rt" ] || [ -n "${LT_LONG:-}" ]; }

# case_of NAME COMMAND SENTENCE TRACKER KEY=VALUE...: the explanation of the alerts of instance NAME
# that COMMAND causes must match SENTENCE.
case_of() {
	name=$1 command=$2
	printf '%s\t%s\n' "$1" "$3" >>/tmp/sentences
	shift 3
	control "$name $*"
	$command
	wait_until 10 stat_is "$name" alerts -gt 0
	cat "$LT/$name/wakeup" >>/tmp/alerts
	control "-$name"
}

case_of futex 'late futex' 'victim/\d+ waited for last/\d+, which ran' syscall threshold=300ms comm=victim calls=futex
case_of sleep 'late sleep' 'victim/\d+ waited for a timer' offcpu threshold=300ms comm=victim
case_of tcp 'late tcp' 'victim/\d+ waited for server/\d+, which waited for a timer' \
	syscall threshold=300ms comm=victim calls=recvfrom
# A connection between two network namespaces, as between containers.
! all || case_of veth 'late veth' 'victim/\d+ waited for server/\d+, which waited for a timer' \
	syscall threshold=300ms comm=victim calls=recvfrom
disk="disk slow"
case_of fsync 'late fsync /dev/slow' "victim/\d+ waited for $disk" syscall threshold=300ms comm=victim calls=fsync
! all || case_of fault 'late fault /dev/slow' "victim/\d+ waited for $disk" offcpu threshold=300ms comm=victim
case_of handler 'late cause handler' "victim/\d+ waited for lt_cause \(interrupt $line\)" offcpu threshold=300ms comm=victim
case_of thread 'late cause thread' 'victim/\d+ waited for irq/\d+-lt_\w+/\d+, which ran' offcpu threshold=300ms comm=victim
# A tasklet scheduled by a handler runs when the handler ends, or in a softirq thread if the handler has interrupted
# another softirq. On PREEMPT_RT any softirq thread that runs next may run it, and the waker of that thread is reported,
# perhaps a timer.
by_thread='(ksoftirqd|ktimers)/1/\d+, which (waited for|was interrupted:)'
[ -n "$rt" ] || case_of tasklet 'late cause softirq' \
	"victim/\d+ waited for (softirq HI raised by|$by_thread) lt_cause \(interrupt $line\)" offcpu threshold=300ms comm=victim
# Another interrupt may come before the thread gets the CPU, and may itself run the softirq: repeat this until the
# thread has run the softirq.
later() {
	follow $LT/later/alerts /tmp/later
	_reader=$! _times=0
	until grep -Eq 'handle_softirqs[^,]*,run_(ksoftirqd|ktimerd)' /tmp/later; do
		[ $_times -lt 20 ] || fail "no thread for softirqs: $(cat /tmp/later)"
		_times=$((_times + 1))
		late cause later
		wait_until 10 grep -q "^seq=$_times " /tmp/later
	done
	kill $_reader
}
case_of later later "victim/\d+ waited for $by_thread lt_cause \(interrupt $line\)" offcpu threshold=300ms comm=victim
# On PREEMPT_RT, the interrupt thread waits for a spinlock. On other kernels it waits for the CPU,
# since the owner is not preempted there.
case $rt in
	yes) owner='lt_beside/\d+, which ran' ;;
	*) owner='irq/\d+-lt_\w+/\d+, which had been woken, and waited for CPU 1, which ran lt_beside/\d+' ;;
esac
case_of spinlock 'late cause wait' "victim/\d+ waited for $owner" offcpu threshold=300ms comm=victim
# A writer to a module parameter waits for a mutex, whose owner waits for a work item that sleeps.
two() {
	echo slow >/sys/module/lt_works/parameters/run &
	_first=$!
	wait_until 10 grep -q __flush_work "/proc/$_first/stack"
	echo slow >/sys/module/lt_works/parameters/run
	wait $_first
}
case_of mutex two 'sh/\d+ waited for kworker/\S+, which waited for a timer' lock threshold=300ms kind=$mutex comm=sh

# The machine's own disk has an interrupt; the other disks use timers. This disk is fast, so the
# reads are large. It may complete a part of a read before the whole read is requested, so there are
# several reads.
large() { dd if=/dev/vda of=/dev/null bs=4M count=16 iflag=direct; }
! all || case_of device large "dd/\d+ waited for disk vda" offcpu threshold=0 comm=dd max_alerts=50

# A thread runs the softirqs on PREEMPT_RT, and if there are many. Interrupts and threads may take turns.
case_of storm 'late storm' \
	'victim/\d+ was switched out while runnable, and waited for CPU 1, which (worked for softirq HI( raised by [a-z_ ]+)?|ran (ksoftirqd|ktimers)/1/\d+)( for \S+ of \S+, its longest use)?' \
	syscall threshold=600ms comm=victim calls=read
rmmod lt_irqs
! all || case_of accept 'python3 /lt/tests/net.py serve 127.0.0.1 1 600' 'python3/\d+ waited for a timer' accept threshold=300ms
! all || case_of pair 'reads slow 1 64' "dd/\d+ waited for $disk" pair threshold=300ms comm=dd \
	begin=tracepoint:block_rq_issue end=tracepoint:block_rq_complete begin_key=arg0
if all; then
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir /sys/fs/cgroup/small
	echo 20M >/sys/fs/cgroup/small/memory.max
	small() {
		sh -c 'echo $$ >/sys/fs/cgroup/small/cgroup.procs; exec dd if=/dev/fast of=/dev/null bs=1M' 2>/dev/null
	}
	case_of reclaim small 'dd/\d+ ran' reclaim threshold=0 kind=memcg comm=dd max_alerts=1
fi
if all && grep -qw cpu /sys/fs/cgroup/cgroup.controllers; then
	# Creates the cgroup of the quota.
	waits quota 1 50 5
	# The capture is for another task, so it lacks the counters of this cgroup, but it may have the
	# functions of timers.
	case_of quota 'waits quota 1 10 50' \
		'python3/\d+ was held back by cpu\.max of its cgroup or an ancestor' \
		runqueue threshold=50ms cgroup=/lt-quota max_alerts=2
fi

late pipe
wait $recorder && status=0 || status=$?
cat /tmp/record.log
assert_eq $status 2 "the exit status of record"
latency-tracker explain -v /tmp/captures/0001/trace --alerts /tmp/alerts 2>/tmp/speed || fail "explain: $(cat /tmp/speed)"
cat /tmp/speed
grep -q ' events in .* a second$' /tmp/speed || fail "explain -v does not say how fast it was"
latency-tracker explain --json /tmp/captures/0001/trace --alerts /tmp/alerts >/tmp/json
python3 - <<'END' || fail "not what caused it"
import json, re, sys
def is_explained(report, sentence, least):
    # This is the first sentence that a person reads.
    words = report["text"].split("\n\n")[1].split()
    assert " ".join(words) == report["verdict"], words
    share = re.fullmatch(r"([0-9]+) % of the delay \([^)]*\): " + sentence + r"\.", report["verdict"])
    return share is not None and int(share[1]) >= least
reports = [json.loads(line) for line in open("/tmp/json", encoding="utf-8")]
sentences = [line.rstrip("\n").split("\t") for line in open("/tmp/sentences", encoding="utf-8")]
assert len(sentences) >= 10, sentences
wrong = 0
for name, sentence in sentences:
    own = [report for report in reports if report["alert"]["instance"] == name]
    # The cause must account for most of the delay: to be the largest cause is not enough. A thread that runs softirqs
    # takes turns with the victim.
    least = 40 if name == "storm" else 60
    if not any(is_explained(report, sentence, least) for report in own):
        wrong += 1
        print(f"{name}: not {sentence}, but", *[report["verdict"] for report in own], sep="\n  ")
sys.exit(wrong > 0)
END

# A request, and the call that waits for it. The log is a new one, since the log of the earlier
# recorder has the awaited word already.
if all; then
	rm /tmp/record.log
	latency-tracker record -n 1 --post-trigger 300ms -o /tmp/io both io threshold=300ms comm=dd >/tmp/record.log 2>&1 &
	recorder=$!
	wait_until 600 grep -q '^armed' /tmp/record.log
	follow $LT/both/alerts /tmp/both
	reads slow 1 96
	wait $recorder && status=0 || status=$?
	assert_eq $status 2 "the exit status of record"
	latency-tracker explain /tmp/io/0001/trace --alerts /tmp/both | tee /tmp/explained
	tr -s ' \n' ' ' </tmp/explained >/tmp/words
	grep -q "of the delay ([^)]*): dd/[0-9]* waited for $disk\. " /tmp/words || fail "the call is not explained"
	grep -q ' the request was at the device, which had no other request before it and completed none meanwhile\. ' /tmp/words ||
		fail "the request is not explained"
fi
rmmod lt_works
rmmod lt_causes
unload_module
