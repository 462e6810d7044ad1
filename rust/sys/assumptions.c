// SPDX-License-Identifier: GPL-2.0
/*
 * Self-tests of the assumptions about the kernel; see assumptions.rs.
 */
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/spinlock.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>

#include "helpers.h"

/* Timeout in milliseconds of the wait for kthreadd to sleep. */
#define LT_ASLEEP_MS 20

bool lt_assume_asleep(bool (*see)(struct task_struct *task))
{
	struct task_struct *kthreadd = lt_task_find(2);
	bool holds = true;
	int i;

	if (!kthreadd)
		return true;
	/* A task preempted on its way to sleep is still queued: look again. */
	for (i = 0; i < LT_ASLEEP_MS; i++) {
		unsigned long flags;

		raw_spin_lock_irqsave(&kthreadd->pi_lock, flags);
		holds = !(READ_ONCE(kthreadd->__state) & TASK_INTERRUPTIBLE) ||
			 READ_ONCE(kthreadd->on_cpu) || see(kthreadd);
		raw_spin_unlock_irqrestore(&kthreadd->pi_lock, flags);
		if (holds)
			break;
		fsleep(USEC_PER_MSEC);
	}
	put_task_struct(kthreadd);
	return holds;
}

bool lt_assume_throttle_work(bool queued)
{
	struct task_struct *kthreadd = lt_task_find(2);
	bool holds = !kthreadd || lt_task_throttles(kthreadd) == queued;

	if (kthreadd)
		put_task_struct(kthreadd);
	return holds;
}

/* The expected state of a wakee's pi_lock, and whether a wakee differed. */
struct lt_wakees {
	bool locked;
	bool differs;
};

static notrace void lt_assume_waking(void *data, struct task_struct *wakee)
{
	struct lt_wakees *wakees = data;

	/*
	 * A task that wakes itself has not gone to sleep, and takes no lock.
	 * Without SMP, a spinlock has no state that could be read.
	 */
	if (IS_ENABLED(CONFIG_SMP) && wakee != current &&
	    lt_task_waking_locked(wakee) != wakees->locked)
		WRITE_ONCE(wakees->differs, true);
}

static void lt_assume_work(struct work_struct *work)
{
}

bool lt_assume_waking_lock(bool locked)
{
	struct tracepoint *waking = lt_tracepoint_find("sched_waking");
	struct lt_wakees wakees = { .locked = locked };
	struct work_struct work;

	/* Trackers that need the tracepoint are not available without it. */
	if (!waking)
		return true;
	if (tracepoint_probe_register(waking, lt_assume_waking, &wakees))
		return true;
	INIT_WORK_ONSTACK(&work, lt_assume_work);
	schedule_work(&work);
	flush_work(&work);
	destroy_work_on_stack(&work);
	tracepoint_probe_unregister(waking, lt_assume_waking, &wakees);
	tracepoint_synchronize_unregister();
	return !READ_ONCE(wakees.differs);
}

static enum hrtimer_restart lt_assume_timer(struct hrtimer *timer)
{
	return HRTIMER_NORESTART;
}

u32 lt_assume_hrtimer(bool (*see)(struct hrtimer *timer, u32 clock, u64 due,
				  u64 latest, u64 function))
{
	/* In the order of Timer::clock. */
	static const clockid_t clocks[] = {
		CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME, CLOCK_TAI,
	};
	struct hrtimer timer;
	u32 i, seen = 0;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		/* Never started. */
		hrtimer_setup_on_stack(&timer, lt_assume_timer, clocks[i],
				       HRTIMER_MODE_ABS);
		hrtimer_set_expires_range_ns(&timer, NSEC_PER_SEC, 7);
		seen += see(&timer, i, NSEC_PER_SEC, NSEC_PER_SEC + 7,
			    (unsigned long)lt_assume_timer);
		destroy_hrtimer_on_stack(&timer);
	}
	return seen;
}
