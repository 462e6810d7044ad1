// SPDX-License-Identifier: GPL-2.0
/*
 * lt_causes: makes a user-space task wait for an interrupt or a timer, on a known
 * wake chain with known delays, for the tests of the tracker tree.
 *
 * A word that is written to its parameter `run` selects the chain. The writer is
 * the task that waits ("it" below), and stays on its CPU:
 *
 *   handler  a handler takes a while, and wakes it
 *   softirq  a handler takes a while, and schedules a tasklet, which wakes it
 *   tasklet  a handler schedules a tasklet, which takes a while and wakes it
 *   thread   a handler wakes the thread of its action, which takes a while and
 *            wakes it
 *   wait     as thread, but the thread preempts the owner of a spinlock, and must
 *            wait for the lock: on PREEMPT_RT, where a spinlock can sleep
 *   held     the thread of an interrupt holds a spinlock for a while; on PREEMPT_RT a
 *            more urgent thread preempts that thread, waits for the lock, and then
 *            wakes it: the interrupt is not involved
 *   hard     a timer that is called in the interrupt wakes it; interrupts are
 *            off for a while when the timer is due
 *   soft     a timer that is called in a softirq wakes it; interrupts are off
 *            for a while when the timer is due
 *   task     it schedules a tasklet itself, which wakes it: no interrupt is
 *            involved
 *   fan      a handler wakes a thread, which wakes LT_WIDTH other kernel threads
 *            and it: only the last wakeup is a chain to user space
 *   shared   the threaded line's handler raises a softirq; then the other line's
 *            handler acts as in softirq
 *   later    the threaded line's handler schedules a tasklet; while that runs, the
 *            other line's handler acts as in softirq: that is more than the
 *            kernel runs in one interrupt, so the softirq thread runs the second
 *            tasklet
 *   nested   a handler calls the other line's handler, then takes a while, and
 *            wakes it
 *   busy     as thread, and another interrupt comes while the thread is busy
 *   inner    as tasklet, and meanwhile another interrupt comes, whose thread
 *            raises another softirq: on PREEMPT_RT that thread preempts the
 *            thread that serves the tasklet, and serves its own softirq
 *   other    an interrupt comes for a thread that already runs, so the interrupt
 *            wakes nothing; then an irq_work wakes the thread of a third line,
 *            which takes a while and wakes it: the interrupt is not involved
 *   worker   a handler takes a while, and wakes a worker that the kernel has
 *            started inside the process, which wakes it; only if the parameter
 *            `workers` is Y
 *   nmi      an NMI on another CPU takes a while; the writer does not wait. `nmis`
 *            counts the NMIs that came while interrupts were off; with
 *            `nmi_priority`, only NMIs that met a task of that real-time priority
 *   late-irq       a handler wakes it, and then takes a while
 *   late-softirq   a tasklet of a handler wakes it, and then takes a while; an
 *                  interrupt in the middle of that takes a while, too
 *   late-task      the thread of an interrupt wakes it, and then takes a while;
 *                  an interrupt in the middle of that takes a while, too
 *   late-nmi       as late-task, with an NMI instead of the second interrupt
 *   storm    a handler on another CPU wakes it very often: while it sleeps,
 *            runs, and is about to do one or the other; it sleeps `rounds` times
 *   noise    a handler takes a while, `rounds` times; the writer does not wait
 *   work     a handler takes a while, and queues a work item, which wakes it
 *   queue    a handler queues a work item, whose worker is busy for a while with
 *            another item, which the writer has queued
 *   job      a handler takes a while, and queues a job of a kthread worker, which
 *            wakes it
 *   jobs     a handler queues a job, which takes a while; meanwhile the threaded
 *            line's handler queues another job, which wakes it: the first handler
 *            is not involved
 *   again    a handler takes a while, and queues a work item, which queues itself;
 *            the second run of the item wakes it: the handler is not involved
 *   again-job  as again, with a job of a kthread worker
 *   next     a handler takes a while, and queues a work item, which queues itself
 *            with another function, which wakes it
 *   next-job   as next, with a job of a kthread worker
 *   after    an irq_work calls a handler, then takes a while, and wakes it: the
 *            handler is not involved
 *   requested  a handler queues an irq_work, and then takes a while: the irq_work
 *            comes after that, and wakes it
 *   call     a handler takes a while, and calls a function on another CPU, which
 *            wakes it
 *   wheel    a timer of the timer wheel wakes it; interrupts are off for a while
 *            when the timer is due
 *   cancel   a handler queues a work item, whose worker is busy, and wakes it; it
 *            cancels the work
 *   cancel-job  as cancel, with a job of a kthread worker
 *   drowse   a kernel thread sleeps 200 times in the state D, each time for a
 *            timer of its own, and then wakes it
 *   clock    it waits for a timer of CLOCK_REALTIME that is due in three seconds;
 *            then this clock is set forward by six seconds, until it is woken
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irq_poll.h>
#include <linux/irq_work.h>
#include <linux/irqdesc.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sched/vhost_task.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/swait.h>
#include <linux/timekeeping.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <asm/apic.h>
#include <asm/nmi.h>

#include "spin.h"

static unsigned int us = 2000;
module_param(us, uint, 0644);
MODULE_PARM_DESC(us, "how long `a while` takes, in microseconds");

static int number = -1;
module_param(number, int, 0444);
MODULE_PARM_DESC(number, "the number of the line without a thread (to be read)");

static int threaded = -1;
module_param(threaded, int, 0444);
MODULE_PARM_DESC(threaded, "the number of the line with a thread (to be read)");

static int third = -1;
module_param(third, int, 0444);
MODULE_PARM_DESC(third, "the number of another line with a thread (to be read)");

static int tick = TICK_NSEC;
module_param(tick, int, 0444);
MODULE_PARM_DESC(tick, "the time from a tick to the next, in nanoseconds (to be read)");

static unsigned int rounds = 1000;
module_param(rounds, uint, 0644);
MODULE_PARM_DESC(rounds, "how often it waits in a storm, or a handler is called in noise");

static unsigned int nmis;
module_param(nmis, uint, 0444);
MODULE_PARM_DESC(nmis, "how many NMIs came while interrupts were off (to be read)");

static unsigned int nmi_priority;
module_param(nmi_priority, uint, 0644);
MODULE_PARM_DESC(nmi_priority, "nmis counts only NMIs that met a task of this real-time priority; 0: any task");

static bool workers = IS_ENABLED(CONFIG_VHOST_TASK);
module_param(workers, bool, 0444);
MODULE_PARM_DESC(workers, "whether the word `worker` is available (to be read)");

static bool polls = IS_ENABLED(CONFIG_IRQ_POLL);
module_param(polls, bool, 0444);
MODULE_PARM_DESC(polls, "whether the word `inner` is available (to be read)");

#define LT_WIDTH 8

static DECLARE_COMPLETION(lt_done);
static DEFINE_SPINLOCK(lt_lock);
static int lt_cpu;
static bool lt_leaves_rest, lt_takes_lock, lt_fans, lt_nests, lt_shares, lt_delays;
static bool lt_employs, lt_has_job, lt_leaves_all;
static bool lt_polls, lt_wakes_other;
static bool lt_queues, lt_is_busy, lt_cancels, lt_calls, lt_is_after;
static bool lt_has_job_queue, lt_has_jobs, lt_cancels_job, lt_requests;
/* Whether the next run of a work item queues the item again. */
static bool lt_requeues;
/* Whether a run of a work item queues the item with another function. */
static bool lt_goes_on;
/* Whether the thread of the interrupt holds the lock, and whether it does so now. */
static bool lt_holds, lt_is_held;
static bool lt_is_noise;
/* The task in a storm. */
static struct task_struct *lt_waiter;
/* The code that keeps the woken writer from its CPU. */
static enum { LT_NOTHING, LT_IRQ, LT_SOFTIRQ, LT_TASK, LT_NMI } lt_keeps;
static bool lt_is_kept;
/* Whether another interrupt comes while the thread is busy. */
static int lt_calls_again;
static bool lt_is_again;
static DECLARE_WAIT_QUEUE_HEAD(lt_idlers);
static atomic_t lt_round;
static struct task_struct *lt_idler[LT_WIDTH];

