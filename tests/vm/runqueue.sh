# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A SCHED_FIFO process keeps a computing process off its CPU for 100 ms. This is reported once, with
# the task that ran instead. A process with a quota of 10 % of a CPU waits for the rest of each
# period of 100 ms. There are as many alerts as the kernel counts throttled periods, or one fewer.
# The alerts show that the process was throttled. If the CPU was idle meanwhile, they name the idle task. A process
# that leaves the fair class while it is throttled, and is then preempted, is not reported as throttled. A thread that
# takes over the id of a preempted thread does not take over its wait.
# kernels: stock rt
# cpus: 2
# root: full
# icount: 1
# timeout: 120

. /lt/tests/lib.sh
. /lt/tests/sched.sh
. /lt/tests/witness.sh

load_module
ms=$(patiently 100)
waits preempt 1 5
control "w runqueue threshold=$((ms / 2))ms comm=python3"
exec 3<$LT/w/alerts
tracing 1000 sched/sched_switch
waits preempt 1 "$ms" >/tmp/who
echo 0 >$TRACE/events/enable
alerts_of w /tmp/alerts
cat /tmp/alerts
victim=$(sed 's/.*victim=//' /tmp/who)
hog=$(sed 's/hog=\([0-9]*\) .*/\1/' /tmp/who)
grep " tid=$victim .* policy=other state=R+* from=1 " /tmp/alerts >/tmp/alert || fail "the preempted task"
assert_eq "$(wc -l </tmp/alert)" 1 "alerts of the preempted task"
# The first task that ran instead: the hog, unless a kernel thread has just taken the CPU.
by=$(other_of prev "$victim" $(($(field time </tmp/alert) - $(field delay </tmp/alert))))
assert_eq "$(field by_tid </tmp/alert)" "$by" "who ran instead"
[ "$by" != "$hog" ] || assert_eq "$(field by_comm </tmp/alert)" python3 "its name"
grep -q ' throttled=0 stack="' /tmp/alert || fail "the preempted task is said to be throttled, or has no stack"
[ "$(field delay </tmp/alert)" -ge "${ms}000000" ] || fail "it waited $(field delay </tmp/alert) ns"
control 'w runqueue enabled=0'
sums_hold w
control -w

# A thread of a high priority calls execve(). It preempts the leader of its process when the leader is about to exit,
# exchanges its id with the leader's, and sleeps. Of all its threads, only the leader waits for the CPU, and not for as
# long as the other one sleeps.
/bin/sleep 0
ms=$(patiently 3000)
control "w runqueue threshold=$((ms / 2))ms comm=python3"
exec 3<$LT/w/alerts
waits execve 1 "$ms" >/tmp/who
alerts_of w /tmp/alerts
cat /tmp/alerts
leader=$(sed 's/leader=//' /tmp/who)
assert_eq "$(grep -c " tid=$leader " /tmp/alerts)" 0 "alerts about a thread that slept"
[ "$(stat w started)" -gt 0 ] || fail "no thread was preempted"
control 'w runqueue enabled=0'
sums_hold w
control -w

if ! grep -qw cpu /sys/fs/cgroup/cgroup.controllers; then
	! in_time || fail "no quota of processors here"
	unload_module
	echo "This kernel has no quota of processors."
	exit
fi
# Warm up: the first run of anything is slow under emulation.
waits quota 1 50 5
control 'w runqueue threshold=50ms cgroup=/lt-quota'
assert_eq "$(cat $LT/w/cgroup)" "$(stat_inode /sys/fs/cgroup/lt-quota)" "the number of the cgroup"
exec 3<$LT/w/alerts
throttled() { sed -n 's/^nr_throttled //p' /sys/fs/cgroup/lt-quota/cpu.stat; }
before=$(throttled)
member=$(waits quota 1 10 100)
member=${member#*=}
alerts_of w /tmp/alerts
cat /tmp/alerts
assert_eq "$(grep -vc " tid=$member " /tmp/alerts)" 0 "alerts of others"
# The last wait may be at the exit of the process, which is not throttled: an exiting task does not return to user
# space.
missing=$(($(throttled) - before - $(wc -l </tmp/alerts)))
case $missing in 0|1) ;; *) fail "throttled $missing times more than there are alerts" ;; esac
[ "$(wc -l </tmp/alerts)" -ge 5 ] || fail "only $(wc -l </tmp/alerts) alerts"
for delay in $(field delay </tmp/alerts); do
	{ [ "$delay" -ge 50000000 ] && [ "$delay" -lt 200000000 ]; } || fail "it waited $delay ns"
done
# The last alert may be from the exit of the process.
[ "$(grep -c ' throttled=1 stack="' /tmp/alerts)" -ge $(($(wc -l </tmp/alerts) - 1)) ] ||
	fail "throttled waits that are not marked, or without a stack"
grep ' by_pid=0 by_tid=0 by_comm="idle" ' /tmp/alerts >/tmp/idle || fail "no alert without a task that ran instead"
[ "$(stat w filtered)" -gt 0 ] || fail "no other task was preempted"
control 'w runqueue enabled=0'
sums_hold w
control -w

# A process becomes SCHED_FIFO while it is throttled, and runs at once. Then a process of a higher priority takes its
# CPU. The quota is not the reason for this wait, although task->throttled is still set.
ms=$(patiently 20)
control 'w runqueue threshold=100us cgroup=/lt-quota'
exec 3<$LT/w/alerts
{ wait_until 60 grep -q ' throttled=1' $LT/w/pending; echo; } | waits promote 1 "$ms" >/tmp/who
alerts_of w /tmp/alerts
cat /tmp/who /tmp/alerts
member=$(sed -n 's/^member=//p' /tmp/who)
hog=$(sed -n 's/^hog=\([0-9]*\) .*/\1/p' /tmp/who)
promoted=$(sed -n 's/.* promoted=//p' /tmp/who)
# The policy is that of the switch-out.
grep " tid=$member .* policy=other .* throttled=1" /tmp/alerts | tail -n 1 >/tmp/throttled
ended=$(field time </tmp/throttled)
{ [ "$ended" -ge "$promoted" ] && [ $((ended - $(field delay </tmp/throttled))) -lt "$promoted" ]; } ||
	fail "the process was not throttled when it became SCHED_FIFO"
grep " tid=$member .* policy=fifo " /tmp/alerts >/tmp/fifo || fail "no wait as SCHED_FIFO"
assert_eq "$(grep -vc ' throttled=0' /tmp/fifo)" 0 "waits as SCHED_FIFO that are said to be throttled"
grep " by_tid=$hog " /tmp/fifo >/tmp/alert || fail "no wait for the process of a higher priority"
longest=$(field delay </tmp/alert | sort -n | tail -n 1)
[ "$longest" -ge "${ms}000000" ] || fail "it waited $longest ns"
control 'w runqueue enabled=0'
sums_hold w
control -w
unload_module
