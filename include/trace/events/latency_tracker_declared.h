/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Made by scripts/trackers of rust/trackers: change it there.
 * Included by latency_tracker.h.
 */

LT_ALERT(irq,
	__field(u32, irq) __field(u16, on) __field(u16, ret)
	__array(char, action, 32),
	__entry->irq = alert->args[0]; __entry->on = alert->args[0] >> 32;
	__entry->ret = alert->args[0] >> 48;
	memcpy(__entry->action, alert->args + 1, 32); __entry->action[31] = '\0';,
	"irq=%u action=%s on=%u ret=%s",
	__entry->irq, __entry->action, __entry->on,
	__print_symbolic(__entry->ret, { 0, "none" }, { 1, "handled" },
	{ 2, "wake_thread" }, { 3, "pending" })
);

LT_ALERT(softirq,
	__field(u32, vec) __field(u32, on),
	__entry->vec = alert->args[0]; __entry->on = alert->args[0] >> 32;,
	"vec=%u on=%u",
	__entry->vec, __entry->on
);

LT_ALERT(reclaim,
	__field(u8, kind) __field(int, order) __field(u64, pages),
	__entry->kind = alert->args[0]; __entry->order = alert->args[0] >> 8;
	__entry->pages = alert->args[1];,
	"kind=%s order=%d pages=%llu",
	__print_symbolic(__entry->kind, { 0, "direct" }, { 1, "memcg" },
	{ 2, "compaction" }), __entry->order, __entry->pages
);

LT_ALERT(lock,
	__field(void *, lock) __field(u8, kind) __field(int, ret),
	__entry->lock = (void *)alert->args[0]; __entry->kind = alert->args[1];
	__entry->ret = alert->args[1] >> 8;,
	"lock=%p kind=%s ret=%d",
	__entry->lock, __print_symbolic(__entry->kind, { 0, "all" },
	{ 1, "semaphore" }, { 2, "spinlock" }, { 3, "rwlock:R" },
	{ 4, "rwlock:W" }, { 5, "rwsem:R" }, { 6, "rwsem:W" }, { 7, "rtmutex" },
	{ 8, "rwlock-rt:R" }, { 9, "rwlock-rt:W" }, { 10, "pcpu-sem:R" },
	{ 11, "pcpu-sem:W" }, { 12, "mutex" }, { 13, "other" }), __entry->ret
);
