# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Everything at once: requests and kernel threads on all CPUs, while instances are created, changed
# and removed, readers start and are killed, pools grow, modules with their own trackers are loaded
# and unloaded, and CPUs go offline and return. At the end, the counters add up exactly.
# LT_STRESS_SECONDS is the duration (20). LT_STRESS_SEED repeats the random choices.
# kernels: rt
# long: stock
# cpus: 4
# root: full
# arm64: yes
# timeout: 240
# worth: everything at once on four CPUs finds faults that no test looks for

. /lt/tests/lib.sh
. /lt/tests/block.sh

null_disk fast 20000
null_disk slow 4000000
null_disk queued 1000000
modprobe mq-deadline 2>/dev/null || :
echo mq-deadline >/sys/block/queued/queue/scheduler
exec python3 /lt/tests/stress.py
