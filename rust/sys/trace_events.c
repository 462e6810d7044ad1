// SPDX-License-Identifier: GPL-2.0
/*
 * The module's own tracepoints, and how Rust emits them (rust/sys/trace.rs).
 */
#include <linux/array_size.h>
#include <linux/string.h>
#include <linux/types.h>

#include "helpers.h"

#define CREATE_TRACE_POINTS
#include <trace/events/latency_tracker.h>

notrace void lt_trace_alert(enum lt_traced traced, const struct lt_alert *alert)
{
	trace_alert(alert);
	switch (traced) {
	case LT_TRACED_NOT:
		break;
#define LT_TRACED(tracker)						\
	case LT_TRACED_##tracker: {					\
		trace_alert_##tracker(alert);				\
		break;							\
	}
#include "declared_list.h"
#undef LT_TRACED
	}
}

notrace bool lt_trace_alert_enabled(enum lt_traced traced)
{
	bool enabled = trace_alert_enabled();

	switch (traced) {
	case LT_TRACED_NOT:
		break;
#define LT_TRACED(tracker)						\
	case LT_TRACED_##tracker: {					\
		enabled |= trace_alert_##tracker##_enabled();		\
		break;							\
	}
#include "declared_list.h"
#undef LT_TRACED
	}
	return enabled;
}

static const char *const lt_traced_names[] = {
#define LT_TRACED(tracker)						\
	[LT_TRACED_##tracker] = #tracker,
#include "declared_list.h"
#undef LT_TRACED
};

enum lt_traced lt_traced_of(const char *tracker)
{
	int i;

	for (i = LT_TRACED_NOT + 1; i < ARRAY_SIZE(lt_traced_names); i++) {
		if (!strcmp(tracker, lt_traced_names[i]))
			return i;
	}
	return LT_TRACED_NOT;
}
