/* SPDX-License-Identifier: GPL-2.0 */
/*
 * latency_tracker:alert, emitted at the instant a delay is found too long.
 *
 * For ftrace, perf and LTTng: it can start a snapshot, stop a trace, or feed a
 * script. Times are CLOCK_MONOTONIC in nanoseconds. args are the tracker's
 * own fields, in the order of its alert line; stack is that of the task, for a
 * timeout.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM latency_tracker

#if !defined(_TRACE_LATENCY_TRACKER_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_LATENCY_TRACKER_H

#include <linux/tracepoint.h>

struct lt_alert;

TRACE_EVENT(alert,

	TP_PROTO(const struct lt_alert *alert),

	TP_ARGS(alert),

	TP_STRUCT__entry(
		__field(	u64,	seq		)
		__field(	u64,	time		)
		__string(	instance, alert->instance	)
		__string(	tracker, alert->tracker	)
		__string(	reason,	alert->reason	)
		__field(	u64,	delay		)
		__field(	u64,	threshold	)
		__field(	u32,	pid		)
		__field(	u32,	tid		)
		__string(	comm,	alert->comm	)
		__dynamic_array(u64,	args,	alert->nr_args	)
		__dynamic_array(u64,	stack,	alert->nr_stack	)
	),

	TP_fast_assign(
		__entry->seq = alert->seq;
		__entry->time = alert->time;
		__assign_str(instance);
		__assign_str(tracker);
		__assign_str(reason);
		__entry->delay = alert->delay;
		__entry->threshold = alert->threshold;
		__entry->pid = alert->pid;
		__entry->tid = alert->tid;
		__assign_str(comm);
		memcpy(__get_dynamic_array(args), alert->args,
		       alert->nr_args * sizeof(u64));
		memcpy(__get_dynamic_array(stack), alert->stack,
		       alert->nr_stack * sizeof(u64));
	),

	TP_printk("seq=%llu time=%llu instance=%s tracker=%s reason=%s delay=%llu threshold=%llu pid=%u tid=%u comm=%s args=%s stack=%s",
		  __entry->seq, __entry->time, __get_str(instance),
		  __get_str(tracker), __get_str(reason), __entry->delay,
		  __entry->threshold, __entry->pid, __entry->tid,
		  __get_str(comm),
		  __print_array(__get_dynamic_array(args),
				__get_dynamic_array_len(args) / sizeof(u64),
				sizeof(u64)),
		  __print_array(__get_dynamic_array(stack),
				__get_dynamic_array_len(stack) / sizeof(u64),
				sizeof(u64)))
);

#endif /* _TRACE_LATENCY_TRACKER_H */

#include <trace/define_trace.h>