/*
 * Reads the clock of the measurement. A test that has seen enough sets a smaller `us`,
 * which ends the loop.
 */
static void lt_take(void)
{
	u64 begin = ktime_get_ns();

	while (ktime_get_ns() - begin < READ_ONCE(us) * (u64)NSEC_PER_USEC)
		lt_spin();
}

static atomic_t lt_nmi_is_due;

static int lt_on_nmi(unsigned int type, struct pt_regs *regs)
{
	u64 end = ktime_get_mono_fast_ns() + us * (u64)NSEC_PER_USEC;

	if (atomic_cmpxchg(&lt_nmi_is_due, 1, 0) != 1)
		return NMI_DONE;
	while (ktime_get_mono_fast_ns() < end)
		lt_spin();
	if (!(regs->flags & X86_EFLAGS_IF) &&
	    (!nmi_priority || current->rt_priority == nmi_priority))
		WRITE_ONCE(nmis, nmis + 1);
	return NMI_HANDLED;
}

static int lt_send_nmi(unsigned int cpu)
{
	if (cpu >= nr_cpu_ids)
		return -ENODEV;
	/* One NMI at a time: a second NMI would be merged with the first. */
	if (atomic_cmpxchg(&lt_nmi_is_due, 0, 1))
		return -EBUSY;
	preempt_disable();
	__apic_send_IPI_mask(cpumask_of(cpu), NMI_VECTOR);
	preempt_enable();
	return 0;
}

