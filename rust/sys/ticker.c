// SPDX-License-Identifier: GPL-2.0
/*
 * Work that is done again and again in a kernel thread, after delays of its own
 * choice, and by another CPU if the one that has it to do hangs: the C side of
 * ticker.rs.
 *
 *   CPU 0:  timer --> work: fn() --> timer --> ...
 *                         |
 *                         | due: when it should be done next
 *                         v
 *   CPU 1:  watch: is it overdue? -- no: look again when it would be
 *                         | yes
 *                         +--> stand_in: fn()
 *
 * A CPU with interrupts off runs neither its timers nor its threads, and one
 * that a real-time thread keeps for itself runs no worker. So a ticker that
 * is watched has a second timer, on a second CPU. While all goes well that does
 * nothing but look at the clock, once in a delay or less. What it starts when
 * it has to is bound to its own CPU, which runs as this very timer shows.
 *
 * All of the state is under a raw spinlock; probes have nothing to do with any
 * of this. Both CPUs may be in fn() at a time: the first may be found overdue
 * while it is only slow.
 */
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/ktime.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/isolation.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "helpers.h"

/* So late the first CPU is before the second one takes over. */
#define LT_OVERDUE_NS (10 * NSEC_PER_MSEC)
/* So long fn() is left alone: some take long, with much to report. */
#define LT_FN_NS (100 * NSEC_PER_MSEC)

struct lt_ticker {
	struct irq_work irq;
	struct hrtimer timer;
	struct work_struct work;
	struct hrtimer watch;
	struct work_struct stand_in;
	lt_ticker_fn fn;
	void *owner;
	bool watched;

	/* Protects what follows; also taken in hard interrupt context. */
	raw_spinlock_t lock;
	bool stopped;
	/* When fn() should have been called next, or have returned; or KTIME_MAX. */
	ktime_t due;
	/* Where the watch is, -1 if nobody watches. */
	int watcher;
};

/* A CPU after this one that may be bothered, or -1. With preemption off. */
static notrace int lt_other_cpu(int this)
{
	int cpu;

	for_each_cpu_wrap(cpu, cpu_online_mask, this + 1)
		if (cpu != this && housekeeping_test_cpu(cpu, HK_TYPE_DOMAIN) &&
		    housekeeping_test_cpu(cpu, HK_TYPE_TIMER))
			return cpu;
	return -1;
}

/* Under the lock. */
static notrace bool lt_ticker_overdue(struct lt_ticker *ticker)
{
	return !ticker->stopped &&
	       ktime_get() >= ktime_add_safe(ticker->due, LT_OVERDUE_NS);
}

/* Has this CPU look when it would be overdue, or again soon if it is. Under the lock. */
static notrace void lt_ticker_look_later(struct lt_ticker *ticker)
{
	ktime_t from = max(ticker->due, ktime_get());

	if (ticker->stopped || ticker->due == KTIME_MAX) {
		ticker->watcher = -1;
		return;
	}
	ticker->watcher = smp_processor_id();
	hrtimer_start(&ticker->watch, ktime_add_safe(from, LT_OVERDUE_NS),
		      HRTIMER_MODE_ABS_PINNED_HARD);
}

static notrace void lt_ticker_do(struct lt_ticker *ticker)
{
	unsigned long flags;
	u64 ns;

	raw_spin_lock_irqsave(&ticker->lock, flags);
	ticker->due = ktime_add_ns(ktime_get(), LT_FN_NS);
	raw_spin_unlock_irqrestore(&ticker->lock, flags);

	ns = ticker->fn(ticker->owner);

	raw_spin_lock_irqsave(&ticker->lock, flags);
	ticker->due = KTIME_MAX;
	if (ns < KTIME_MAX && !ticker->stopped) {
		ticker->due = ktime_add_safe(ktime_get(), ns);
		hrtimer_start(&ticker->timer, ticker->due, HRTIMER_MODE_ABS);
	}
	raw_spin_unlock_irqrestore(&ticker->lock, flags);
}

static notrace void lt_ticker_work(struct work_struct *work)
{
	struct lt_ticker *ticker = container_of(work, struct lt_ticker, work);
	unsigned long flags;
	int this, cpu;

	lt_ticker_do(ticker);
	if (!ticker->watched)
		return;
	raw_spin_lock_irqsave(&ticker->lock, flags);
	this = smp_processor_id();
	if (!ticker->stopped && ticker->due != KTIME_MAX &&
	    (ticker->watcher < 0 || ticker->watcher == this)) {
		/* That CPU is online, since interrupts are off here. */
		cpu = lt_other_cpu(this);
		if (cpu >= 0) {
			ticker->watcher = cpu;
			queue_work_on(cpu, system_highpri_wq, &ticker->stand_in);
		}
	}
	raw_spin_unlock_irqrestore(&ticker->lock, flags);
}

