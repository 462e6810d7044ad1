// SPDX-License-Identifier: GPL-2.0
/*
 * What lt_bench calls of the kernel and can not call from Rust, and the helpers
 * that the engine's platform calls: the same file that the module is made of.
 */
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/interrupt.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/objpool.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>

#include <trace/events/block.h>

#include "glue.h"
#include "../../../rust/sys/helpers.c"

unsigned long ltb_irq_save(void)
{
	unsigned long flags;

	local_irq_save(flags);
	return flags;
}

void ltb_irq_restore(unsigned long flags)
{
	local_irq_restore(flags);
}

u64 ltb_free_memory(void)
{
	struct sysinfo info;

	si_meminfo(&info);
	return (u64)info.freeram * info.mem_unit;
}

struct objpool_head *ltb_objpool_new(int nr, int size)
{
	struct objpool_head *pool = kzalloc(sizeof(*pool), GFP_KERNEL);

	if (pool && objpool_init(pool, nr, size, GFP_KERNEL, NULL, NULL, NULL)) {
		kfree(pool);
		pool = NULL;
	}
	return pool;
}

void ltb_objpool_cycle(struct objpool_head *pool)
{
	objpool_push(objpool_pop(pool), pool);
}

void ltb_objpool_free(struct objpool_head *pool)
{
	objpool_fini(pool);
	kfree(pool);
}

struct bpf_prog *ltb_bpf_get(int fd)
{
	struct bpf_prog *prog;

	prog = bpf_prog_get_type_dev(fd, BPF_PROG_TYPE_RAW_TRACEPOINT, false);
	if (IS_ERR(prog))
		return NULL;
	/* Nobody would measure the interpreter. */
	if (!prog->jited) {
		bpf_prog_put(prog);
		return NULL;
	}
	return prog;
}

u32 ltb_bpf_run(struct bpf_prog *prog, const u64 *args)
{
	return bpf_prog_run(prog, args);
}

void ltb_bpf_put(struct bpf_prog *prog)
{
	bpf_prog_put(prog);
}

struct request *ltb_request_new(void)
{
	return kzalloc(sizeof(struct request), GFP_KERNEL);
}

void ltb_request_inserted(struct request *rq)
{
	trace_block_rq_insert(rq);
}

void ltb_request_free(struct request *rq)
{
	kfree(rq);
}

struct tracepoint *ltb_switch_find(void)
{
	return lt_tracepoint_find("sched_switch");
}

/* sched_switch is not exported; these are the functions that it calls. */
void ltb_switch(struct tracepoint *tp, int prev, int next, unsigned int state)
{
	typedef void (*probe_fn)(void *data, bool preempt,
				 struct task_struct *prev,
				 struct task_struct *next, unsigned int state);
	static struct task_struct *tasks[2];
	struct tracepoint_func *func;

	if (!tasks[0]) {
		/* Both live as long as the machine. */
		tasks[0] = lt_task_find(1);
		tasks[1] = lt_task_find(2);
	}
	func = rcu_dereference_sched(tp->funcs);
	for (; func && func->func; func++)
		((probe_fn)func->func)(func->data, false, tasks[prev],
				       tasks[next], state);
}

bool ltb_pair_find(enum ltb_pair pair, struct tracepoint *found[2])
{
	static const char *const names[LTB_PAIRS][2] = {
		[LTB_IRQ] = { "irq_handler_entry", "irq_handler_exit" },
		[LTB_SOFTIRQ] = { "softirq_entry", "softirq_exit" },
		[LTB_SYSCALL] = { "sys_enter", "sys_exit" },
	};

	if (pair >= LTB_PAIRS)
		return false;
	found[0] = lt_tracepoint_find(names[pair][0]);
	found[1] = lt_tracepoint_find(names[pair][1]);
	return found[0] && found[1];
}

/* None of these is exported, either; what a probe does not take is not looked at. */
static void ltb_call(struct tracepoint *tp, unsigned long a, unsigned long b,
		     unsigned long c)
{
	typedef void (*probe_fn)(void *data, unsigned long a, unsigned long b,
				 unsigned long c);
	struct tracepoint_func *func = rcu_dereference_sched(tp->funcs);

	for (; func && func->func; func++)
		((probe_fn)func->func)(func->data, a, b, c);
}

void ltb_pair(enum ltb_pair pair, struct tracepoint *const found[2])
{
	static struct irqaction action = { .name = "virtio0-req.0" };
	unsigned long regs = (unsigned long)task_pt_regs(current);

	switch (pair) {
	case LTB_IRQ:
		ltb_call(found[0], 25, (unsigned long)&action, 0);
		ltb_call(found[1], 25, (unsigned long)&action, IRQ_HANDLED);
		break;
	case LTB_SOFTIRQ:
		ltb_call(found[0], TASKLET_SOFTIRQ, 0, 0);
		ltb_call(found[1], TASKLET_SOFTIRQ, 0, 0);
		break;
	case LTB_SYSCALL:
		ltb_call(found[0], regs, __NR_read, 0);
		ltb_call(found[1], regs, 16, 0);
		break;
	default:
		break;
	}
}
