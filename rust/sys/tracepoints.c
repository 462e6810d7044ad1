// SPDX-License-Identifier: GPL-2.0
/*
 * What the probes expect of the kernel's tracepoints: the types of their
 * arguments.
 *
 * Rust finds a tracepoint by its name and attaches a function to it through a
 * pointer without a type, so no compiler compares the two. Here one does, with
 * the headers of the kernel that the module is built for. Where they differ,
 * the tracker says so in `trackers` and refuses to work; the others do.
 */
#include <linux/build_bug.h>
#include <linux/interrupt.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <trace/events/block.h>
#include <trace/events/irq.h>
#include <trace/events/net.h>
#include <trace/events/sched.h>
#include <trace/events/skb.h>
#include <trace/events/sock.h>
#include <trace/events/syscalls.h>
#include <trace/events/workqueue.h>

#include "helpers.h"

/* Whether probes of the tracepoint `tp` are given these after their data. */
#define LT_GIVES(tp, ...) \
	__builtin_types_compatible_p(typeof(trace_##tp), void(__VA_ARGS__))

/* That it tells. */
static_assert(!LT_GIVES(sched_waking, struct request *));
static_assert(!LT_GIVES(sched_waking, struct task_struct *, int));

struct lt_expected {
	const char *name;
	bool fits;
};

#define LT_EXPECT(tp, ...) { .name = #tp, .fits = LT_GIVES(tp, __VA_ARGS__) }

/* All that rust/sys attaches to; the probes of rust/sys/NAME.rs take these. */
static const struct lt_expected lt_expected[] = {
	/* block.rs */
	LT_EXPECT(block_io_start, struct request *),
	LT_EXPECT(block_rq_insert, struct request *),
	LT_EXPECT(block_rq_issue, struct request *),
	LT_EXPECT(block_rq_requeue, struct request *),
	LT_EXPECT(block_rq_merge, struct request *),
	LT_EXPECT(block_rq_complete, struct request *, blk_status_t,
		  unsigned int),
	LT_EXPECT(block_io_done, struct request *),
	/* sched.rs */
	LT_EXPECT(sched_switch, bool, struct task_struct *,
		  struct task_struct *, unsigned int),
	LT_EXPECT(sched_waking, struct task_struct *),
	LT_EXPECT(sched_wakeup_new, struct task_struct *),
	LT_EXPECT(sched_process_exit, struct task_struct *, bool),
	LT_EXPECT(sched_process_free, struct task_struct *),
	LT_EXPECT(sched_process_exec, struct task_struct *, pid_t,
		  struct linux_binprm *),
	/* syscall.rs */
	LT_EXPECT(sys_enter, struct pt_regs *, long),
	LT_EXPECT(sys_exit, struct pt_regs *, long),
	/* interrupts */
	LT_EXPECT(irq_handler_entry, int, struct irqaction *),
	LT_EXPECT(irq_handler_exit, int, struct irqaction *, int),
	LT_EXPECT(softirq_entry, unsigned int),
	LT_EXPECT(softirq_exit, unsigned int),
	/* works */
	LT_EXPECT(workqueue_queue_work, int, struct pool_workqueue *,
		  struct work_struct *),
	LT_EXPECT(workqueue_activate_work, struct work_struct *),
	LT_EXPECT(workqueue_execute_start, struct work_struct *),
	LT_EXPECT(workqueue_execute_end, struct work_struct *, work_func_t),
	/* packets */
	LT_EXPECT(kfree_skb, struct sk_buff *, void *, enum skb_drop_reason,
		  const struct sock *),
	LT_EXPECT(netif_receive_skb, struct sk_buff *),
	LT_EXPECT(consume_skb, struct sk_buff *, void *),
	LT_EXPECT(skb_copy_datagram_iovec, const struct sk_buff *, int),
	/* sockets */
	LT_EXPECT(sock_send_length, struct sock *, int, int),
};

notrace bool lt_tracepoint_fits(const char *name)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(lt_expected); i++) {
		if (!strcmp(lt_expected[i].name, name))
			return lt_expected[i].fits;
	}
	return true;
}
