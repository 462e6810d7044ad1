// SPDX-License-Identifier: GPL-2.0
/*
 * Work that is repeated in a kernel thread, after delays that it chooses
 * itself, and by another CPU if the one whose turn it is hangs: the C side of
 * ticker.rs.
 *
 *   CPU 0:  timer --> work: fn() --> timer --> ...
 *                         |
 *                         | due: when it should be done next
 *                         v
 *   CPU 1:  watch: is it overdue? -- no: look again when it would be
 *                         | yes
 *                         +--> stand_in: fn() --> timer, from now on here
 *
 * A CPU with interrupts off runs neither its timers nor its threads, and one
 * that a real-time thread occupies runs no worker. So a watched ticker has a
 * second timer, on a second CPU. As long as all is well it only looks at the
 * clock, once in a delay or less. The stand-in that it starts if necessary is
 * bound to its own CPU, which runs, as this very timer shows; if a real-time
 * thread occupies that one, too, the next CPU is asked. And the caller of fn()
 * makes sure that the watch is where it should be.
 *
 * All of the state is under a raw spinlock; probes do not use any of this. Two
 * CPUs may be in fn() at a time: the first may be found overdue while it is
 * only slow. Then the result of the last one holds.
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

/* How late the first CPU is before the second one takes over. */
#define LT_OVERDUE_NS (10 * NSEC_PER_MSEC)
/* How long fn() may take undisturbed: some take long, with much to report. */
#define LT_FN_NS (100 * NSEC_PER_MSEC)

/*
 * A queue of our own. A search may take 100 ms: on system_highpri_wq, whose
 * workers run one at a time on a CPU, it would delay the works of others for
 * that long. A work that is CPU intensive is not counted there. Still bound to
 * CPUs: the watch relies on a worker running where the timer of its ticker ran,
 * and the stand-in has to run on the CPU that is asked.
 */
static struct workqueue_struct *lt_ticker_wq;

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
	/* How often fn() was called, and whether it is running. */
	u64 turn;
	bool busy;
	/* When fn() is due, or should have returned; or KTIME_MAX. */
	ktime_t due;
	/* Where the watch is, or is asked to be; -1 if there is none. */
	int watcher;
	/* When it looks next, or should have been there. */
	ktime_t looks;
	/* The CPU that was last asked for the stand-in. */
	int asked;
};

/* Whether this CPU may be disturbed. With preemption off. */
static notrace bool lt_may_watch(int cpu)
{
	return cpu_online(cpu) && housekeeping_test_cpu(cpu, HK_TYPE_DOMAIN) &&
	       housekeeping_test_cpu(cpu, HK_TYPE_TIMER);
}

/* The first such CPU after a CPU, but not this one; -1 if there is none. */
static notrace int lt_next_cpu(int after, int not)
{
	int cpu;

	for_each_cpu_wrap(cpu, cpu_online_mask, after + 1)
		if (cpu != not && lt_may_watch(cpu))
			return cpu;
	return -1;
}

/*
 * Asks a CPU for the stand-in, and cancels it elsewhere. The CPU is online,
 * since interrupts have been off since it was looked up. Under the lock.
 */
static notrace void lt_ticker_ask(struct lt_ticker *ticker, int cpu)
{
	cancel_work(&ticker->stand_in);
	ticker->asked = cpu;
	queue_work_on(cpu, lt_ticker_wq, &ticker->stand_in);
}

/* Under the lock. */
static notrace bool lt_ticker_overdue(struct lt_ticker *ticker)
{
	u64 grace = ticker->busy ? 0 : LT_OVERDUE_NS;

	return !ticker->stopped &&
	       ktime_get() >= ktime_add_safe(ticker->due, grace);
}

/*
 * Makes this CPU look when the first one would be overdue; soon, if it is, or
 * while it is not known when the next call is due. Under the lock.
 */
static notrace void lt_ticker_look_later(struct lt_ticker *ticker)
{
	ktime_t now = ktime_get();
	ktime_t from = ticker->busy ? now : max(ticker->due, now);

	if (ticker->stopped || ticker->due == KTIME_MAX) {
		ticker->watcher = -1;
		return;
	}
	ticker->watcher = smp_processor_id();
	ticker->looks = ktime_add_safe(from, LT_OVERDUE_NS);
	hrtimer_start(&ticker->watch, ticker->looks,
		      HRTIMER_MODE_ABS_PINNED_HARD);
}

static notrace void lt_ticker_do(struct lt_ticker *ticker)
{
	unsigned long flags;
	u64 turn, ns;

	raw_spin_lock_irqsave(&ticker->lock, flags);
	turn = ++ticker->turn;
	ticker->busy = true;
	ticker->due = ktime_add_ns(ktime_get(), LT_FN_NS);
	raw_spin_unlock_irqrestore(&ticker->lock, flags);

	ns = ticker->fn(ticker->owner);

	raw_spin_lock_irqsave(&ticker->lock, flags);
	/* Or another CPU has taken over, and has seen everything. */
	if (turn == ticker->turn) {
		ticker->busy = false;
		ticker->due = KTIME_MAX;
		if (ns < KTIME_MAX && !ticker->stopped) {
			ticker->due = ktime_add_safe(ktime_get(), ns);
			hrtimer_start(&ticker->timer, ticker->due,
				      HRTIMER_MODE_ABS);
		}
	}
	raw_spin_unlock_irqrestore(&ticker->lock, flags);
}

