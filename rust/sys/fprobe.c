// SPDX-License-Identifier: GPL-2.0
/*
 * Following functions of the kernel by fprobe, see fprobe.h.
 *
 * fprobe hooks the entry by ftrace and, if the return is wanted, exchanges the
 * return address by the function graph's shadow stack. A call that is under
 * way when the probe goes keeps its place there, and returns as if nothing had
 * been: the kernel compares addresses, and does not touch the probe.
 *
 * All functions that run in a probe are notrace.
 */
#include <linux/err.h>
#include <linux/fprobe.h>
#include <linux/ftrace.h>
#include <linux/kallsyms.h>
#include <linux/kobject.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "fprobe.h"
#include "helpers.h"

notrace bool lt_fprobe_possible(void)
{
	return IS_ENABLED(CONFIG_FPROBE);
}

/* One for each of task, softirq, hardirq and NMI, which nest in this order. */
static DEFINE_PER_CPU(bool[4], lt_inside);

notrace bool lt_fprobe_enter(void)
{
	bool *inside = &(*raw_cpu_ptr(&lt_inside))[interrupt_context_level()];

	if (*inside || lt_is_waking())
		return false;
	*inside = true;
	/* Only seen by interrupts of this CPU. */
	barrier();
	return true;
}

notrace void lt_fprobe_leave(void)
{
	barrier();
	(*raw_cpu_ptr(&lt_inside))[interrupt_context_level()] = false;
}

notrace u64 lt_fprobe_argument(void *regs, u32 nth)
{
	return ftrace_regs_get_argument((struct ftrace_regs *)regs, nth);
}

notrace u64 lt_fprobe_result(void *regs)
{
	return ftrace_regs_get_return_value((struct ftrace_regs *)regs);
}

/*
 * The module that a function is in, with a reference; NULL for the kernel
 * proper. What finds a module by its address or name is not exported, but its
 * name is in that of the symbol, and its folder is in /sys/module.
 */
static notrace struct module *lt_module_of(unsigned long address, char *text)
{
	struct kset *modules = THIS_MODULE->mkobj.kobj.kset;
	struct module *module;
	struct kobject *kobj;
	char *name, *end;

	sprint_symbol_no_offset(text, address);
	name = strchr(text, '[');
	end = name ? strchr(name, ']') : NULL;
	if (!end)
		return NULL;
	*end = '\0';
	kobj = kset_find_obj(modules, name + 1);
	if (!kobj)
		return ERR_PTR(-ENOENT);
	module = container_of(kobj, struct module_kobject, kobj)->mod;
	if (!module || !try_module_get(module))
		module = ERR_PTR(-ENOENT);
	kobject_put(kobj);
	return module;
}

static notrace void lt_put_modules(struct lt_fprobe *probe)
{
	while (probe->nr_modules)
		module_put(probe->modules[--probe->nr_modules]);
	kfree(probe->modules);
}

/* The modules stay as long as the probe does. */
static notrace int lt_get_modules(struct lt_fprobe *probe)
{
	struct fprobe_hlist *functions = probe->fp.hlist_array;
	char *text = kmalloc(KSYM_SYMBOL_LEN, GFP_KERNEL);
	int i, err = 0;

	probe->modules = kcalloc(functions->size, sizeof(*probe->modules),
				 GFP_KERNEL);
	if (!text || !probe->modules)
		err = -ENOMEM;
	for (i = 0; i < functions->size && !err; i++) {
		struct module *module =
			lt_module_of(functions->array[i].addr, text);

		if (IS_ERR(module))
			err = PTR_ERR(module);
		else if (module)
			probe->modules[probe->nr_modules++] = module;
	}
	kfree(text);
	return err;
}

notrace struct lt_fprobe *lt_fprobe_new(const char *name,
					lt_fprobe_entry_fn entry,
					lt_fprobe_exit_fn exit,
					size_t data_size, void *owner)
{
	struct lt_fprobe *probe = kzalloc(sizeof(*probe), GFP_KERNEL);
	int err;

	if (!probe)
		return ERR_PTR(-ENOMEM);
	probe->owner = owner;
	probe->fp.entry_handler = (fprobe_entry_cb)entry;
	probe->fp.exit_handler = (fprobe_exit_cb)exit;
	probe->fp.entry_data_size = exit ? data_size : 0;
	err = register_fprobe(&probe->fp, name, NULL);
	if (err) {
		kfree(probe);
		return ERR_PTR(err);
	}
	err = lt_get_modules(probe);
	if (err) {
		lt_fprobe_free(probe);
		return ERR_PTR(err);
	}
	return probe;
}

notrace void lt_fprobe_free(struct lt_fprobe *probe)
{
	unregister_fprobe(&probe->fp);
	lt_put_modules(probe);
	kfree(probe);
}

notrace u64 lt_fprobe_missed(const struct lt_fprobe *probe)
{
	return READ_ONCE(probe->fp.nmissed);
}

/* Several functions, of which one word is told. */

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

static notrace void lt_function_stub(unsigned long ip, unsigned long parent_ip,
				     struct ftrace_ops *ops,
				     struct ftrace_regs *regs)
{
}

notrace int lt_function_check(const char *name)
{
	/* Neither is ever armed: one finds the address, the other judges it. */
	struct kprobe *symbol;
	struct ftrace_ops *ops;
	int err = -ENOMEM;

	symbol = kzalloc_obj(*symbol);
	ops = kzalloc_obj(*ops);
	if (!symbol || !ops)
		goto out;
	symbol->symbol_name = name;
	symbol->flags = KPROBE_FLAG_DISABLED;
	err = register_kprobe(symbol);
	if (err)
		goto out;
	if (within_module((unsigned long)symbol->addr, THIS_MODULE)) {
		err = -EBUSY;
	} else {
		ops->func = lt_function_stub;
		err = ftrace_set_filter_ip(ops, (unsigned long)symbol->addr, 0,
					   0);
		ftrace_free_filter(ops);
	}
	unregister_kprobe(symbol);
out:
	kfree(ops);
	kfree(symbol);
	return err;
}
