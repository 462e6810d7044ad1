// SPDX-License-Identifier: GPL-2.0
/*
 * Work that is repeated in a kernel thread: the timers, the work items and the
 * lock of periodic.rs, which engine/schedule.rs controls.
 *
 *   timer      queues the work where it fires
 *   watch      calls look(), on a second CPU
 *   takeover   a work item that is queued on a given CPU
 *
 * The schedule is under a raw spinlock, since the watch is a hard interrupt on
 * PREEMPT_RT, too.
 */
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/isolation.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "helpers.h"

/*
 * A workqueue of our own. One run may take 100 ms: on system_highpri_wq, whose
 * workers run one at a time on a CPU, it would delay other work items by as
 * much. A CPU-intensive work item keeps no other from running. The workqueue is
 * still per-CPU: the watch relies on a worker running where the timer of its
 * work ran, and the takeover must run on the CPU that is asked.
 */
static struct workqueue_struct *lt_periodic_wq;

struct lt_periodic {
	struct irq_work irq;
	struct hrtimer timer;
	struct work_struct work;
	struct hrtimer watch;
	struct work_struct takeover;
	lt_periodic_fn do_work;
	lt_periodic_fn take_over;
	lt_periodic_fn look;
	void *owner;
	/* Protects the schedule of the owner; also taken in hard interrupts. */
	raw_spinlock_t lock;
};

unsigned long lt_periodic_lock(struct lt_periodic *periodic)
	__acquires(&periodic->lock)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&periodic->lock, flags);
	return flags;
}

void lt_periodic_unlock(struct lt_periodic *periodic, unsigned long flags)
	__releases(&periodic->lock)
{
	raw_spin_unlock_irqrestore(&periodic->lock, flags);
}

bool lt_may_watch(unsigned int cpu)
{
	return cpu_online(cpu) && housekeeping_test_cpu(cpu, HK_TYPE_DOMAIN) &&
	       housekeeping_test_cpu(cpu, HK_TYPE_TIMER);
}

static ktime_t lt_at(u64 at)
{
	return ns_to_ktime(min_t(u64, at, KTIME_MAX));
}

/*
 * Pinned: otherwise an idle CPU would hand the timer to another CPU, perhaps
 * the one that watches. A CPU that must not be disturbed never watches, and may
 * hand the timer over.
 */
void lt_periodic_start_timer(struct lt_periodic *periodic, u64 at)
{
	hrtimer_start(&periodic->timer, lt_at(at),
		      lt_may_watch(smp_processor_id()) ? HRTIMER_MODE_ABS_PINNED :
							 HRTIMER_MODE_ABS);
}

void lt_periodic_start_watch(struct lt_periodic *periodic, u64 at)
{
	hrtimer_start(&periodic->watch, lt_at(at), HRTIMER_MODE_ABS_PINNED_HARD);
}

/*
 * A workqueue never runs an item twice at the same time: while a takeover is
 * running, another one is queued behind it, on its CPU, whatever `cpu` is. In
 * the same way, the timer queues the work behind a run of it that hangs.
 */
void lt_periodic_ask(struct lt_periodic *periodic, unsigned int cpu)
{
	cancel_work(&periodic->takeover);
	queue_work_on(cpu, lt_periodic_wq, &periodic->takeover);
}

bool lt_periodic_is_asked(struct lt_periodic *periodic)
{
	return work_pending(&periodic->takeover);
}

void lt_periodic_cancel(struct lt_periodic *periodic)
{
	cancel_work(&periodic->work);
}

static void lt_periodic_work(struct work_struct *work)
{
	struct lt_periodic *periodic =
		container_of(work, struct lt_periodic, work);

	periodic->do_work(periodic, periodic->owner);
}

static enum hrtimer_restart lt_periodic_timer(struct hrtimer *timer)
{
	struct lt_periodic *periodic =
		container_of(timer, struct lt_periodic, timer);

	queue_work(lt_periodic_wq, &periodic->work);
	return HRTIMER_NORESTART;
}

