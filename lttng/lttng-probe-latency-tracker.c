// SPDX-License-Identifier: GPL-2.0
/*
 * LTTng's probe for the tracepoints of latency_tracker. It records them as the
 * events latency_tracker_alert and latency_tracker_alert_TRACKER.
 *
 * LTTng finds the tracepoints by name whenever they appear: latency_tracker may
 * be loaded and unloaded while the events are enabled.
 */
#include <linux/module.h>
#include <lttng/tracer.h>

/*
 * Declares the tracepoints of the module. LTTng's events, below, must have the same arguments.
 */
#include <trace/events/latency_tracker.h>

#include <wrapper/tracepoint.h>

#define LTTNG_PACKAGE_BUILD
#define CREATE_TRACE_POINTS
#define TRACE_INCLUDE_PATH .

#include "latency_tracker.h"

MODULE_LICENSE("GPL");
MODULE_AUTHOR("The latency-tracker developers");
MODULE_DESCRIPTION("LTTng probe of latency_tracker's alerts");