static struct irq_work lt_work, lt_threaded_work;

/* Wakes the writer, then keeps it off its CPU, as does the nested interrupt or NMI. */
static void lt_keep(void)
{
	complete(&lt_done);
	lt_is_kept = true;
	if (lt_keeps == LT_NMI)
		lt_send_nmi(lt_cpu);
	else
		irq_work_queue(&lt_work);
	lt_take();
}

static void lt_on_tasklet(struct tasklet_struct *tasklet)
{
	if (lt_keeps) {
		lt_keep();
		return;
	}
	if (lt_polls)
		irq_work_queue(&lt_threaded_work);
	if (lt_leaves_all)
		lt_take();
	complete(&lt_done);
}

static DECLARE_TASKLET(lt_tasklet, lt_on_tasklet);

static void lt_on_other_tasklet(struct tasklet_struct *tasklet)
{
	if (lt_delays)
		irq_work_queue(&lt_work);
}

static DECLARE_TASKLET(lt_other_tasklet, lt_on_other_tasklet);

#if IS_ENABLED(CONFIG_VHOST_TASK)
static struct vhost_task *lt_worker;

static bool lt_work_once(void *arg)
{
	if (!xchg(&lt_has_job, false))
		return false;
	complete(&lt_done);
	return true;
}

static void lt_on_sigkill(void *arg)
{
}

static int lt_worker_start(void)
{
	struct vhost_task *worker;

	worker = vhost_task_create(lt_work_once, lt_on_sigkill, NULL, "lt_worker");
	if (IS_ERR(worker))
		return PTR_ERR(worker);
	lt_worker = worker;
	vhost_task_start(worker);
	return 0;
}

static void lt_worker_wake(void)
{
	WRITE_ONCE(lt_has_job, true);
	vhost_task_wake(lt_worker);
}

/* The process in which the worker was started may have ended. */
static void lt_worker_stop(void)
{
	if (lt_worker)
		vhost_task_stop(lt_worker);
	lt_worker = NULL;
}
#else
static int lt_worker_start(void)
{
	return -EOPNOTSUPP;
}

static void lt_worker_wake(void)
{
}

static void lt_worker_stop(void)
{
}
#endif

/*
 * This queue runs one work item at a time. Few other queues share its workers, so
 * these sleep when we have no work for them.
 */
static struct workqueue_struct *lt_queue;
static DECLARE_COMPLETION(lt_has_next);

static void lt_on_first_item(struct work_struct *work)
{
	wait_for_completion(&lt_has_next);
	lt_take();
}

static DECLARE_WORK(lt_first_item, lt_on_first_item);

static void lt_on_next_item(struct work_struct *work)
{
	complete(&lt_done);
}

static void lt_on_item(struct work_struct *work)
{
	if (lt_goes_on) {
		work->func = lt_on_next_item;
		queue_work(lt_queue, work);
		return;
	}
	if (lt_requeues) {
		lt_requeues = false;
		queue_work(lt_queue, work);
		return;
	}
	complete(&lt_done);
}

static DECLARE_WORK(lt_item, lt_on_item);

static struct kthread_worker *lt_jobs;

static void lt_on_first_job(struct kthread_work *work)
{
	/* This interrupt comes at once, while the thread is busy. */
	irq_work_queue(&lt_threaded_work);
	lt_take();
}

static DEFINE_KTHREAD_WORK(lt_first_job, lt_on_first_job);

static void lt_on_busy_job(struct kthread_work *work)
{
	wait_for_completion(&lt_has_next);
}

static DEFINE_KTHREAD_WORK(lt_busy_job, lt_on_busy_job);

static void lt_on_next_job(struct kthread_work *work)
{
	complete(&lt_done);
}

static void lt_on_job(struct kthread_work *work)
{
	if (lt_goes_on) {
		work->func = lt_on_next_job;
		kthread_queue_work(lt_jobs, work);
		return;
	}
	if (lt_requeues) {
		lt_requeues = false;
		kthread_queue_work(lt_jobs, work);
		return;
	}
	complete(&lt_done);
}

static DEFINE_KTHREAD_WORK(lt_job, lt_on_job);

static void lt_on_call(void *data)
{
	complete(&lt_done);
}

static call_single_data_t lt_call;
static unsigned int lt_other_cpu;

static void lt_on_requested_work(struct irq_work *work)
{
	complete(&lt_done);
}

static struct irq_work lt_requested_work = IRQ_WORK_INIT_HARD(lt_on_requested_work);

