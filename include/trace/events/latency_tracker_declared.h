/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Made by scripts/trackers from rust/trackers: change it there.
 * Included by latency_tracker.h.
 */

LT_ALERT(block,
	__field(dev_t, dev) __array(char, disk, 32) __field(u32, cmd_flags)
	__field(u64, sector) __field(u32, bytes) __field(u64, queue)
	__field(u64, device) __field(u32, requeues),
	__entry->dev = alert->args[0] >> 32;
	memcpy(__entry->disk, alert->args + 5, 32); __entry->disk[31] = '\0';
	__entry->cmd_flags = alert->args[0]; __entry->sector = alert->args[1];
	__entry->bytes = alert->args[2]; __entry->queue = alert->args[3];
	__entry->device = alert->args[4];
	__entry->requeues = 0x7fffffff & (alert->args[2] >> 32);,
	"dev=%u:%u disk=%s cmd_flags=%#x sector=%llu bytes=%u queue=%llu device=%llu requeues=%u",
	MAJOR(__entry->dev), MINOR(__entry->dev), __entry->disk,
	__entry->cmd_flags, __entry->sector, __entry->bytes, __entry->queue,
	__entry->device, __entry->requeues
);

LT_ALERT(wakeup,
	__field(int, prio) __field(u32, policy) __field(u32, target)
	__field(bool, migrated) LT_TASK_FIELDS(waker) __field(u32, context)
	LT_TASK_FIELDS(prev),
	__entry->prio = (s16)(alert->args[0] >> 32);
	__entry->policy = (u16)(alert->args[0] >> 48);
	__entry->target = alert->args[0];
	__entry->migrated = 1 & (alert->args[4] >> 44);
	LT_TASK_ASSIGN(waker, alert->args + 1);
	__entry->context = 3 & (alert->args[1] >> 44);
	LT_TASK_ASSIGN(prev, alert->args + 4);,
	"prio=%d policy=%u target=%u migrated=%d waker_pid=%u waker_tid=%u waker_comm=%s context=%s prev_pid=%u prev_tid=%u prev_comm=%s",
	__entry->prio, __entry->policy, __entry->target, __entry->migrated,
	__entry->waker_pid, __entry->waker_tid, __entry->waker_comm,
	__print_symbolic(__entry->context, LT_CONTEXTS),
	__entry->prev_pid, __entry->prev_tid, __entry->prev_comm
);

LT_ALERT(runqueue,
	__field(int, prio) __field(u32, policy) __field(u32, from)
	__field(bool, preempted) __field(bool, migrated) LT_TASK_FIELDS(by)
	LT_TASK_FIELDS(prev) __field(bool, throttled),
	__entry->prio = (s16)(alert->args[0] >> 32);
	__entry->policy = (u16)(alert->args[0] >> 48);
	__entry->from = alert->args[0];
	__entry->preempted = 1 & (alert->args[1] >> 44);
	__entry->migrated = 1 & (alert->args[4] >> 44);
	LT_TASK_ASSIGN(by, alert->args + 1);
	LT_TASK_ASSIGN(prev, alert->args + 4);
	__entry->throttled = 1 & (alert->args[1] >> 45);,
	"prio=%d policy=%u state=%s from=%u migrated=%d by_pid=%u by_tid=%u by_comm=%s prev_pid=%u prev_tid=%u prev_comm=%s throttled=%d",
	__entry->prio, __entry->policy, __entry->preempted ? "R+" : "R",
	__entry->from, __entry->migrated,
	__entry->by_pid, __entry->by_tid, __entry->by_comm,
	__entry->prev_pid, __entry->prev_tid, __entry->prev_comm,
	__entry->throttled
);

LT_ALERT(offcpu,
	__field(int, prio) __field(u32, policy) __field(u32, from)
	__field(bool, preempted) __field(u32, state) LT_TASK_FIELDS(waker)
	__field(u32, context) __field(u64, queued),
	__entry->prio = (s16)(alert->args[0] >> 32);
	__entry->policy = (u16)(alert->args[0] >> 48);
	__entry->from = alert->args[0];
	__entry->preempted = (alert->args + 1)[0] >> 32; __entry->state = (alert->args + 1)[0];
	LT_TASK_ASSIGN(waker, alert->args + 2);
	__entry->context = 3 & (alert->args[2] >> 44);
	__entry->queued = alert->args[5];,
	"prio=%d policy=%u from=%u preempted=%d state=%#x waker_pid=%u waker_tid=%u waker_comm=%s context=%s queued=%llu",
	__entry->prio, __entry->policy, __entry->from,
	__entry->preempted, __entry->state,
	__entry->waker_pid, __entry->waker_tid, __entry->waker_comm,
	__print_symbolic(__entry->context, LT_CONTEXTS), __entry->queued
);

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
	{ 2, "wake_thread" }, { 3, "pending" }, { 4, "other" })
);

