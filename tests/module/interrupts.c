// SPDX-License-Identifier: GPL-2.0
/*
 * Interrupts of every kind for the tests. All call the same function, on the
 * CPU of the thread that they interrupt:
 *
 *   a thread --IPI--> NMI on another CPU --irq_work--> hard interrupt there
 *   hrtimer, in hard interrupt context  --tasklet----> softirq
 *
 * NMIs are sent through the local APIC by the function that the kernel uses for its
 * own. The receiver notes each one before the next one is sent, so none is merged
 * with another: as many come as were sent.
 */
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/module.h>
#include <asm/apic.h>
#include <asm/irq_regs.h>
#include <asm/nmi.h>

#include "interrupts.h"
#include "threads.c"

/* Longest time from the end of a timer interrupt of a CPU to the next one. */
#define LT_TIMER_NS (100 * NSEC_PER_USEC)

struct lt_source {
	struct hrtimer timer;
	struct irq_work work;
	struct tasklet_struct tasklet;
	atomic_t on_its_way;
	atomic64_t sent;
	atomic64_t came;
	unsigned int cpu;
};

static struct lt_source *lt_sources;
static unsigned int lt_nr_sources;
static lt_interrupt_fn lt_on_interrupt;
static void *lt_interrupt_arg;

static bool lt_is_ours(struct pt_regs *regs)
{
	return regs && within_module(instruction_pointer(regs), THIS_MODULE);
}

static void lt_interrupt(enum lt_context context, unsigned int cpu, bool ours)
{
	lt_on_interrupt(context, cpu, ours, lt_interrupt_arg);
}

static int lt_on_nmi(unsigned int type, struct pt_regs *regs)
{
	unsigned int cpu = raw_smp_processor_id();
	struct lt_source *source;

	if (cpu >= lt_nr_sources)
		return NMI_DONE;
	source = &lt_sources[cpu];
	if (atomic_cmpxchg(&source->on_its_way, 1, 0) != 1)
		return NMI_DONE;
	atomic64_inc(&source->came);
	lt_interrupt(LT_NMI, cpu, lt_is_ours(regs));
	irq_work_queue(&source->work);
	return NMI_HANDLED;
}

static void lt_on_irq_work(struct irq_work *work)
{
	struct lt_source *source = container_of(work, struct lt_source, work);

	lt_interrupt(LT_HARDIRQ, source->cpu, lt_is_ours(get_irq_regs()));
}

static enum hrtimer_restart lt_on_timer(struct hrtimer *timer)
{
	struct lt_source *source = container_of(timer, struct lt_source, timer);

	lt_interrupt(LT_HARDIRQ, source->cpu, lt_is_ours(get_irq_regs()));
	tasklet_schedule(&source->tasklet);
	hrtimer_forward_now(timer, LT_TIMER_NS);
	return HRTIMER_RESTART;
}

static void lt_on_softirq(struct tasklet_struct *tasklet)
{
	struct lt_source *source = container_of(tasklet, struct lt_source, tasklet);

	lt_interrupt(LT_SOFTIRQ, source->cpu, false);
}

int lt_interrupts_new(unsigned int nr, lt_interrupt_fn fn, void *arg)
{
	unsigned int cpu;
	int err;

	lt_sources = kcalloc(nr, sizeof(*lt_sources), GFP_KERNEL);
	if (!lt_sources)
		return -ENOMEM;
	for (cpu = 0; cpu < nr; cpu++) {
		struct lt_source *source = &lt_sources[cpu];

		source->cpu = cpu;
		hrtimer_setup(&source->timer, lt_on_timer, CLOCK_MONOTONIC,
			      HRTIMER_MODE_REL_PINNED_HARD);
		source->work = IRQ_WORK_INIT_HARD(lt_on_irq_work);
		tasklet_setup(&source->tasklet, lt_on_softirq);
	}
	lt_nr_sources = nr;
	lt_on_interrupt = fn;
	lt_interrupt_arg = arg;
	err = register_nmi_handler(NMI_LOCAL, lt_on_nmi, 0, "lt_contexts");
	if (err)
		lt_interrupts_free();
	return err;
}

void lt_interrupts_start(void)
{
	hrtimer_start(&lt_sources[raw_smp_processor_id()].timer,
		      ns_to_ktime(LT_TIMER_NS), HRTIMER_MODE_REL_PINNED_HARD);
}

void lt_interrupts_nmi(unsigned int cpu)
{
	struct lt_source *source = &lt_sources[cpu];

	if (atomic_cmpxchg(&source->on_its_way, 0, 1))
		return;
	atomic64_inc(&source->sent);
	preempt_disable();
	__apic_send_IPI_mask(cpumask_of(cpu), NMI_VECTOR);
	preempt_enable();
}

u64 lt_interrupts_sent(unsigned int cpu)
{
	return atomic64_read(&lt_sources[cpu].sent);
}

u64 lt_interrupts_came(unsigned int cpu)
{
	return atomic64_read(&lt_sources[cpu].came);
}

void lt_interrupts_stop(void)
{
	unsigned int cpu;

	for (cpu = 0; cpu < lt_nr_sources; cpu++) {
		struct lt_source *source = &lt_sources[cpu];
		unsigned int ms;

		/* If the host has stopped a CPU, its NMI may be late. */
		for (ms = 0; atomic_read(&source->on_its_way) && ms < 10000; ms++)
			fsleep(1000);
		hrtimer_cancel(&source->timer);
		irq_work_sync(&source->work);
		tasklet_kill(&source->tasklet);
	}
	/* Waits for handlers that run. */
	unregister_nmi_handler(NMI_LOCAL, "lt_contexts");
	/* The last NMI may have queued its work after we looked. */
	for (cpu = 0; cpu < lt_nr_sources; cpu++)
		irq_work_sync(&lt_sources[cpu].work);
}

void lt_interrupts_free(void)
{
	kfree(lt_sources);
	lt_sources = NULL;
	lt_nr_sources = 0;
}
