/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Made by scripts/trackers of rust/trackers: change it there.
 * Included by latency_tracker.h.
 */

TRACE_EVENT(alert_softirq,

	TP_PROTO(const struct lt_alert *alert),

	TP_ARGS(alert),

	TP_STRUCT__entry(
		LT_COMMON_FIELDS
		__field(u32, vec)
		__field(u32, on)
	),

	TP_fast_assign(
		LT_COMMON_ASSIGN;
		__entry->vec = alert->args[0];
		__entry->on = alert->args[0] >> 32;
	),

	TP_printk(LT_COMMON_FORMAT " vec=%u on=%u",
		  LT_COMMON_VALUES, __entry->vec,
		  __entry->on)
);

TRACE_EVENT(alert_reclaim,

	TP_PROTO(const struct lt_alert *alert),

	TP_ARGS(alert),

	TP_STRUCT__entry(
		LT_COMMON_FIELDS
		__field(u8, kind)
		__field(int, order)
		__field(u64, pages)
	),

	TP_fast_assign(
		LT_COMMON_ASSIGN;
		__entry->kind = alert->args[0];
		__entry->order = alert->args[0] >> 8;
		__entry->pages = alert->args[1];
	),

	TP_printk(LT_COMMON_FORMAT " kind=%s order=%d pages=%llu",
		  LT_COMMON_VALUES, __print_symbolic(__entry->kind,
				   { 0, "direct" },
				   { 1, "memcg" },
				   { 2, "compaction" }),
		  __entry->order,
		  __entry->pages)
);

TRACE_EVENT(alert_lock,

	TP_PROTO(const struct lt_alert *alert),

	TP_ARGS(alert),

	TP_STRUCT__entry(
		LT_COMMON_FIELDS
		__field(void *, lock)
		__field(u8, kind)
		__field(int, ret)
	),

	TP_fast_assign(
		LT_COMMON_ASSIGN;
		__entry->lock = (void *)(unsigned long)alert->args[0];
		__entry->kind = alert->args[1];
		__entry->ret = alert->args[1] >> 8;
	),

	TP_printk(LT_COMMON_FORMAT " lock=%p kind=%s ret=%d",
		  LT_COMMON_VALUES, __entry->lock,
		  __print_symbolic(__entry->kind,
				   { 0, "all" },
				   { 1, "semaphore" },
				   { 2, "spinlock" },
				   { 3, "rwlock:R" },
				   { 4, "rwlock:W" },
				   { 5, "rwsem:R" },
				   { 6, "rwsem:W" },
				   { 7, "rtmutex" },
				   { 8, "rwlock-rt:R" },
				   { 9, "rwlock-rt:W" },
				   { 10, "pcpu-sem:R" },
				   { 11, "pcpu-sem:W" },
				   { 12, "mutex" },
				   { 13, "other" }),
		  __entry->ret)
);
