/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The argument that the tracepoints of latency_tracker pass to their probes: one
 * alert. It is valid only during the call. Times are CLOCK_MONOTONIC in nanoseconds.
 */
#ifndef _LATENCY_TRACKER_ALERT_H
#define _LATENCY_TRACKER_ALERT_H

#include <linux/types.h>

struct lt_alert {
	u64 seq;
	u64 time;
	u64 delay;
	u64 threshold;
	const char *instance;
	const char *tracker;
	const char *reason;
	u32 pid;
	u32 tid;
	const char *comm;	/* TASK_COMM_LEN bytes, terminated */
	const u64 *args;	/* words that hold the tracker's own fields */
	u32 nr_args;
	const u64 *stack;	/* return addresses, innermost first */
	u32 nr_stack;
	bool before_start;
};

#endif /* _LATENCY_TRACKER_ALERT_H */
