# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Makes a task late for a known cause, for tests inside the virtual machine. The late task is called victim (in one
case, dd), and each other task has a name of its own. In some cases, the process that calls the function becomes the
late task; otherwise, the function returns once the late task's wait has ended. late.py has more causes."""

import ctypes
import fcntl
import mmap
import os
import select
import signal
import socket
import struct
import subprocess
import threading
import time

from late import called, spin, wait_for

LIBC = ctypes.CDLL(None, use_errno=True)
CGROUPS = "/sys/fs/cgroup"
LONG = 0.5
SHORT = 0.15


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def cgroup(name, **limits):
    """Makes a cgroup with limits, such as cpu_max="10000 100000", and returns its directory."""
    path = f"{CGROUPS}/{name}"
    for controller in {key.partition("_")[0] for key in limits if not key.startswith("cgroup")}:
        write(f"{CGROUPS}/cgroup.subtree_control", f"+{controller}")
    os.makedirs(path, exist_ok=True)
    for key, value in limits.items():
        write(f"{path}/{key.replace('_', '.')}", value)
    return path


def enter(path):
    write(f"{path}/cgroup.procs", str(os.getpid()))


def task(name, function, *arguments):
    """Runs a function in a process of that name."""
    pid = os.fork()
    if pid == 0:
        called(name)
        function(*arguments)
        os._exit(0)
    return pid


def on(cpu, priority=0):
    """Moves this task to a CPU, with a real-time priority if `priority` is not 0."""
    os.sched_setaffinity(0, {cpu})
    if priority:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))


def asleep(pid, states="S"):
    """Waits until a process, whatever its name, is in one of the states."""
    state = "R"
    while state not in states:
        time.sleep(0.005)
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            state = stat.read().rpartition(")")[2].split()[0]


def syscall(number, *arguments):
    result = LIBC.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"system call {number}")
    return result


def read_block(disk, block, size=4096):
    fd = os.open(f"/dev/{disk}", os.O_RDONLY | os.O_DIRECT)
    os.preadv(fd, [mmap.mmap(-1, size)], block * size)
    os.close(fd)


def victim_waits(wait, name, does):
    """The victim waits until a task called `name` does something that ends the wait."""
    r, w = os.pipe()
    # The task is started before the victim, so that the wait does not include its start.
    task(name, lambda: does(struct.unpack("i", os.read(r, 4))[0]))
    victim = task("victim", wait)
    asleep(victim, "SD")
    os.write(w, struct.pack("i", victim))
    os.waitpid(victim, 0)
    os.wait()


# -- another task, which computes ------------------------------------------------------------------------------------


def locked(lock, holder):
    """The victim waits for a lock. The task named holder takes the lock, then calls the function `holder`."""
    r, w = os.pipe()

    def hold():
        file = os.open("/tmp/lock", os.O_RDWR | os.O_CREAT)
        lock(file)
        os.write(w, b"x")
        holder()
        os._exit(0)

    task("holder", hold)
    os.read(r, 1)
    called("victim")
    lock(os.open("/tmp/lock", os.O_RDWR | os.O_CREAT))


def flock(file):
    fcntl.flock(file, fcntl.LOCK_EX)


def record_lock(file):
    fcntl.lockf(file, fcntl.LOCK_EX)


def computes():
    spin(LONG)


def told_by(kind):
    """The victim reads what writer writes after computing. `kind` makes the two ends of the connection."""
    reader, writer = kind()

    def write_late(_):
        spin(LONG)
        os.write(writer, bytes(7) + b"\1")

    victim_waits(lambda: os.read(reader, 8), "writer", write_late)


def eventfd():
    fd = os.eventfd(0)
    return fd, fd


def unix():
    return [end.detach() for end in socket.socketpair()]


def epoll():
    r, w = os.pipe()

    def wait():
        poll = select.epoll()
        poll.register(r, select.EPOLLIN)
        poll.poll()

    victim_waits(wait, "writer", lambda _: (spin(LONG), os.write(w, b"x")))


def fifo():
    if not os.path.exists("/tmp/fifo"):
        os.mkfifo("/tmp/fifo")

    def open_late(_):
        spin(LONG)
        os.open("/tmp/fifo", os.O_WRONLY)

    victim_waits(lambda: os.open("/tmp/fifo", os.O_RDONLY), "opener", open_late)


def semaphore():
    number = syscall(64, 0, 1, 0o1600)
    wait, post = (struct.pack("HhH", 0, by, 0) for by in (-1, 1))

    def post_late(_):
        spin(LONG)
        syscall(65, number, post, 1)

    victim_waits(lambda: syscall(65, number, wait, 1), "poster", post_late)
    syscall(66, number, 0, 0)


