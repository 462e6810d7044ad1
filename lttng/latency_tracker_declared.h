/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Made by scripts/trackers from rust/trackers: change it there.
 * Included by latency_tracker.h.
 */

LT_LTTNG_ALERT(block,
	ctf_integer(dev_t, dev, alert->args[0] >> 32)
	ctf_array_text(char, disk, (const char *)(alert->args + 5), 32)
	ctf_integer_hex(u32, cmd_flags, alert->args[0])
	ctf_integer(u64, sector, alert->args[1])
	ctf_integer(u32, bytes, alert->args[2])
	ctf_integer(u64, queue, alert->args[3])
	ctf_integer(u64, device, alert->args[4])
	ctf_integer(u32, requeues, 0x7fffffff & (alert->args[2] >> 32))
)

LT_LTTNG_ALERT(wakeup,
	ctf_integer(int, prio, (s16)(alert->args[0] >> 32))
	ctf_integer(u32, policy, (u16)(alert->args[0] >> 48))
	ctf_integer(u32, target, alert->args[0])
	ctf_integer(u8, migrated, 1 & (alert->args[4] >> 44))
	ctf_integer(u32, waker_pid, 0x3fffff & (alert->args[1] >> 22))
	ctf_integer(u32, waker_tid, 0x3fffff & alert->args[1])
	ctf_array_text(char, waker_comm, (const char *)(alert->args + 2),
		TASK_COMM_LEN)
	ctf_enum(latency_tracker_context, u32, context,
		3 & (alert->args[1] >> 44))
	ctf_integer(u32, prev_pid, 0x3fffff & (alert->args[4] >> 22))
	ctf_integer(u32, prev_tid, 0x3fffff & alert->args[4])
	ctf_array_text(char, prev_comm, (const char *)(alert->args + 5),
		TASK_COMM_LEN)
)

LT_LTTNG_ALERT(runqueue,
	ctf_integer(int, prio, (s16)(alert->args[0] >> 32))
	ctf_integer(u32, policy, (u16)(alert->args[0] >> 48))
	ctf_integer(u8, preempted, 1 & (alert->args[1] >> 44))
	ctf_integer(u32, from, alert->args[0])
	ctf_integer(u8, migrated, 1 & (alert->args[4] >> 44))
	ctf_integer(u32, by_pid, 0x3fffff & (alert->args[1] >> 22))
	ctf_integer(u32, by_tid, 0x3fffff & alert->args[1])
	ctf_array_text(char, by_comm, (const char *)(alert->args + 2),
		TASK_COMM_LEN)
	ctf_integer(u32, prev_pid, 0x3fffff & (alert->args[4] >> 22))
	ctf_integer(u32, prev_tid, 0x3fffff & alert->args[4])
	ctf_array_text(char, prev_comm, (const char *)(alert->args + 5),
		TASK_COMM_LEN)
	ctf_integer(u8, throttled, 1 & (alert->args[1] >> 45))
)

LT_LTTNG_ALERT(offcpu,
	ctf_integer(int, prio, (s16)(alert->args[0] >> 32))
	ctf_integer(u32, policy, (u16)(alert->args[0] >> 48))
	ctf_integer(u32, from, alert->args[0])
	ctf_integer(u8, preempted, alert->args[1] >> 32)
	ctf_integer_hex(u32, state, alert->args[1])
	ctf_integer(u32, waker_pid, 0x3fffff & (alert->args[2] >> 22))
	ctf_integer(u32, waker_tid, 0x3fffff & alert->args[2])
	ctf_array_text(char, waker_comm, (const char *)(alert->args + 3),
		TASK_COMM_LEN)
	ctf_enum(latency_tracker_context, u32, context,
		3 & (alert->args[2] >> 44))
	ctf_integer(u64, queued, alert->args[5])
)

LT_LTTNG_ALERT(func,
	ctf_integer_hex(u64, function, alert->args[0])
	ctf_integer_hex(u64, caller, alert->args[1])
	ctf_enum(latency_tracker_context, u32, context,
		3 & (alert->args[2] >> 32))
	ctf_integer(u32, depth, alert->args[2])
	ctf_array_hex(u64, arg, alert->args + 3, 3)
	ctf_integer_hex(u64, ret, alert->args[6])
)

