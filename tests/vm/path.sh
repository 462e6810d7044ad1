# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker analyze path` names a known cause: a process waits at a pipe for another process,
# which sleeps. The recording is rotated meanwhile, and its chunks are read as one. Two snapshots of
# the same time are refused. `latency-tracker analyze sleeps` names what woke the two processes.
# `analyze delays` then divides the time of the process that waited: it sleeps, and waits for another
# child, which computes. The guide's examples of pages, pictures, stacks and columns work on this trace.
# kernels: rt
# long: stock
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root has no LTTng
# timeout: 150

. /lt/tests/lib.sh
. /lt/tests/examples.sh

lttng create pipe --output=/tmp/pipe
lttng enable-channel --kernel --subbuf-size=1M --num-subbuf=4 channel
lttng enable-event --kernel --channel=channel 'sched_*,irq_*,timer_hrtimer_expire_*,x86_irq_vectors_*'
lttng enable-event --kernel --channel=channel --syscall read,write,clock_nanosleep
lttng start
cat >/tmp/pipe.py <<END
import os, time
r, w = os.pipe()
if os.fork() == 0:
    time.sleep(1)
    os.write(w, b"x")
    os._exit(0)
begin = time.monotonic_ns()
os.read(r, 1)
print(os.getpid(), begin, time.monotonic_ns())
begin = time.monotonic_ns()
time.sleep(0.1)
child = os.fork()
if child == 0:
    while time.process_time() < 0.05:
        pass
    os.write(w, b"x")
    os._exit(0)
os.read(r, 1)
print(child, begin, time.monotonic_ns())
END
python3 /tmp/pipe.py >/tmp/times &
lttng rotate
wait "$!"
lttng stop
lttng destroy
chunks=$(find /tmp/pipe -name metadata | wc -l)
[ "$chunks" -eq 2 ] || fail "$chunks chunks of the recording"
read -r tid from to </tmp/times
delays() { /lt/bin/latency-tracker analyze delays /tmp/pipe "$@"; }
path() { /lt/bin/latency-tracker analyze path /tmp/pipe --tid "$tid" --from "$from" --to "$to" "$@"; }
path 2>/tmp/notes
! grep 'between the traces' /tmp/notes || fail "nothing is between the chunks"
path --json >/tmp/path.json
python3 - <<END || fail "the path does not name the timer that the other process waits for"
import json
path = json.load(open("/tmp/path.json"))
took = path["to"] - path["from"]
assert path["thread"]["tid"] == $tid and sum(s["end"] - s["begin"] for s in path["path"]) == took, path
first = path["causes"][0]
# The sleep lasts 1 s: all other steps are a small part of the path, even under emulation.
assert first["cause"].get("by") == "timer" and first["time"] > 0.5 * took, first
assert first["thread"]["tid"] != $tid, first
assert path["path"][-1]["thread"]["tid"] == $tid, path["path"][-1]
END

/lt/bin/latency-tracker analyze sleeps /tmp/pipe -n 1000000 --json >/tmp/sleeps.json
python3 - <<END || fail "the sleeps do not name what woke the two processes"
import json
(table,) = json.load(open("/tmp/sleeps.json"))["tables"]
def longest(tid):
    return max((s for s in table["worst"] if s["thread"]["tid"] == tid), key=lambda s: s["took"])
read = longest($tid)
assert (read["state"], read["waker"]) == ("S", "thread"), read
sleep = longest(read["woken_by"]["tid"])
assert sleep["waker"] == "timer" and sleep["took"] > read["took"] / 2, sleep
END

# The second line of /tmp/times has the child that computes, and the start and the end of the time in which the parent
# sleeps and then waits for this child.
{ read -r _; read -r child from to; } </tmp/times
delays --tid "$tid" --from "$from" --to "$to" --json >/tmp/parent.json
# From the start of the trace, and up to the write that ends the wait.
delays --event "syscall_entry_write:$child" --json >/tmp/child.json
delays --tid "$tid" --from "$from" --to "$to" --depth 0 >/tmp/delays
cat /tmp/delays
python3 - <<END || fail "the time of a process that sleeps and waits is not divided as it spent it"
import json

def took(part):
    return part["end"] - part["begin"]

def load(name):
    report = json.load(open(name))
    for part in report["segments"]:
        assert sum(part["sums"].values()) == sum(map(took, part["states"])) == part["to"] - part["from"], part["sums"]
    return report

parent = load("/tmp/parent.json")
(part,) = parent["segments"]
def blocked(call):
    return [s for s in part["states"] if s["class"] == "blocked" and s["cause"].get("syscall") == call]
# On PREEMPT_RT, the same call may also wait for a kernel lock.
sleep = max(blocked("clock_nanosleep"), key=took)
assert sleep["cause"]["by"] == "timer" and "woken_by" not in sleep, sleep
assert sleep["end"] - parent["from"] >= 100_000_000, sleep
read = max(blocked("read"), key=took)
(wait,) = (w for w in part["waits"] if w["depth"] == 0 and w["begin"] == read["begin"])
assert read["woken_by"]["tid"] == wait["woken_by"]["tid"] == $child and "cause" not in wait, (read, wait)

child = load("/tmp/child.json")
tids = [part["thread"]["tid"] for part in child["segments"]]
assert child["thread"]["tid"] == $child and tids[-2:] == [$tid, $child] and len(tids) > 2, tids
last = child["segments"][-1]
# The CPU time of the child is 50 ms by the kernel's account. It may be less in the trace: if a virtual CPU loses its
# processor at a switch, that time may count for the other thread.
ran = [s for s in last["states"] if s["class"] == "working" or s["cause"]["kind"] == "interrupted"]
assert 25_000_000 <= sum(map(took, ran)), last["sums"]
END
grep "in read: woken by python3/$child" /tmp/delays || fail "the child that computes is not named"

mkdir /tmp/guide
cd /tmp/guide || exit
ln -s /tmp/pipe trace
examples_of /lt/Documentation/guide/analyze.md /tmp/blocks
for block in /tmp/blocks/*; do
	grep -Eq -- '--(perfetto|html|svg|folded|csv)' "$block" || rm "$block"
done
sed -i "s/--tid 177/--tid $tid/" /tmp/blocks/*
run_examples /tmp/blocks
for file in 177.pftrace 177.html 177.svg 177.folded path.folded 177.csv wakeups.html calls.svg calls.folded cpu.csv; do
	[ -s "$file" ] || fail "no $file"
done
grep "^python3/$tid;blocked;in read;woken by python3/[0-9]*;waits in clock_nanosleep for " 177.folded ||
	fail "no stack of the wait for a child that sleeps"

lttng create twice --snapshot --output=/tmp/twice
lttng enable-channel --kernel --subbuf-size=256K --num-subbuf=4 channel
lttng enable-event --kernel --channel=channel sched_switch,sched_waking
lttng start
lttng snapshot record
lttng snapshot record
lttng stop
lttng destroy
refused=$(/lt/bin/latency-tracker analyze path /tmp/twice --tid 1 2>&1) && fail "two snapshots of one time are read as one"
case $refused in
*'have the same events of CPU 0, which would count twice: name one trace, such as /tmp/twice/'*) ;;
*) fail "two snapshots of one time: $refused" ;;
esac
