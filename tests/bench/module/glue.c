// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel functions that lt_bench cannot call from Rust, and the helpers that the
 * engine's platform calls, from the module's own files.
 */
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/hrtimer.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/interrupt.h>
#include <linux/ip.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/objpool.h>
#include <linux/sched/task_stack.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include <trace/events/block.h>

#include "glue.h"
#include "../../../rust/sys/helpers.c"
#include "../../../rust/sys/periodic.c"

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
	/* Measuring the interpreter would be pointless. */
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

/* Calls the probes directly, since the tracepoint sched_switch is not exported. */
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

#define LTB_POINTS 9

struct ltb_way {
	enum ltb_what what;
	struct tracepoint *points[LTB_POINTS];
	/* Number of tracepoints, from the first one on, to which an empty function is attached. */
	int empties;
	/* The subject: a system call, a work item, a packet or a timer. */
	struct pt_regs regs;
	struct work_struct work;
	void **pwq;
	void *wq;
	struct sk_buff *skb;
	struct hrtimer timer;
	/* The name of the current task, saved while the task looks like a softirq thread. */
	char comm[TASK_COMM_LEN];
	/* A task of user space, a kernel thread, and the task that loads us. */
	struct task_struct *init;
	struct task_struct *kthreadd;
	struct task_struct *thread;
};

/* Registers of the system call that loads us, with another number. */
static void ltb_regs_new(struct ltb_way *way, int number)
{
	way->regs = *task_pt_regs(current);
#ifdef CONFIG_X86_64
	way->regs.orig_ax = number;
#else
	syscall_set_nr(current, &way->regs, number);
#endif
}

static void ltb_work_run(struct work_struct *work)
{
}

/*
 * Only kernel/workqueue.c knows the layouts of a pool_workqueue and of the workqueue
 * that it points to: here, each word of the pool_workqueue points to the workqueue,
 * which is all zeroes.
 */
static bool ltb_work_new(struct ltb_way *way)
{
	INIT_WORK(&way->work, ltb_work_run);
	way->pwq = (void **)get_zeroed_page(GFP_KERNEL);
	way->wq = (void *)get_zeroed_page(GFP_KERNEL);
	if (!way->pwq || !way->wq)
		return false;
	for (int i = 0; i < PAGE_SIZE / sizeof(*way->pwq); i++)
		way->pwq[i] = way->wq;
	return true;
}

/* Makes a packet as received: its data begins with the IP header. */
static bool ltb_packet_new(struct ltb_way *way)
{
	struct sk_buff *skb = alloc_skb(sizeof(struct iphdr), GFP_KERNEL);
	struct iphdr *header;

	way->skb = skb;
	if (!skb)
		return false;
	header = skb_put_zero(skb, sizeof(*header));
	header->protocol = IPPROTO_UDP;
	skb->protocol = htons(ETH_P_IP);
	/* The device lives as long as the machine. */
	skb->dev = init_net.loopback_dev;
	return true;
}

static enum hrtimer_restart ltb_timer_run(struct hrtimer *timer)
{
	return HRTIMER_NORESTART;
}

/* Makes a timer that was due long ago, and is never started. */
static void ltb_timer_new(struct ltb_way *way, enum hrtimer_mode mode)
{
	hrtimer_setup(&way->timer, ltb_timer_run, CLOCK_MONOTONIC, mode);
	hrtimer_set_expires(&way->timer, 1);
}

/* Makes the current task look like a softirq thread, until ltb_thread_end(). */
static void ltb_thread_begin(struct ltb_way *way)
{
	memcpy(way->comm, current->comm, sizeof(way->comm));
	strscpy_pad(current->comm, "ksoftirqd/0");
	current->flags |= PF_KTHREAD;
}

static void ltb_thread_end(const struct ltb_way *way)
{
	current->flags &= ~PF_KTHREAD;
	memcpy(current->comm, way->comm, sizeof(way->comm));
}

