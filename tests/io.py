#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Performs I/O of all classes of the tracker `io`, for tests inside the virtual machine.

usage: io.py mix GATE DISK ROUNDS       opens GATE, a FIFO, and so waits until its other end is opened; then
                                        reads, writes, syncs, opens and closes in many ways, in two processes
       io.py write DISK COUNT           direct writes of 4 KiB, one after another, each synced
       io.py serve COMMANDS ANSWERS     executes the lines of the FIFO COMMANDS, until all writers have closed it, and
                                        answers each in the FIFO ANSWERS with the duration of its longest call in ns.
                                        The lines are `write DISK COUNT` and `read DISK COUNT` (direct), and
                                        `cached FILE COUNT` (512 bytes each). A line takes a few more calls than it
                                        requests
"""

import mmap
import os
import socket
import sys
import threading
import time

PAGE = 4096


def aligned():
    """Returns a page with the alignment that direct I/O requires."""
    page = mmap.mmap(-1, PAGE)
    page.write(b"x" * PAGE)
    return page


def files(path, rounds):
    """Calls that hardly wait, and some that do."""
    for number in range(rounds):
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.write(fd, b"x" * (1 << (number % 16)))
        os.pwrite(fd, b"y" * 100, number)
        os.writev(fd, [b"a" * 10, b"b" * 20])
        os.pread(fd, 1 << (number % 16), 0)
        os.preadv(fd, [bytearray(100)], 0)
        os.lseek(fd, 0, os.SEEK_SET)
        os.readv(fd, [bytearray(10), bytearray(10)])
        os.read(fd, 10)
        os.fsync(fd)
        os.fdatasync(fd)
        other = os.open(path + ".copy", os.O_RDWR | os.O_CREAT, 0o600)
        os.copy_file_range(fd, other, 50, 0, 0)
        os.sendfile(other, fd, 0, 50)
        os.close(other)
        os.close(fd)


def pipes(rounds):
    """Reads that wait for a write, by two threads; and splices."""
    receive, send = os.pipe()
    back, there = os.pipe()

    def echo():
        for number in range(rounds):
            word = os.read(receive, 1)
            time.sleep(0.0001 * (1 << (number % 6)))
            os.write(there, word)

    thread = threading.Thread(target=echo)
    thread.start()
    for _ in range(rounds):
        os.write(send, b"x")
        os.read(back, 1)
    thread.join()
    null = os.open("/dev/null", os.O_WRONLY)
    for _ in range(rounds):
        os.write(send, b"x" * 100)
        os.splice(receive, null, 100)
    for fd in (receive, send, back, there, null):
        os.close(fd)


def sockets(rounds):
    """Connections of one process to itself."""
    server = socket.socket(socket.AF_UNIX)
    server.bind("\0lt-io-%d" % os.getpid())
    server.listen()
    for _ in range(rounds):
        client = socket.socket(socket.AF_UNIX)
        client.connect(server.getsockname())
        peer, _ = server.accept()
        client.sendall(b"x" * 1000)
        peer.recv(1000)
        peer.sendmsg([b"a", b"b"])
        client.recvmsg(10)
        client.shutdown(socket.SHUT_RDWR)
        client.close()
        peer.close()
    server.close()


def disk(path, rounds):
    """Makes direct reads and writes, and now and then syncs the disk."""
    page = aligned()
    fd = os.open(path, os.O_RDWR | os.O_DIRECT)
    for number in range(rounds):
        os.pwritev(fd, [page], PAGE * number)
        os.preadv(fd, [page], PAGE * (2 * rounds - number))
        if number % 4 == 0:
            os.fdatasync(fd)
    os.close(fd)


def mix(gate, path, rounds):
    os.open(gate, os.O_RDONLY)
    child = os.fork()
    files("/tmp/lt-io-%d" % os.getpid(), rounds)
    if child == 0:
        pipes(rounds)
        sockets(rounds)
        os._exit(0)
    disk(path, rounds)
    _, status = os.waitpid(child, 0)
    sys.exit(status != 0)


def write(path, count):
    page = aligned()
    fd = os.open(path, os.O_RDWR | os.O_DIRECT)
    for number in range(count):
        os.pwritev(fd, [page], PAGE * number)
        os.fsync(fd)


def serve(commands, answers):
    page = aligned()
    receive = os.open(commands, os.O_RDONLY)
    send = os.open(answers, os.O_WRONLY)
    while words := os.read(receive, 1000).decode().split():
        what, path, count = words
        fd = os.open(path, os.O_RDONLY if what == "cached" else os.O_RDWR | os.O_DIRECT)
        longest = 0
        for number in range(int(count)):
            begin = time.monotonic_ns()
            if what == "write":
                os.pwrite(fd, page, PAGE * number)
            elif what == "read":
                os.preadv(fd, [page], PAGE * number)
            else:
                os.pread(fd, 512, 512 * number)
            longest = max(longest, time.monotonic_ns() - begin)
        os.close(fd)
        os.write(send, b"done %d\n" % longest)


def main(words):
    what, *rest = words
    if what == "mix":
        mix(rest[0], rest[1], int(rest[2]))
    elif what == "serve":
        serve(*rest)
    else:
        write(rest[0], int(rest[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
