# SPDX-License-Identifier: GPL-2.0 OR MIT
"""The load of tests/vm/stress.sh, which describes it.

    requests    make requests, each on one CPU while that is online
    lt_stress   kernel threads on an engine of their own
    churn       creates, changes, disables and removes instances
    readers     read, poll and epoll whatever there is, and are killed
    hotplug     takes CPUs offline and back
    callers     call what the sample in C tracks
    samples     loads and unloads the samples, which have trackers of their own

Each, except lt_stress, is a process with its own random numbers, from one seed. A failure that another process
explains (it has just removed the instance) is ignored; any other failure ends the test.
"""

import errno
import glob
import mmap
import os
import random
import select
import signal
import subprocess
import sys
import time
import traceback

LT = "/proc/latency_tracker"
DISKS = ["fast", "slow", "queued"]
NAMES = [f"i{n}" for n in range(6)]
CPUS = os.cpu_count()
SECONDS = float(os.environ.get("LT_STRESS_SECONDS") or 20)
SEED = int(os.environ.get("LT_STRESS_SEED") or time.time_ns() % 1_000_000)

# Errors when another process removes what is used: missing, being removed, or gone while open. EAGAIN: there is
# nothing to read.
EXPECTED = {errno.ENOENT, errno.ENODEV, errno.EIO, errno.EBUSY, errno.EAGAIN}

# What the kernel logs when a CPU goes offline: on x86, and on arm64 with the firmware interface PSCI.
OFFLINE = [" is now offline", " killed (polled "]


def write(path, text):
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def control(line):
    write(f"{LT}/control", line + "\n")


def read(path):
    with open(path) as file:
        return file.read()


def stats(name):
    return {key: int(value) for key, value in (line.split() for line in read(f"{LT}/{name}/stats").splitlines())}


# The processes. Each function gets random numbers, and returns when `time_is_up`, or is killed.


def requests(chance, number):
    """Makes direct requests on random disks, one at a time, and buffered writes, some of which it flushes."""
    page = mmap.mmap(-1, 16384)
    direct = [os.open(f"/dev/{disk}", os.O_RDWR | os.O_DIRECT) for disk in DISKS]
    buffered = os.open("/dev/queued", os.O_RDWR)
    while not time_is_up():
        try:
            os.sched_setaffinity(0, {number % CPUS})
        except OSError:
            pass  # offline, for now
        for _ in range(50):
            length = 4096 * chance.randint(1, 4)
            offset = 4096 * chance.randrange(4096)
            fd = chance.choices(direct, (8, 1, 3))[0]
            if chance.random() < 0.5:
                os.preadv(fd, [memoryview(page)[:length]], offset)
            else:
                os.pwritev(fd, [memoryview(page)[:length]], offset)
        # not where the direct requests go: the kernel cannot keep both consistent, and sometimes
        # returns EIO
        os.pwrite(buffered, bytes(8192), 4096 * (8192 + chance.randrange(4096)))
        if chance.random() < 0.3:
            os.fsync(buffered)


def churn(chance, _):
    """Creates and removes instances, and changes some of their parameters."""
    durations = ["0", "1", "10us", "300us", "2ms", "20ms", "10s"]
    while not time_is_up():
        name = chance.choice(NAMES)
        try:
            match chance.randrange(12):
                case 0 | 1 | 2 | 3:
                    settings = {
                        "threshold": chance.choice(durations[1:]),
                        "timeout": chance.choice(durations),
                        "wakeup_interval": chance.choice(["0", "1ms", "1s"]),
                        "dev": chance.choice(DISKS + ["all"]),
                        "enabled": chance.choice("0111"),
                    }
                    if not os.path.exists(f"{LT}/{name}"):
                        settings["events"] = chance.choice(["1", "2", "7", "64", "4096", "20000"])
                        settings["ring"] = chance.choice(["2", "64", "1024"])
                        settings["from"] = chance.choice(["issue", "insert"])
                    given = chance.sample(sorted(settings), chance.randint(1, len(settings)))
                    control(f"{name} block " + " ".join(f"{key}={settings[key]}" for key in given))
                case 4 | 5:
                    control(f"-{name}")
                case 6:
                    write(f"{LT}/{name}/enabled", chance.choice("0011"))
                case 7 | 8:
                    write(f"{LT}/{name}/timeout", chance.choice(durations))
                case 9:
                    write(f"{LT}/{name}/threshold", chance.choice(durations[1:]))
                case 10:
                    write(f"{LT}/{name}/dev", chance.choice(DISKS + ["all"]))
                case 11:
                    write(f"{LT}/{name}/wakeup_interval", chance.choice(durations))
        except OSError as error:
            # EINVAL: another process has created it meanwhile, with other values for what is fixed
            if error.errno not in EXPECTED | {errno.EINVAL}:
                raise
        time.sleep(chance.random() * 0.02)