static bool ltb_way_find(struct ltb_way *way)
{
	static const char *const names[LTB_WHATS][LTB_POINTS] = {
		[LTB_IRQ] = { "irq_handler_entry", "irq_handler_exit" },
		[LTB_SOFTIRQ] = { "softirq_entry", "softirq_exit" },
		[LTB_READ] = { "sys_enter", "sys_exit" },
		[LTB_GETPID] = { "sys_enter", "sys_exit" },
		[LTB_WORK] = { "workqueue_queue_work",
			       "workqueue_execute_start",
			       "workqueue_execute_end" },
		[LTB_PACKET] = { "netif_receive_skb", "consume_skb" },
		[LTB_GRO] = { "napi_gro_receive_entry" },
		[LTB_SEND] = { "sock_send_length" },
		[LTB_SWITCH] = { "sched_switch" },
		[LTB_WAKING] = { "sched_waking" },
		[LTB_CHAIN] = { "irq_handler_entry", "irq_handler_exit",
				"sched_waking", "sched_switch",
				"softirq_raise", "softirq_entry",
				"softirq_exit" },
		[LTB_LIFE] = { "irq_handler_entry", "irq_handler_exit",
			       "sched_waking", "sched_switch" },
		[LTB_PREEMPTED] = { "irq_handler_entry", "irq_handler_exit",
				    "sched_waking", "sched_switch" },
		[LTB_TIMER] = { "hrtimer_expire_entry", "hrtimer_expire_exit",
				"sched_waking", "sched_switch",
#ifdef CONFIG_X86_LOCAL_APIC
				"local_timer_entry", "local_timer_exit",
#else
				"irq_handler_entry", "irq_handler_exit",
#endif
		},
		[LTB_SOFT_TIMER] = { "hrtimer_expire_entry",
				     "hrtimer_expire_exit", "sched_waking",
				     "sched_switch", "softirq_raise",
				     "softirq_entry", "softirq_exit",
#ifdef CONFIG_X86_LOCAL_APIC
				     "local_timer_entry", "local_timer_exit",
#else
				     "irq_handler_entry", "irq_handler_exit",
#endif
		},
	};
	const char *const *name = names[way->what];

	/* Both live as long as the machine, and sleep. */
	way->init = lt_task_find(1);
	way->kthreadd = lt_task_find(2);
	way->thread = current;
	for (int i = 0; i < LTB_POINTS && name[i]; i++) {
		way->points[i] = lt_tracepoint_find(name[i]);
		if (!way->points[i])
			return false;
	}
	switch (way->what) {
	case LTB_READ:
		ltb_regs_new(way, __NR_read);
		return true;
	case LTB_GETPID:
		ltb_regs_new(way, __NR_getpid);
		return true;
	case LTB_WORK:
		return ltb_work_new(way);
	case LTB_PACKET:
		return ltb_packet_new(way);
	case LTB_TIMER:
		ltb_timer_new(way, HRTIMER_MODE_ABS_HARD);
		return true;
	case LTB_SOFT_TIMER:
		ltb_timer_new(way, HRTIMER_MODE_ABS_SOFT);
		ltb_thread_begin(way);
		return true;
	default:
		return true;
	}
}

struct ltb_way *ltb_way_new(enum ltb_what what)
{
	struct ltb_way *way;

	if (what >= LTB_WHATS)
		return NULL;
	way = kzalloc_obj(*way);
	if (!way)
		return NULL;
	way->what = what;
	if (!ltb_way_find(way)) {
		ltb_way_free(way);
		way = NULL;
	}
	return way;
}

/* Does nothing; the arguments stay in registers. */
static notrace void ltb_empty(void *data)
{
}

bool ltb_way_attach(struct ltb_way *way)
{
	while (way->empties < LTB_POINTS && way->points[way->empties]) {
		struct tracepoint *point = way->points[way->empties];

		if (tracepoint_probe_register(point, ltb_empty, NULL))
			return false;
		way->empties++;
	}
	return true;
}

void ltb_way_free(struct ltb_way *way)
{
	if (way->empties) {
		do
			tracepoint_probe_unregister(way->points[--way->empties],
						    ltb_empty, NULL);
		while (way->empties);
		tracepoint_synchronize_unregister();
	}
	if (way->comm[0])
		ltb_thread_end(way);
	kfree_skb(way->skb);
	free_page((unsigned long)way->wq);
	free_page((unsigned long)way->pwq);
	kfree(way);
}

/*
 * Calls the probes of a tracepoint directly, since these tracepoints are not exported.
 * Arguments that no probe uses are not read.
 */
static void ltb_call4(struct tracepoint *tp, unsigned long a, unsigned long b,
		      unsigned long c, unsigned long d)
{
	typedef void (*probe_fn)(void *data, unsigned long a, unsigned long b,
				 unsigned long c, unsigned long d);
	struct tracepoint_func *func = rcu_dereference_sched(tp->funcs);

	for (; func && func->func; func++)
		((probe_fn)func->func)(func->data, a, b, c, d);
}

