#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""System calls of a known kind, for tests inside the virtual machine.

usage: calls.py write MS N     a process writes more than a pipe holds, in one call; N times, another process sleeps for
                               MS and then reads a part
       calls.py exec           a thread that is not the first one executes another program
       calls.py exec-fail      as exec, but the kernel cannot load the program. It notices this when only that thread is
                               left, and kills the process
       calls.py compat N [M]   getpid() by the entry for 32-bit programs, N times (on arm64, in such a program); on x86,
                               then sigsuspend(), which has no other entry, M times
       calls.py many N [TURNS] calls of several kinds, N times, by each of two processes; then two threads wake each
                               other TURNS times
"""

import os
import select
import struct
import sys
import threading
import time

from sched import child, wait_for

PIPE = 65536


def write(milliseconds, times):
    receive, send = os.pipe()
    writer = child(os.write, send, bytes(PIPE * (times + 1)))
    print(f"tid={writer}", flush=True)
    for _ in range(times):
        time.sleep(milliseconds / 1000)
        os.read(receive, PIPE)
    wait_for([writer])


def execute():
    # The first thread waits; the exec of the other thread kills it.
    print(f"tid={os.getpid()}", flush=True)
    threading.Thread(target=os.execv, args=("/bin/true", ["true"])).start()
    time.sleep(60)


def execute_in_vain():
    # One segment, at an address that no program can have. The machine type is copied from the running program.
    with open("/proc/self/exe", "rb") as file:
        ident, _, machine = struct.unpack("<16sHH", file.read(20))
    headers, nowhere = 64 + 56, 1 << 63
    with open("/tmp/nowhere", "wb") as file:
        file.write(ident + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, nowhere, 64, 0, 0, 64, 56, 1, 0, 0, 0))
        file.write(struct.pack("<IIQQQQQQ", 1, 5, 0, nowhere, nowhere, headers, headers, 0x1000))
    os.chmod("/tmp/nowhere", 0o755)

    def execute_it():
        print(f"tid={threading.get_native_id()}", flush=True)
        os.execv("/tmp/nowhere", ["nowhere"])

    threading.Thread(target=execute_it).start()
    time.sleep(60)


# mov r4, #0; then: mov r7, #20; svc 0; subs r4, r4, #1; bne; mov r0, #0; mov r7, #1; svc 0
ARM = (0xE3A04000, 0xE3A07014, 0xEF000000, 0xE2544001, 0x1AFFFFFB, 0xE3A00000, 0xE3A07001, 0xEF000000)


def compat_program(times):
    """Returns an ELF program for 32-bit ARM that calls getpid() `times` times, at most 255, and ends."""
    start, headers = 0x10000, 52 + 32
    code = struct.pack("<8I", ARM[0] + times, *ARM[1:])
    size = headers + len(code)
    ident = b"\x7fELF\x01\x01\x01" + bytes(9)
    return (
        ident
        + struct.pack("<HHIIIIIHHHHHH", 2, 40, 1, start + headers, 52, 0, 0x5000000, 52, 32, 1, 0, 0, 0)
        + struct.pack("<8I", 1, 0, start, start, size, size, 5, 0x1000)
        + code
    )


def compat(times, suspends=0):
    if os.uname().machine == "aarch64":
        with open("/tmp/compat", "wb") as file:
            file.write(compat_program(times))
        os.chmod("/tmp/compat", 0o755)
        pid = os.posix_spawn("/tmp/compat", ["compat"], {})
        if os.waitpid(pid, 0)[1] != 0:
            sys.exit("the program for 32-bit ARM failed")
        print(f"tid={pid}", flush=True)
        return
    # imported here, because not every root file system has them
    import ctypes
    import errno
    import mmap
    import signal

    # mov $20, %eax; int $0x80; ret; then the same for number 72
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3\xb8\x48\x00\x00\x00\xcd\x80\xc3")
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    getpid = ctypes.CFUNCTYPE(ctypes.c_int)(address)
    for _ in range(times):
        if getpid() != os.getpid():
            sys.exit("this is not getpid()")
    # The mask is in the third register of both ABIs. With no signal blocked, the pending one ends the call.
    sigsuspend = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int)(address + 8)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    for _ in range(suspends):
        os.kill(os.getpid(), signal.SIGUSR1)
        if sigsuspend(0, 0, 0) != -errno.EINTR:
            sys.exit("this is not sigsuspend()")
    print(f"tid={os.getpid()}", flush=True)


def some(times):
    for number in range(times):
        os.getppid()
        try:
            os.stat("/nowhere")
        except FileNotFoundError:
            pass
        with open("/proc/self/stat", encoding="ascii") as file:
            file.read()
        receive, send = os.pipe()
        os.write(send, b"x")
        select.select([receive], [], [])
        os.close(receive)
        os.close(send)
        os.sched_yield()
        if number % 8 == 0:
            wait_for([child(time.sleep, 0.001)])


def take_turns(times):
    """Two threads take turns: each waits for a lock that the other one releases."""
    ping, pong = threading.Lock(), threading.Lock()
    ping.acquire()
    pong.acquire()

    def answer():
        for _ in range(times):
            ping.acquire()
            pong.release()

    thread = threading.Thread(target=answer)
    thread.start()
    for _ in range(times):
        ping.release()
        pong.acquire()
    thread.join()


def many(times, turns=0):
    other = child(some, times)
    some(times)
    wait_for([other])
    if turns:
        take_turns(turns)


def main(words):
    what, *numbers = words
    functions = {"write": write, "exec": execute, "exec-fail": execute_in_vain, "compat": compat, "many": many}
    functions[what](*map(int, numbers))


if __name__ == "__main__":
    main(sys.argv[1:])
