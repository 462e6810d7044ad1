# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The known cause of a thread's delay is another task or a limit. A real-time thread preempts it
# once for a long time, or dozens of times. Or the quota of its cgroup throttles it: while it computes,
# or before it is back in user space, since another thread has used up the quota. With end=user,
# throttling before the return to user space is part of the delay. The path names the preempting
# thread even after that thread has exited. Many preemptions are one step with a count, so that no
# step is left out to make room, except, on PREEMPT_RT, two steps of the softirq thread. Throttling
# is not a preemption, and the sentence names the quota.
#
# A task reads three pages of a slow disk in one system call, one after another, and is woken by the
# timer of its first request. Its sleeps for the other requests have steps of their own, and the
# sentence does not blame that timer for them.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# icount: 1
# timeout: 240

. /lt/tests/lib.sh
. /lt/tests/block.sh

load_module
/usr/bin/taskset -p 1 $$ >/dev/null

# late WHAT COUNT: run a thread lt_late on CPU 1, which a timer wakes again and again.
#   long, often    it then computes, and lt_hog preempts it, once or many times. This takes COUNT
#                  seconds, and prints the thread id of lt_hog
#   quota, shared  it is in a cgroup with a quota, and is woken COUNT times. It uses up the quota
#                  itself; or it does not compute, and a process on CPU 0 uses up the quota
cat >/tmp/late.py <<'END'
import os, sys, threading, time
what, times = sys.argv[1], int(sys.argv[2])
def name(text):
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w", encoding="ascii") as file:
        file.write(text)
def burn(milliseconds):
    end = time.thread_time_ns() + int(milliseconds * 1e6)
    while time.thread_time_ns() < end:
        pass
os.sched_setaffinity(0, {1})
turn = 20
if what in ("quota", "shared"):
    path = "/sys/fs/cgroup/lt-quota"
    with open("/sys/fs/cgroup/cgroup.subtree_control", "w", encoding="ascii") as file:
        file.write("+cpu")
    os.makedirs(path, exist_ok=True)
    # If both threads compete for the rest of a quota, either may get it.
    quota = "2000 100000" if what == "shared" else "10000 100000"
    for file, text in ("cpu.max", quota), ("cgroup.procs", str(os.getpid())):
        with open(f"{path}/{file}", "w", encoding="ascii") as file:
            file.write(text)
    if what == "shared":
        other = os.fork()
        if other == 0:
            os.sched_setaffinity(0, {0})
            while True:
                pass
    name("lt_late")
    for _ in range(times):
        if what == "shared":
            time.sleep(0.001)
        else:
            time.sleep(0.02)
            burn(turn)
    if what == "shared":
        os.kill(other, 9)
        os.waitpid(other, 0)
else:
    # one long preemption, or many
    pause, took = (0.005, 30) if what == "long" else (0.001, 0.3)
    child = os.fork()
    if child == 0:
        name("lt_hog")
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
        end = time.monotonic() + times
        while time.monotonic() < end:
            time.sleep(pause)
            burn(took)
            if what == "long":
                time.sleep(0.08)
        os._exit(0)
    print(child)
    sys.stdout.flush()
    name("lt_late")
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        time.sleep(0.02)
        burn(turn if what == "long" else 60)
END
late() { python3 /tmp/late.py "$@"; }

# told: write the readable text of all alerts to /tmp/watched.
told() {
	latency-tracker watch t --count "$(stat t alerts)" >/tmp/watched || assert_eq $? 2 "the exit status of watch"
	cat /tmp/watched
}

# The thread is preempted once, by a thread that has exited before the alert is read.
control 't tree threshold=45ms comm=lt_late end=blocked origin=timer'
exec 3<$LT/t/alerts
hog=$(late long 2)
alerts_of t /tmp/alerts
exec 3<&-
cat /tmp/alerts
[ ! -e "/proc/$hog" ] || fail "lt_hog is still there"
# On PREEMPT_RT, ticks also preempt the thread, and the path may have no room for them.
grep -Eq " preempted:$hog\(lt_hog\)/49(\*[0-9]+)?@1\+" /tmp/alerts || fail "who preempted it is not named"
told
tr -s ' \n' '  ' </tmp/watched | grep -Eq "[Mm]ost of the delay .* passed while the task waited for a CPU( [0-9]+ times, the longest time|,) after lt_hog/$hog had preempted it, CPU 1" || fail "the sentence"
control -t