LTTNG_TRACEPOINT_ENUM(latency_tracker_irq_ret,
	TP_ENUM_VALUES(
		ctf_enum_value("none", 0)
		ctf_enum_value("handled", 1)
		ctf_enum_value("wake_thread", 2)
		ctf_enum_value("pending", 3)
		ctf_enum_value("other", 4)
	)
)

LT_LTTNG_ALERT(irq,
	ctf_integer(u32, irq, alert->args[0])
	ctf_array_text(char, action, (const char *)(alert->args + 1), 32)
	ctf_integer(u16, on, alert->args[0] >> 32)
	ctf_enum(latency_tracker_irq_ret, u16, ret, alert->args[0] >> 48)
)

LT_LTTNG_ALERT(softirq,
	ctf_integer(u32, vec, alert->args[0])
	ctf_integer(u32, on, alert->args[0] >> 32)
)

LTTNG_TRACEPOINT_ENUM(latency_tracker_syscall_abi,
	TP_ENUM_VALUES(
		ctf_enum_value("native", 0)
		ctf_enum_value("compat", 1)
		ctf_enum_value("x32", 2)
	)
)

LT_LTTNG_ALERT(syscall,
	ctf_integer(int, number, alert->args[0])
	ctf_enum(latency_tracker_syscall_abi, u8, abi, alert->args[0] >> 32)
	ctf_array_hex(u64, arg, alert->args + 1, 3)
	ctf_integer(u8, returned, 1 & (alert->args[0] >> 48))
	ctf_integer(s64, ret, alert->args[4])
)

LT_LTTNG_ALERT(workqueue,
	ctf_integer_hex(u64, work, alert->args[0])
	ctf_integer_hex(u64, func, alert->args[1])
	ctf_array_text(char, workqueue, (const char *)(alert->args + 2), 32)
	ctf_integer(u8, running_now, 1 & (alert->args[6] >> 63))
	ctf_integer(u32, worker_cpu, alert->args[6])
	ctf_integer(u32, by_pid, 0x3fffff & (alert->args[9] >> 22))
	ctf_integer(u32, by_tid, 0x3fffff & alert->args[9])
	ctf_array_text(char, by_comm, (const char *)(alert->args + 10),
		TASK_COMM_LEN)
	ctf_enum(latency_tracker_context, u32, context,
		3 & (alert->args[6] >> 32))
	ctf_integer(u64, queued, alert->args[7])
	ctf_integer(u64, running, alert->args[8])
)

LTTNG_TRACEPOINT_ENUM(latency_tracker_net_end,
	TP_ENUM_VALUES(
		ctf_enum_value("none", 0)
		ctf_enum_value("copied", 1)
		ctf_enum_value("consumed", 2)
		ctf_enum_value("dropped", 3)
	)
)

LT_LTTNG_ALERT(net,
	ctf_integer_hex(u64, skb, alert->args[0])
	ctf_array_text(char, dev, (const char *)(alert->args + 1), 16)
	ctf_integer(u32, ifindex, alert->args[3] >> 32)
	ctf_integer(u32, netns, alert->args[5])
	ctf_integer_hex(u16, protocol, alert->args[4] >> 16)
	ctf_integer(u8, transport, alert->args[4])
	ctf_integer(u32, len, alert->args[3])
	ctf_enum(latency_tracker_net_end, u8, end, alert->args[6] >> 32)
	ctf_integer(u32, drop_reason, alert->args[6])
	ctf_integer_hex(u64, location, alert->args[7])
)

LT_LTTNG_ALERT(accept,
	ctf_integer_hex(u64, socket, alert->args[0])
	ctf_integer(u16, family, alert->args[5] >> 32)
	ctf_array_hex(u8, local, (const u8 *)(alert->args + 1), 16)
	ctf_integer(u16, local_port, alert->args[5] >> 16)
	ctf_array_hex(u8, remote, (const u8 *)(alert->args + 3), 16)
	ctf_integer(u16, remote_port, alert->args[5])
	ctf_integer(int, fd, alert->args[6])
	ctf_integer(u64, bytes, alert->args[7])
)

