// SPDX-License-Identifier: GPL-2.0
/*
 * lt_sample_c: uses latency_tracker from another module, to track how long a
 * function takes.
 *
 * The function, lt_sample_work(), is in this module. A kretprobe starts an event
 * when a thread enters the function, and ends the event when the thread returns.
 * The key is the thread. A call that takes longer than 10 ms is reported, and a call
 * that has not returned after 100 ms is reported while it is still running.
 *
 *	insmod latency_tracker.ko
 *	insmod lt_sample_c.ko
 *	cat /proc/latency_tracker/sample_c/alerts &
 *	echo 20 > /sys/module/lt_sample_c/parameters/work	(20 ms)
 *	cat /sys/module/lt_sample_c/parameters/threshold	(1 report)
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>

#include <latency_tracker.h>

/* The data of a call, besides its thread. */
struct call {
	u32 ms;
	char comm[TASK_COMM_LEN];
};

static struct latency_tracker *tracker;

/* The number of reports for each reason, and the contents of the last report. */
static atomic_t reports[3];
static u64 last_delay;
static u32 last_tid;
static u32 last_ms;

/*
 * Runs where the event ends (here, in the probe), or in a kernel thread if the
 * event times out; must not sleep. The key and the data are copies.
 */
static void late(const struct latency_tracker_report *report)
{
	const struct call *call = report->data;

	atomic_inc(&reports[report->reason]);
	WRITE_ONCE(last_delay, report->delay);
	WRITE_ONCE(last_tid, *(const u32 *)report->key);
	WRITE_ONCE(last_ms, call->ms);
}

static noinline __noclone void lt_sample_work(unsigned int ms)
{
	/* Not msleep(): it counts ticks, and returns early if they are late. */
	usleep_range(ms * USEC_PER_MSEC, (ms + 1) * USEC_PER_MSEC);
}

static int enter(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	u32 tid = current->pid;
	struct call call = { .ms = regs_get_kernel_argument(regs, 0) };

	get_task_comm(call.comm, current);
	latency_tracker_event_in(tracker, &tid, sizeof(tid), &call);
	return 0;
}

static int leave(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	u32 tid = current->pid;

	/* -ENOENT if the start was refused, or the event was cleared. */
	latency_tracker_event_out(tracker, &tid, sizeof(tid), 0);
	return 0;
}

static struct kretprobe probe = {
	.kp.addr = (kprobe_opcode_t *)lt_sample_work,
	.entry_handler = enter,
	.handler = leave,
	.maxactive = 64,
};

static int set_work(const char *value, const struct kernel_param *param)
{
	unsigned int ms;
	int err = kstrtouint(value, 0, &ms);

	if (err)
		return err;
	lt_sample_work(ms);
	return 0;
}

static const struct kernel_param_ops work_ops = { .set = set_work };

module_param_cb(work, &work_ops, NULL, 0200);
MODULE_PARM_DESC(work, "call the function, for this many milliseconds");

static bool forget;
module_param(forget, bool, 0400);
MODULE_PARM_DESC(forget, "unload without destroying the tracker");

static int get_count(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(param->arg));
}

static const struct kernel_param_ops count_ops = { .get = get_count };

module_param_cb(threshold, &count_ops,
		&reports[LATENCY_TRACKER_THRESHOLD], 0400);
module_param_cb(timeout, &count_ops, &reports[LATENCY_TRACKER_TIMEOUT], 0400);
module_param_cb(late, &count_ops, &reports[LATENCY_TRACKER_LATE], 0400);
module_param(last_delay, ullong, 0400);
module_param(last_tid, uint, 0400);
module_param(last_ms, uint, 0400);

static int __init sample_init(void)
{
	const struct latency_tracker_config config = {
		LATENCY_TRACKER_CONFIG("sample_c"),
		.key_size = sizeof(u32),
		.data_size = sizeof(struct call),
		.capacity = 256,
		.threshold = 10 * NSEC_PER_MSEC,
		.timeout = 100 * NSEC_PER_MSEC,
		.callback = late,
		/* A thread is in the function at most once; a tid is no secret. */
		.flags = LATENCY_TRACKER_UNIQUE | LATENCY_TRACKER_SHOW_KEYS,
	};
	int err;

	tracker = latency_tracker_create(&config);
	if (IS_ERR(tracker))
		return PTR_ERR(tracker);
	err = register_kretprobe(&probe);
	if (err)
		latency_tracker_destroy(tracker);
	return err;
}

static void __exit sample_exit(void)
{
	/* First stop all callers, then destroy the tracker. */
	unregister_kretprobe(&probe);
	if (!forget)
		latency_tracker_destroy(tracker);
}

module_init(sample_init);
module_exit(sample_exit);
MODULE_DESCRIPTION("How to use latency_tracker from another module");
MODULE_LICENSE("GPL");
