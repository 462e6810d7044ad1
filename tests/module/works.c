// SPDX-License-Identifier: GPL-2.0
/*
 * lt_works: work items that wait and run for known times, on an ordered
 * workqueue "lt_works", which runs them one after another.
 *
 * Writing a word to the parameter `run` queues items and, except for `leave`,
 * returns when they are done. Slow items take `ms` (a parameter, 20) milliseconds.
 *
 *   slow     an item that sleeps, queued by the writer
 *   behind   a quick item that waits behind a slow item
 *   again    a slow item that is queued again while it runs
 *   freed    an item that frees itself, and sleeps afterwards
 *   delayed  a quick item, queued by a timer
 *   requeue  a quick item behind a slow item; the quick item is queued again, by
 *            mod_delayed_work(), after half of the slow item's time
 *   renew    as requeue, but the quick item is cancelled in between
 *   cancel   a quick item behind a slow item; the quick item is cancelled, and then
 *            queued again
 *   leave    a quick item behind a slow item; the quick item is cancelled
 *   long     two items, one behind the other, that each sleep for 15 times as long
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

static unsigned int ms = 20;
module_param(ms, uint, 0444);
MODULE_PARM_DESC(ms, "how long a slow item takes, in milliseconds");

static struct workqueue_struct *queue;

static __always_inline void lt_sleep(unsigned int us)
{
	/* Not msleep(), which rounds up to ticks. */
	usleep_range(us, us + 1);
	/* No tail call: the caller must be on the stack. */
	barrier();
}

static void lt_work_slow(struct work_struct *work)
{
	lt_sleep(ms * USEC_PER_MSEC);
}

static void lt_work_long(struct work_struct *work)
{
	lt_sleep(15 * ms * USEC_PER_MSEC);
}

static void lt_work_quick(struct work_struct *work)
{
}

static void lt_work_freed(struct work_struct *work)
{
	kfree(work);
	lt_sleep(ms * USEC_PER_MSEC);
}

static DECLARE_WORK(slow, lt_work_slow);
static DECLARE_WORK(first, lt_work_long);
static DECLARE_WORK(second, lt_work_long);
static DECLARE_WORK(quick, lt_work_quick);
static DECLARE_DELAYED_WORK(delayed, lt_work_quick);

static void behind(void)
{
	queue_work(queue, &slow);
	queue_work(queue, &quick);
}

static int run(const char *word, const struct kernel_param *param)
{
	struct work_struct *work;

	if (sysfs_streq(word, "slow")) {
		queue_work(queue, &slow);
	} else if (sysfs_streq(word, "behind")) {
		behind();
	} else if (sysfs_streq(word, "again")) {
		queue_work(queue, &slow);
		lt_sleep(ms * USEC_PER_MSEC / 2);
		queue_work(queue, &slow);
	} else if (sysfs_streq(word, "freed")) {
		work = kmalloc_obj(*work);
		if (!work)
			return -ENOMEM;
		INIT_WORK(work, lt_work_freed);
		queue_work(queue, work);
	} else if (sysfs_streq(word, "delayed")) {
		queue_delayed_work(queue, &delayed, msecs_to_jiffies(ms));
		flush_delayed_work(&delayed);
	} else if (sysfs_streq(word, "requeue") || sysfs_streq(word, "renew")) {
		queue_work(queue, &slow);
		queue_delayed_work(queue, &delayed, 0);
		if (sysfs_streq(word, "renew"))
			cancel_delayed_work(&delayed);
		lt_sleep(ms * USEC_PER_MSEC / 2);
		mod_delayed_work(queue, &delayed, 0);
	} else if (sysfs_streq(word, "cancel")) {
		behind();
		cancel_work(&quick);
		queue_work(queue, &quick);
	} else if (sysfs_streq(word, "leave")) {
		behind();
		cancel_work(&quick);
		return 0;
	} else if (sysfs_streq(word, "long")) {
		queue_work(queue, &first);
		queue_work(queue, &second);
	} else {
		return -EINVAL;
	}
	flush_workqueue(queue);
	return 0;
}

static const struct kernel_param_ops run_ops = { .set = run };
module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "Queue work items, see works.c");

static int __init works_init(void)
{
	queue = alloc_ordered_workqueue("lt_works", 0);
	return queue ? 0 : -ENOMEM;
}

static void __exit works_exit(void)
{
	destroy_workqueue(queue);
}

module_init(works_init);
module_exit(works_exit);
MODULE_DESCRIPTION("Work items of known lengths, for the tests of latency-tracker");
MODULE_AUTHOR("The latency-tracker developers");
MODULE_LICENSE("GPL");
