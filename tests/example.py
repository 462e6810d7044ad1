#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""The load of the example in README.md: a client asks a server, which computes for 60 ms and then reads a disk.

usage: example.py DISK
"""

import mmap
import os
import socket
import sys
import time

from late import called, spin

CALLS = 3


def serve(asked, disk):
    """Answers each request."""
    called("server")
    fd = os.open(disk, os.O_RDONLY | os.O_DIRECT)
    # Aligned, as a direct read requires.
    block = mmap.mmap(-1, 4096)
    while asked.recv(1):
        spin(0.06)
        os.preadv(fd, [block], 0)
        asked.send(b"!")


def main():
    client, server = socket.socketpair()
    if os.fork() == 0:
        client.close()
        serve(server, sys.argv[1])
        os._exit(0)
    server.close()
    called("client")
    for _ in range(CALLS):
        # By the end of this time, the server sleeps.
        time.sleep(0.1)
        client.send(b"?")
        client.recv(1)
    client.close()
    os.wait()


main()
