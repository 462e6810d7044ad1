// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel threads for the tests, and the helpers that the engine's platform
 * calls: the same file that the module is made of.
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "threads.h"
#include "../../rust/sys/helpers.c"

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
	complete(&thread->done);
	return 0;
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

	/* All or none: those that were started find nothing to do. */
	for (cpu = 0; err && cpu < started; cpu++)
		threads[cpu].fn = NULL;
	complete_all(&go);
	for (cpu = 0; cpu < started; cpu++)
		wait_for_completion(&threads[cpu].done);
	kfree(threads);
	return err;
}
