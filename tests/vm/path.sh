# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker analyze path` names a known cause: a process waits at a pipe for another, which sleeps.
# kernels: stock rt
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# timeout: 120

. /lt/tests/lib.sh

lttng create pipe --output=/tmp/pipe
lttng enable-channel --kernel --subbuf-size=1M --num-subbuf=4 channel
lttng enable-event --kernel --channel=channel 'sched_*,irq_*,timer_hrtimer_expire_*,x86_irq_vectors_*'
lttng enable-event --kernel --channel=channel --syscall read,write,clock_nanosleep
lttng start
python3 - <<END >/tmp/times
import os, time
r, w = os.pipe()
if os.fork() == 0:
    time.sleep(0.3)
    os.write(w, b"x")
    os._exit(0)
begin = time.monotonic_ns()
os.read(r, 1)
print(os.getpid(), begin, time.monotonic_ns())
END
lttng stop
lttng destroy
read -r tid from to </tmp/times
path() { /lt/bin/latency-tracker analyze path /tmp/pipe --tid "$tid" --from "$from" --to "$to" "$@"; }
path
path --json >/tmp/path.json
python3 - <<END || fail "the path does not name the timer that the other process waits for"
import json
path = json.load(open("/tmp/path.json"))
took = path["to"] - path["from"]
assert path["thread"]["tid"] == $tid and sum(s["end"] - s["begin"] for s in path["path"]) == took, path
first = path["causes"][0]
# 0.3 s, of which the rest of the path is a small part, also under emulation
assert first["cause"].get("by") == "timer" and first["time"] > 0.5 * took, first
assert first["thread"]["tid"] != $tid, first
assert path["path"][-1]["thread"]["tid"] == $tid, path["path"][-1]
END