static irqreturn_t lt_on_irq(int irq, void *data)
{
	if (lt_is_noise) {
		lt_take();
		return IRQ_HANDLED;
	}
	if (lt_requests) {
		irq_work_queue(&lt_requested_work);
		lt_take();
		return IRQ_HANDLED;
	}
	if (lt_keeps == LT_IRQ) {
		complete(&lt_done);
		lt_take();
		return IRQ_HANDLED;
	}
	if (lt_keeps == LT_SOFTIRQ && !lt_is_kept) {
		tasklet_hi_schedule(&lt_tasklet);
		return IRQ_HANDLED;
	}
	if (lt_keeps) {
		lt_take();
		return IRQ_HANDLED;
	}
	if (lt_nests)
		generic_handle_irq(threaded);
	if (!lt_is_busy && !lt_leaves_all && !lt_has_jobs)
		lt_take();
	/*
	 * The kernel limits the softirqs of one interrupt by jiffies, which stand still if
	 * this CPU counts them. A pending reschedule also ends them.
	 */
	if (lt_delays)
		set_tsk_need_resched(current);
	if (lt_waiter)
		wake_up_process(lt_waiter);
	else if (lt_leaves_rest)
		tasklet_hi_schedule(&lt_tasklet);
	else if (lt_employs)
		lt_worker_wake();
	else if (lt_queues)
		queue_work(lt_queue, &lt_item);
	else if (lt_has_jobs)
		kthread_queue_work(lt_jobs, &lt_first_job);
	else if (lt_has_job_queue)
		kthread_queue_work(lt_jobs, &lt_job);
	else if (lt_calls)
		smp_call_function_single_async(lt_other_cpu, &lt_call);
	else
		complete(&lt_done);
	if (lt_is_busy && !lt_cancels)
		complete(&lt_has_next);
	else if (lt_cancels || lt_cancels_job)
		complete(&lt_done);
	return IRQ_HANDLED;
}

static irqreturn_t lt_on_first(int irq, void *data)
{
	if (lt_shares)
		tasklet_hi_schedule(&lt_other_tasklet);
	else if (lt_delays)
		tasklet_schedule(&lt_other_tasklet);
	else if (lt_has_jobs)
		kthread_queue_work(lt_jobs, &lt_job);
	return lt_shares || lt_delays || lt_nests || lt_is_after || lt_has_jobs ?
	       IRQ_HANDLED : IRQ_WAKE_THREAD;
}

#ifdef CONFIG_IRQ_POLL
static struct irq_poll lt_poll;

static int lt_on_poll(struct irq_poll *poll, int budget)
{
	irq_poll_complete(poll);
	return 0;
}

static void lt_poll_init(void) { irq_poll_init(&lt_poll, 1, lt_on_poll); }
static void lt_poll_exit(void) { irq_poll_disable(&lt_poll); }
static void lt_poll_raise(void) { irq_poll_sched(&lt_poll); }
#else
static void lt_poll_init(void) { }
static void lt_poll_exit(void) { }
static void lt_poll_raise(void) { }
#endif

static irqreturn_t lt_on_third_thread(int irq, void *data)
{
	lt_take();
	complete(&lt_done);
	return IRQ_HANDLED;
}

static struct irq_work lt_third_work;

static irqreturn_t lt_on_thread(int irq, void *data)
{
	/* After its first run the thread stays on the CPU of the interrupt. */
	set_cpus_allowed_ptr(current, cpumask_of(lt_cpu));
	if (lt_polls) {
		local_bh_disable();
		lt_poll_raise();
		local_bh_enable();
		return IRQ_HANDLED;
	}
	if (lt_holds) {
		/* Less urgent than lt_want(). */
		sched_set_fifo_low(current);
		spin_lock(&lt_lock);
		WRITE_ONCE(lt_is_held, true);
		lt_take();
		spin_unlock(&lt_lock);
		sched_set_fifo(current);
		return IRQ_HANDLED;
	}
	if (lt_is_again) {
		/* For the second interrupt, for which no task waits. */
		lt_is_again = false;
		return IRQ_HANDLED;
	}
	if (lt_keeps) {
		lt_keep();
		return IRQ_HANDLED;
	}
	if (lt_wakes_other) {
		lt_is_again = true;
		/* Each irq_work runs at once, in a local interrupt of its own. */
		irq_work_queue(&lt_threaded_work);
		irq_work_queue(&lt_third_work);
		return IRQ_HANDLED;
	}
	if (lt_calls_again) {
		lt_is_again = true;
		irq_work_queue(&lt_threaded_work);
	}
	if (lt_takes_lock) {
		spin_lock(&lt_lock);
		spin_unlock(&lt_lock);
	} else {
		lt_take();
	}
	if (lt_fans) {
		atomic_inc(&lt_round);
		wake_up_all(&lt_idlers);
	}
	complete(&lt_done);
	return IRQ_HANDLED;
}

static int lt_idle(void *arg)
{
	int round = atomic_read(&lt_round);

	while (!kthread_should_stop()) {
		wait_event_interruptible(lt_idlers, kthread_should_stop() ||
					 atomic_read(&lt_round) != round);
		round = atomic_read(&lt_round);
	}
	return 0;
}

static void lt_on_work(struct irq_work *work)
{
	generic_handle_irq(number);
}