LTTNG_TRACEPOINT_ENUM(latency_tracker_reclaim_kind,
	TP_ENUM_VALUES(
		ctf_enum_value("direct", 0)
		ctf_enum_value("memcg", 1)
		ctf_enum_value("compaction", 2)
	)
)

LT_LTTNG_ALERT(reclaim,
	ctf_enum(latency_tracker_reclaim_kind, u8, kind, alert->args[0])
	ctf_integer(int, order, alert->args[0] >> 8)
	ctf_integer(u64, pages, alert->args[1])
)

LTTNG_TRACEPOINT_ENUM(latency_tracker_lock_kind,
	TP_ENUM_VALUES(
		ctf_enum_value("all", 0)
		ctf_enum_value("semaphore", 1)
		ctf_enum_value("spinlock", 2)
		ctf_enum_value("rwlock:R", 3)
		ctf_enum_value("rwlock:W", 4)
		ctf_enum_value("rwsem:R", 5)
		ctf_enum_value("rwsem:W", 6)
		ctf_enum_value("rtmutex", 7)
		ctf_enum_value("rwlock-rt:R", 8)
		ctf_enum_value("rwlock-rt:W", 9)
		ctf_enum_value("pcpu-sem:R", 10)
		ctf_enum_value("pcpu-sem:W", 11)
		ctf_enum_value("mutex", 12)
		ctf_enum_value("other", 13)
	)
)

LT_LTTNG_ALERT(lock,
	ctf_integer_hex(u64, lock, alert->args[0])
	ctf_enum(latency_tracker_lock_kind, u8, kind, alert->args[1])
	ctf_integer(int, ret, alert->args[1] >> 8)
)

LTTNG_TRACEPOINT_ENUM(latency_tracker_tree_end,
	TP_ENUM_VALUES(
		ctf_enum_value("none", 0)
		ctf_enum_value("switch", 1)
		ctf_enum_value("user", 2)
		ctf_enum_value("blocked", 3)
		ctf_enum_value("work", 4)
	)
)

LTTNG_TRACEPOINT_ENUM(latency_tracker_tree_state,
	TP_ENUM_VALUES(
		ctf_enum_value("woken", 0)
		ctf_enum_value("running", 1)
		ctf_enum_value("waiting", 2)
		ctf_enum_value("working", 3)
		ctf_enum_value("queued", 4)
	)
)

LTTNG_TRACEPOINT_ENUM(latency_tracker_tree_origin,
	TP_ENUM_VALUES(
		ctf_enum_value("none", 0)
		ctf_enum_value("irq", 1)
		ctf_enum_value("vector", 2)
		ctf_enum_value("timer", 3)
		ctf_enum_value("work", 4)
		ctf_enum_value("wheel", 5)
	)
)

LT_LTTNG_ALERT(tree,
	ctf_enum(latency_tracker_tree_end, u8, end,
		0xf & (alert->args[1] >> 60))
	ctf_enum(latency_tracker_tree_state, u8, state,
		0xf & (alert->args[1] >> 48))
	ctf_enum(latency_tracker_tree_origin, u8, origin,
		0xf & (alert->args[1] >> 52))
	ctf_integer_hex(u64, subject, alert->args[7])
	ctf_array_text(char, action, (const char *)(alert->args + 3), 32)
	ctf_integer(u32, target_cpu, alert->args[2])
	ctf_integer(int, prio, (s16)(alert->args[2] >> 32))
	ctf_integer(u32, policy, (u16)(alert->args[2] >> 48))
	ctf_integer(u32, preempted, (u16)(alert->args[1] >> 24))
	ctf_integer(u32, merged, (u8)(alert->args[1] >> 40))
	ctf_integer(u32, more, (u16)(alert->args[1] >> 8))
	ctf_integer(u64, more_ns, alert->args[0])
	ctf_sequence_hex(u64, steps, alert->args + 8, u32,
		alert->nr_args - 8)
)
