// SPDX-License-Identifier: GPL-2.0
/*
 * lt_irqs: an interrupt line of its own, shared by two handlers of known
 * length, and a tasklet, for the tests of the trackers irq and softirq.
 *
 *   thread --irq_work--> hard interrupt --generic_handle_irq()--> lt_short
 *                                 |                               lt_long
 *                                 +-- tasklet_hi_schedule() ----> lt_tasklet
 *
 * Loading it makes this happen `times` times, one after the other, on the CPU on which
 * it is loaded. `number` is then the number that the line had. The handlers are not
 * threads, even on PREEMPT_RT. With `by_thread`, there is no interrupt: the loading
 * thread schedules the tasklet, and so ksoftirqd runs it, unless an interrupt comes
 * before ksoftirqd has the CPU.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irq_work.h>
#include <linux/irqdesc.h>
#include <linux/ktime.h>
#include <linux/module.h>

#include "spin.h"

static unsigned int times = 5;
module_param(times, uint, 0444);
MODULE_PARM_DESC(times, "how often the interrupt comes");

static unsigned int us = 20000;
module_param(us, uint, 0444);
MODULE_PARM_DESC(us, "how long the tasklet takes, in microseconds");

static unsigned int handler_us;
module_param(handler_us, uint, 0444);
MODULE_PARM_DESC(handler_us, "how long the long handler takes; 0: as long as the tasklet");

static bool by_thread;
module_param(by_thread, bool, 0444);
MODULE_PARM_DESC(by_thread, "whether a thread schedules the tasklet, not an interrupt");

static int number = -1;
module_param(number, int, 0444);
MODULE_PARM_DESC(number, "the number of the line (to be read)");

static DECLARE_COMPLETION(lt_done);
static int lt_short, lt_long;

/* Waits by the clock that measures the handlers: udelay() uses another clock. */
static void lt_take(unsigned int length)
{
	u64 end = ktime_get_ns() + length * (u64)NSEC_PER_USEC;

	while (ktime_get_ns() < end)
		lt_spin();
}

static irqreturn_t lt_on_short(int irq, void *data)
{
	lt_take(handler_us / 20);
	/* Some drivers return both; the kernel wakes no thread for that. */
	return IRQ_HANDLED | IRQ_WAKE_THREAD;
}

static irqreturn_t lt_on_long(int irq, void *data)
{
	lt_take(handler_us);
	return IRQ_HANDLED;
}

static void lt_on_tasklet(struct tasklet_struct *tasklet)
{
	lt_take(us);
	complete(&lt_done);
}

static DECLARE_TASKLET(lt_tasklet, lt_on_tasklet);

static void lt_on_work(struct irq_work *work)
{
	generic_handle_irq(number);
	tasklet_hi_schedule(&lt_tasklet);
}

static struct irq_work lt_work = IRQ_WORK_INIT_HARD(lt_on_work);

static int __init lt_irqs_init(void)
{
	unsigned long flags = IRQF_SHARED | IRQF_NO_THREAD;
	unsigned int i;
	int err;

	if (!handler_us)
		handler_us = us;
	number = irq_alloc_desc(NUMA_NO_NODE);
	if (number < 0)
		return number;
	irq_set_chip_and_handler(number, &dummy_irq_chip, handle_simple_irq);
	err = request_irq(number, lt_on_short, flags, "lt_short", &lt_short);
	if (err)
		goto free;
	err = request_irq(number, lt_on_long, flags, "lt_long, \"odd\" name", &lt_long);
	if (err)
		goto release;
	for (i = 0; i < times; i++) {
		if (by_thread)
			tasklet_hi_schedule(&lt_tasklet);
		else
			irq_work_queue(&lt_work);
		wait_for_completion(&lt_done);
		fsleep(1000);
	}
	irq_work_sync(&lt_work);
	tasklet_kill(&lt_tasklet);
	free_irq(number, &lt_long);
release:
	free_irq(number, &lt_short);
free:
	irq_free_desc(number);
	return err;
}
module_init(lt_irqs_init);

/* A requested line would keep the module loaded; this one was given back above. */
static void __exit lt_irqs_exit(void)
{
}
module_exit(lt_irqs_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Interrupts of known length, for latency_tracker's tests");