static void lt_on_threaded_work(struct irq_work *work)
{
	generic_handle_irq(threaded);
}

static void lt_on_both_work(struct irq_work *work)
{
	generic_handle_irq(threaded);
	generic_handle_irq(number);
}

static void lt_on_after_work(struct irq_work *work)
{
	generic_handle_irq(threaded);
	lt_take();
	complete(&lt_done);
}

static struct irq_work lt_after_work = IRQ_WORK_INIT_HARD(lt_on_after_work);
static struct irq_work lt_work = IRQ_WORK_INIT_HARD(lt_on_work);
static struct irq_work lt_both_work = IRQ_WORK_INIT_HARD(lt_on_both_work);
static void lt_on_third_work(struct irq_work *work)
{
	irq_wake_thread(third, NULL);
}

static struct irq_work lt_third_work = IRQ_WORK_INIT_HARD(lt_on_third_work);
static struct irq_work lt_threaded_work = IRQ_WORK_INIT_HARD(lt_on_threaded_work);

/*
 * The interrupt comes later, when the writer sleeps: waking a task that is awake
 * starts no chain. A slow kernel may have preempted the writer before it slept.
 */
static struct hrtimer lt_trigger;
static struct irq_work *lt_triggered;
static struct task_struct *lt_writer;

static bool lt_writer_is_awake(void)
{
	return READ_ONCE(lt_writer->on_rq) && !READ_ONCE(lt_writer->se.sched_delayed);
}

static enum hrtimer_restart lt_on_trigger(struct hrtimer *timer)
{
	if (lt_writer_is_awake()) {
		hrtimer_forward_now(timer, ms_to_ktime(1));
		return HRTIMER_RESTART;
	}
	irq_work_queue(lt_triggered);
	return HRTIMER_NORESTART;
}

static void lt_interrupt(struct irq_work *work, unsigned int ms)
{
	lt_triggered = work;
	hrtimer_start(&lt_trigger, ms_to_ktime(ms), HRTIMER_MODE_REL_PINNED_HARD);
}

static struct hrtimer lt_storm;

/* A random time below this limit, in ns, from the caller's own sequence. */
static u32 lt_some_time(u32 *last, u32 most)
{
	*last = *last * 1664525 + 1013904223;
	return ((u64)*last * most) >> 32;
}

static enum hrtimer_restart lt_on_storm(struct hrtimer *timer)
{
	static u32 last;

	generic_handle_irq(number);
	hrtimer_forward_now(timer, ns_to_ktime(10000 + lt_some_time(&last, 100000)));
	return HRTIMER_RESTART;
}

static void lt_storm_begins(void *arg)
{
	hrtimer_start(&lt_storm, ns_to_ktime(100000), HRTIMER_MODE_REL_PINNED_HARD);
}

static int lt_weather(void)
{
	unsigned int other = cpumask_any_but(cpu_online_mask, lt_cpu);
	unsigned int round;
	u32 last = 1;
	int err;

	if (other >= nr_cpu_ids)
		return -ENODEV;
	lt_waiter = current;
	err = smp_call_function_single(other, lt_storm_begins, NULL, 1);
	for (round = 0; round < rounds && !err; round++) {
		set_current_state(TASK_INTERRUPTIBLE);
		/* The task is about to sleep, and still runs. */
		ndelay(lt_some_time(&last, 10000));
		schedule();
		ndelay(lt_some_time(&last, 20000));
		err = signal_pending(current) ? -EINTR : 0;
	}
	hrtimer_cancel(&lt_storm);
	lt_waiter = NULL;
	return err;
}

static int lt_make_noise(void)
{
	unsigned int round;

	lt_is_noise = true;
	for (round = 0; round < rounds; round++) {
		irq_work_queue(&lt_work);
		irq_work_sync(&lt_work);
	}
	lt_is_noise = false;
	return 0;
}

static enum hrtimer_restart lt_on_timer(struct hrtimer *timer)
{
	complete(&lt_done);
	return HRTIMER_NORESTART;
}

static struct hrtimer lt_timer;
static enum hrtimer_mode lt_mode;

/* For other threads: waits until the writer sleeps. Returns false if the writer has given up. */
static bool lt_writer_sleeps(void)
{
	do {
		if (kthread_should_stop())
			return false;
		fsleep(2000);
	} while (lt_writer_is_awake());
	return true;
}

/* Arms a timer that is due while interrupts are off. */
static int lt_arm(void *arg)
{
	u64 due;

	if (!lt_writer_sleeps())
		return 0;
	hrtimer_setup(&lt_timer, lt_on_timer, CLOCK_MONOTONIC, lt_mode);
	local_irq_disable();
	due = ktime_get_ns() + 200 * NSEC_PER_USEC;
	hrtimer_start(&lt_timer, ns_to_ktime(due), lt_mode);
	while (ktime_get_ns() < due + us * (u64)NSEC_PER_USEC)
		lt_spin();
	local_irq_enable();
	return 0;
}