def readers(chance, number):
    """Children that read a file of alerts, or all other files of a directory, and are killed after a while."""
    children = {}
    while not time_is_up():
        now = time.monotonic()
        for pid, until in list(children.items()):
            if now > until:
                os.kill(pid, signal.SIGKILL)
            done, status = os.waitpid(pid, 0 if now > until else os.WNOHANG)
            if done:
                del children[pid]
                if os.waitstatus_to_exitcode(status) not in (0, -signal.SIGKILL):
                    raise RuntimeError(f"a reader ended with status {status}")
        while len(children) < 8:
            seed = chance.random()
            pid = spawn(f"reader {number}", reader, seed, 0)
            children[pid] = now + chance.choice([0.01, 0.1, 0.5, 2])
        time.sleep(0.02)
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def reader(chance, _):
    try:
        directory = chance.choice([LT] + [f"{LT}/{name}" for name in NAMES])
        if chance.random() < 0.5:
            path = f"{directory}/{chance.choice(['alerts', 'wakeup'])}"
            fd = os.open(path, os.O_RDONLY | chance.choice([0, os.O_NONBLOCK]))
            for _ in range(20):
                match chance.randrange(4):
                    case 0:
                        poller = select.poll()
                        poller.register(fd, select.POLLIN)
                        poller.poll(300)
                    case 1:
                        with select.epoll() as epoll:
                            epoll.register(fd, select.EPOLLIN | chance.choice([0, select.EPOLLET]))
                            epoll.poll(0.3)
                    case _:
                        try:
                            os.read(fd, chance.choice([1, 100, 65536]))
                        except BlockingIOError:
                            time.sleep(0.01)
            return
        for _ in range(20):
            for path in glob.glob(f"{directory}/*"):
                if os.path.isfile(path) and os.path.basename(path) not in ("alerts", "wakeup"):
                    read(path)
    except OSError as error:
        if error.errno not in EXPECTED:
            raise


def hotplug(chance, _):
    """Takes CPUs offline and back; CPU 0 stays online."""
    while not time_is_up():
        cpu = chance.randrange(1, CPUS)
        path = f"/sys/devices/system/cpu/cpu{cpu}/online"
        try:
            write(path, "0" if read(path).strip() == "1" else "1")
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
        time.sleep(0.1 + chance.random())


def callers(chance, _):
    """Calls the function of samples/c; some calls are late, some exceed the timeout."""
    while not time_is_up():
        try:
            write("/sys/module/lt_sample_c/parameters/work", chance.choice(["0", "0", "0", "1", "12", "110"]))
        except OSError as error:
            # Not loaded just now.
            if error.errno not in EXPECTED:
                raise
            time.sleep(0.01)


def samples(chance, _):
    """Loads and unloads the samples. One time in four, the sample in C is unloaded without destroying its tracker."""
    while not time_is_up():
        forget = "1" if chance.random() < 0.25 else "0"
        subprocess.run(["insmod", "/lt/lt_sample_c.ko", f"forget={forget}"], check=True)
        subprocess.run(["insmod", "/lt/lt_sample_rust.ko", f"ms={chance.choice([10, 20, 50])}"], check=True)
        time.sleep(chance.random())
        for sample in ("sample_c", "sample_rust"):
            adds_up_while_used(sample)
            unload(f"lt_{sample}")


def unload(module):
    """Unloads a module, which fails while callers use it."""
    while subprocess.run(["rmmod", module], stderr=subprocess.DEVNULL, check=False).returncode:
        time.sleep(0.01)


def adds_up_while_used(name):
    """Checks the counters of rust/engine/stats.rs while other CPUs count. An attempt is counted before its start, so no
    reading has more starts than a later one has attempts."""
    v = stats(name)
    attempts = stats(name)["attempts"]
    assert v["started"] <= attempts, f"{name}: {attempts} attempts, after {v}"
    assert v["full"] == 0, f"{name}: {v}"


# How they are run


def time_is_up():
    return os.path.exists("/tmp/stop")


def spawn(title, party, seed, number):
    """Starts a process, whose exit status is 1 if its function fails."""
    pid = os.fork()
    if pid:
        return pid
    try:
        party(random.Random(seed), number)
        os._exit(0)
    except BaseException:
        print(f"{title}:\n{traceback.format_exc()}", flush=True)
    os._exit(1)


def all_online():
    for cpu in range(1, CPUS):
        path = f"/sys/devices/system/cpu/cpu{cpu}/online"
        if read(path).strip() == "0":
            write(path, "1")


