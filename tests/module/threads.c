// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel threads for the tests, and the helpers that the engine's platform
 * calls, from the same file as in the module.
 */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "threads.h"

/*
 * A guard of the engine ends by a call of lt_preempt_enable(): always, or, if guards
 * are inline instructions, only for a reschedule. The function below replaces it, and
 * counts the calls.
 */
#define lt_preempt_enable lt_preempt_enable_uncounted
#include "../../rust/sys/helpers.c"
#undef lt_preempt_enable

static atomic_long_t lt_preempt_enabled;

notrace void lt_preempt_enable(void)
{
	atomic_long_inc(&lt_preempt_enabled);
	lt_preempt_enable_uncounted();
}

unsigned long lt_guards_ended_by_call(void)
{
	return atomic_long_read(&lt_preempt_enabled);
}

void lt_want_to_schedule(void)
{
	set_tsk_need_resched(current);
	set_preempt_need_resched();
}

bool lt_wants_to_schedule(void)
{
	return need_resched();
}

void lt_doze(void)
{
	fsleep(100);
}

#include "../../rust/sys/periodic.c"

struct lt_thread {
	unsigned int cpu;
	lt_thread_fn fn;
	void *arg;
	struct completion *go;
	struct completion done;
};

static int lt_thread_main(void *data)
{
	struct lt_thread *thread = data;

	wait_for_completion(thread->go);
	if (thread->fn)
		thread->fn(thread->cpu, thread->arg);
	/* The waiter may unload the module, so this thread must not return to it. */
	kthread_complete_and_exit(&thread->done, 0);
}

int lt_run_on_cpus(unsigned int nr, lt_thread_fn fn, void *arg)
{
	DECLARE_COMPLETION_ONSTACK(go);
	struct lt_thread *threads;
	unsigned int cpu, started;
	int err = 0;

	threads = kcalloc(nr, sizeof(*threads), GFP_KERNEL);
	if (!threads)
		return -ENOMEM;

	for (started = 0; started < nr; started++) {
		struct lt_thread *thread = &threads[started];
		struct task_struct *task;

		thread->cpu = started;
		thread->fn = fn;
		thread->arg = arg;
		thread->go = &go;
		init_completion(&thread->done);
		task = kthread_create_on_cpu(lt_thread_main, thread, started,
					     "lt_selftest/%u");
		if (IS_ERR(task)) {
			err = PTR_ERR(task);
			break;
		}
		wake_up_process(task);
	}

	/* If one thread cannot be started, the others return at once. */
	for (cpu = 0; err && cpu < started; cpu++)
		threads[cpu].fn = NULL;
	complete_all(&go);
	for (cpu = 0; cpu < started; cpu++)
		wait_for_completion(&threads[cpu].done);
	kfree(threads);
	return err;
}

/* A crowd: threads that are bound to no CPU, and run until they are stopped */

static struct lt_member {
	struct task_struct *task;
	unsigned int number;
} *lt_members;
static unsigned int lt_nr_members;
static lt_thread_fn lt_member_fn;
static void *lt_member_arg;

static int lt_member_main(void *data)
{
	struct lt_member *member = data;

	while (!kthread_should_stop()) {
		lt_member_fn(member->number, lt_member_arg);
		/* Lets other tasks run; a sleeping thread can also migrate. */
		fsleep(100);
	}
	return 0;
}

void lt_crowd_stop(void)
{
	while (lt_nr_members)
		kthread_stop(lt_members[--lt_nr_members].task);
	kfree(lt_members);
}

int lt_crowd_start(unsigned int nr, lt_thread_fn fn, void *arg)
{
	lt_members = kcalloc(nr, sizeof(*lt_members), GFP_KERNEL);
	if (!lt_members)
		return -ENOMEM;
	lt_member_fn = fn;
	lt_member_arg = arg;
	while (lt_nr_members < nr) {
		struct lt_member *member = &lt_members[lt_nr_members];

		member->number = lt_nr_members;
		member->task = kthread_run(lt_member_main, member,
					   "lt_stress/%u", member->number);
		if (IS_ERR(member->task)) {
			int err = PTR_ERR(member->task);

			lt_crowd_stop();
			return err;
		}
		lt_nr_members++;
	}
	return 0;
}
