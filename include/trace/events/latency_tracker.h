/* SPDX-License-Identifier: GPL-2.0 */
/*
 * latency_tracker:alert, emitted when a delay is found to be too long. args are
 * words that hold the tracker's own fields; Documentation/ABI/testing defines
 * their bits. stack is the task's stack in the kernel: for a timeout, for
 * reason=stack, and for any alert of offcpu, runqueue, lock and reclaim.
 * latency_tracker:alert_TRACKER has the tracker's own fields by name and type
 * instead.
 *
 * ftrace, perf and LTTng can record the events, start a snapshot, stop a trace,
 * or feed a script. Times are CLOCK_MONOTONIC in nanoseconds.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM latency_tracker

#if !defined(_TRACE_LATENCY_TRACKER_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_LATENCY_TRACKER_H

#include <linux/blkdev.h>
#include <linux/if.h>
#include <linux/sched.h>
#include <linux/socket.h>
#include <linux/tracepoint.h>

#include "latency_tracker_alert.h"

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
		__field(	bool,	before_start	)
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
		__entry->before_start = alert->before_start;
	),

	TP_printk("seq=%llu time=%llu instance=%s tracker=%s reason=%s delay=%llu threshold=%llu pid=%u tid=%u comm=%s args=%s stack=%s before_start=%d",
		  __entry->seq, __entry->time, __get_str(instance),
		  __get_str(tracker), __get_str(reason), __entry->delay,
		  __entry->threshold, __entry->pid, __entry->tid,
		  __get_str(comm),
		  __print_array(__get_dynamic_array(args),
				__get_dynamic_array_len(args) / sizeof(u64),
				sizeof(u64)),
		  __print_array(__get_dynamic_array(stack),
				__get_dynamic_array_len(stack) / sizeof(u64),
				sizeof(u64)),
		  __entry->before_start)
);

/* The fields of all alerts. */
#define LT_COMMON_FIELDS						\
		__field(u64, seq)					\
		__field(u64, time)					\
		__string(instance, alert->instance)			\
		__string(reason, alert->reason)				\
		__field(u64, delay)					\
		__field(u64, threshold)					\
		__field(u32, pid)					\
		__field(u32, tid)					\
		__string(comm, alert->comm)

#define LT_COMMON_ASSIGN do {						\
			__entry->seq = alert->seq;			\
			__entry->time = alert->time;			\
			__assign_str(instance);				\
			__assign_str(reason);				\
			__entry->delay = alert->delay;			\
			__entry->threshold = alert->threshold;		\
			__entry->pid = alert->pid;			\
			__entry->tid = alert->tid;			\
			__assign_str(comm);				\
		} while (0)

#define LT_COMMON_FORMAT						\
	"seq=%llu time=%llu instance=%s reason=%s delay=%llu threshold=%llu pid=%u tid=%u comm=%s"

#define LT_COMMON_VALUES						\
		  __entry->seq, __entry->time, __get_str(instance),	\
		  __get_str(reason), __entry->delay,			\
		  __entry->threshold, __entry->pid, __entry->tid,	\
		  __get_str(comm)

/* Another task, in three words of an alert: see rust/alert/record/actor.rs. */
#define LT_TASK_FIELDS(role)						\
		__field(u32, role##_pid)				\
		__field(u32, role##_tid)				\
		__array(char, role##_comm, TASK_COMM_LEN)

#define LT_TASK_ASSIGN(role, words) do {				\
			const u64 *lt_words = (words);			\
									\
			__entry->role##_pid = (lt_words[0] >> 22) & 0x3fffff; \
			__entry->role##_tid = lt_words[0] & 0x3fffff;	\
			memcpy(__entry->role##_comm, lt_words + 1, TASK_COMM_LEN); \
			__entry->role##_comm[TASK_COMM_LEN - 1] = '\0';	\
		} while (0)

#define LT_CONTEXTS							\
	{ 0, "task" }, { 1, "softirq" }, { 2, "hardirq" }, { 3, "nmi" }

/* The event of one tracker: the common fields, and the fields of that tracker. */
#define LT_ALERT(tracker, fields, assign, format, values...)		\
TRACE_EVENT(alert_##tracker,						\
									\
	TP_PROTO(const struct lt_alert *alert),				\
									\
	TP_ARGS(alert),							\
									\
	TP_STRUCT__entry(						\
		LT_COMMON_FIELDS					\
		fields							\
	),								\
									\
	TP_fast_assign(							\
		LT_COMMON_ASSIGN;					\
		assign							\
	),								\
									\
	TP_printk(LT_COMMON_FORMAT " " format, LT_COMMON_VALUES, values) \
)

#include "latency_tracker_declared.h"

#endif /* _TRACE_LATENCY_TRACKER_H */

#include <trace/define_trace.h>
