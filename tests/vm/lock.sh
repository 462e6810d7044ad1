# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A task that waits for a mutex held for 1.2 s is reported once, with the kind of the lock, the
# delay and where it waits. A timeout finds the task asleep. Under load, each wait for a lock that
# ftrace shows is an event of a known kind. The tracker works with any kernel lock held: with an
# alert for each wait, and each alert traced, the machine keeps running.
# kernels: stock rt
# cpus: 2
# root: full
# arm64: yes
# timeout: 300
# abi-alert: for _ in 1 2; do echo slow >/sys/module/lt_works/parameters/run & done; wait $!
# abi-has:  stack="

. /lt/tests/lib.sh

trace=/sys/kernel/tracing
load_module
insmod /lt/lt_works.ko ms=40
run=/sys/module/lt_works/parameters/run
echo slow >$run
case $(uname -r) in *-rt-*) mutex=rtmutex ;; *) mutex=mutex ;; esac

# A mutex serialises writers to parameters of a module. It is held for as long as `run` takes, here
# 1.2 s. two: start a writer, and another when the first has the mutex.
two() {
	echo long >$run &
	_first=$!
	wait_until 10 grep -q __flush_work "/proc/$_first/stack"
	echo slow >$run
	wait $_first
}
control "l lock threshold=10ms kind=$mutex"
control 'none lock threshold=10ms kind=pcpu-sem:W'
exec 3<$LT/l/alerts
for _ in 1 2 3; do two; done
alerts_of l /tmp/alerts
exec 3<&-
cat /tmp/alerts
grep " kind=$mutex ret=0 stack=\"[^\"]*param_attr_store+" /tmp/alerts >/tmp/params || fail "no task waited for the mutex"
assert_eq "$(wc -l </tmp/params)" 3 "alerts of the mutex"
assert_eq "$(sed 's/.* lock=\([0-9a-f]*\) .*/\1/' /tmp/params | sort -u | wc -l)" 1 "locks"
if grep -q 'latency_tracker\|__traceiter' /tmp/alerts; then fail "our own functions"; fi
for delay in $(field delay </tmp/params); do
	[ "$delay" -ge 10000000 ] || fail "an alert below the threshold: $delay ns"
	! in_time || [ "$delay" -lt 10000000000 ] || fail "a wait of at most 1.2 s was reported as $delay ns"
done
assert_eq "$(stat none alerts)" 0 "alerts of other kinds"
control -none

# A waiter that has not acquired the mutex yet is found.
control 'l lock threshold=3600s timeout=50ms'
exec 3<$LT/l/alerts
two
alerts_of l /tmp/alerts
exec 3<&-
cat /tmp/alerts
grep "reason=timeout .* kind=$mutex ret=0 stack=\"[^\"]*param_attr_store+" /tmp/alerts || fail "no timeout"
grep "reason=late .* kind=$mutex ret=0 stack=\"[^\"]*param_attr_store+" /tmp/alerts || fail "no end"
control -l
rmmod lt_works