static void ltb_call(struct tracepoint *tp, unsigned long a, unsigned long b,
		     unsigned long c)
{
	ltb_call4(tp, a, b, c, 0);
}

static void ltb_switched(struct tracepoint *tp, struct task_struct *prev,
			 struct task_struct *next, unsigned int state)
{
	ltb_call4(tp, false, (unsigned long)prev, (unsigned long)next, state);
}

/* Simulates the start or the end of a softirq. */
static void ltb_softirq(bool begins)
{
#ifdef CONFIG_PREEMPT_RT
	current->softirq_disable_cnt += begins ? SOFTIRQ_OFFSET :
						 -SOFTIRQ_OFFSET;
#else
	if (begins)
		preempt_count_add(SOFTIRQ_OFFSET);
	else
		preempt_count_sub(SOFTIRQ_OFFSET);
#endif
}

/* Simulates an interrupt whose handler wakes a task, or raises a softirq. */
static void ltb_interrupt(const struct ltb_way *way, struct irqaction *action,
			  struct tracepoint *tp, unsigned long arg)
{
	preempt_count_add(HARDIRQ_OFFSET);
	ltb_call(way->points[0], 25, (unsigned long)action, 0);
	ltb_call(tp, arg, 0, 0);
	ltb_call(way->points[1], 25, (unsigned long)action, IRQ_HANDLED);
	preempt_count_sub(HARDIRQ_OFFSET);
}

/*
 * Simulates the start of the timer's interrupt, or its end with a result. On x86 it is a local
 * interrupt; elsewhere it is a device interrupt, which has a handler.
 */
static void ltb_timer_irq(struct tracepoint *tp, irqreturn_t result)
{
#ifdef CONFIG_X86_LOCAL_APIC
	ltb_call(tp, 0, 0, 0);
#else
	static struct irqaction action = { .name = "arch_timer" };

	ltb_call(tp, 25, (unsigned long)&action, result);
#endif
}

/* Simulates the timer's interrupt. It calls the function of a timer, which wakes a task. */
static void ltb_expire(const struct ltb_way *way)
{
	struct tracepoint *const *points = way->points;
	unsigned long timer = (unsigned long)&way->timer;

	preempt_count_add(HARDIRQ_OFFSET);
	ltb_timer_irq(points[4], IRQ_NONE);
	ltb_call(points[0], timer, 0, 0);
	ltb_call(points[2], (unsigned long)way->init, 0, 0);
	ltb_call(points[1], timer, 0, 0);
	ltb_timer_irq(points[5], IRQ_HANDLED);
	preempt_count_sub(HARDIRQ_OFFSET);
}

/*
 * Sets the task that seems to run; on x86 and arm64 only. Interrupts are off, and only the probes,
 * and on arm64 the preemption count, depend on it. The compiler may read `current` once for a whole
 * function: neither the caller nor a function inlined into it may use it.
 */
static void ltb_run_as(struct task_struct *task)
{
#if defined(CONFIG_X86)
	this_cpu_write(current_task, task);
#elif defined(CONFIG_ARM64)
	write_sysreg((unsigned long)task, sp_el0);
#endif
}

/* Simulates the timer's interrupt. It raises a softirq and wakes the thread that will run it. */
static noinline void ltb_raise_in_irq(const struct ltb_way *way)
{
	struct tracepoint *const *points = way->points;

	preempt_count_add(HARDIRQ_OFFSET);
	ltb_timer_irq(points[7], IRQ_NONE);
	ltb_call(points[4], HRTIMER_SOFTIRQ, 0, 0);
	ltb_call(points[2], (unsigned long)way->thread, 0, 0);
	ltb_timer_irq(points[8], IRQ_HANDLED);
	preempt_count_sub(HARDIRQ_OFFSET);
}

/* ltb_raise_in_irq() while another task seems to run, and the softirq thread to sleep. */
static noinline void ltb_raise(const struct ltb_way *way)
{
	struct task_struct *thread = way->thread;
	int on_rq = thread->on_rq;

	ltb_run_as(way->kthreadd);
	thread->on_rq = 0;
	ltb_raise_in_irq(way);
	thread->on_rq = on_rq;
	ltb_run_as(thread);
}