def adds_up(name):
    """Checks the sums of rust/engine/stats.rs, with nothing in flight."""
    v = stats(name)
    counted = sum(int(line.split()[2]) for line in read(f"{LT}/{name}/histogram").splitlines())
    assert v["pending"] == 0, f"{name}: {v}"
    assert v["attempts"] == v["started"] + v["full"] + v["filtered"] + v["off"] + v["crowded"], f"{name}: {v}"
    assert v["started"] == v["ended"] + v["replaced"] + v["cleared"] + v["gone"], f"{name}: {v}"
    assert v["ended"] == v["negative"] + v.get("before_start_ended", 0) + counted, f"{name}: {counted} in the histogram, {v}"
    assert v["free"] == v["capacity"], f"{name}: {v}"
    assert v["late"] <= v["timed_out"] <= v["started"], f"{name}: {v}"
    # No request is in flight twice, so no event can have been replaced.
    assert v["replaced"] == 0, f"{name}: {v}"
    return v


def main():
    print(f"{SECONDS:g} s with {CPUS} CPUs, LT_STRESS_SEED={SEED}", flush=True)
    chance = random.Random(SEED)
    subprocess.run(["insmod", "/lt/latency_tracker.ko"], check=True)
    subprocess.run(["insmod", "/lt/lt_stress.ko"], check=True)
    # This instance lives from the first request to the last.
    control("all block threshold=2ms timeout=3ms wakeup_interval=0 events=2")
    parties = [requests] * (CPUS + 1) + [churn] * 2 + [readers] * 2 + [hotplug, callers, callers, samples]
    children = {}
    for number, party in enumerate(parties):
        title = f"{party.__name__} {number}"
        children[spawn(title, party, chance.random(), number)] = title
    end = time.monotonic() + SECONDS
    failed = []
    while children:
        if time.monotonic() > end or failed:
            open("/tmp/stop", "w").close()
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            time.sleep(0.1)
            continue
        title = children.pop(pid)
        if status or not time_is_up():
            failed.append(f"{title} ended with status {status}")
    all_online()
    assert not failed, failed
    for module in ("lt_sample_c", "lt_sample_rust"):
        subprocess.run(["rmmod", module], stderr=subprocess.DEVNULL, check=False)
    # The requests are over; buffered data is written now.
    subprocess.run(["sync"], check=True)
    instances = [line.split()[0] for line in read(f"{LT}/control").splitlines()]
    deadline = time.monotonic() + 30
    while any(stats(name)["pending"] for name in instances) and time.monotonic() < deadline:
        time.sleep(0.1)
    for name in instances:
        v = adds_up(name)
        print(f"{name}: " + " ".join(f"{key}={value}" for key, value in v.items() if value), flush=True)
    v = stats("all")
    # The instance `all` has seen everything: each request was tracked, or lost to a full pool.
    assert v["started"] > 0 and v["attempts"] == v["started"] + v["full"], v
    assert v["alerts"] > 0 and v["timed_out"] > 0, v
    assert v["grown"] > 0 and v["capacity"] > 2, v

    # The module is unloaded while requests are made and files are open; then everything starts once more.
    os.remove("/tmp/stop")
    busy = [spawn("requests", requests, chance.random(), n) for n in range(CPUS)]
    watchers = [subprocess.Popen(["cat", f"{LT}/{name}/alerts"], stdout=subprocess.DEVNULL) for name in instances]
    time.sleep(0.5)
    subprocess.run(["rmmod", "lt_stress"], check=True)
    subprocess.run(["rmmod", "latency_tracker"], check=True)
    for watcher in watchers:
        watcher.wait(10)
    subprocess.run(["insmod", "/lt/latency_tracker.ko"], check=True)
    control("again block threshold=2ms")
    time.sleep(0.5)
    open("/tmp/stop", "w").close()
    for pid in busy:
        _, status = os.waitpid(pid, 0)
        assert status == 0, "requests failed while the module was unloaded"
    while stats("again")["pending"]:
        time.sleep(0.1)
    v = adds_up("again")
    assert v["started"] > 0, v
    subprocess.run(["rmmod", "latency_tracker"], check=True)
    log = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
    print("\n".join(line for line in log.splitlines() if "lt_stress:" in line))
    offline = sum(log.count(words) for words in OFFLINE)
    print(f"{offline} times a CPU went offline")
    assert offline, "no CPU went offline"
    assert "lt_sample_rust: threshold=" in log, "no sample was loaded"
    assert "lt_stress: ok" in log, "the engine of lt_stress"


if __name__ == "__main__":
    sys.exit(main())