/*
 * Ensures that another CPU watches this one, and looks in time. A CPU that
 * should have looked, or have come to watch, and has not, is given up. Under
 * the lock.
 */
static notrace void lt_ticker_be_watched(struct lt_ticker *ticker)
{
	ktime_t late = ktime_sub_ns(ktime_get(), LT_OVERDUE_NS);
	int this = smp_processor_id(), cpu = ticker->watcher;

	if (!ticker->watched || ticker->stopped || ticker->due == KTIME_MAX)
		return;
	if (cpu < 0 || cpu == this || !lt_may_watch(cpu) || ticker->looks < late)
		cpu = lt_next_cpu(cpu < 0 ? this : cpu, this);
	else if (ticker->looks <= ktime_add_safe(ticker->due, LT_OVERDUE_NS))
		return;
	if (cpu < 0)
		return;
	ticker->watcher = cpu;
	ticker->looks = ktime_add_ns(ktime_get(), LT_OVERDUE_NS);
	lt_ticker_ask(ticker, cpu);
}

static notrace void lt_ticker_work(struct work_struct *work)
{
	struct lt_ticker *ticker = container_of(work, struct lt_ticker, work);
	unsigned long flags;

	lt_ticker_do(ticker);
	raw_spin_lock_irqsave(&ticker->lock, flags);
	lt_ticker_be_watched(ticker);
	raw_spin_unlock_irqrestore(&ticker->lock, flags);
}

static notrace enum hrtimer_restart lt_ticker_timer(struct hrtimer *timer)
{
	struct lt_ticker *ticker = container_of(timer, struct lt_ticker, timer);

	queue_work(lt_ticker_wq, &ticker->work);
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
	if (overdue) {
		/* It waits in vain there; the timer will queue it here. */
		cancel_work(&ticker->work);
		lt_ticker_do(ticker);
	}
	raw_spin_lock_irqsave(&ticker->lock, flags);
	lt_ticker_look_later(ticker);
	raw_spin_unlock_irqrestore(&ticker->lock, flags);
}

static notrace enum hrtimer_restart lt_ticker_watch(struct hrtimer *timer)
{
	struct lt_ticker *ticker = container_of(timer, struct lt_ticker, watch);
	unsigned long flags;
	int cpu;

	raw_spin_lock_irqsave(&ticker->lock, flags);
	if (lt_ticker_overdue(ticker)) {
		/* This CPU runs; if its workers do not, others are next. */
		cpu = smp_processor_id();
		if (work_pending(&ticker->stand_in))
			cpu = lt_next_cpu(ticker->asked, -1);
		if (cpu >= 0)
			lt_ticker_ask(ticker, cpu);
	}
	lt_ticker_look_later(ticker);
	raw_spin_unlock_irqrestore(&ticker->lock, flags);
	/* If it has been started again, it stays started. */
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
	ticker->asked = -1;
	return ticker;
}

notrace void lt_ticker_kick(struct lt_ticker *ticker)
{
	queue_work(lt_ticker_wq, &ticker->work);
}

notrace void lt_ticker_free(struct lt_ticker *ticker)
{
	raw_spin_lock_irq(&ticker->lock);
	ticker->stopped = true;
	raw_spin_unlock_irq(&ticker->lock);
	/*
	 * Timers are started, and the stand-in is queued, under the lock if
	 * this is not stopped: from now on not at all. What is left is the
	 * work, which the irq_work and the first timer queue; so these go
	 * first.
	 */
	irq_work_sync(&ticker->irq);
	hrtimer_cancel(&ticker->timer);
	hrtimer_cancel(&ticker->watch);
	cancel_work_sync(&ticker->work);
	cancel_work_sync(&ticker->stand_in);
	kfree(ticker);
}

notrace int lt_ticker_start(void)
{
	lt_ticker_wq = alloc_workqueue("latency_tracker",
				       WQ_PERCPU | WQ_HIGHPRI | WQ_CPU_INTENSIVE,
				       0);
	return lt_ticker_wq ? 0 : -ENOMEM;
}

notrace void lt_ticker_stop(void)
{
	destroy_workqueue(lt_ticker_wq);
}

static struct lt_ticker *lt_grower;
static enum cpuhp_state lt_grower_state;

/*
 * Runs only when called for: the work takes locks under which others register
 * probes, and they wait for CPUs to come and go.
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
	/* Probes that call it have preemption off: none is left. */
	synchronize_rcu();
}

notrace void lt_call_grower(void)
{
	struct lt_ticker *ticker = READ_ONCE(lt_grower);

	if (ticker)
		irq_work_queue(&ticker->irq);
}
