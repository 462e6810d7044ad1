# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The readers of `wakeup` and `alerts`: blocking reads, poll, O_NONBLOCK, signals, many readers at
# once, removal while they sleep, and the rate of wakeups. No alert is missed between two reads, or
# because of a failed read.
# kernels: stock rt
# cpus: 2
# root: full
# timeout: 120

. /lt/tests/lib.sh
. /lt/tests/block.sh

load_module
null_disk slow 20000000
exec python3 /lt/tests/readers.py