# The thread is preempted so often that the path has no room for each preemption.
control 't tree threshold=60ms comm=lt_late end=blocked origin=timer'
exec 3<$LT/t/alerts
hog=$(late often 2)
alerts_of t /tmp/alerts
exec 3<&-
cat /tmp/alerts
python3 /lt/tests/tree.py sums /tmp/alerts || fail "they do not add up"
grep -Eq " preempted=[1-9][0-9] merged=[0-9]+ more=[02] .* preempted:$hog\(lt_hog\)/49\*[1-9][0-9]@1\+" /tmp/alerts ||
	fail "the preemptions are not one step"
control -t

# The disk takes this long for a page, without readahead.
page_ns=2000000
null_disk nullb0 $page_ns
echo 0 >/sys/block/nullb0/queue/read_ahead_kb
control "t tree threshold=${page_ns}ns comm=dd end=user origin=timer"
exec 3<$LT/t/alerts
# The read skips the start of the disk, which other tasks have read already.
/usr/bin/taskset -c 1 dd if=/dev/nullb0 of=/dev/null bs=12k count=4 skip=100 2>/dev/null
alerts_of t /tmp/alerts
exec 3<&-
cat /tmp/alerts
python3 /lt/tests/tree.py sums /tmp/alerts || fail "they do not add up"
assert_eq "$(grep -c ' end=user .* reads:[0-9]*@1+' /tmp/alerts)" 4 "alerts with reads of the task's own"
if grep -q ' sleep:' /tmp/alerts; then fail "a sleep is not known to come after reads"; fi
told
case $(uname -r) in
	# The steps of the thread that calls timers leave no room for all sleeps.
	*-rt-*) ;;
	*) assert_eq "$(tr -s ' \n' '  ' </tmp/watched | grep -Eo 'passed while dd/[0-9]+ slept in state D 2 times, each after it had requested reads of its own' | wc -l)" \
		4 "sentences about what the task has requested itself" ;;
esac
control -t

# A quota.
if ! grep -qw cpu /sys/fs/cgroup/cgroup.controllers; then
	! in_time || fail "no quota of processors here"
	echo "This kernel has no quota of processors."
	unload_module
	exit
fi
control 't tree threshold=50ms comm=lt_late end=blocked origin=timer'
exec 3<$LT/t/alerts
late quota 4
alerts_of t /tmp/alerts
exec 3<&-
cat /tmp/alerts
grep -Eq ' path="timer:.* throttled:[0-9]+@1\+[0-9]+ switch:' /tmp/alerts || fail "it was throttled, and no step says so"
if grep -q ' preempted:0/' /tmp/alerts; then fail "the idle task preempts nothing"; fi
told
tr -s ' \n' '  ' </tmp/watched | grep -Eq "([Mm]ost|longest part) of the delay .* passed while lt_late/[0-9]+ was throttled, its CPU quota" || fail "the sentence"
control -t

# The thread is throttled between the end of the system call and user space.
control 't tree threshold=20ms comm=lt_late end=user origin=timer'
exec 3<$LT/t/alerts
throttled() { grep -Ec ' end=switch state=running .* path="timer:.* switch:[^ ]* throttled:[0-9]+@1\+[0-9]+ switch:[^ ]*"$' /tmp/shared || :; }
: >/tmp/shared
# It is random how often the other thread uses up the quota at the right moment.
for _ in 1 2 3 4 5; do
	[ "$(throttled)" -ge 2 ] || {
		late shared 200
		alerts_of t /tmp/alerts
		cat /tmp/alerts >>/tmp/shared
	}
done
exec 3<&-
cp /tmp/shared /tmp/alerts
cat /tmp/alerts
python3 /lt/tests/tree.py sums /tmp/alerts || fail "they do not add up"
[ "$(throttled)" -ge 2 ] || fail "with end=user no step says that it was throttled"
if grep -q ' preempted:0/' /tmp/alerts; then fail "the idle task preempts nothing"; fi
told
tr -s ' \n' '  ' </tmp/watched | grep -Eq "([Mm]ost|longest part) of the delay .* passed while lt_late/[0-9]+ was throttled, its CPU quota" || fail "the sentence with end=user"
control 't tree enabled=0'
sums_hold t
control -t
unload_module
