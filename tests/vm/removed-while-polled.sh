# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# An instance, or the module, is removed while epoll and poll watch its files, which stay open: no task
# accesses freed memory. The kernel checks its lists and poisons freed memory.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# timeout: 180
# append: slab_debug=FZPU

. /lt/tests/lib.sh

load_module
exec python3 - <<'PY'
import os, select, subprocess, threading, time
LT = "/proc/latency_tracker"

def control(line):
    with open(f"{LT}/control", "w") as file:
        file.write(line + "\n")

def watch(path):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    epoll = select.epoll()
    epoll.register(fd, select.EPOLLIN)
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    thread = threading.Thread(target=poller.poll, daemon=True)
    thread.start()
    return fd, epoll, thread

def leave(watched):
    for fd, epoll, thread in watched:
        thread.join(10)
        assert not thread.is_alive(), "poll sleeps on a file that is gone"
        epoll.poll(0)
        epoll.close()
        os.close(fd)

for _ in range(10):
    control("ep block")
    watched = [watch(f"{LT}/ep/{name}") for name in ("alerts", "wakeup")]
    time.sleep(0.05)
    control("-ep")
    # Other instances get the memory.
    for i in range(4):
        control(f"other{i} block")
    leave(watched)
    for i in range(4):
        control(f"-other{i}")

control("ep block")
watched = [watch(f"{LT}/{name}") for name in ("alerts", "wakeup", "ep/alerts")]
time.sleep(0.05)
subprocess.run(["rmmod", "latency_tracker"], check=True)
leave(watched)
print("ok")
PY
