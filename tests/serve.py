#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""A server that answers by sendto, sendmsg, write, writev, sendfile and splice, for tests inside the virtual machine.

usage: serve.py CLIENTS MS [WAY...]   threads and processes that serve CLIENTS clients at a time for each way, and
                                      each of the sockets below; a slow answer takes MS to the first byte

Clients come over IPv4, IPv6 and a Unix socket. A way is how a connection is answered: see the functions
whose names begin with `by_`. Prints how many connections were `accepted`, `answered`, and `closed` without a byte, and
how many answers were `slow`.
"""

import array
import ctypes
import fcntl
import os
import select
import socket
import struct
import sys
import tempfile
import threading
import time

SIZE = 3000
libc = ctypes.CDLL(None, use_errno=True)


def by_send(connection, wait):
    wait()
    # Neither an empty send nor a second send is the first byte.
    connection.send(b"")
    connection.send(b"x" * SIZE)
    connection.send(b"y")


def by_send_to(connection, wait):
    wait()
    connection.sendmsg([b"x" * 10, b"y" * 20])


def by_write(connection, wait):
    wait()
    os.write(connection.fileno(), b"x" * 20)


def by_vector(connection, wait):
    wait()
    os.writev(connection.fileno(), [b"x" * 100, b"y", b"z" * 7])


def by_file(connection, wait):
    """sendfile(2), in more than one part; the first part has the first byte."""
    size = 50 * SIZE
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * size)
        file.flush()
        wait()
        os.sendfile(connection.fileno(), file.fileno(), 0, size)


def by_pipe(connection, wait):
    """splice(2)"""
    end, begin = os.pipe()
    os.write(begin, b"x" * 321)
    wait()
    os.splice(end, connection.fileno(), 321)
    os.close(begin)
    os.close(end)


def by_duplicate(connection, wait):
    """By a duplicate, once the descriptor from accept(2) is closed."""
    other = os.dup(connection.fileno())
    connection.close()
    wait()
    os.write(other, b"x" * 11)
    os.close(other)


def by_number(connection, wait):
    """By a descriptor whose number belonged to another socket just before."""
    spare, other = socket.socketpair()
    os.dup2(connection.fileno(), spare.fileno())
    connection.close()
    wait()
    spare.send(b"x" * 12)
    spare.close()
    other.close()


def by_child(connection, wait):
    """By a child, after the parent has closed its descriptor."""
    go, ready = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(go, 1)
        os.write(connection.fileno(), b"x" * 13)
        os._exit(0)
    wait()
    connection.close()
    os.write(ready, b"x")
    os.waitpid(child, 0)
    os.close(go)
    os.close(ready)


def by_both(connection, wait):
    """By a child, and then by its parent."""
    wait()
    child = os.fork()
    if child == 0:
        os.write(connection.fileno(), b"x" * 14)
        os._exit(0)
    os.waitpid(child, 0)
    connection.send(b"y")


def by_thread(connection, wait):
    def answer():
        wait()
        connection.send(b"x" * 15)

    thread = threading.Thread(target=answer)
    thread.start()
    thread.join()


def by_message(connection, wait):
    """By the receiver of the descriptor in a message (SCM_RIGHTS), once the other descriptor is closed."""
    here, there = socket.socketpair()
    rights = array.array("i", [connection.fileno()])
    here.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    connection.close()
    wait()
    _, [(_, _, data)], _, _ = there.recvmsg(1, socket.CMSG_SPACE(4))
    other = struct.unpack("i", data)[0]
    os.write(other, b"x" * 16)
    os.close(other)
    here.close()
    there.close()


def by_part(connection, wait):
    """Sends more than a non-blocking write takes at a time."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 10000)
    connection.setblocking(False)
    wait()
    connection.send(b"x" * 10_000_000)


def by_nothing(connection, _):
    """Closes the connection without a byte, though a duplicate of its descriptor stays open for a moment."""
    other = os.dup(connection.fileno())
    connection.close()
    os.close(other)


def by_failure(connection, _):
    """A send after shutdown is refused: no byte."""
    connection.shutdown(socket.SHUT_WR)
    try:
        connection.send(b"x", socket.MSG_NOSIGNAL)
    except BrokenPipeError:
        return
    assert False, "sent after shutdown"


WAYS = {name[3:]: way for name, way in list(globals().items()) if name.startswith("by_")}
SILENT = ("nothing", "failure")
# Ways with a process for each connection; the others have a thread.
FORKING = ("child", "both", "write", "nothing")


def accept4(server):
    """Accepts without waiting, by accept4(2)."""
    while True:
        try:
            return server.accept()[0]
        except BlockingIOError:
            select.select([server], [], [])


def accept(server):
    """Accepts by accept(2), which Python does not use."""
    while True:
        fd = libc.accept(server.fileno(), None, None)
        if fd >= 0:
            return socket.socket(fileno=fd)
        select.select([server], [], [])


def serve(server, count, way, milliseconds):
    """Accepts `count` connections; a thread or a process of its own answers each."""
    threads, children = [], []
    for number in range(count):
        connection = (accept, accept4)[number % 2](server)
        fcntl.fcntl(connection, fcntl.F_SETFD, 0)

        def answer(connection=connection):
            WAYS[way](connection, lambda: time.sleep(milliseconds / 1000))
            connection.close()

        if way not in FORKING:
            threads.append(threading.Thread(target=answer))
            threads[-1].start()
            continue
        child = os.fork()
        if child == 0:
            answer()
            os._exit(0)
        children.append(child)
        # The next connection then gets the same descriptor.
        connection.close()
    for thread in threads:
        thread.join()
    for child in children:
        assert os.waitpid(child, 0)[1] == 0, f"a child by {way} has failed"


def ask(family, where):
    client = socket.socket(family, socket.SOCK_STREAM)
    client.connect(where)
    try:
        while client.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    client.close()


def meet(family, address, way, count, milliseconds):
    """A server in a process of its own, and its clients."""
    server = socket.socket(family, socket.SOCK_STREAM)
    server.bind(address)
    server.listen(count)
    where = server.getsockname()
    child = os.fork()
    if child == 0:
        server.setblocking(False)
        serve(server, count, way, milliseconds)
        os._exit(0)
    server.close()
    clients = [threading.Thread(target=ask, args=(family, where)) for _ in range(count)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert os.waitpid(child, 0)[1] == 0, f"the server by {way} has failed"


def main(words):
    count, milliseconds, *ways = words
    count, milliseconds = int(count), int(milliseconds)
    answered = closed = slow = 0
    for number, way in enumerate(ways or WAYS):
        path = tempfile.mktemp()
        sockets = [(socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_INET6, ("::1", 0)), (socket.AF_UNIX, path)]
        for family, address in sockets:
            # Every second way takes time.
            takes = milliseconds if number % 2 == 0 else 0
            meet(family, address, way, count, takes)
            if way in SILENT:
                closed += count
            else:
                answered += count
                slow += count if takes else 0
        os.unlink(path)
    print(f"accepted={answered + closed} answered={answered} closed={closed} slow={slow}")


if __name__ == "__main__":
    main(sys.argv[1:])
