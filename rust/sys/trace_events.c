// SPDX-License-Identifier: GPL-2.0
/*
 * The module's own tracepoints, and how Rust emits them (rust/sys/trace.rs).
 */
#include <linux/types.h>

#include "helpers.h"

#define CREATE_TRACE_POINTS
#include <trace/events/latency_tracker.h>

/* The trackers with a tracepoint of their own. */
#define LT_TRACED(each)			\
	each(BLOCK, block)		\
	each(WAKEUP, wakeup)		\
	each(RUNQUEUE, runqueue)	\
	each(OFFCPU, offcpu)

notrace void lt_trace_alert(const struct lt_alert *alert)
{
	trace_alert(alert);
	switch (alert->traced) {
#define LT_EMIT(upper, name)			\
	case LT_TRACED_##upper:			\
		trace_alert_##name(alert);	\
		break;
	LT_TRACED(LT_EMIT)
	case LT_TRACED_NOT:
		break;
	}
}

notrace bool lt_trace_alert_enabled(enum lt_traced traced)
{
	if (trace_alert_enabled())
		return true;
	switch (traced) {
#define LT_ENABLED(upper, name)			\
	case LT_TRACED_##upper:			\
		return trace_alert_##name##_enabled();
	LT_TRACED(LT_ENABLED)
	case LT_TRACED_NOT:
		break;
	}
	return false;
}