def message():
    number = syscall(68, 0, 0o1600)

    def send_late(_):
        spin(LONG)
        syscall(69, number, struct.pack("q8s", 1, b""), 8, 0)

    buffer = ctypes.create_string_buffer(16)
    victim_waits(lambda: syscall(70, number, buffer, 8, 0, 0), "sender", send_late)
    syscall(71, number, 0, None)


def signalled():
    signal.signal(signal.SIGUSR1, lambda *_: None)
    victim_waits(signal.pause, "killer", lambda victim: (spin(LONG), os.kill(victim, signal.SIGUSR1)))


def child():
    pid = task("child", spin, LONG)
    called("victim")
    os.waitpid(pid, 0)


def vfork():
    """The victim waits until its child, which shares the victim's memory, has opened a FIFO and executed a program."""
    if not os.path.exists("/tmp/fork"):
        os.mkfifo("/tmp/fork")

    def spawn():
        file = (os.POSIX_SPAWN_OPEN, 0, "/tmp/fork", os.O_RDONLY, 0)
        os.waitpid(os.posix_spawn("/bin/true", ["true"], {}, file_actions=[file]), 0)

    def open_late(_):
        spin(LONG)
        os.open("/tmp/fork", os.O_WRONLY)

    victim_waits(spawn, "opener", open_late)


def inversion():
    """The owner of a lock is preempted: medium occupies its CPU."""
    medium, start = os.pipe()

    def first():
        on(1, 10)
        os.read(medium, 1)
        spin(LONG)

    task("medium", first)

    def hold():
        on(1)
        os.write(start, b"x")
        spin(0.05)

    locked(flock, hold)


def inherited(holder):
    """The victim waits for a futex with priority inheritance, which its owner holds while `holder` runs."""
    memory = mmap.mmap(-1, 4096)
    address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
    r, w = os.pipe()

    def hold():
        syscall(202, address, 6, 0, None, None, 0)
        os.write(w, b"x")
        holder()
        syscall(202, address, 7, 0, None, None, 0)

    task("holder", hold)
    os.read(r, 1)
    called("victim")
    syscall(202, address, 6, 0, None, None, 0)


def itimer():
    called("victim")
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, LONG)
    signal.pause()


