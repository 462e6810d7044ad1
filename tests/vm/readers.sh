# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The readers of `wakeup` and `alerts`: blocking, poll, O_NONBLOCK, signals, many at once, no alert missed
# between two readings or because of a failing one, removal while they sleep, the rate of wake-ups.
# kernels: stock rt
# cpus: 2
# root: full
# timeout: 120

. /lt/tests/lib.sh
. /lt/tests/block.sh

load_module
null_disk slow 20000000
exec python3 /lt/tests/readers.py
