#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# scripts/kernel-log-check distinguishes kernel messages that indicate a problem from harmless messages.
# timeout: 20

. "$(dirname "$0")/../host.sh"

# expect clean|bad LOG-LINE [TAINT]: check the result for a log with this line, and for this taint
expect() {
	local got=clean
	printf '[    1.0] an ordinary line\r\n[    2.0] %s\r\n' "$1" "$2" >"$work/console.log"
	printf 'booted 3\ntaint %s\nstatus 0\n' "${3:-12288}" >"$work/result"
	"$LT_TOP/scripts/kernel-log-check" "$work" >"$work/said" || got=bad
	[ "$got" = "$1" ] || { echo "'$2', taint ${3:-12288}: $got, expected $1"; cat "$work/said"; exit 1; }
}

expect clean 'PCI: Using host bridge windows from ACPI; if necessary, use "pci=nocrs" and report a bug'
expect clean 'latency_tracker: loading out-of-tree module taints kernel.'
expect clean 'rcu: 	RCU calculated value of scheduler-enlistment delay is 25 jiffies.'
expect clean 'clocksource: Watchdog remote CPU 1 read timed out'
expect clean 'Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar'
expect clean 'kmemleak: Kernel memory leak detector initialized (mem pool available: 15671)'
expect clean 'nothing' 0
expect clean 'nothing' 274432
expect clean 'WARNING: stack going in the wrong direction? at return_to_handler+0x46/0x50'
expect bad 'WARNING: stack going in the wrong direction? at lt_probe+0x46/0x50'
expect bad 'WARNING: CPU: 1 PID: 12 at mm/slub.c:1 f+0x1/0x2'
expect bad 'WARNING: possible circular locking dependency detected'
expect bad 'BUG: unable to handle page fault for address: ffff'
expect bad 'BUG: KASAN: slab-use-after-free in f+0x1/0x2'
expect bad 'BUG: sleeping function called from invalid context at kernel/a.c:1'
expect bad 'Oops: general protection fault, probably for non-canonical address'
expect bad 'watchdog: BUG: soft lockup - CPU#0 stuck for 26s!'
expect bad 'rcu: INFO: rcu_preempt self-detected stall on CPU'
expect bad 'INFO: task sh:12 blocked for more than 120 seconds.'
expect bad 'Kernel panic - not syncing: Fatal exception'
expect bad 'refcount_t: underflow; use-after-free.'
expect bad 'BUG: Invalid wait context'
expect bad 'BUG: KCSAN: data-race in f [latency_tracker] / g'
expect bad 'ODEBUG: free active (active state 0) object: ffff object type: timer_list hint: f+0x0/0x1'
expect bad 'INFO: trying to register non-static key.'
expect bad 'BUG: MAX_LOCKDEP_ENTRIES too low!'
expect bad 'kmemleak: 2 new suspected memory leaks (see /sys/kernel/debug/kmemleak)'
expect bad 'nothing' 12800
expect bad 'nothing' 128
injected='python3: vmalloc error: size 8192, vm_struct allocation failed, mode:0x400cc0(GFP_KERNEL_ACCOUNT)
Call Trace:
 <TASK>
 dump_stack_lvl+0x1/0x2
 </TASK>'
expect clean "$injected"
expect bad "$injected"$'\nBUG: KASAN: slab-use-after-free in f'
expect bad "${injected/vm_struct allocation failed/failed to allocate pages}"
killed='marked invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
Call Trace:
 <TASK>
 dump_stack_lvl+0x1/0x2
 </TASK>
Memory cgroup out of memory: Killed process 12 (marked) total-vm:1kB'
expect clean "$killed"
expect bad "${killed/marked invoked/sh invoked}"
expect bad "${killed/Memory cgroup out/Out}"
# Only the heading of this one stack is ignored: a problem reported in the stack or after it counts.
bug='BUG: KASAN: slab-use-after-free in f'
for expected in "$injected" "$killed"; do
	expect bad "${expected/ <TASK>/$bug}"
	expect bad "${expected/ <\/TASK>/}"$'\n'"$bug"
	expect bad "$expected"$'\nCall Trace:'
done
line='[    2.0] =================================================================='
race() { printf '%s\n[    2.0] BUG: KCSAN: data-race in %s\n[    2.0]  a+0x1/0x2%s\n%s' "$line" "${2:-a / b}" "$1" "$line"; }
expect clean "$(race '')"
expect bad "$(race ' [latency_tracker]')"
expect bad "$(race ' [lt_selftest]')"
expect clean "$(race ' [lt_selftest]' 'ktime_get_mono_fast_ns / timekeeping_update_from_shadow')"
expect clean "$(race ' [lt_stress]' 'hrtimer_wakeup / schedule_hrtimeout_range_clock')"
expect bad "$(race ' [lt_selftest]' 'ktime_get_mono_fast_ns / begin [lt_selftest]')"
expect clean "$(race ' [latency_tracker]' '0x0 / capable')"
expect bad "$(race ' [latency_tracker]' 'lt_open [latency_tracker] / capable')"
expect clean "$(race ' [latency_tracker]' 'capable / rcu_core')"
expect bad "$(race ' [latency_tracker]' 'capable / lt_open [latency_tracker]')"
expect clean "$(race ' [lt_contexts]' 'tick_nohz_handler / tick_nohz_idle_got_tick')"
workqueue=$'\n[    2.0] Workqueue: latency_tracker lt_periodic_work [latency_tracker]'
expect clean "$(race "$workqueue")"
expect bad "$(race " [latency_tracker]$workqueue")"
expect bad "$(race '')"$'\n'"$(race ' [latency_tracker]')"
expect bad "$(race '' | head -n 3)"
expect bad "$(race '')"$'\n'"$line"$'\nBUG: KASAN: slab-use-after-free in f\n'"$line"
# a machine that crashed before it reported a result
expect bad 'Kernel panic - not syncing' ''
rm "$work/result"
"$LT_TOP/scripts/kernel-log-check" "$work" >/dev/null && exit 1
# a file is refused: otherwise it would pass for a directory without logs, in which nothing is wrong
! "$LT_TOP/scripts/kernel-log-check" "$work/console.log" 2>"$work/said" || { echo "accepted a file"; exit 1; }
grep -q "console.log: expected the directory" "$work/said"
echo "all as expected"
