// SPDX-License-Identifier: GPL-2.0
/*
 * Checks whether the kernel's tracepoints pass the arguments that our probes
 * take (tracepoints.h). The compiler compares the types, with the headers of
 * the kernel that the module is built for.
 */
#include <linux/build_bug.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/string.h>
#include <trace/events/block.h>
#ifdef CONFIG_SMP
#include <trace/events/csd.h>
#endif
#include <trace/events/irq.h>
#include <trace/events/net.h>
#include <trace/events/nmi.h>
#include <trace/events/sched.h>
#include <trace/events/skb.h>
#include <trace/events/sock.h>
#include <trace/events/syscalls.h>
#include <trace/events/timer.h>
#include <trace/events/workqueue.h>

#ifdef CONFIG_X86_LOCAL_APIC
#include <asm/trace/irq_vectors.h>
#endif

#define LT_HEADERS
#include "declared_list.h"
#undef LT_HEADERS

#include "helpers.h"
#include "tracepoints.h"

/* Whether the tracepoint `tp` passes these to its probes, after their data. */
#define LT_GIVES(tp, ...) \
	__builtin_types_compatible_p(typeof(trace_##tp), void(__VA_ARGS__))

/* LT_GIVES() must be able to fail. */
static_assert(!LT_GIVES(sched_waking, struct request *));
static_assert(!LT_GIVES(sched_waking, struct task_struct *, int));

bool lt_tracepoint_fits(const char *name)
{
	bool fits = true;

#define LT_TRACEPOINT(tp, ...) \
	fits &= strcmp(name, #tp) || LT_GIVES(tp, __VA_ARGS__)
#include "tracepoint_list.h"
#undef LT_TRACEPOINT
	return fits;
}