static void lt_periodic_takeover(struct work_struct *work)
{
	struct lt_periodic *periodic =
		container_of(work, struct lt_periodic, takeover);

	periodic->take_over(periodic, periodic->owner);
}

static enum hrtimer_restart lt_periodic_watch(struct hrtimer *timer)
{
	struct lt_periodic *periodic =
		container_of(timer, struct lt_periodic, watch);

	periodic->look(periodic, periodic->owner);
	/* If look() has started the timer again, it stays started. */
	return HRTIMER_NORESTART;
}

static void lt_periodic_irq_work(struct irq_work *irq)
{
	lt_periodic_kick(container_of(irq, struct lt_periodic, irq));
}

struct lt_periodic *lt_periodic_new(lt_periodic_fn do_work,
				    lt_periodic_fn take_over,
				    lt_periodic_fn look, bool watched,
				    void *owner)
{
	struct lt_periodic *periodic = kzalloc(sizeof(*periodic), GFP_KERNEL);

	if (!periodic)
		return NULL;
	hrtimer_setup(&periodic->timer, lt_periodic_timer, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS);
	hrtimer_setup(&periodic->watch, lt_periodic_watch, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_PINNED_HARD);
	/*
	 * Two classes for lockdep: an instance stops its work, which is
	 * watched, under locks that the work for all instances takes.
	 */
	if (watched)
		INIT_WORK(&periodic->work, lt_periodic_work);
	else
		INIT_WORK(&periodic->work, lt_periodic_work);
	INIT_WORK(&periodic->takeover, lt_periodic_takeover);
	init_irq_work(&periodic->irq, lt_periodic_irq_work);
	raw_spin_lock_init(&periodic->lock);
	periodic->do_work = do_work;
	periodic->take_over = take_over;
	periodic->look = look;
	periodic->owner = owner;
	return periodic;
}

void lt_periodic_kick(struct lt_periodic *periodic)
{
	queue_work(lt_periodic_wq, &periodic->work);
}

/*
 * The schedule is stopped. Timers are started, and the takeover is queued, only
 * under the lock and while the schedule is not stopped, so neither happens from
 * now on. The irq_work and the timer of the work may still queue the work
 * itself, so they are stopped first.
 */
void lt_periodic_free(struct lt_periodic *periodic)
{
	irq_work_sync(&periodic->irq);
	hrtimer_cancel(&periodic->timer);
	hrtimer_cancel(&periodic->watch);
	cancel_work_sync(&periodic->work);
	cancel_work_sync(&periodic->takeover);
	kfree(periodic);
}

int lt_periodic_init(void)
{
	lt_periodic_wq =
		alloc_workqueue("latency_tracker",
				WQ_PERCPU | WQ_HIGHPRI | WQ_CPU_INTENSIVE, 0);
	return lt_periodic_wq ? 0 : -ENOMEM;
}

void lt_periodic_exit(void)
{
	destroy_workqueue(lt_periodic_wq);
}

static struct lt_periodic *lt_memory_work;
static enum cpuhp_state lt_memory_state;

/*
 * Only requests the work: the work takes locks under which other tasks register
 * probes, and those tasks wait for CPU hotplug.
 */
static int lt_cpu_dead(unsigned int cpu)
{
	lt_queue_memory_work();
	return 0;
}

int lt_memory_work_start(struct lt_periodic *periodic)
{
	int state = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN,
					      "latency_tracker:dead", NULL,
					      lt_cpu_dead);

	if (state < 0)
		return state;
	lt_memory_state = state;
	WRITE_ONCE(lt_memory_work, periodic);
	return 0;
}

void lt_memory_work_stop(void)
{
	cpuhp_remove_state_nocalls(lt_memory_state);
	WRITE_ONCE(lt_memory_work, NULL);
	/* Probes use the pointer with preemption off: waits for them. */
	synchronize_rcu();
}

/* The only function here that probes call. */
notrace void lt_queue_memory_work(void)
{
	struct lt_periodic *periodic = READ_ONCE(lt_memory_work);

	if (periodic)
		irq_work_queue(&periodic->irq);
}
