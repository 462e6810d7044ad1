# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker analyze path` names a known cause: a process waits at a pipe for another process,
# which sleeps. The recording is rotated meanwhile, and its chunks are read as one. Two snapshots of
# the same time are refused.
# kernels: rt
# long: stock
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root has no LTTng
# timeout: 120

. /lt/tests/lib.sh

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
END
python3 /tmp/pipe.py >/tmp/times &
lttng rotate
wait "$!"
lttng stop
lttng destroy
chunks=$(find /tmp/pipe -name metadata | wc -l)
[ "$chunks" -eq 2 ] || fail "$chunks chunks of the recording"
read -r tid from to </tmp/times
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
# 1 s, so long that all other steps are a small part of the path, even under emulation
assert first["cause"].get("by") == "timer" and first["time"] > 0.5 * took, first
assert first["thread"]["tid"] != $tid, first
assert path["path"][-1]["thread"]["tid"] == $tid, path["path"][-1]
END

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
*'have recorded the same events of CPU 0, which would count twice: name one of them, such as /tmp/twice/'*) ;;
*) fail "two snapshots of one time: $refused" ;;
esac
