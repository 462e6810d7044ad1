# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Reads the files of alerts for tests/vm/readers.sh; each function checks one promise.

Runs inside the virtual machine, with the module loaded and a disk /dev/slow whose
requests take 20 ms.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time

LT = "/proc/latency_tracker"

# Limit for waits for an event, ms: only a failing test reaches it.
READY = 60_000

# linux/userfaultfd.h
UFFD_API = 0xAA
USERFAULTFD_IOC_NEW = 0xAA00
UFFDIO_API = 0xC018AA3F
UFFDIO_REGISTER = 0xC020AA00
UFFDIO_REGISTER_MODE_MISSING = 1
UFFDIO_ZEROPAGE = 0xC020AA04


def control(line):
    # In one write(2): a Python file writes again when it is closed after an error.
    fd = os.open(f"{LT}/control", os.O_WRONLY)
    try:
        os.write(fd, f"{line}\n".encode())
    finally:
        os.close(fd)


def stat(name, key):
    with open(f"{LT}/{name}/stats") as file:
        return dict(line.split() for line in file)[key]


def slow_requests(count, block=0):
    """Makes `count` alerts."""
    subprocess.run(
        ["dd", "if=/dev/slow", "of=/dev/null", "bs=4k", "iflag=direct", f"count={count}", f"skip={block}"],
        check=True,
        stderr=subprocess.DEVNULL,
    )


def seqs(text):
    return [int(line.split()[0].split("=")[1]) for line in text.splitlines() if line.startswith("seq=")]