static void lt_on_wheel(struct timer_list *timer)
{
	complete(&lt_done);
}

static DEFINE_TIMER(lt_wheel, lt_on_wheel);

/* Arms a timer of the timer wheel, due in the second tick from now. */
static int lt_arm_wheel(void *arg)
{
	u64 end;

	if (!lt_writer_sleeps())
		return 0;
	local_irq_disable();
	end = ktime_get_ns() + 2 * TICK_NSEC + us * (u64)NSEC_PER_USEC;
	lt_wheel.expires = jiffies + 2;
	add_timer_on(&lt_wheel, lt_cpu);
	while (ktime_get_ns() < end)
		lt_spin();
	local_irq_enable();
	return 0;
}

static void lt_shift_clock(int seconds)
{
	struct timespec64 now;

	ktime_get_real_ts64(&now);
	now.tv_sec += seconds;
	do_settimeofday64(&now);
}

/* In seconds: shorter than the uptime of any machine. */
#define LT_SHIFT 6

static bool lt_is_shifted;

/* Makes the timer due at once: by its clock, it was due three seconds ago. */
static int lt_set_clock(void *arg)
{
	if (!lt_writer_sleeps())
		return 0;
	hrtimer_setup(&lt_timer, lt_on_timer, CLOCK_REALTIME, lt_mode);
	hrtimer_start(&lt_timer, ktime_add_ms(ktime_get_real(), 3000), lt_mode);
	lt_is_shifted = true;
	lt_shift_clock(LT_SHIFT);
	return 0;
}

/*
 * Holds the lock. The thread that waits for the lock preempts this thread, and is
 * woken only once the lock is held and the writer waits.
 */
static int lt_hold(void *arg)
{
	while (!swait_active(&lt_done.wait)) {
		if (kthread_should_stop())
			return 0;
		fsleep(100);
	}
	spin_lock(&lt_lock);
	lt_interrupt(&lt_threaded_work, 2);
	lt_take();
	spin_unlock(&lt_lock);
	return 0;
}

/* Wants the lock as soon as the thread of the interrupt holds it. */
static int lt_want(void *arg)
{
	sched_set_fifo(current);
	while (!READ_ONCE(lt_is_held)) {
		if (kthread_should_stop())
			return 0;
		fsleep(100);
	}
	spin_lock(&lt_lock);
	spin_unlock(&lt_lock);
	complete(&lt_done);
	return 0;
}

/* Sleeps like a polling thread: its wakeups are unrelated to earlier ones. */
static int lt_drowse(void *arg)
{
	int i;

	for (i = 0; i < 200 && !kthread_should_stop(); i++)
		usleep_range(200, 210);
	complete(&lt_done);
	return 0;
}

/*
 * Starts a thread on this CPU. Except for lt_drowse() and lt_want(), fn waits until
 * the writer sleeps.
 */
static struct task_struct *lt_beside(int (*fn)(void *arg))
{
	struct task_struct *task = kthread_create(fn, NULL, "lt_beside");

	if (!IS_ERR(task)) {
		kthread_bind(task, lt_cpu);
		get_task_struct(task);
		wake_up_process(task);
	}
	return task;
}

static struct task_struct *lt_last;

/*
 * Waits for the previous thread, unless it has ended, and for the worker. This is
 * not done at the end of run(), since their next action may still be in flight.
 */
static void lt_end_last(void)
{
	lt_worker_stop();
	if (lt_last)
		kthread_stop_put(lt_last);
	lt_last = NULL;
}

