#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Does what a recipe measures, in a known number and for a known time, for tests inside the virtual machine.

usage: provoke.py calls FILE     marked opens, reads, writes, and stats FILE five times each
       provoke.py maps           marked maps and unmaps memory five times
       provoke.py pageout        marked writes pages to the swap, and reads them back
       provoke.py fill MB CGROUP marked fills that much memory in this cgroup
       provoke.py dns            client asks over UDP three times, and gets each answer after 0.15 s
       provoke.py accept         server accepts a connection, and sends its first byte after 0.15 s
       provoke.py connect        marked connects four times
       provoke.py receive        reader reads a datagram after it has waited for 0.15 s
"""

import mmap
import os
import socket
import sys
import time

LATE = 0.15
LOCAL = ("127.0.0.1", 0)


def called(name):
    """Names this thread."""
    with open("/proc/thread-self/comm", "w", encoding="ascii") as comm:
        comm.write(name)


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
    with open(f"{cgroup}/cgroup.procs", "w", encoding="ascii") as procs:
        procs.write("0")
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


def main(words):
    what, *rest = words
    functions = (calls, maps, pageout, fill, dns, accept, connect, receive)
    {function.__name__: function for function in functions}[what](*rest)


if __name__ == "__main__":
    main(sys.argv[1:])
