/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions of the kernel that are followed by fprobe. bindgen reads this file;
 * fprobe.c implements it for rust/sys/fprobe.rs and fprobe/calls.rs.
 */
#ifndef _LATENCY_TRACKER_FPROBE_H
#define _LATENCY_TRACKER_FPROBE_H

#include <linux/fprobe.h>
#include <linux/types.h>

struct module;

/* The probe of all functions of one name, and the modules that contain them. */
struct lt_fprobe {
	struct fprobe fp;
	void *owner;
	/* What the handlers of a measured probe need, or NULL. */
	void *measured;
	/* Address of the first of the functions, as passed to handlers. */
	unsigned long function;
	/* NULL-terminated. */
	struct module **modules;
};

/* Whether this kernel has the necessary features. */
bool lt_fprobe_possible(void);

/*
 * Registers a probe; either handler may be NULL. Returns an ERR_PTR on failure:
 * -ENOENT if there is no function of this name that can be followed, -EBUSY if
 * the module of one is being loaded or unloaded, or another error. May sleep.
 */
struct lt_fprobe *lt_fprobe_new(const char *name, fprobe_entry_cb entry,
				fprobe_exit_cb exit, size_t data_size,
				void *owner, void *measured);
/* Number of calls that fprobe has missed. */
u64 lt_fprobe_missed(const struct lt_fprobe *probe);
/*
 * Returns the final lt_fprobe_missed(); no handler is called after that. May
 * sleep.
 */
u64 lt_fprobe_free(struct lt_fprobe *probe);
/*
 * In an exit handler: whether the probe follows the function that returns. If
 * not, its entry belonged to a former probe at the same address.
 */
bool lt_fprobe_follows(const struct fprobe *fp, unsigned long function);

/* Called when the module is unloaded, and no probe is left. May sleep. */
void lt_fprobe_unload(void);

/*
 * Calls made between calls of these two functions, on this CPU and in this
 * context, are not followed by struct lt_fprobe. lt_fprobe_enter() returns
 * false if the context is already between the two, or if readers are being
 * woken. With preemption off.
 */
bool lt_fprobe_enter(void);
void lt_fprobe_leave(void);

u64 lt_fprobe_argument(struct ftrace_regs *regs, u32 nth);
u64 lt_fprobe_result(struct ftrace_regs *regs);

/* Follows several functions, by their first argument or their result. */
struct lt_calls;
typedef void (*lt_calls_fn)(void *owner, u64 word);

/* Returns an ERR_PTR on failure. May sleep. */
struct lt_calls *lt_calls_new(const char *const *names, u32 len, bool returns,
			      lt_calls_fn fn, void *owner);
/* Number of calls that fprobe has missed; 0 if only arguments are followed. */
u64 lt_calls_missed(const struct lt_calls *calls);
/*
 * Returns the final lt_calls_missed(); nothing is called after that. May sleep.
 */
u64 lt_calls_free(struct lt_calls *calls);

/*
 * Stores the addresses of the functions of this name that can be followed,
 * those in modules included; returns their number, at most `max`. Fails with
 * -ENOENT if there is none, -EBUSY if the module of one is being loaded or
 * unloaded, -ENOMEM, or -EOPNOTSUPP. May sleep.
 */
int lt_functions_find(const char *name, u64 *out, u32 max);

/*
 * Returns 0 if there is a function of this name that can be followed; -ENOENT
 * if there is none, -EBUSY if its module is being loaded or unloaded, -EPERM
 * for a function of ours that may run in a probe, -ENOTSUPP on a kernel without
 * CONFIG_FPROBE, or another error if it cannot be traced. May sleep.
 */
int lt_function_check(const char *name);

#endif /* _LATENCY_TRACKER_FPROBE_H */