static int run(const char *word, const struct kernel_param *param)
{
	struct task_struct *beside = NULL;
	bool is_set = sysfs_streq(word, "clock");

	lt_end_last();
	lt_cpu = raw_smp_processor_id();
	lt_writer = current;
	lt_shares = sysfs_streq(word, "shared");
	lt_delays = sysfs_streq(word, "later");
	lt_nests = sysfs_streq(word, "nested");
	lt_employs = sysfs_streq(word, "worker");
	lt_polls = sysfs_streq(word, "inner");
	lt_wakes_other = sysfs_streq(word, "other");
	lt_leaves_all = lt_polls || sysfs_streq(word, "tasklet");
	lt_leaves_rest = lt_shares || lt_delays || lt_leaves_all ||
			 sysfs_streq(word, "softirq");
	lt_takes_lock = sysfs_streq(word, "wait");
	lt_holds = sysfs_streq(word, "held");
	lt_is_held = false;
	lt_fans = sysfs_streq(word, "fan");
	lt_calls_again = sysfs_streq(word, "busy");
	lt_cancels = sysfs_streq(word, "cancel");
	lt_is_busy = lt_cancels || sysfs_streq(word, "queue");
	lt_queues = lt_is_busy || sysfs_streq(word, "work") || sysfs_streq(word, "again") ||
		    sysfs_streq(word, "next");
	lt_calls = sysfs_streq(word, "call");
	lt_is_after = sysfs_streq(word, "after");
	lt_requests = sysfs_streq(word, "requested");
	lt_has_jobs = sysfs_streq(word, "jobs");
	lt_cancels_job = sysfs_streq(word, "cancel-job");
	lt_has_job_queue = lt_has_jobs || lt_cancels_job || sysfs_streq(word, "job") ||
			   sysfs_streq(word, "again-job") || sysfs_streq(word, "next-job");
	lt_requeues = sysfs_streq(word, "again") || sysfs_streq(word, "again-job");
	lt_goes_on = sysfs_streq(word, "next") || sysfs_streq(word, "next-job");
	lt_item.func = lt_on_item;
	lt_job.func = lt_on_job;
	lt_is_kept = false;
	lt_keeps = sysfs_streq(word, "late-irq") ? LT_IRQ :
		   sysfs_streq(word, "late-softirq") ? LT_SOFTIRQ :
		   sysfs_streq(word, "late-task") ? LT_TASK :
		   sysfs_streq(word, "late-nmi") ? LT_NMI : LT_NOTHING;
	lt_other_cpu = cpumask_any_but(cpu_online_mask, lt_cpu);
	if (lt_calls && lt_other_cpu >= nr_cpu_ids)
		return -ENODEV;
	if (lt_employs) {
		int err = lt_worker_start();

		if (err)
			return err;
	}
	if (sysfs_streq(word, "storm"))
		return lt_weather();
	if (sysfs_streq(word, "noise"))
		return lt_make_noise();
	if (sysfs_streq(word, "nmi"))
		return lt_send_nmi(lt_other_cpu);
	if (lt_is_after) {
		lt_interrupt(&lt_after_work, 2);
	} else if (lt_shares) {
		lt_interrupt(&lt_both_work, 2);
	} else if (lt_delays) {
		lt_interrupt(&lt_threaded_work, 2);
	} else if (lt_keeps == LT_TASK || lt_keeps == LT_NMI) {
		lt_interrupt(&lt_threaded_work, 2);
	} else if (lt_keeps || sysfs_streq(word, "handler") || lt_leaves_rest || lt_nests ||
		   lt_employs || lt_queues || lt_calls || lt_has_job_queue ||
		   lt_requests) {
		if (lt_is_busy)
			queue_work(lt_queue, &lt_first_item);
		if (lt_cancels_job)
			kthread_queue_work(lt_jobs, &lt_busy_job);
		lt_interrupt(&lt_work, 2);
	} else if (sysfs_streq(word, "thread") || lt_fans || lt_calls_again || lt_wakes_other) {
		lt_interrupt(&lt_threaded_work, 2);
	} else if (lt_takes_lock) {
		beside = lt_beside(lt_hold);
	} else if (lt_holds) {
		beside = lt_beside(lt_want);
		lt_interrupt(&lt_threaded_work, 2);
	} else if (sysfs_streq(word, "drowse")) {
		beside = lt_beside(lt_drowse);
	} else if (sysfs_streq(word, "hard")) {
		lt_mode = HRTIMER_MODE_ABS_PINNED_HARD;
		beside = lt_beside(lt_arm);
	} else if (sysfs_streq(word, "soft")) {
		lt_mode = HRTIMER_MODE_ABS_PINNED_SOFT;
		beside = lt_beside(lt_arm);
	} else if (sysfs_streq(word, "wheel")) {
		beside = lt_beside(lt_arm_wheel);
	} else if (is_set) {
		lt_mode = HRTIMER_MODE_ABS_PINNED_HARD;
		beside = lt_beside(lt_set_clock);
	} else if (sysfs_streq(word, "task")) {
		tasklet_schedule(&lt_tasklet);
	} else {
		return -EINVAL;
	}
	if (IS_ERR(beside)) {
		hrtimer_cancel(&lt_trigger);
		return PTR_ERR(beside);
	}
	/*
	 * The thread ends by itself. Waiting for its end here would be another sleep and
	 * wakeup of the writer.
	 */
	lt_last = beside;
	/* After a signal, the thread may still wait until the writer sleeps, so it is stopped. */
	if (wait_for_completion_interruptible(&lt_done))
		lt_end_last();
	hrtimer_cancel(&lt_trigger);
	if (lt_is_busy) {
		if (lt_cancels)
			cancel_work(&lt_item);
		/* The handler has not done this for `cancel`, or if a signal came first. */
		complete(&lt_has_next);
		flush_work(&lt_first_item);
		reinit_completion(&lt_has_next);
	}
	if (lt_cancels_job) {
		kthread_cancel_work_sync(&lt_job);
		complete(&lt_has_next);
		kthread_flush_work(&lt_busy_job);
		reinit_completion(&lt_has_next);
	}
	if (lt_is_shifted) {
		lt_is_shifted = false;
		lt_shift_clock(-LT_SHIFT);
	}
	return 0;
}