# states PID: print the state of each thread of a process, and how often it was switched out.
states() { grep -h '^State:\|_ctxt_switches:' /proc/"$1"/task/*/status; }
# asleep PID: whether all threads of a process are asleep at the same time. No thread runs between two readings.
asleep() {
	_states=$(states "$1") || return 1
	! echo "$_states" | grep -q '^State:.[^S]' && [ "$(states "$1")" = "$_states" ]
}

# Threads write to and read from one pipe, which has one mutex. ftrace shows their waits, except
# waits in interrupts. The threads pause while ftrace and the instance are turned on and off, so
# that both see the same waits.
cat >/tmp/crowd.py <<'END'
import os, sys, threading
WRITERS, ROUNDS, SIZE = 4, 300, 60000
tids, left = [], [WRITERS * ROUNDS * SIZE]
reading, writing = os.pipe()
ready, go, over = threading.Barrier(2 * WRITERS + 1), threading.Event(), threading.Barrier(2 * WRITERS + 1)
def write():
    for _ in range(ROUNDS):
        rest = bytes(SIZE)
        while rest:
            rest = rest[os.write(writing, rest):]
def read():
    while os.read(reading, SIZE) != b'':
        pass
def thread(work):
    tids.append(threading.get_native_id())
    ready.wait()
    go.wait()
    work()
    over.wait()
    threading.Event().wait()
writers = threading.Barrier(WRITERS)
def write_all():
    write()
    # The last writer closes the pipe, so the readers see its end.
    if writers.wait() == 0:
        os.close(writing)
for _ in range(WRITERS):
    for work in read, write_all:
        threading.Thread(target=thread, args=(work,), daemon=True).start()
ready.wait()
print(os.getpid(), *tids, flush=True)
sys.stdin.readline()
go.set()
over.wait()
print('over', flush=True)
sys.stdin.readline()
os._exit(0)
END
mkfifo /tmp/orders /tmp/answers
python3 /tmp/crowd.py </tmp/orders >/tmp/answers &
exec 5>/tmp/orders 6</tmp/answers
read -r tids <&6
control "all lock enabled=0 threshold=0 pid=${tids%% *} ring=65536 events=16384"
echo 65536 >$trace/buffer_size_kb
echo 1 >$trace/events/lock/contention_begin/enable
echo 1 >$trace/events/lock/contention_end/enable
wait_until 30 asleep "${tids%% *}"
control 'all lock enabled=1'
echo go >&5
read -r _ <&6
wait_until 30 asleep "${tids%% *}"
control 'all lock enabled=0'
echo 0 >$trace/tracing_on
echo 0 >$trace/events/lock/enable
echo exit >&5
exec 5>&- 6<&-
if grep -q 'LOST' $trace/trace; then fail "ftrace lost events"; fi
cat >/tmp/count.py <<'END'
import re, sys
# A line: comm-tid [cpu] flags time: event: address (flags=...) or (ret=...)
pattern = re.compile(r'.*-(\d+) +\[\d+\] (\S+) +[\d.]+: contention_(begin|end): (\S+) \((?:flags=(\S*)|ret=-?\d+)\)')
tids, waiting, begun, ended = sys.argv[1:], {}, 0, 0
for line in sys.stdin:
    match = pattern.match(line)
    # in an interrupt, or a softirq
    if not match or match[1] not in tids or match[2][2] in 'hHsZz':
        continue
    waits = waiting.setdefault((match[4], match[1]), [])
    if match[3] == 'end':
        ended += len(waits) > 0
        waits[-1:] = []
    elif not ('MUTEX' in match[5] and waits):
        waits.append(line)
        begun += 1
print(begun, ended)
END
# shellcheck disable=SC2086 # numbers
python3 /tmp/count.py $tids <$trace/trace >/tmp/traced
tail -n 2 $trace/trace
echo "waits: $(cat /tmp/traced), events: $(stat all started) $(stat all ended)"
assert_eq "$(stat all started) $(stat all ended)" "$(cat /tmp/traced)" "waits"
[ "$(stat all ended)" -gt 20 ] || fail "too few waits"
assert_eq "$(stat all full) $(stat all negative) $(stat all alerts_lost)" "0 0 0" "lost"
assert_eq "$(stat all alerts)" "$(stat all ended)" "alerts"
cat $LT/all/wakeup >/tmp/alerts
sed 's/.* kind=\([^ ]*\) .*/\1/' /tmp/alerts | sort | uniq -c
if grep -v ' lock=[0-9a-f]* kind=[a-z:A-Z-]* ret=-*[0-9]* stack="' /tmp/alerts | head -n 3 | grep .; then fail "odd alerts"; fi
if grep -q ' kind=other ' /tmp/alerts; then fail "unknown lock kind"; fi
control -all

# Each wait of any task raises an alert with its stack. Each alert is traced, and wakes readers.
echo 0 >$trace/events/lock/enable
echo 1 >$trace/tracing_on
echo 1 >$trace/events/latency_tracker/alert_lock/enable
control 'all lock threshold=0 wakeup_interval=0'
cat $LT/all/alerts >/dev/null &
reader=$!
printf 'go\nexit\n' | python3 /tmp/crowd.py >/dev/null
kill $reader
grep ' alert_lock: ' $trace/trace | grep -q ' lock=[0-9a-f]* kind=[a-z:A-Z-]* ret=' || fail "no event alert_lock"
[ "$(stat all alerts)" -gt 20 ] || fail "hardly any alerts"
echo 0 >$trace/events/latency_tracker/enable
control 'all lock enabled=0'
sums_hold all

for bad in kind=spin lock=1 kind=; do
	refused "$bad" control "bad lock $bad"
done
unload_module
