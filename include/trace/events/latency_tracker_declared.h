/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Made by scripts/trackers of rust/trackers: change it there.
 * Included by latency_tracker.h.
 */

LT_ALERT(func,
	__field(unsigned long, function) __field(unsigned long, caller)
	__field(u32, context) __field(u32, depth) __array(u64, arg, 3)
	__field(u64, ret),
	__entry->function = alert->args[0]; __entry->caller = alert->args[1];
	__entry->context = 3 & (alert->args[2] >> 32);
	__entry->depth = alert->args[2];
	memcpy(__entry->arg, alert->args + 3, sizeof(__entry->arg));
	__entry->ret = alert->args[6];,
	"function=%ps caller=%pS context=%s depth=%u arg0=%#llx arg1=%#llx arg2=%#llx ret=%#llx",
	(void *)__entry->function, (void *)__entry->caller,
	__print_symbolic(__entry->context, LT_CONTEXTS), __entry->depth,
	__entry->arg[0], __entry->arg[1], __entry->arg[2], __entry->ret
);

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

LT_ALERT(net,
	__field(void *, skb) __array(char, dev, 16) __field(u32, ifindex)
	__field(u32, netns) __field(u32, len) __field(u16, protocol)
	__field(u8, transport) __field(u8, end) __field(u32, drop_reason)
	__field(void *, location),
	__entry->skb = (void *)alert->args[0];
	memcpy(__entry->dev, alert->args + 1, 16); __entry->dev[15] = '\0';
	__entry->ifindex = alert->args[3] >> 32;
	__entry->netns = alert->args[5]; __entry->len = alert->args[3];
	__entry->protocol = alert->args[4] >> 16;
	__entry->transport = alert->args[4];
	__entry->end = alert->args[6] >> 32;
	__entry->drop_reason = alert->args[6];
	__entry->location = (void *)alert->args[7];,
	"skb=%p dev=%s ifindex=%u netns=%u protocol=%#06x transport=%u len=%u end=%s drop_reason=%u location=%pS",
	__entry->skb, __entry->dev, __entry->ifindex, __entry->netns,
	__entry->protocol, __entry->transport, __entry->len,
	__print_symbolic(__entry->end, { 0, "none" }, { 1, "copied" },
	{ 2, "consumed" }, { 3, "dropped" }), __entry->drop_reason,
	__entry->location
);

LT_ALERT(accept,
	__field(void *, socket) __field(u16, family) __field(u16, local_port)
	__field(u16, remote_port) __array(u8, local, 16) __array(u8, remote, 16)
	__field(int, fd) __field(u64, bytes),
	__entry->socket = (void *)alert->args[0];
	__entry->family = alert->args[5] >> 32;
	__entry->local_port = alert->args[5] >> 16;
	__entry->remote_port = alert->args[5];
	memcpy(__entry->local, alert->args + 1, 16);
	memcpy(__entry->remote, alert->args + 3, 16);
	__entry->fd = alert->args[6]; __entry->bytes = alert->args[7];,
	"socket=%p family=%u local=%*phN local_port=%u remote=%*phN remote_port=%u fd=%d bytes=%llu",
	__entry->socket, __entry->family,
	__entry->family == AF_INET6 ? 16 : 4, __entry->local,
	__entry->local_port,
	__entry->family == AF_INET6 ? 16 : 4, __entry->remote,
	__entry->remote_port, __entry->fd, __entry->bytes
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
