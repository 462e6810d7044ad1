// SPDX-License-Identifier: GPL-2.0
/*
 * Functions of the kernel that no tracepoint stands in for, followed by fprobe;
 * see calls.rs.
 */
#include <linux/err.h>
#include <linux/fprobe.h>
#include <linux/ptrace.h>
#include <linux/slab.h>

#include "helpers.h"

struct lt_calls {
	struct fprobe probe;
	lt_calls_fn fn;
	void *owner;
};

static notrace int lt_calls_entry(struct fprobe *probe, unsigned long ip,
				  unsigned long caller,
				  struct ftrace_regs *regs, void *data)
{
	struct lt_calls *calls = container_of(probe, struct lt_calls, probe);

	calls->fn(calls->owner, ftrace_regs_get_argument(regs, 0));
	return 0;
}

static notrace void lt_calls_exit(struct fprobe *probe, unsigned long ip,
				  unsigned long caller,
				  struct ftrace_regs *regs, void *data)
{
	struct lt_calls *calls = container_of(probe, struct lt_calls, probe);

	calls->fn(calls->owner, ftrace_regs_get_return_value(regs));
}

notrace bool lt_calls_possible(void)
{
	return IS_ENABLED(CONFIG_FPROBE);
}

notrace struct lt_calls *lt_calls_new(const char *const *names, u32 len,
				      bool returns, lt_calls_fn fn, void *owner)
{
	struct lt_calls *calls = kzalloc(sizeof(*calls), GFP_KERNEL);
	int err;

	if (!calls)
		return ERR_PTR(-ENOMEM);
	if (returns)
		calls->probe.exit_handler = lt_calls_exit;
	else
		calls->probe.entry_handler = lt_calls_entry;
	calls->fn = fn;
	calls->owner = owner;
	err = register_fprobe_syms(&calls->probe, (const char **)names, len);
	if (err) {
		kfree(calls);
		return ERR_PTR(err);
	}
	return calls;
}

notrace void lt_calls_free(struct lt_calls *calls)
{
	/* After it nobody is called any more, but who was may be in it. */
	unregister_fprobe(&calls->probe);
	synchronize_rcu();
	kfree(calls);
}
