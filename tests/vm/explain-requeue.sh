# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker explain` is right about requests that a disk gives back. The disk rejects every third command, and
# the block layer issues the request again after some milliseconds. A thread that waits for such a request waited for
# its own request: in the queue until the last issue, then at this disk. No other thread is part of the path before
# that issue. The explanation of a request states that the driver returned it if it did, and only then. The times are
# checked against the events of the trace, as babeltrace2 shows them.
# kernels: rt
# long: stock
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root has no LTTng
# timeout: 150

. /lt/tests/lib.sh
. /lt/tests/block.sh

# Every third command is rejected with "host busy" (opts 0x8000).
modprobe scsi_debug dev_size_mb=16 delay=0 ndelay=2000000 every_nth=3 opts=0x8000 max_queue=4 ||
	skip "this kernel has no scsi_debug"
modprobe sd_mod 2>/dev/null || :
wait_until 10 sh -c 'grep -l scsi_debug /sys/block/sd*/device/model'
disk=$(grep -l scsi_debug /sys/block/sd*/device/model | head -n 1 | cut -d/ -f4)
wait_until 10 test -b "/dev/$disk"
# The first open waits until the kernel has searched the disk for partitions.
reads "$disk" 1
load_module

lttng create requeue --output=/tmp/requeue
lttng enable-channel --kernel --subbuf-size=1M --num-subbuf=4 channel
lttng enable-event --kernel --channel=channel \
	'sched_*,irq_*,block_*,timer_expire_*,timer_hrtimer_expire_*,workqueue_execute_*,power_cpu_idle,x86_irq_vectors_*'
lttng start
control "requests block threshold=1ms dev=$disk"
control 'threads offcpu threshold=1ms comm=dd'
follow $LT/alerts /tmp/alerts
follower=$!
# Every other read is given back. Each sector is read once.
reads "$disk" 21 64
wait_until 10 quiet requests
lttng stop
lttng destroy
all=$(($(stat requests alerts) + $(stat threads alerts)))
wait_until 30 sh -c "[ \$(wc -l </tmp/alerts) -eq $all ]"
kill $follower
wait $follower || :
unload_module

babeltrace2 --clock-cycles /tmp/requeue >/tmp/events
latency-tracker explain --json /tmp/requeue --alerts /tmp/alerts >/tmp/json
python3 - "$disk" "$(dev_of "$disk")" <<'END' || fail "not what happened to the requests"
import json, re, sys

name, number = sys.argv[1:]
major, minor = map(int, number.split(":"))
disk = f"disk ({name}|{number})"

# The stages of the requests of the disk, by sector.
stages = {}
with open("/tmp/events", encoding="utf-8") as events:
    for line in events:
        found = re.match(r"\[(\d+)\] .* block_rq_(issue|requeue|complete): .*\bdev = (\d+), sector = (\d+),", line)
        if found and int(found[3]) == major << 20 | minor:
            stages.setdefault(int(found[4]), []).append((found[2], int(found[1])))

def times(sector, what):
    return [time for stage, time in stages[sector] if stage == what]

def is_returned(sector):
    return ["issue", "requeue"] == [stage for stage, _ in stages[sector]][:2]

with open("/tmp/json", encoding="utf-8") as lines:
    reports = [json.loads(line) for line in lines]

def reports_of(instance):
    return [report for report in reports if report["alert"]["instance"] == instance]

# The number of requests that were not returned, and of requests that were.
seen = [0, 0]
for report in reports_of("requests"):
    alert, verdict = report["alert"], report["verdict"]
    if alert["comm"] != "dd":
        continue
    sector = alert["sector"]
    print(sector, stages[sector], verdict)
    assert alert["requeues"] == len(times(sector, "requeue")), alert
    said = re.match("The driver returned the request [1-9]", verdict) is not None
    assert said == is_returned(sector), verdict
    seen[said] += 1
assert min(seen) >= 3, seen

# Waits of the thread.
waits = 0
for report in reports_of("threads"):
    alert, verdict = report["alert"], report["verdict"]
    tid, begin, end = alert["tid"], alert["time"] - alert["delay"], alert["time"]
    ended = [s for s in stages if any(begin < completed < end for completed in times(s, "complete"))]
    if not any(map(is_returned, ended)):
        continue
    (sector,) = ended
    issued = times(sector, "issue")[-1]
    path = report["path"]["path"]
    print(sector, begin, stages[sector], end, verdict, path)
    # On a busy host, a thread may fall asleep only after its request was issued again.
    if issued <= begin:
        continue
    others = [step for step in path if step["thread"]["tid"] != tid]
    assert all(step["begin"] >= issued for step in others), others
    of_disk = [step for step in path if step["cause"].get("by") == "disk"]
    held = [step for step in of_disk if "held" in step["cause"]]
    served = [step for step in of_disk if "held" not in step["cause"]]
    for step in of_disk:
        cause = step["cause"]
        assert step["thread"]["tid"] == tid and cause["name"] == number and "request_of" not in cause, step
    assert {step["cause"]["held"] for step in held} == {"queued"}, held
    assert held[-1]["end"] == served[0]["begin"] == issued, (issued, held, served)
    assert served[-1]["end"] <= end, served
    # The wait in the queue is longer than the 2 ms at the disk, unless the end of the request was seen late.
    if 2 * (issued - begin) > end - begin:
        cause = rf"dd/{tid} waited for a request held back before {disk}: in its queue\b"
        assert re.match(rf"[0-9]+ % of the delay \([^)]*\): {cause}", verdict), verdict
        waits += 1
assert waits >= 2, waits
END
