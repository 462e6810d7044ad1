/* SPDX-License-Identifier: GPL-2.0 */
/*
 * latency_tracker:alert, emitted at the instant when a delay is found to be too
 * long. args are the tracker's own fields, in the order of its alert line; stack
 * is the task's stack, for a timeout. latency_tracker:alert_TRACKER has the
 * tracker's own fields by name and type instead.
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

/* Another task, in three words of an alert: see rust/record/actor.rs. */
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

/* A task's priority; the lower half of the word is a CPU. */
#define LT_PLACE_FIELDS							\
		__field(int, prio)					\
		__field(u32, policy)

#define LT_PLACE_ASSIGN(word) do {					\
			u64 lt_word = (word);				\
									\
			__entry->prio = (s16)(lt_word >> 32);		\
			__entry->policy = lt_word >> 48;		\
		} while (0)

#define LT_CONTEXTS							\
	{ 0, "task" }, { 1, "softirq" }, { 2, "hardirq" }, { 3, "nmi" }

/* Event of a tracker, with its fields besides the common ones. */
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

/* The words of a step, and those before the steps: rust/trackers/tree/path.rs. */
#define LT_TREE_HEAD 8

TRACE_EVENT(alert_tree,

	TP_PROTO(const struct lt_alert *alert),

	TP_ARGS(alert),

	TP_STRUCT__entry(
		LT_COMMON_FIELDS
		LT_PLACE_FIELDS
		__field(u8, end)
		__field(u8, state)
		__field(u8, origin)
		__field(u64, subject)
		__array(char, action, 32)
		__field(u32, target_cpu)
		__field(u32, preempted)
		__field(u32, merged)
		__field(u32, more)
		__field(u64, more_ns)
		__dynamic_array(u64, steps, alert->nr_args - LT_TREE_HEAD)
	),

	TP_fast_assign(
		LT_COMMON_ASSIGN;
		__entry->more_ns = alert->args[0];
		__entry->more = (alert->args[1] >> 8) & 0xffff;
		__entry->preempted = (alert->args[1] >> 24) & 0xffff;
		__entry->merged = (alert->args[1] >> 40) & 0xff;
		__entry->state = (alert->args[1] >> 48) & 0xf;
		__entry->origin = (alert->args[1] >> 52) & 0xf;
		__entry->end = alert->args[1] >> 60;
		LT_PLACE_ASSIGN(alert->args[2]);
		__entry->target_cpu = (u32)alert->args[2];
		memcpy(__entry->action, alert->args + 3, 32);
		__entry->action[31] = '\0';
		__entry->subject = alert->args[7];
		memcpy(__get_dynamic_array(steps), alert->args + LT_TREE_HEAD,
		       (alert->nr_args - LT_TREE_HEAD) * sizeof(u64));
	),

	TP_printk(LT_COMMON_FORMAT " end=%s state=%s origin=%s subject=%#llx action=%s target_cpu=%u prio=%d policy=%u preempted=%u merged=%u more=%u more_ns=%llu steps=%s",
		  LT_COMMON_VALUES,
		  __print_symbolic(__entry->end, { 0, "none" }, { 1, "switch" },
				   { 2, "user" }, { 3, "blocked" }, { 4, "work" }),
		  __print_symbolic(__entry->state, { 0, "woken" },
				   { 1, "running" }, { 2, "waiting" },
				   { 3, "working" }, { 4, "queued" }),
		  __print_symbolic(__entry->origin, { 0, "none" },
				   { 1, "irq" }, { 2, "vector" },
				   { 3, "timer" }, { 4, "work" },
				   { 5, "wheel" }),
		  __entry->subject, __entry->action, __entry->target_cpu,
		  __entry->prio, __entry->policy, __entry->preempted,
		  __entry->merged, __entry->more, __entry->more_ns,
		  __print_array(__get_dynamic_array(steps),
				__get_dynamic_array_len(steps) / sizeof(u64),
				sizeof(u64)))
);

#include "latency_tracker_declared.h"

#endif /* _TRACE_LATENCY_TRACKER_H */

#include <trace/define_trace.h>
