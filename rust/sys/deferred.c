// SPDX-License-Identifier: GPL-2.0
/*
 * Timers of the timer wheel, function calls on other CPUs, and work items of
 * kthread workers, made callable from Rust; see deferred.rs and
 * kthread_work.rs.
 */
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/smp.h>
#include <linux/timekeeping.h>
#include <linux/timer.h>
#include <linux/uaccess.h>

#include "helpers.h"

/*
 * Number of ticks of CLOCK_MONOTONIC that had begun when jiffies was 0. The
 * kernel starts a jiffy with each of these ticks, but may count it later. So
 * the smallest difference (ticks begun minus jiffies) seen so far is used, and
 * is never too small: the clock is read after jiffies. The value remains valid.
 */
static s64 lt_first_tick = S64_MAX;

static notrace s64 lt_ticks_before_jiffies(void)
{
	u64 now_jiffies = get_jiffies_64();
	s64 first, known = READ_ONCE(lt_first_tick);

	/* Reads jiffies before the clock. */
	smp_rmb();
	first = (s64)(div_u64(ktime_get_ns(), TICK_NSEC) - now_jiffies);
	if (first >= known)
		return known;
	/* If two CPUs store at once, the larger value may stay for a while. */
	WRITE_ONCE(lt_first_tick, first);
	return first;
}

/* Returns the start of a jiffy near the current one, in nanoseconds. */
static notrace u64 lt_jiffy_begins(unsigned long jiffy)
{
	u64 now_jiffies = get_jiffies_64();
	s64 distance = (long)(jiffy - (unsigned long)now_jiffies);

	return ((s64)now_jiffies + distance + lt_ticks_before_jiffies()) * TICK_NSEC;
}

notrace bool lt_wheel_timer(const struct timer_list *timer, unsigned long baseclk,
			    struct lt_timer *out)
{
	out->due = lt_jiffy_begins(READ_ONCE(timer->expires));
	out->latest = lt_jiffy_begins(baseclk);
	out->function = (unsigned long)READ_ONCE(timer->function);
	return READ_ONCE(timer->flags) & TIMER_DEFERRABLE;
}

notrace bool lt_csd_is_call(const call_single_data_t *csd)
{
#ifdef CONFIG_SMP
	u32 type = READ_ONCE(csd->node.u_flags) & CSD_FLAG_TYPE_MASK;

	return type == CSD_TYPE_ASYNC || type == CSD_TYPE_SYNC;
#else
	return false;
#endif
}

notrace u64 lt_kthread_work_function(const struct kthread_work *work)
{
	return (unsigned long)READ_ONCE(work->func);
}

notrace bool lt_kthread_work_is_current(const struct kthread_worker *worker,
					const struct kthread_work *work)
{
	return READ_ONCE(worker->task) == current &&
	       worker->current_work == work;
}

/*
 * Whether the memory at this address looks like a work item that waits for its
 * kthread worker: see lt_work_is_queued(). The worker takes an item off its
 * list and makes it the current one in one critical section, before it reports
 * the start: so the current item counts as waiting.
 */
notrace bool lt_kthread_work_is_queued(u64 address, u64 function)
{
	const struct kthread_work *work = (void *)(unsigned long)address;
	const struct kthread_work *current_work;
	struct kthread_work copy;

	if (copy_from_kernel_nofault(&copy, work, sizeof(copy)) ||
	    (unsigned long)copy.func != function)
		return false;
	if (copy.node.next != &work->node)
		return true;
	return !copy_from_kernel_nofault(&current_work,
					 &copy.worker->current_work,
					 sizeof(current_work)) &&
	       current_work == work;
}
