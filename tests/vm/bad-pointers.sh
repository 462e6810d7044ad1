# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Reads into and writes from invalid addresses fail with EFAULT, and change nothing.
# kernels: stock
# cpus: 2
# root: full
# timeout: 60

. /lt/tests/lib.sh
. /lt/tests/block.sh

load_module
null_disk slow 20000000
control 'one block dev=slow threshold=1ms'
reads slow 2
# A second alert in a wakeup_interval wakes readers only when the interval ends.
woken() { [ $(($(stat one wakes) + $(stat one wakes_suppressed))) -eq "$(stat one alerts)" ]; }
wait_until 10 woken
exec python3 - <<'PY'
import ctypes, errno, os

LT = "/proc/latency_tracker"
libc = ctypes.CDLL(None, use_errno=True)
# NULL, other addresses in the lowest pages, which are never mapped, two kernel addresses, a
# non-canonical address, and a buffer that ends in an unmapped page.
page = libc.mmap
page.restype = ctypes.c_void_p
page.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
pages = page(None, 8192, 3, 0x22, -1, 0)
libc.munmap(ctypes.c_void_p(pages + 4096), 4096)
edge = pages + 4096 - 4
BAD = [0, 8, 0x1000, 0xFFFFFFFF81000000, 0xFFFF888000000000, 0x0000800000000000, edge]

def state():
    names = ["control"] + [f"one/{name}" for name in sorted(os.listdir(f"{LT}/one")) if name not in ("alerts", "wakeup")]
    return "".join(open(f"{LT}/{name}").read() for name in names)

def tried(name, flags, call):
    fd = os.open(f"{LT}/{name}", flags)
    for address in BAD:
        ctypes.set_errno(0)
        got = call(fd, ctypes.c_void_p(address), ctypes.c_size_t(100))
        # A read may stop at the unmapped page instead of failing, and return the bytes before it.
        assert (got, ctypes.get_errno()) == (-1, errno.EFAULT) or (address == edge and call is libc.read and got == 4), \
            f"{name} {address:#x}: {got}, {os.strerror(ctypes.get_errno())}"
    os.close(fd)
    print(f"{name}: ok", flush=True)

before = state()
for name in ("control", "one/threshold", "one/enabled", "one/timeout", "one/dev"):
    tried(name, os.O_WRONLY, libc.write)
for name in ("control", "version", "trackers", "one/stats", "one/histogram", "one/threshold", "wakeup", "one/wakeup"):
    tried(name, os.O_RDONLY, libc.read)
after = state()
assert after == before, f"something changed:\n{before}\nis now\n{after}"
PY
