// SPDX-License-Identifier: GPL-2.0
/*
 * lt_points: two tracepoints of a module, a known time apart.
 *
 * Writing MS to the parameter `run` hits lt_point_begin_tp(MS), keeps the task
 * busy for MS milliseconds, and hits lt_point_end_tp(MS).
 *
 * With init_ms=N, loading the module takes N milliseconds, and then fails.
 */
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/kstrtox.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/tracepoint.h>

#include "spin.h"

/* The name of a tracepoint without a trace event ends in _tp. */
DECLARE_TRACE(lt_point_begin, TP_PROTO(unsigned int ms), TP_ARGS(ms));
DECLARE_TRACE(lt_point_end, TP_PROTO(unsigned int ms), TP_ARGS(ms));
DEFINE_TRACE(lt_point_begin_tp, TP_PROTO(unsigned int ms), TP_ARGS(ms));
DEFINE_TRACE(lt_point_end_tp, TP_PROTO(unsigned int ms), TP_ARGS(ms));

static unsigned int init_ms;
module_param(init_ms, uint, 0444);
MODULE_PARM_DESC(init_ms, "fail to load, after this many milliseconds");

static int lt_points_run(const char *word, const struct kernel_param *param)
{
	unsigned int ms;
	u64 end;
	int err = kstrtouint(word, 0, &ms);

	if (err)
		return err;
	trace_lt_point_begin_tp(ms);
	/* Uses the clock of the measurement: mdelay() uses another clock. */
	end = ktime_get_ns() + ms * NSEC_PER_MSEC;
	while (ktime_get_ns() < end)
		lt_spin();
	trace_lt_point_end_tp(ms);
	return 0;
}

static const struct kernel_param_ops lt_points_run_ops = {
	.set = lt_points_run,
};
module_param_cb(run, &lt_points_run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "hit both tracepoints, this many milliseconds apart");

static int __init lt_points_init(void)
{
	if (!init_ms)
		return 0;
	msleep(init_ms);
	return -EIO;
}

static void __exit lt_points_exit(void)
{
}

module_init(lt_points_init);
module_exit(lt_points_exit);
MODULE_DESCRIPTION("Tracepoints of a module, for the tests of latency-tracker");
MODULE_LICENSE("GPL");
