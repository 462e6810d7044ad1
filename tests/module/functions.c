// SPDX-License-Identifier: GPL-2.0
/*
 * lt_functions: functions of known durations, which trackers follow by name.
 *
 * A task that writes "WHAT N MS" to /proc/lt_functions makes one of these
 * calls, itself unless noted, before the write returns:
 *
 *   delay N MS    lt_fn_delay() N times: busy for MS each
 *   sleep N MS    lt_fn_sleep() N times: asleep for MS each
 *   recurse N MS  lt_fn_recurse(), N levels deep: each takes MS more than its callee
 *   tick N MS     lt_fn_tick() N times, in hard interrupts: busy for MS each
 *   exit N MS     N threads call lt_fn_exit(), which never returns
 *
 * or registers foreign probes, which stay until this module is unloaded:
 *
 *   probes N SIZE N fprobes of the entry of lt_fn_delay(), each at the beginning
 *                 of SIZE bytes from kmalloc()
 *   keep N 0      N fprobes of the return of lt_fn_delay(), so that the kernel
 *                 always has one with an exit handler
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/fprobe.h>
#include <linux/fs.h>
#include <linux/irq_work.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "functions.h"
#include "spin.h"

/* Uses the clock of the measurement: mdelay() uses another clock. */
static void lt_busy(unsigned int ms)
{
	u64 end = ktime_get_ns() + ms * NSEC_PER_MSEC;

	while (ktime_get_ns() < end)
		lt_spin();
}

noinline int lt_fn_delay(unsigned int nth, unsigned int ms)
{
	lt_busy(ms);
	return nth;
}

noinline int lt_fn_sleep(unsigned int nth, unsigned int ms)
{
	return msleep_interruptible(ms) ? -EINTR : nth;
}

noinline int lt_fn_recurse(unsigned int depth, unsigned int ms)
{
	int deeper = depth > 1 ? lt_fn_recurse(depth - 1, ms) : 0;

	lt_busy(ms);
	/* The code after the call prevents a tail call. */
	return deeper + 1;
}

noinline int lt_fn_tick(unsigned int nth, unsigned int ms)
{
	lt_busy(ms);
	return nth;
}

struct lt_tick {
	struct irq_work work;
	unsigned int nth;
	unsigned int ms;
};

static void lt_fn_irq_work(struct irq_work *work)
{
	struct lt_tick *tick = container_of(work, struct lt_tick, work);

	lt_fn_tick(tick->nth, tick->ms);
}

noinline void lt_fn_exit(struct completion *done)
{
	kthread_complete_and_exit(done, 0);
}

static int lt_fn_thread(void *done)
{
	lt_fn_exit(done);
	return 0;
}

static int lt_fn_run_thread(void)
{
	DECLARE_COMPLETION_ONSTACK(done);
	struct task_struct *task;

	task = kthread_run(lt_fn_thread, &done, "lt_fn_exit");
	if (IS_ERR(task))
		return PTR_ERR(task);
	wait_for_completion(&done);
	return 0;
}

struct lt_others_probe {
	struct list_head list;
	struct fprobe *fp;
};

static LIST_HEAD(lt_others_probes);
static DEFINE_MUTEX(lt_others_lock);

static int lt_others_entry(struct fprobe *fp, unsigned long ip,
			   unsigned long caller, struct ftrace_regs *regs,
			   void *data)
{
	return 0;
}

static void lt_others_exit(struct fprobe *fp, unsigned long ip,
			   unsigned long caller, struct ftrace_regs *regs,
			   void *data)
{
}

static int lt_others_add(bool returns, size_t size)
{
	unsigned long function = (unsigned long)lt_fn_delay;
	struct lt_others_probe *probe = kzalloc_obj(*probe);
	int err = -ENOMEM;

	if (!probe)
		return err;
	probe->fp = kzalloc(max(size, sizeof(*probe->fp)), GFP_KERNEL);
	if (!probe->fp)
		goto free;
	if (returns)
		probe->fp->exit_handler = lt_others_exit;
	else
		probe->fp->entry_handler = lt_others_entry;
	err = register_fprobe_ips(probe->fp, &function, 1);
	if (err)
		goto free;
	mutex_lock(&lt_others_lock);
	list_add(&probe->list, &lt_others_probes);
	mutex_unlock(&lt_others_lock);
	return 0;
free:
	kfree(probe->fp);
	kfree(probe);
	return err;
}

static void lt_others_remove(void)
{
	struct lt_others_probe *probe, *next;

	list_for_each_entry_safe(probe, next, &lt_others_probes, list) {
		unregister_fprobe(probe->fp);
		kfree(probe->fp);
		kfree(probe);
	}
}

static int lt_fn_call(const char *what, unsigned int nr, unsigned int ms)
{
	struct lt_tick tick = { .ms = ms };
	unsigned int i;
	int err = 0;

	tick.work = IRQ_WORK_INIT_HARD(lt_fn_irq_work);
	if (!strcmp(what, "recurse"))
		return lt_fn_recurse(nr, ms) == nr ? 0 : -EIO;
	for (i = 0; i < nr && err >= 0; i++) {
		if (!strcmp(what, "delay")) {
			err = lt_fn_delay(i, ms);
		} else if (!strcmp(what, "sleep")) {
			err = lt_fn_sleep(i, ms);
		} else if (!strcmp(what, "tick")) {
			tick.nth = i;
			irq_work_queue(&tick.work);
			irq_work_sync(&tick.work);
		} else if (!strcmp(what, "exit")) {
			err = lt_fn_run_thread();
		} else if (!strcmp(what, "probes")) {
			err = lt_others_add(false, ms);
		} else if (!strcmp(what, "keep")) {
			err = lt_others_add(true, ms);
		} else {
			err = -EINVAL;
		}
	}
	return min(err, 0);
}

static ssize_t lt_functions_write(struct file *file, const char __user *from,
				  size_t len, loff_t *pos)
{
	unsigned int nr, ms;
	char text[32], what[16];
	int err;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, len))
		return -EFAULT;
	text[len] = '\0';
	if (sscanf(text, "%15s %u %u", what, &nr, &ms) != 3)
		return -EINVAL;
	err = lt_fn_call(what, nr, ms);
	return err ? err : len;
}

static const struct proc_ops lt_functions_ops = {
	.proc_write = lt_functions_write,
	.proc_lseek = default_llseek,
};

static int __init lt_functions_init(void)
{
	return proc_create("lt_functions", 0600, NULL, &lt_functions_ops) ?
		       0 :
		       -ENOMEM;
}

static void __exit lt_functions_exit(void)
{
	remove_proc_entry("lt_functions", NULL);
	lt_others_remove();
}

module_init(lt_functions_init);
module_exit(lt_functions_exit);
MODULE_DESCRIPTION("Functions of known durations");
MODULE_LICENSE("GPL");
