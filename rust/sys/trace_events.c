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
	switch (alert->traced) {
	case LT_TRACED_NOT:
		break;
	case LT_TRACED_BLOCK:
		trace_alert_block(alert);
		break;
	case LT_TRACED_WAKEUP:
		trace_alert_wakeup(alert);
		break;
	case LT_TRACED_RUNQUEUE:
		trace_alert_runqueue(alert);
		break;
	case LT_TRACED_OFFCPU:
		trace_alert_offcpu(alert);
		break;
	case LT_TRACED_WORKQUEUE:
		trace_alert_workqueue(alert);
		break;
	case LT_TRACED_NET:
		trace_alert_net(alert);
		break;
	case LT_TRACED_ACCEPT:
		trace_alert_accept(alert);
		break;
	case LT_TRACED_SYSCALL:
		trace_alert_syscall(alert);
		break;
	case LT_TRACED_IRQ:
		trace_alert_irq(alert);
		break;
	case LT_TRACED_SOFTIRQ:
		trace_alert_softirq(alert);
		break;
	case LT_TRACED_FUNC:
		trace_alert_func(alert);
		break;
	}
}

notrace bool lt_trace_alert_enabled(enum lt_traced traced)
{
	if (trace_alert_enabled())
		return true;
	switch (traced) {
	case LT_TRACED_NOT:
		break;
	case LT_TRACED_BLOCK:
		return trace_alert_block_enabled();
	case LT_TRACED_WAKEUP:
		return trace_alert_wakeup_enabled();
	case LT_TRACED_RUNQUEUE:
		return trace_alert_runqueue_enabled();
	case LT_TRACED_OFFCPU:
		return trace_alert_offcpu_enabled();
	case LT_TRACED_WORKQUEUE:
		return trace_alert_workqueue_enabled();
	case LT_TRACED_NET:
		return trace_alert_net_enabled();
	case LT_TRACED_ACCEPT:
		return trace_alert_accept_enabled();
	case LT_TRACED_SYSCALL:
		return trace_alert_syscall_enabled();
	case LT_TRACED_IRQ:
		return trace_alert_irq_enabled();
	case LT_TRACED_SOFTIRQ:
		return trace_alert_softirq_enabled();
	case LT_TRACED_FUNC:
		return trace_alert_func_enabled();
	}
	return false;
}
