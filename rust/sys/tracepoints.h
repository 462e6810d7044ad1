/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tracepoints for which we have typed probes, and the types of their
 * arguments: one list (tracepoint_list.h), which is used twice.
 *
 *   lt_probe_NAME      the type of a probe, by bindgen: tracepoint.rs takes a
 *                      function of exactly this type, or does not compile
 *   lt_tracepoint_fits()  whether the kernel's own declaration is the same; if
 *                      not, `trackers` shows it, and trackers that need this
 *                      tracepoint are not available
 */
#ifndef _LATENCY_TRACKER_TRACEPOINTS_H
#define _LATENCY_TRACKER_TRACEPOINTS_H

/*
 * With kCFI, an indirect call traps unless a hash in front of the function
 * matches the type of the call. A tracepoint calls its probes in this way if
 * it has more than one. Two kinds of probes would trap: the function of
 * raw.rs, which takes any tracepoint by its registers, so its type matches
 * none; and functions whose types Rust writes differently than C: an enum
 * (kfree_skb), a function pointer (workqueue_execute_end). Other probes have
 * not been tried.
 */
#if defined(CONFIG_CFI) || defined(CONFIG_CFI_CLANG)
#error "kernels with CONFIG_CFI are not supported: some probes would trap"
#endif

#include <linux/blk_types.h>
#include <linux/gfp_types.h>
#include <linux/kthread.h>
#include <linux/smp.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <net/dropreason.h>

struct hrtimer;
struct irqaction;
struct linux_binprm;
struct pool_workqueue;
struct pt_regs;
struct request;
struct sk_buff;
struct sock;
struct task_struct;
struct timer_list;

#define LT_STRUCTS
#include "declared_list.h"
#undef LT_STRUCTS

#define LT_TRACEPOINT(tp, ...) \
	typedef void (*lt_probe_##tp)(void *data, __VA_ARGS__)
#include "tracepoint_list.h"
#undef LT_TRACEPOINT

#endif /* _LATENCY_TRACKER_TRACEPOINTS_H */
