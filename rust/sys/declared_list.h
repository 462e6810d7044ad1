/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Made by scripts/trackers of rust/trackers: change it there.
 * The trackers, their tracepoints with the types of the arguments, and what
 * these are declared by; each part for a file that defines its macro.
 */
#ifdef LT_TRACED
LT_TRACED(softirq)
#endif

#if defined(LT_STRUCTS) || defined(LT_HEADERS)
#endif

#ifdef LT_HEADERS
#include <trace/events/irq.h>
#endif

#if defined(LT_TRACEPOINT) && !defined(__BINDGEN__)
LT_TRACEPOINT(softirq_entry, unsigned int);
LT_TRACEPOINT(softirq_exit, unsigned int);
#elif defined(LT_TRACEPOINT)
/* For Rust an address is an address. */
LT_TRACEPOINT(softirq_entry, unsigned int);
LT_TRACEPOINT(softirq_exit, unsigned int);
#endif