LT_ALERT(softirq,
	__field(u32, vec) __field(u32, on),
	__entry->vec = alert->args[0]; __entry->on = alert->args[0] >> 32;,
	"vec=%u on=%u",
	__entry->vec, __entry->on
);

LT_ALERT(syscall,
	__field(int, number) __field(u8, abi) __field(bool, returned)
	__array(u64, arg, 3) __field(s64, ret),
	__entry->number = alert->args[0]; __entry->abi = alert->args[0] >> 32;
	__entry->returned = 1 & (alert->args[0] >> 48);
	memcpy(__entry->arg, alert->args + 1, sizeof(__entry->arg));
	__entry->ret = alert->args[4];,
	"number=%d abi=%s arg0=%#llx arg1=%#llx arg2=%#llx returned=%d ret=%lld",
	__entry->number, __print_symbolic(__entry->abi, { 0, "native" },
	{ 1, "compat" }, { 2, "x32" }),
	__entry->arg[0], __entry->arg[1], __entry->arg[2], __entry->returned,
	__entry->ret
);

LT_ALERT(workqueue,
	__field(void *, work) __field(void *, func) __array(char, workqueue, 32)
	__field(bool, running_now) __field(u32, worker_cpu) LT_TASK_FIELDS(by)
	__field(u32, context) __field(u64, queued) __field(u64, running),
	__entry->work = (void *)alert->args[0];
	__entry->func = (void *)alert->args[1];
	memcpy(__entry->workqueue, alert->args + 2, 32); __entry->workqueue[31] = '\0';
	__entry->running_now = 1 & (alert->args[6] >> 63);
	__entry->worker_cpu = alert->args[6];
	LT_TASK_ASSIGN(by, alert->args + 9);
	__entry->context = 3 & (alert->args[6] >> 32);
	__entry->queued = alert->args[7]; __entry->running = alert->args[8];,
	"work=%p func=%ps workqueue=%s state=%s worker_cpu=%u by_pid=%u by_tid=%u by_comm=%s context=%s queued=%llu running=%llu",
	__entry->work, __entry->func, __entry->workqueue,
	__entry->running_now ? "running" : "waiting", __entry->worker_cpu,
	__entry->by_pid, __entry->by_tid, __entry->by_comm,
	__print_symbolic(__entry->context, LT_CONTEXTS), __entry->queued,
	__entry->running
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

LT_ALERT(tree,
	__field(int, prio) __field(u32, policy) __field(u8, end)
	__field(u8, state) __field(u8, origin) __field(u64, subject)
	__array(char, action, 32) __field(u32, target_cpu)
	__field(u32, preempted) __field(u32, merged) __field(u32, more)
	__field(u64, more_ns) __dynamic_array(u64, steps, alert->nr_args - 8),
	__entry->prio = (s16)(alert->args[2] >> 32);
	__entry->policy = (u16)(alert->args[2] >> 48);
	__entry->end = 0xf & (alert->args[1] >> 60);
	__entry->state = 0xf & (alert->args[1] >> 48);
	__entry->origin = 0xf & (alert->args[1] >> 52);
	__entry->subject = alert->args[7];
	memcpy(__entry->action, alert->args + 3, 32); __entry->action[31] = '\0';
	__entry->target_cpu = alert->args[2];
	__entry->preempted = (u16)(alert->args[1] >> 24);
	__entry->merged = (u8)(alert->args[1] >> 40);
	__entry->more = (u16)(alert->args[1] >> 8);
	__entry->more_ns = alert->args[0];
	memcpy(__get_dynamic_array(steps), alert->args + 8, (alert->nr_args - 8) * sizeof(u64));,
	"end=%s state=%s origin=%s subject=%#llx action=%s target_cpu=%u prio=%d policy=%u preempted=%u merged=%u more=%u more_ns=%llu steps=%s",
	__print_symbolic(__entry->end, { 0, "none" }, { 1, "switch" },
	{ 2, "user" }, { 3, "blocked" }, { 4, "work" }),
	__print_symbolic(__entry->state, { 0, "woken" }, { 1, "running" },
	{ 2, "waiting" }, { 3, "working" }, { 4, "queued" }),
	__print_symbolic(__entry->origin, { 0, "none" }, { 1, "irq" },
	{ 2, "vector" }, { 3, "timer" }, { 4, "work" }, { 5, "wheel" }),
	__entry->subject, __entry->action, __entry->target_cpu, __entry->prio,
	__entry->policy, __entry->preempted, __entry->merged, __entry->more,
	__entry->more_ns,
	__print_array(__get_dynamic_array(steps),
		__get_dynamic_array_len(steps) / sizeof(u64), sizeof(u64))
);
