#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Does what a recipe measures, a known number of times and for a known time, for tests inside the virtual machine. The
tasks that do it are called `marked`, `client`, `server` and `reader`.

usage: provoke.py calls FILE     marked opens, reads, writes, and stats FILE five times each
       provoke.py maps           marked maps and unmaps memory five times
       provoke.py pageout        marked reads pages back that were written to the swap
       provoke.py fill MB CGROUP marked fills that much memory in this cgroup
       provoke.py dns            client asks over UDP three times, and gets each answer after 0.15 s
       provoke.py accept         server accepts a connection, and sends its first byte after 0.15 s
       provoke.py connect        marked connects four times
       provoke.py receive        reader reads a datagram after it has waited for 0.15 s
       provoke.py nfs            marked asks an NFS server for its free space three times, 0.15 s each
       provoke.py shortage DISK  after a disk of 64 MiB was read, marked allocates memory when too little is free
"""

import ctypes
import mmap
import os
import signal
import socket
import struct
import sys
import time

LATE = 0.15
LOCAL = ("127.0.0.1", 0)
LIBC = ctypes.CDLL(None, use_errno=True)
MOUNT, NFS = 100005, 100003
FSSTAT = 18


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def called(name):
    """Names this thread."""
    write("/proc/thread-self/comm", name)


def done(result, what):
    """Checks the result of a function of the C library."""
    if result != 0:
        raise OSError(ctypes.get_errno(), what)


def calls(file):
    called("marked")
    for _ in range(5):
        fd = os.open(file, os.O_RDWR)
        os.read(fd, 1)
        os.write(fd, b"x")
        os.close(fd)
        os.stat(file)
    # Exits without Python's cleanup.
    os._exit(0)


def maps():
    called("marked")
    for _ in range(5):
        mmap.mmap(-1, 1 << 20).close()
    os._exit(0)


def pageout():
    memory = mmap.mmap(-1, 4 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.write(b"x" * (4 << 20))
    memory.madvise(21)  # MADV_PAGEOUT
    called("marked")
    return sum(memory[i] for i in range(0, 4 << 20, mmap.PAGESIZE))


def fill(megabytes, cgroup):
    write(f"{cgroup}/cgroup.procs", "0")
    called("marked")
    memory = mmap.mmap(-1, int(megabytes) << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for i in range(0, int(megabytes) << 20, mmap.PAGESIZE):
        memory[i] = 1


def dns():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(LOCAL)
    if os.fork() == 0:
        called("server")
        for _ in range(3):
            _, client = server.recvfrom(9)
            time.sleep(LATE)
            server.sendto(b"answer", client)
        os._exit(0)
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    called("client")
    for _ in range(3):
        client.sendto(b"question", server.getsockname())
        client.recv(9)
    os.wait()


def accept():
    server = socket.create_server(LOCAL)
    if os.fork() == 0:
        called("client")
        socket.create_connection(server.getsockname()).recv(1)
        os._exit(0)
    called("server")
    connection, _ = server.accept()
    time.sleep(LATE)
    connection.send(b"x")
    os.wait()


def connect():
    server = socket.create_server(LOCAL)
    called("marked")
    for _ in range(4):
        socket.create_connection(server.getsockname()).close()
    os._exit(0)


def receive():
    reader = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    reader.bind(LOCAL)
    called("reader")
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", reader.getsockname())
    time.sleep(LATE)
    reader.recv(1)


def serve_nfs(listener):
    """Answers at once the calls with which the kernel mounts a file system of NFSv3, but each FSSTAT late."""
    # Type (2: directory), mode, links, owner and group; size, used bytes, device, file system, file; three timestamps.
    attributes = struct.pack(">5I5Q24x", 2, 0o755, 2, 0, 0, 4096, 4096, 0, 1, 1)
    answers = {
        # NULL
        (MOUNT, 0): b"",
        (NFS, 0): b"",
        # MNT: status, a handle of 4 bytes, and one way to authenticate (1: AUTH_SYS)
        (MOUNT, 1): struct.pack(">5I", 0, 4, 1, 1, 1),
        # GETATTR: status, attributes
        (NFS, 1): struct.pack(">I", 0) + attributes,
        # status, no attributes; six sizes, and how long they are valid
        (NFS, FSSTAT): struct.pack(">2I52x", 0, 0),
        # FSINFO: status, attributes; sizes of reads, writes and directories, largest file, resolution of times, flags
        (NFS, 19): struct.pack(">2I", 0, 1) + attributes + struct.pack(">7IQ3I", *[4096] * 7, 1 << 40, 0, 1, 0),
    }
    while True:
        connection, _ = listener.accept()
        stream = connection.makefile("rb")
        while head := stream.read(4):
            call = stream.read(struct.unpack(">I", head)[0] & 0x7FFFFFFF)
            number, _, _, program, _, procedure = struct.unpack_from(">6I", call)
            answer = answers.get((program, procedure))
            if (program, procedure) == (NFS, FSSTAT):
                time.sleep(LATE)
            # A reply, accepted, without a verifier; 3: no such procedure.
            reply = struct.pack(">6I", number, 1, 0, 0, 0, 3 if answer is None else 0) + (answer or b"")
            connection.sendall(struct.pack(">I", 1 << 31 | len(reply)) + reply)
        stream.close()
        connection.close()


def nfs():
    listener = socket.create_server(LOCAL)
    server = os.fork()
    if server == 0:
        called("server")
        serve_nfs(listener)
    port = listener.getsockname()[1]
    options = f"vers=3,addr=127.0.0.1,proto=tcp,port={port},mountproto=tcp,mountport={port},nolock,noacl"
    os.makedirs("/tmp/nfs", exist_ok=True)
    done(LIBC.mount(b"127.0.0.1:/", b"/tmp/nfs", b"nfs", 0, options.encode()), "mount")
    called("marked")
    for _ in range(3):
        os.statvfs("/tmp/nfs")
    done(LIBC.umount2(b"/tmp/nfs", 0), "umount")
    os.kill(server, signal.SIGKILL)
    os.wait()


def shortage(disk):
    fd = os.open(disk, os.O_RDONLY)
    while os.read(fd, 1 << 20):
        pass
    memory = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    called("marked")
    limit = "/proc/sys/vm/min_free_kbytes"
    before = read(limit)
    free = next(int(line.split()[1]) for line in read("/proc/meminfo").splitlines() if line.startswith("MemFree:"))
    # More than is free, by 16 MiB, a quarter of what was read: this allocation must reclaim.
    write(limit, f"{free + 16384}")
    memory[0] = 1
    write(limit, before)


def main(words):
    what, *rest = words
    functions = (calls, maps, pageout, fill, dns, accept, connect, receive, nfs, shortage)
    {function.__name__: function for function in functions}[what](*rest)


if __name__ == "__main__":
    main(sys.argv[1:])