static notrace enum hrtimer_restart lt_ticker_timer(struct hrtimer *timer)
{
	struct lt_ticker *ticker = container_of(timer, struct lt_ticker, timer);

	queue_work(system_highpri_wq, &ticker->work);
	return HRTIMER_NORESTART;
}

static notrace void lt_ticker_stand_in(struct work_struct *work)
{
	struct lt_ticker *ticker = container_of(work, struct lt_ticker, stand_in);
	unsigned long flags;
	bool overdue;

	/* Or this is only to bring the watch to this CPU. */
	raw_spin_lock_irqsave(&ticker->lock, flags);
	overdue = lt_ticker_overdue(ticker);
	raw_spin_unlock_irqrestore(&ticker->lock, flags);
	if (overdue)
		lt_ticker_do(ticker);
	raw_spin_lock_irqsave(&ticker->lock, flags);
	lt_ticker_look_later(ticker);
	raw_spin_unlock_irqrestore(&ticker->lock, flags);
}

static notrace enum hrtimer_restart lt_ticker_watch(struct hrtimer *timer)
{
	struct lt_ticker *ticker = container_of(timer, struct lt_ticker, watch);
	unsigned long flags;

	raw_spin_lock_irqsave(&ticker->lock, flags);
	if (lt_ticker_overdue(ticker))
		queue_work_on(smp_processor_id(), system_highpri_wq,
			      &ticker->stand_in);
	lt_ticker_look_later(ticker);
	raw_spin_unlock_irqrestore(&ticker->lock, flags);
	/* If it has been started again, it stays so. */
	return HRTIMER_NORESTART;
}

static notrace void lt_ticker_irq_work(struct irq_work *irq)
{
	lt_ticker_kick(container_of(irq, struct lt_ticker, irq));
}

notrace struct lt_ticker *lt_ticker_new(lt_ticker_fn fn, void *owner,
					bool watched)
{
	struct lt_ticker *ticker = kzalloc(sizeof(*ticker), GFP_KERNEL);

	if (!ticker)
		return NULL;
	hrtimer_setup(&ticker->timer, lt_ticker_timer, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS);
	hrtimer_setup(&ticker->watch, lt_ticker_watch, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_PINNED_HARD);
	INIT_WORK(&ticker->work, lt_ticker_work);
	INIT_WORK(&ticker->stand_in, lt_ticker_stand_in);
	init_irq_work(&ticker->irq, lt_ticker_irq_work);
	raw_spin_lock_init(&ticker->lock);
	ticker->fn = fn;
	ticker->owner = owner;
	ticker->watched = watched;
	ticker->due = KTIME_MAX;
	ticker->watcher = -1;
	return ticker;
}

notrace void lt_ticker_kick(struct lt_ticker *ticker)
{
	queue_work(system_highpri_wq, &ticker->work);
}

notrace void lt_ticker_free(struct lt_ticker *ticker)
{
	raw_spin_lock_irq(&ticker->lock);
	ticker->stopped = true;
	raw_spin_unlock_irq(&ticker->lock);
	/*
	 * Timers are started, and the stand-in is queued, under the lock by who
	 * finds this not stopped: from now on by nobody. What is left is the
	 * work, which the irq_work and the first timer queue; so they go first.
	 */
	irq_work_sync(&ticker->irq);
	hrtimer_cancel(&ticker->timer);
	hrtimer_cancel(&ticker->watch);
	cancel_work_sync(&ticker->work);
	cancel_work_sync(&ticker->stand_in);
	kfree(ticker);
}

static struct lt_ticker *lt_grower;
static enum cpuhp_state lt_grower_state;

/*
 * Only called for: the work takes locks under which others register probes, and
 * they wait for CPUs to come and go.
 */
static notrace int lt_cpu_dead(unsigned int cpu)
{
	lt_call_grower();
	return 0;
}

notrace int lt_grower_start(struct lt_ticker *ticker)
{
	int state = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN,
					      "latency_tracker:dead", NULL,
					      lt_cpu_dead);

	if (state < 0)
		return state;
	lt_grower_state = state;
	WRITE_ONCE(lt_grower, ticker);
	return 0;
}

notrace void lt_grower_stop(void)
{
	cpuhp_remove_state_nocalls(lt_grower_state);
	WRITE_ONCE(lt_grower, NULL);
	/* Callers have preemption off: nobody calls it any more. */
	synchronize_rcu();
}

notrace void lt_call_grower(void)
{
	struct lt_ticker *ticker = READ_ONCE(lt_grower);

	if (ticker)
		irq_work_queue(&ticker->irq);
}
