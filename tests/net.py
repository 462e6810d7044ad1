#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Sockets whose readers and servers take known times, for tests inside the virtual machine.

usage: net.py read tcp|udp ADDRESS MS      a reader lets what has arrived wait for MS, then reads it
       net.py listen ADDRESS PORT MS       as read tcp, for one connection to this port, from another process
       net.py call ADDRESS PORT            connects to listen, sends, and waits until listen closes
       net.py drain ADDRESS PORT           reads all of one connection to this port at once, from another process
       net.py pour ADDRESS PORT COUNT      connects to drain, sends COUNT bytes, and waits until drain has read them
       net.py unread udp ADDRESS [MS]      a packet that is never read: its socket is closed after MS (30); then a
                                           packet to the port, which is unused now
       net.py flood ADDRESS COUNT          COUNT packets of UDP for a reader with the smallest buffer, which reads the
                                           packets that fit
       net.py serve ADDRESS COUNT MS       a server that accepts COUNT connections, and sends the first byte of each
                                           MS after accepting it; prints a line for each: fd, the client's port, the
                                           number of bytes, and the time by its own clock, in ns
       net.py serve-unix PATH MS           as serve, over the Unix socket PATH, for one connection
       net.py ask ADDRESS|PATH PORT|0 COUNT  a client that connects COUNT times, and reads until the server closes
       net.py close ADDRESS                a server that closes a connection without having sent anything
"""

import os
import select
import socket
import subprocess
import sys
import time


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def read(kind, address, milliseconds):
    kinds = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}
    server = socket.socket(family(address), kinds[kind])
    server.bind((address, 0))
    client = socket.socket(family(address), kinds[kind])
    if kind == "tcp":
        server.listen()
        client.connect(server.getsockname())
        reader, _ = server.accept()
    else:
        reader = server
        client.connect(server.getsockname())
    print(f"reader={os.getpid()} port={server.getsockname()[1]}", flush=True)
    client.send(b"x" * 1000)
    time.sleep(milliseconds / 1000)
    reader.recv(2000)


def listen(address, port, milliseconds):
    server = socket.socket(family(address), socket.SOCK_STREAM)
    server.bind((address, port))
    server.listen()
    print(f"reader={os.getpid()} port={port}", flush=True)
    reader, _ = server.accept()
    # Waits by select(2): peeking at the packet would end the operation.
    select.select([reader], [], [])
    time.sleep(milliseconds / 1000)
    reader.recv(2000)


def call(address, port):
    client = socket.socket(family(address), socket.SOCK_STREAM)
    client.connect((address, port))
    client.send(b"x" * 1000)
    client.recv(1)


def drain(address, port):
    server = socket.socket(family(address), socket.SOCK_STREAM)
    server.bind((address, port))
    server.listen()
    print(f"reader={os.getpid()} port={port}", flush=True)
    reader, _ = server.accept()
    while reader.recv(65536):
        pass


def pour(address, port, count):
    client = socket.socket(family(address), socket.SOCK_STREAM)
    client.connect((address, port))
    client.sendall(b"x" * count)
    client.shutdown(socket.SHUT_WR)
    assert not client.recv(1)


def unread(kind, address, milliseconds=30):
    assert kind == "udp"
    server = socket.socket(family(address), socket.SOCK_DGRAM)
    server.bind((address, 0))
    client = socket.socket(family(address), socket.SOCK_DGRAM)
    client.sendto(b"x" * 1000, server.getsockname())
    time.sleep(milliseconds / 1000)
    where = server.getsockname()
    server.close()
    client.sendto(b"x" * 500, where)


def flood(address, count):
    server = socket.socket(family(address), socket.SOCK_DGRAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
    server.bind((address, 0))
    server.setblocking(False)
    client = socket.socket(family(address), socket.SOCK_DGRAM)
    for _ in range(count):
        client.sendto(b"x" * 1000, server.getsockname())
    got = 0
    try:
        while server.recv(2000):
            got += 1
    except BlockingIOError:
        pass
    assert 0 < got < count, got


def ask(address, port, count):
    for _ in range(count):
        if port:
            client = socket.socket(family(address), socket.SOCK_STREAM)
            client.connect((address, port))
        else:
            client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            client.connect(address)
        while client.recv(4096):
            pass
        client.close()


def serve_on(server, address, port, count, milliseconds):
    server.listen()
    # A separate program: a thread would hold Python's global lock at times, and after a fork pages would be copied.
    client = subprocess.Popen([sys.executable, __file__, "ask", address, str(port), str(count)])
    # The server measures only itself: no other task has its CPU meanwhile.
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    for number in range(count):
        connection, _ = server.accept()
        begin = time.monotonic_ns()
        time.sleep(milliseconds / 1000)
        remote = connection.getpeername()[1] if port else 0
        fd = connection.fileno()
        connection.send(b"x" * (number + 1))
        took = time.monotonic_ns() - begin
        print(f"fd={fd} remote={remote} bytes={number + 1} took={took}", flush=True)
        # This send does not have the first byte.
        connection.send(b"x")
        connection.close()
    assert client.wait() == 0, "the client has failed"


def serve(address, count, milliseconds):
    kind = family(address)
    server = socket.socket(kind, socket.SOCK_STREAM)
    server.bind((address, 0))
    print(f"server={os.getpid()} port={server.getsockname()[1]}", flush=True)
    serve_on(server, address, server.getsockname()[1], count, milliseconds)


def serve_unix(path, milliseconds):
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(path)
    print(f"server={os.getpid()} port=0", flush=True)
    serve_on(server, path, 0, 1, milliseconds)


def close(address):
    server = socket.socket(family(address), socket.SOCK_STREAM)
    server.bind((address, 0))
    server.listen()
    client = socket.socket(family(address), socket.SOCK_STREAM)
    client.connect(server.getsockname())
    connection, _ = server.accept()
    connection.close()


def main(words):
    what, *rest = words
    rest = [int(word) if word.isdigit() else word for word in rest]
    {"read": read, "listen": listen, "call": call, "drain": drain, "pour": pour, "unread": unread, "flood": flood, "ask": ask, "serve": serve, "serve-unix": serve_unix, "close": close}[what](*rest)


if __name__ == "__main__":
    main(sys.argv[1:])
