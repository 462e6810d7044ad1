// SPDX-License-Identifier: GPL-2.0
/*
 * The module's own tracepoints, and how Rust emits them (rust/sys/trace.rs).
 */
#include <linux/types.h>

#include "helpers.h"

#define CREATE_TRACE_POINTS
#include <trace/events/latency_tracker.h>

notrace void lt_trace_alert(const struct lt_alert *alert)
{
	trace_alert(alert);
}

notrace bool lt_trace_alert_enabled(void)
{
	return trace_alert_enabled();
}
