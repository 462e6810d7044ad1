#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# record-perf.sh: records /lt/out/perf.data, from which perf.tar.xz is made, in the virtual machine.
#
# The recorded program waits five times for a child that sleeps for 20 ms. Debian 13's perf has no
# CTF writer, so perf 6.1 of Debian 12, with its libraries, recorded the trace in the machine, and
# converted it on the host:
#
#   scripts/vm --root full --out DIRECTORY --add PERF-AND-LIBRARIES:/lt/perf --add record-perf.sh -- sh /lt/record-perf.sh
#   perf data convert -i DIRECTORY/perf.data --all --to-ctf perf && tar -cJf perf.tar.xz perf

set -eu

# the tracepoints, as options
of() {
	system=$1
	shift
	for event in "$@"; do printf -- '-e %s:%s ' "$system" "$event"; done
}

cat >/tmp/waits.py <<'END'
import os, time
r, w = os.pipe()
for turn in range(5):
    if os.fork() == 0:
        time.sleep(0.02)
        os.write(w, b"x")
        os._exit(0)
    os.read(r, 1)
    os.wait()
END
# shellcheck disable=SC2046 # they are words
/lt/perf/ld-linux-x86-64.so.2 --library-path /lt/perf /lt/perf/perf record -q -a -k monotonic -o /lt/out/perf.data \
	$(of sched sched_switch sched_waking sched_wakeup_new sched_process_fork sched_process_exit) \
	$(of irq softirq_raise softirq_entry softirq_exit irq_handler_entry irq_handler_exit) \
	$(of irq_vectors local_timer_entry local_timer_exit reschedule_entry reschedule_exit) \
	$(of timer hrtimer_expire_entry hrtimer_expire_exit) \
	$(of syscalls sys_enter_read sys_exit_read sys_enter_wait4 sys_exit_wait4) \
	$(of syscalls sys_enter_clock_nanosleep sys_exit_clock_nanosleep) \
	-- python3 /tmp/waits.py