class Cat(threading.Thread):
    """Reads a file to its end in a thread of its own."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.text, self.error = path, "", None
        self.start()

    def run(self):
        try:
            fd = os.open(self.path, os.O_RDONLY)
            while data := os.read(fd, 65536):
                self.text += data.decode()
            os.close(fd)
        except OSError as error:
            self.error = error

    def done(self, seconds=10):
        self.join(seconds)
        assert not self.is_alive(), f"the reader of {self.path} still sleeps"
        assert self.error is None, f"the reader of {self.path}: {self.error}"
        return self.text


def fresh(name="slow", settings="wakeup_interval=0"):
    control(f"{name} block dev=slow threshold=10ms {settings}")


def wakeup_sleeps_until_an_alert_and_then_ends():
    fresh()
    reader = Cat(f"{LT}/slow/wakeup")
    time.sleep(0.3)
    assert reader.is_alive(), "returned without an alert"
    slow_requests(1)
    assert seqs(reader.done()) == [1], reader.text


def all_waiting_readers_are_released():
    fresh()
    readers = [Cat(f"{LT}/slow/wakeup") for _ in range(8)] + [Cat(f"{LT}/wakeup") for _ in range(8)]
    time.sleep(0.3)
    slow_requests(1)
    for reader in readers:
        assert seqs(reader.done())[:1] == [1], reader.text


def nothing_is_missed_between_two_readings():
    fresh()
    seen = []
    worker = threading.Thread(target=slow_requests, args=(40,))
    worker.start()
    while len(seen) < 40:
        seen += seqs(Cat(f"{LT}/slow/wakeup").done())
    worker.join()
    assert seen == list(range(1, 41)), seen
    slow_requests(3)
    assert seqs(Cat(f"{LT}/slow/wakeup").done()) == [41, 42, 43], "raised without a reader"


def alerts_that_were_not_read_go_to_the_next_reader():
    fresh()
    libc = ctypes.CDLL(None, use_errno=True)
    slow_requests(2)
    fd = os.open(f"{LT}/slow/wakeup", os.O_RDONLY)
    assert libc.read(fd, ctypes.c_void_p(8), 100) == -1 and ctypes.get_errno() == errno.EFAULT
    os.close(fd)
    fd = os.open(f"{LT}/slow/wakeup", os.O_RDONLY)
    assert os.read(fd, 4) == b"seq="
    os.close(fd)
    fd = os.open(f"{LT}/slow/wakeup", os.O_RDONLY)
    assert libc.read(fd, ctypes.c_void_p(8), 100) == -1
    # Reads the same file again, in small pieces.
    text = b""
    while data := os.read(fd, 7):
        text += data
    os.close(fd)
    assert seqs(text.decode()) == [1, 2], text
    slow_requests(1)
    assert seqs(Cat(f"{LT}/slow/wakeup").done()) == [3], "given twice"


def a_name_is_taken_until_its_instance_is_gone():
    fresh()
    # An open file that is not read: the removal waits for it briefly.
    fd = os.open(f"{LT}/slow/alerts", os.O_RDONLY)
    removal = threading.Thread(target=control, args=("-slow",))
    removal.start()
    refusals = 0
    while removal.is_alive():
        try:
            fresh()
        except OSError as error:
            assert error.errno == errno.EBUSY, error
            with open(f"{LT}/control") as file:
                assert "slow" not in file.read(), "listed although it is being removed"
            refusals += 1
    removal.join()
    os.close(fd)
    assert refusals > 0, "never refused"
    fresh()
    assert stat("slow", "attempts") == "0", "not a new one"


def an_instance_shows_when_it_was_created_as_long_as_its_counters():
    fresh()
    if not os.path.exists("/dev/userfaultfd"):
        assert os.uname().release.endswith(("-debug", "-kcsan")), "no userfaultfd"
        return "skipped: this kernel has no userfaultfd"
    # A reader of `stats` stays inside read(2), since the page to copy to is missing.
    device = os.open("/dev/userfaultfd", os.O_RDWR)
    faults = fcntl.ioctl(device, USERFAULTFD_IOC_NEW, os.O_CLOEXEC | os.O_NONBLOCK)
    os.close(device)
    fcntl.ioctl(faults, UFFDIO_API, struct.pack("3Q", UFFD_API, 0, 0))
    page = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    fcntl.ioctl(faults, UFFDIO_REGISTER, struct.pack("4Q", address, mmap.PAGESIZE, UFFDIO_REGISTER_MODE_MISSING, 0))
    page.madvise(mmap.MADV_DONTNEED)
    stats = os.open(f"{LT}/slow/stats", os.O_RDONLY)
    read = ctypes.CDLL(None).read
    reader = threading.Thread(target=read, args=(stats, ctypes.c_void_p(address), 1), daemon=True)
    reader.start()
    poller = select.poll()
    poller.register(faults, select.POLLIN)
    assert poller.poll(READY) == [(faults, select.POLLIN)], "the reader does not wait for its page"
    # The removal hides `stats`, and waits for the reader.
    errors = []

    def remove():
        try:
            control("-slow")
        except OSError as error:
            errors.append(error)

    removal = threading.Thread(target=remove, daemon=True)
    removal.start()
    while removal.is_alive() and os.path.exists(f"{LT}/slow/stats"):
        time.sleep(0.01)
    is_there = os.path.exists(f"{LT}/slow/created")
    fcntl.ioctl(faults, UFFDIO_ZEROPAGE, struct.pack("4Q", address, mmap.PAGESIZE, 0, 0))
    reader.join()
    removal.join()
    os.close(stats)
    os.close(faults)
    assert not errors, f"the removal: {errors[0]}"
    assert is_there, "`created` was removed before `stats`"
    assert not os.path.exists(f"{LT}/slow"), "not removed"


def alerts_streams_from_where_each_reader_began():
    fresh()
    slow_requests(2)
    fd = os.open(f"{LT}/slow/alerts", os.O_RDONLY | os.O_NONBLOCK)
    try:
        os.read(fd, 1)
        raise AssertionError("an old alert")
    except BlockingIOError:
        pass
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    assert poller.poll(200) == [], "ready without an alert"
    slow_requests(2)
    assert poller.poll(READY) == [(fd, select.POLLIN)], "not ready after an alert"
    # One byte at a time, to the end of the second line.
    text = ""
    while text.count("\n") < 2:
        text += os.read(fd, 1).decode()
    assert seqs(text) == [3, 4], text
    try:
        os.read(fd, 1)
        raise AssertionError("more than there was")
    except BlockingIOError:
        pass
    os.close(fd)


def a_reader_can_begin_with_what_is_recorded():
    fresh(settings="wakeup_interval=0 ring=4")
    slow_requests(6)
    fd = os.open(f"{LT}/slow/alerts", os.O_RDONLY | os.O_NONBLOCK)
    assert os.lseek(fd, 0, os.SEEK_SET) == 0
    # Alerts that were overwritten before the seek do not count as lost.
    text = os.read(fd, 65536).decode()
    assert "lost" not in text and seqs(text) == [3, 4, 5, 6], text
    # Seeks from the middle of a line: back to the start, and to the end.
    os.lseek(fd, 0, os.SEEK_SET)
    assert os.read(fd, 10) == b"seq=3 time"
    os.lseek(fd, 0, os.SEEK_SET)
    assert seqs(os.read(fd, 65536).decode()) == [3, 4, 5, 6]
    os.lseek(fd, 0, os.SEEK_SET)
    os.read(fd, 10)
    os.lseek(fd, 0, os.SEEK_END)
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    assert poller.poll(200) == [], "ready behind the newest"
    slow_requests(1)
    assert poller.poll(READY) == [(fd, select.POLLIN)], "not ready after an alert"
    assert seqs(os.read(fd, 65536).decode()) == [7]
    for offset, whence in ((1, os.SEEK_SET), (-1, os.SEEK_END), (0, os.SEEK_CUR)):
        try:
            os.lseek(fd, offset, whence)
            raise AssertionError(f"sought to {offset} from {whence}")
        except OSError as error:
            assert error.errno == errno.ESPIPE, error
    os.close(fd)
    fd = os.open(f"{LT}/slow/wakeup", os.O_RDONLY)
    try:
        os.lseek(fd, 0, os.SEEK_SET)
        raise AssertionError("wakeup was sought")
    except OSError as error:
        assert error.errno == errno.ESPIPE, error
    os.close(fd)


def an_overtaken_reader_gets_the_number_of_lost_alerts():
    fresh(settings="wakeup_interval=0 ring=4")
    fd = os.open(f"{LT}/slow/alerts", os.O_RDONLY | os.O_NONBLOCK)
    slow_requests(10)
    text = os.read(fd, 65536).decode()
    assert text.startswith("lost=6\n"), text
    assert seqs(text) == [7, 8, 9, 10], text
    os.close(fd)
    assert stat("slow", "overruns") == "6", stat("slow", "overruns")
    # The common ring is larger: its readers, if any, have missed nothing.
    with open(f"{LT}/stats") as file:
        counters = dict(line.split() for line in file)
    assert int(counters["alerts"]) >= 10 and counters["overruns"] == "0", counters
    assert list(counters) == ["alerts", "alerts_lost", "overruns", "wakes", "wakes_suppressed"], counters


def a_signal_interrupts_the_sleep():
    fresh()
    reader = subprocess.Popen(["cat", f"{LT}/slow/wakeup"], stdout=subprocess.DEVNULL)
    time.sleep(0.3)
    reader.send_signal(signal.SIGTERM)
    assert reader.wait(5) == -signal.SIGTERM
    # A caught signal gives EINTR (Python retries unless the handler raises).

    class Caught(Exception):
        pass

    def handler(*_):
        raise Caught

    signal.signal(signal.SIGALRM, handler)
    fd = os.open(f"{LT}/slow/alerts", os.O_RDONLY)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        os.read(fd, 1)
        raise AssertionError("read something")
    except Caught:
        pass
    finally:
        os.close(fd)


def removal_gives_end_of_file():
    fresh()
    readers = [Cat(f"{LT}/slow/{file}") for file in ("wakeup", "alerts") for _ in range(5)]
    fd = os.open(f"{LT}/slow/alerts", os.O_RDONLY)
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    time.sleep(0.3)
    began = time.monotonic()
    control("-slow")
    assert time.monotonic() - began < 5, "removal took long"
    for reader in readers:
        assert reader.done() == "", reader.text
    try:
        assert os.read(fd, 1) == b""
    except OSError as error:
        # procfs returns this for a removed file; only a process that was not reading can get it.
        assert error.errno == errno.EIO, error
    os.close(fd)


def wakeups_are_rate_limited_and_alerts_are_not():
    fresh(settings="wakeup_interval=1s")
    fd = os.open(f"{LT}/slow/alerts", os.O_RDONLY | os.O_NONBLOCK)
    began = time.monotonic()
    slow_requests(30)
    time.sleep(2.5)
    took = time.monotonic() - began
    assert stat("slow", "alerts") == "30"
    wakes = int(stat("slow", "wakes"))
    assert 1 <= wakes <= took + 1, f"{wakes} wakeups in {took} s"
    assert wakes + int(stat("slow", "wakes_suppressed")) >= 30
    assert len(seqs(os.read(fd, 1 << 16).decode() + os.read(fd, 1 << 16).decode())) == 30
    os.close(fd)
    # The last alert of a burst wakes a sleeper too, within the interval.
    Cat(f"{LT}/slow/wakeup").done()
    slow_requests(1)
    reader = Cat(f"{LT}/slow/wakeup")
    reader.done()
    slow_requests(1)
    assert seqs(Cat(f"{LT}/slow/wakeup").done(5)) == [32]


def a_shorter_interval_applies_to_a_pending_wakeup():
    fresh(settings="wakeup_interval=1000s")
    slow_requests(1)
    Cat(f"{LT}/slow/wakeup").done()
    reader = Cat(f"{LT}/slow/wakeup")
    slow_requests(1)
    time.sleep(0.5)
    assert reader.is_alive(), "woken before the interval was over"
    with open(f"{LT}/slow/wakeup_interval", "w") as file:
        file.write("1ms")
    assert seqs(reader.done(5)) == [2]


def main():
    tests = [
        wakeup_sleeps_until_an_alert_and_then_ends,
        all_waiting_readers_are_released,
        nothing_is_missed_between_two_readings,
        alerts_that_were_not_read_go_to_the_next_reader,
        a_name_is_taken_until_its_instance_is_gone,
        an_instance_shows_when_it_was_created_as_long_as_its_counters,
        alerts_streams_from_where_each_reader_began,
        a_reader_can_begin_with_what_is_recorded,
        an_overtaken_reader_gets_the_number_of_lost_alerts,
        a_signal_interrupts_the_sleep,
        wakeups_are_rate_limited_and_alerts_are_not,
        a_shorter_interval_applies_to_a_pending_wakeup,
        removal_gives_end_of_file,
    ]
    for test in tests:
        result = test() or "ok"
        if os.path.exists(f"{LT}/slow"):
            control("-slow")
        print(f"{test.__name__}: {result}", flush=True)
    # The module is unloaded although readers sleep in its files. (All alerts so far are read first, so
    # that they sleep.)
    Cat(f"{LT}/wakeup").done()
    readers = [Cat(f"{LT}/wakeup"), Cat(f"{LT}/alerts")]
    time.sleep(0.3)
    subprocess.run(["rmmod", "latency_tracker"], check=True)
    for reader in readers:
        assert reader.done() == "", reader.text
    print("unload_releases_the_readers: ok")


if __name__ == "__main__":
    sys.exit(main())
