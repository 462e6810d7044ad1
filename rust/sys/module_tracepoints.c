// SPDX-License-Identifier: GPL-2.0
/*
 * Finds tracepoints by name, including those of modules, with a reference to
 * the module; see tracepoint.rs.
 *
 * The list of modules that have tracepoints is not exported. But registering a
 * notifier of that list calls it for each module on the list, under the lock of
 * the list. A module is taken off the list, under that lock, before its memory
 * is freed. So during the call its tracepoints can be compared, and a reference
 * taken, which keeps them valid after the call.
 *
 * Only a live module will do. While a module's init function is running
 * (COMING), try_module_get() also succeeds, but the reference protects nothing:
 * if the function fails, do_init_module() frees the module in spite of the
 * reference. Once a module is LIVE, its init function has succeeded. If the
 * module is already being unloaded (GOING), try_module_get() fails.
 *
 * The names of tracepoints are names of global symbols. Two modules may define
 * the same symbol if neither exports it.
 */
#include <linux/compiler.h>
#include <linux/container_of.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "helpers.h"

struct lt_module_search {
	struct notifier_block block;
	const char *name;
	struct task_struct *caller;
	/* An ERR_PTR unless exactly one was found, in a live module. */
	struct tracepoint *found;
	/* The module of the first one found, with a reference, or NULL. */
	struct module *module;
};

static struct tracepoint *lt_tracepoint_in(const struct module *module,
					   const char *name)
{
	unsigned int i;

	for (i = 0; i < module->num_tracepoints; i++) {
		struct tracepoint *tp =
			tracepoint_ptr_deref(&module->tracepoints_ptrs[i]);

		if (!strcmp(tp->name, name))
			return tp;
	}
	return NULL;
}

static int lt_search_module(struct notifier_block *block, unsigned long event,
			    void *data)
{
	struct lt_module_search *search =
		container_of(block, struct lt_module_search, block);
	struct module *module = ((struct tp_module *)data)->mod;
	struct tracepoint *tp;

	/* Ignores modules that other tasks load or unload meanwhile. */
	if (event != MODULE_STATE_COMING || search->caller != current)
		return NOTIFY_DONE;
	tp = lt_tracepoint_in(module, search->name);
	if (!tp)
		return NOTIFY_DONE;
	if (search->found != ERR_PTR(-ENOENT)) {
		search->found = ERR_PTR(-EEXIST);
	} else if (module == THIS_MODULE) {
		/* Our probes emit it: a probe of it would call itself. */
		search->found = ERR_PTR(-EPERM);
	} else if (READ_ONCE(module->state) != MODULE_STATE_LIVE ||
		   !try_module_get(module)) {
		search->found = ERR_PTR(-EBUSY);
	} else {
		search->found = tp;
		search->module = module;
	}
	return NOTIFY_DONE;
}

static struct tracepoint *lt_search_modules(const char *name,
					    struct module **module)
{
	struct lt_module_search search = {
		.block.notifier_call = lt_search_module,
		.name = name,
		.caller = current,
		.found = ERR_PTR(-ENOENT),
	};
	int err = register_tracepoint_module_notifier(&search.block);

	if (err)
		return ERR_PTR(err);
	unregister_tracepoint_module_notifier(&search.block);
	if (IS_ERR(search.found)) {
		/* If several modules have one, there may be a reference. */
		module_put(search.module);
		return search.found;
	}
	*module = search.module;
	return search.found;
}

struct tracepoint *lt_tracepoint_get(const char *name, struct module **module)
{
	struct tracepoint *tp = lt_tracepoint_find(name);

	*module = NULL;
	return tp ?: lt_search_modules(name, module);
}

void lt_tracepoint_put(struct module *module)
{
	module_put(module);
}