static const struct kernel_param_ops run_ops = { .set = run };
module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "make the writer wait, see causes.c");

static void lt_idlers_stop(unsigned int started)
{
	while (started--)
		kthread_stop(lt_idler[started]);
}

static int lt_idlers_start(void)
{
	unsigned int i;

	for (i = 0; i < LT_WIDTH; i++) {
		lt_idler[i] = kthread_run(lt_idle, NULL, "lt_idle/%u", i);
		if (IS_ERR(lt_idler[i])) {
			lt_idlers_stop(i);
			return PTR_ERR(lt_idler[i]);
		}
	}
	return 0;
}

static int lt_line(irq_handler_t handler, irq_handler_t thread, const char *name)
{
	/* Without an owner: a module that owns a requested line cannot be unloaded. */
	int err, line = __irq_alloc_descs(-1, 0, 1, NUMA_NO_NODE, NULL, NULL);

	if (line < 0)
		return line;
	irq_set_chip_and_handler(line, &dummy_irq_chip, handle_simple_irq);
	err = request_threaded_irq(line, handler, thread,
				   thread ? IRQF_ONESHOT : IRQF_NO_THREAD, name, NULL);
	if (err)
		irq_free_desc(line);
	return err ?: line;
}

static void lt_line_free(int line)
{
	free_irq(line, NULL);
	irq_free_desc(line);
}

/* The name of the line with a thread is at the end of a page; the next page is not mapped. */
static char *lt_page;

static const char *lt_name_at_end(const char *name)
{
	size_t size = strlen(name) + 1;

	lt_page = vzalloc(PAGE_SIZE);
	return lt_page ? memcpy(lt_page + PAGE_SIZE - size, name, size) : NULL;
}

static int __init lt_causes_init(void)
{
	const char *name = lt_name_at_end("lt_threaded");
	int err;

	if (!name)
		return -ENOMEM;
	INIT_CSD(&lt_call, lt_on_call, NULL);
	hrtimer_setup(&lt_trigger, lt_on_trigger, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_PINNED_HARD);
	hrtimer_setup(&lt_timer, lt_on_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	hrtimer_setup(&lt_storm, lt_on_storm, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	number = lt_line(lt_on_irq, NULL, "lt_cause");
	if (number < 0) {
		err = number;
		goto free_page;
	}
	threaded = lt_line(lt_on_first, lt_on_thread, name);
	if (threaded < 0) {
		err = threaded;
		goto free;
	}
	third = lt_line(lt_on_first, lt_on_third_thread, "lt_third");
	if (third < 0) {
		err = third;
		goto free_threaded;
	}
	lt_poll_init();
	err = -ENOMEM;
	lt_queue = alloc_ordered_workqueue("lt_queue", WQ_HIGHPRI);
	if (!lt_queue)
		goto free_third;
	lt_jobs = kthread_run_worker(0, "lt_jobs");
	if (IS_ERR(lt_jobs)) {
		err = PTR_ERR(lt_jobs);
		goto free_queue;
	}
	err = register_nmi_handler(NMI_LOCAL, lt_on_nmi, 0, "lt_causes");
	if (err)
		goto free_jobs;
	err = lt_idlers_start();
	if (!err)
		return 0;
	unregister_nmi_handler(NMI_LOCAL, "lt_causes");
free_jobs:
	kthread_destroy_worker(lt_jobs);
free_queue:
	destroy_workqueue(lt_queue);
free_third:
	lt_line_free(third);
free_threaded:
	lt_line_free(threaded);
free:
	lt_line_free(number);
free_page:
	vfree(lt_page);
	return err;
}

static void __exit lt_causes_exit(void)
{
	lt_end_last();
	unregister_nmi_handler(NMI_LOCAL, "lt_causes");
	lt_idlers_stop(LT_WIDTH);
	hrtimer_cancel(&lt_trigger);
	hrtimer_cancel(&lt_timer);
	timer_delete_sync(&lt_wheel);
	irq_work_sync(&lt_work);
	irq_work_sync(&lt_after_work);
	irq_work_sync(&lt_both_work);
	irq_work_sync(&lt_threaded_work);
	irq_work_sync(&lt_third_work);
	irq_work_sync(&lt_requested_work);
	lt_poll_exit();
	tasklet_kill(&lt_tasklet);
	tasklet_kill(&lt_other_tasklet);
	lt_line_free(third);
	lt_line_free(threaded);
	lt_line_free(number);
	vfree(lt_page);
	kthread_destroy_worker(lt_jobs);
	destroy_workqueue(lt_queue);
}

module_init(lt_causes_init);
module_exit(lt_causes_exit);
MODULE_DESCRIPTION("Interrupts and timers that tasks wait for, for latency_tracker's tests");
MODULE_AUTHOR("The latency-tracker developers");
MODULE_LICENSE("GPL");
