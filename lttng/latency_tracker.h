/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The events of latency_tracker for LTTng. include/trace/events/latency_tracker.h
 * has the same events for ftrace and perf, and describes them.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM latency_tracker

#if !defined(LTTNG_TRACE_LATENCY_TRACKER_H) || defined(TRACE_HEADER_MULTI_READ)
#define LTTNG_TRACE_LATENCY_TRACKER_H

#include <lttng/tracepoint-event.h>

LTTNG_TRACEPOINT_EVENT_MAP(alert,

	latency_tracker_alert,

	TP_PROTO(const struct lt_alert *alert),

	TP_ARGS(alert),

	TP_FIELDS(
		ctf_integer(u64, seq, alert->seq)
		ctf_integer(u64, time, alert->time)
		ctf_string(instance, alert->instance)
		ctf_string(tracker, alert->tracker)
		ctf_string(reason, alert->reason)
		ctf_integer(u64, delay, alert->delay)
		ctf_integer(u64, threshold, alert->threshold)
		ctf_integer(u32, pid, alert->pid)
		ctf_integer(u32, tid, alert->tid)
		ctf_string(comm, alert->comm)
		ctf_sequence_hex(u64, args, alert->args, u32, alert->nr_args)
		ctf_sequence_hex(u64, stack, alert->stack, u32, alert->nr_stack)
		ctf_integer(u8, before_start, alert->before_start)
	)
)

LTTNG_TRACEPOINT_ENUM(latency_tracker_context,
	TP_ENUM_VALUES(
		ctf_enum_value("task", 0)
		ctf_enum_value("softirq", 1)
		ctf_enum_value("hardirq", 2)
		ctf_enum_value("nmi", 3)
	)
)

/* The event of one tracker: the common fields, and the fields of that tracker. */
#define LT_LTTNG_ALERT(tracker, fields)					\
LTTNG_TRACEPOINT_EVENT_MAP(alert_##tracker,				\
									\
	latency_tracker_alert_##tracker,				\
									\
	TP_PROTO(const struct lt_alert *alert),				\
									\
	TP_ARGS(alert),							\
									\
	TP_FIELDS(							\
		ctf_integer(u64, seq, alert->seq)			\
		ctf_integer(u64, time, alert->time)			\
		ctf_string(instance, alert->instance)			\
		ctf_string(reason, alert->reason)			\
		ctf_integer(u64, delay, alert->delay)			\
		ctf_integer(u64, threshold, alert->threshold)		\
		ctf_integer(u32, pid, alert->pid)			\
		ctf_integer(u32, tid, alert->tid)			\
		ctf_string(comm, alert->comm)				\
		fields							\
	)								\
)

#include "latency_tracker_declared.h"

#endif /* LTTNG_TRACE_LATENCY_TRACKER_H */

/* This part must be outside protection */
#include <lttng/define_trace.h>
