// SPDX-License-Identifier: GPL-2.0
/*
 * For other modules: the exported symbols, which are functions of ffi.rs,
 * declared and documented in include/latency_tracker.h; and the helpers of
 * ffi/inside.rs and sys/module.rs.
 */
#include <linux/export.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/slab.h>

#include "helpers.h"
#include "latency_tracker.h"

#ifndef LT_NO_API
EXPORT_SYMBOL_GPL(latency_tracker_create);
EXPORT_SYMBOL_GPL(latency_tracker_destroy);
EXPORT_SYMBOL_GPL(latency_tracker_event_in_at);
EXPORT_SYMBOL_GPL(latency_tracker_event_in_get);
EXPORT_SYMBOL_GPL(latency_tracker_event_out_at);
EXPORT_SYMBOL_GPL(latency_tracker_event_out_all);
EXPORT_SYMBOL_GPL(latency_tracker_event_out_event);
EXPORT_SYMBOL_GPL(latency_tracker_lookup);
EXPORT_SYMBOL_GPL(latency_tracker_event_get);
EXPORT_SYMBOL_GPL(latency_tracker_event_put);
EXPORT_SYMBOL_GPL(latency_tracker_event_is_live);
EXPORT_SYMBOL_GPL(latency_tracker_event_start);
EXPORT_SYMBOL_GPL(latency_tracker_event_key);
EXPORT_SYMBOL_GPL(latency_tracker_event_data);
EXPORT_SYMBOL_GPL(latency_tracker_for_each);
EXPORT_SYMBOL_GPL(latency_tracker_clear);
EXPORT_SYMBOL_GPL(latency_tracker_set_threshold);
EXPORT_SYMBOL_GPL(latency_tracker_set_timeout);
EXPORT_SYMBOL_GPL(latency_tracker_set_enabled);
EXPORT_SYMBOL_GPL(latency_tracker_synchronize);
#endif

/* See ffi/inside.rs. One count for each level of interrupt_context_level(). */
struct lt_depths {
	u8 of_context[4];
};

static DEFINE_PER_CPU(struct lt_depths, lt_depths);

notrace u8 *lt_callback_depth(void)
{
	return &this_cpu_ptr(&lt_depths)->of_context[interrupt_context_level()];
}

notrace void lt_module_get(void)
{
	__module_get(THIS_MODULE);
}

notrace void lt_module_put(void)
{
	module_put(THIS_MODULE);
}

const char *lt_module_name(struct module *module)
{
	return module_name(module);
}

struct lt_module_watch {
	struct notifier_block block;
	lt_module_fn fn;
	void *owner;
};

static int lt_module_event(struct notifier_block *block,
			   unsigned long event, void *data)
{
	struct lt_module_watch *watch =
		container_of(block, struct lt_module_watch, block);

	if (event == MODULE_STATE_GOING)
		watch->fn(watch->owner, data);
	return NOTIFY_DONE;
}

struct lt_module_watch *lt_module_watch_new(lt_module_fn fn,
					    void *owner)
{
	struct lt_module_watch *watch = kzalloc(sizeof(*watch), GFP_KERNEL);

	if (!watch)
		return NULL;
	watch->block.notifier_call = lt_module_event;
	watch->fn = fn;
	watch->owner = owner;
	if (register_module_notifier(&watch->block)) {
		kfree(watch);
		return NULL;
	}
	return watch;
}

void lt_module_watch_free(struct lt_module_watch *watch)
{
	unregister_module_notifier(&watch->block);
	kfree(watch);
}