def fuse():
    """The victim waits for the server of a FUSE file system, which is slow to answer."""
    os.makedirs("/tmp/fuse", exist_ok=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    if LIBC.mount(b"fuse", b"/tmp/fuse", b"fuse", 0, options) != 0:
        raise OSError(ctypes.get_errno(), "mount")
    victim = task("victim", os.stat, "/tmp/fuse")
    called("server")
    answered = False
    while not answered:
        _, kind, unique, *_ = struct.unpack_from("IIQQIIII", os.read(device, 1 << 20))
        answer = b""
        if kind == 26:  # FUSE_INIT
            answer = struct.pack("IIIIHHIIHHII24x", 7, 31, 0, 0, 12, 12, 65536, 1, 0, 0, 0, 0)
        elif kind == 3:  # FUSE_GETATTR
            spin(LONG)
            answer = struct.pack("QIIQQQQQQIIIIIIIIII", 0, 0, 0, 1, *[0] * 8, 0o40755, 2, 0, 0, 0, 4096, 0)
            answered = True
        os.write(device, struct.pack("IiQ", 16 + len(answer), 0, unique) + answer)
    os.waitpid(victim, 0)
    LIBC.umount2(b"/tmp/fuse", 2)


def frozen_disk(directory):
    """The victim cannot write to a frozen file system until thawer thaws it."""
    fd = os.open(directory, os.O_RDONLY)
    fcntl.ioctl(fd, 0xC0045877, 0)  # FIFREEZE

    def thaw(_):
        spin(LONG)
        fcntl.ioctl(fd, 0xC0045878, 0)  # FITHAW

    victim_waits(lambda: os.mkdir(f"{directory}/{os.getpid()}"), "thawer", thaw)


# -- a processor -------------------------------------------------------------------------------------------------------


def moved():
    """The victim waits for a while behind hog on CPU 0, and longer behind other on CPU 1."""
    r, w = os.pipe()

    def wait():
        on(0)
        os.read(r, 1)

    victim = task("victim", wait)
    asleep(victim)
    on(1, 50)
    called("mover")
    there, here = os.pipe()

    def hog(cpu):
        on(cpu, 10)
        os.write(here, b"x")
        spin(0.9)

    for cpu, name in (0, "hog"), (1, "other"):
        task(name, hog, cpu)
    for _ in range(2):
        os.read(there, 1)
    os.write(w, b"x")
    time.sleep(0.05)
    os.sched_setaffinity(victim, {1})
    for _ in range(3):
        os.wait()


def deadline():
    """The runtime of SCHED_DEADLINE is used up."""
    called("victim")
    syscall(314, 0, struct.pack("IIQiIQQQ", 48, 6, 0, 0, 0, 20_000_000, 500_000_000, 500_000_000), 0)
    spin(0.7)


def quota():
    """The quota of a cgroup is used up."""
    on(1)
    enter(cgroup("lt-quota", cpu_max="10000 400000"))
    called("victim")
    spin(0.5)


def quota_beside():
    """The quota of a cgroup is used up; meanwhile another task often has the CPU."""
    pid = task("neighbour", often, 1)
    quota()
    os.kill(pid, signal.SIGKILL)
    os.wait()


def often(cpu):
    """Computes for 60 ms of each 100 ms."""
    on(cpu)
    while True:
        spin(0.06)
        time.sleep(0.04)


def owner_quota():
    """The quota of the owner of a lock is used up."""
    path = cgroup("lt-quota", cpu_max="20000 1000000")

    def hold():
        on(1)
        enter(path)
        spin(0.9)

    locked(flock, hold)


def stopped():
    victim_waits(lambda: time.sleep(0.2), "stopper", stop)


def stop(victim):
    os.kill(victim, signal.SIGSTOP)
    spin(LONG)
    os.kill(victim, signal.SIGCONT)


def frozen():
    path = cgroup("lt-frozen")

    def wait():
        enter(path)
        time.sleep(0.2)

    def freeze(_):
        write(f"{path}/cgroup.freeze", "1")
        spin(LONG)
        write(f"{path}/cgroup.freeze", "0")

    victim_waits(wait, "pauser", freeze)


# -- disks -------------------------------------------------------------------------------------------------------------


def aio(disk, count=1, size=4096):
    called("victim")
    fd = os.open(f"/dev/{disk}", os.O_RDONLY | os.O_DIRECT)
    memory = mmap.mmap(-1, count * size)
    context = ctypes.c_ulong(0)
    syscall(206, count, ctypes.byref(context))
    buffer = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    blocks = [
        ctypes.create_string_buffer(struct.pack("QIIHhIQQqQII", 0, 0, 0, 0, 0, fd, buffer + at, size, at, 0, 0, 0))
        for at in range(0, count * size, size)
    ]
    addresses = (ctypes.c_void_p * count)(*map(ctypes.addressof, blocks))
    assert syscall(209, context, count, addresses) == count
    syscall(208, context, count, count, ctypes.create_string_buffer(32 * count), None)


def io_max(disk):
    with open(f"/sys/block/{disk}/dev", encoding="ascii") as dev:
        number = dev.read().strip()
    enter(cgroup("lt-io", io_max=f"{number} rbps=65536"))
    called("victim")
    for block in range(2):
        read_block(disk, block, 65536)


def flushed(disk):
    """The victim waits only until the disk has flushed its cache."""
    fd = os.open(f"/dev/{disk}", os.O_WRONLY | os.O_DIRECT)
    os.pwrite(fd, mmap.mmap(-1, 4096), 0)
    called("victim")
    os.fsync(fd)


def neighbours(disk):
    """A small read waits for many writes of backup: the disk takes one request at a time."""

    def backup():
        def writes(number):
            called("backup")
            fd = os.open(f"/dev/{disk}", os.O_WRONLY | os.O_DIRECT)
            memory = mmap.mmap(-1, 65536)
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                os.pwritev(fd, [memory], number * 65536)

        threads = [threading.Thread(target=writes, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    task("backup", backup)
    time.sleep(0.7)
    called("victim")
    read_block(disk, 4000)
    os.wait()


def dirty(disk):
    """A writer is held back: too much written data is not on the disk yet."""
    for name, size in ("dirty_background_bytes", 1 << 20), ("dirty_bytes", 2 << 20):
        write(f"/proc/sys/vm/{name}", str(size))
    fd = os.open(f"/dev/{disk}", os.O_WRONLY)
    for number in range(40):
        # The first writes are not held back, but may take a while.
        if number == 4:
            called("victim")
        os.write(fd, bytes(1 << 18))
    for name, part in ("dirty_background_ratio", 10), ("dirty_ratio", 20):
        write(f"/proc/sys/vm/{name}", str(part))


def synced(directory):
    """The victim waits for writes of a file system's journal."""
    fd = os.open(f"{directory}/file", os.O_WRONLY | os.O_CREAT)
    os.write(fd, bytes(4096))
    called("victim")
    os.fsync(fd)


def inode(directory):
    """Two writers of one file: owner extends it and waits for the disk; victim needs no disk, but owner's lock."""
    path = f"{directory}/shared"

    def grow():
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
        os.pwritev(fd, [mmap.mmap(-1, 4096)], 1 << 20)

    owner = task("owner", grow)
    asleep(owner, "D")
    called("victim")
    fd = os.open(path, os.O_RDWR)
    os.pwrite(fd, bytes(4096), 2 << 20)


def loop(directory):
    """A loop device, whose file is on another disk."""
    path = f"{directory}/loop"
    with open(path, "wb") as file:
        file.write(bytes(1 << 20))
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    subprocess.run(["modprobe", "loop"], check=True)
    subprocess.run(["losetup", "/dev/loop0", path], check=True)
    os.waitpid(task("victim", read_block, "loop0", 16), 0)
    subprocess.run(["losetup", "-d", "/dev/loop0"], check=True)


def small(disk):
    enter(cgroup("lt-small", memory_max="20M"))
    os.execvp("dd", ["dd", f"if=/dev/{disk}", "of=/dev/null", "bs=1M"])


def high():
    """memory.high: a task that uses more memory is slowed down."""
    enter(cgroup("lt-high", memory_high="8M"))
    called("victim")
    memory = mmap.mmap(-1, 64 << 20)
    end = time.monotonic() + LONG
    at = 0
    while time.monotonic() < end:
        memory[at] = 1
        at += 4096


# -- the network, and the kernel ---------------------------------------------------------------------------------------


def delayed_ack():
    """The second of two small writes waits for an acknowledgement, which the other end delays."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = listener.accept()
        for _ in range(20):
            left = 200
            while left:
                left -= len(connection.recv(left))
            connection.send(b"x")

    server = task("server", serve)
    client = socket.create_connection(listener.getsockname())
    called("victim")
    for _ in range(20):
        client.send(bytes(100))
        client.send(bytes(100))
        client.recv(1)
    os.waitpid(server, 0)


def membarrier():
    # Warm up: the first run of anything is slow under emulation.
    syscall(324, 1, 0, 0)
    called("victim")
    for _ in range(3):
        syscall(324, 1, 0, 0)


def work():
    """A writer to a module parameter waits for a mutex, whose owner waits for a work item that sleeps."""
    run = "/sys/module/lt_works/parameters/run"
    first = task("first", write, run, "slow")
    stack = ""
    while "__flush_work" not in stack:
        time.sleep(0.01)
        with open(f"/proc/{first}/stack", encoding="ascii") as file:
            stack = file.read()
    called("victim")
    write(run, "slow")


# -- two causes at once ------------------------------------------------------------------------------------------------


def held(*steps):
    """The owner of a lock does one thing after another."""
    locked(flock, lambda: [step() for step in steps])


def baton():
    """The victim waits for second, which waits for first."""
    (r1, w1), (r2, w2) = os.pipe(), os.pipe()

    def second():
        os.read(r1, 1)
        spin(LONG)
        os.write(w2, b"x")

    asleep(task("second", second))
    victim = task("victim", os.read, r2, 1)
    asleep(victim)
    task("first", lambda: (spin(SHORT), os.write(w1, b"x")))
    os.waitpid(victim, 0)


def busy_owner():
    """The owner of a lock computes for a while; then medium occupies its CPU for longer."""
    medium, start = os.pipe()

    def then():
        on(1, 10)
        os.read(medium, 1)
        spin(LONG)

    task("medium", then)

    def hold():
        # Waits for the victim, which is the parent: until the victim waits for the lock, the owner delays no task.
        asleep(os.getppid())
        on(1)
        spin(SHORT)
        os.write(start, b"x")
        spin(0.01)

    locked(flock, hold)


def then_hog(wait, before, seconds):
    """The victim waits on CPU 1. When half of the time `before` is over, hog takes CPU 1 for `seconds`."""
    called("victim")
    victim = os.getpid()
    on(1)

    def take():
        os.sched_setaffinity(0, {0})
        wait_for(victim, "S" if wait is time.sleep else "D")
        time.sleep(before / 2)
        on(1, 10)
        spin(seconds)

    task("hog", take)
    if wait is time.sleep:
        time.sleep(before)
    else:
        wait()


def served(*steps):
    """A server that does one thing after another before it answers."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = listener.accept()
        connection.recv(1)
        for step in steps:
            step()
        connection.send(b"x")

    task("server", serve)
    client = socket.create_connection(listener.getsockname())
    called("victim")
    client.send(b"x")
    client.recv(1)