void ltb_way_pass(const struct ltb_way *way)
{
	static struct irqaction action = { .name = "virtio0-req.0" };
	struct tracepoint *const *points = way->points;
	unsigned long regs = (unsigned long)&way->regs;
	unsigned long work = (unsigned long)&way->work;
	unsigned long skb = (unsigned long)way->skb;

	switch (way->what) {
	case LTB_IRQ:
		ltb_call(points[0], 25, (unsigned long)&action, 0);
		ltb_call(points[1], 25, (unsigned long)&action, IRQ_HANDLED);
		break;
	case LTB_SOFTIRQ:
		ltb_call(points[0], TASKLET_SOFTIRQ, 0, 0);
		ltb_call(points[1], TASKLET_SOFTIRQ, 0, 0);
		break;
	case LTB_READ:
		ltb_call(points[0], regs, __NR_read, 0);
		ltb_call(points[1], regs, 16, 0);
		break;
	case LTB_GETPID:
		ltb_call(points[0], regs, __NR_getpid, 0);
		ltb_call(points[1], regs, 1, 0);
		break;
	case LTB_CALL:
		jiffies_to_clock_t(1);
		break;
	case LTB_CALLS:
		jiffies_to_clock_t(1);
		clock_t_to_jiffies(1);
		break;
	case LTB_WORK:
		ltb_call(points[0], 0, (unsigned long)way->pwq, work);
		ltb_call(points[1], work, 0, 0);
		ltb_call(points[2], work, (unsigned long)ltb_work_run, 0);
		break;
	case LTB_PACKET:
		ltb_call(points[0], skb, 0, 0);
		ltb_call(points[1], skb, _THIS_IP_, 0);
		break;
	case LTB_GRO:
	case LTB_SEND:
		/* The probe uses only the address of the packet or socket. */
		ltb_call(points[0], (unsigned long)&action, 16, 0);
		break;
	case LTB_SWITCH:
		ltb_switched(points[0], way->kthreadd, way->init,
			     TASK_INTERRUPTIBLE);
		break;
	case LTB_WAKING:
		ltb_call(points[0], (unsigned long)way->init, 0, 0);
		break;
	case LTB_CHAIN:
		ltb_interrupt(way, &action, points[4], NET_RX_SOFTIRQ);
		ltb_softirq(true);
		ltb_call(points[5], NET_RX_SOFTIRQ, 0, 0);
		ltb_call(points[2], (unsigned long)way->init, 0, 0);
		ltb_call(points[6], NET_RX_SOFTIRQ, 0, 0);
		ltb_softirq(false);
		ltb_switched(points[3], way->kthreadd, way->init,
			     TASK_INTERRUPTIBLE);
		break;
	case LTB_LIFE:
	case LTB_PREEMPTED:
		ltb_interrupt(way, &action, points[2], (unsigned long)way->init);
		ltb_switched(points[3], way->kthreadd, way->init,
			     TASK_INTERRUPTIBLE);
		if (way->what == LTB_PREEMPTED) {
			ltb_switched(points[3], way->init, way->kthreadd,
				     TASK_RUNNING);
			ltb_switched(points[3], way->kthreadd, way->init,
				     TASK_INTERRUPTIBLE);
		}
		ltb_switched(points[3], way->init, way->kthreadd,
			     TASK_INTERRUPTIBLE);
		break;
	case LTB_TIMER:
		ltb_expire(way);
		ltb_switched(points[3], way->kthreadd, way->init,
			     TASK_INTERRUPTIBLE);
		break;
	case LTB_SOFT_TIMER:
		ltb_raise(way);
		ltb_switched(points[3], way->kthreadd, way->thread,
			     TASK_INTERRUPTIBLE);
		ltb_softirq(true);
		ltb_call(points[5], HRTIMER_SOFTIRQ, 0, 0);
		ltb_call(points[0], (unsigned long)&way->timer, 0, 0);
		ltb_call(points[2], (unsigned long)way->init, 0, 0);
		ltb_call(points[1], (unsigned long)&way->timer, 0, 0);
		ltb_call(points[6], HRTIMER_SOFTIRQ, 0, 0);
		ltb_softirq(false);
		ltb_switched(points[3], way->thread, way->init,
			     TASK_INTERRUPTIBLE);
		break;
	default:
		break;
	}
}
