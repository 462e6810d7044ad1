// SPDX-License-Identifier: GPL-2.0
/*
 * Follows kernel functions by fprobe, see fprobe.h.
 *
 * fprobe hooks the entry with ftrace and, if the return is wanted, replaces the
 * return address and keeps the original on the function graph's shadow stack.
 *
 * The memory of a probe with an exit handler
 * ------------------------------------------
 *
 * The shadow stack of a task keeps the *address* of the struct fprobe of each
 * call whose return is wanted. If a call is running when the probe is
 * unregistered, the address stays until the call returns: a server may stay in
 * accept(2), or a reader in read(2), for months. When the call returns,
 * fprobe_return() of kernel/trace/fprobe.c compares that address with the
 * addresses of the probes that are registered at that moment:
 *
 *   none has it           nothing is called, and the struct is not touched
 *   one with an exit      its exit handler is called, with the size of the data
 *   handler has it        that was noted at the entry
 *   one without has it    its exit handler, NULL, is called: the kernel dies
 *
 * So while a task may have an address on its shadow stack, the address must not
 * be used for a probe without an exit handler: neither for ours nor for a probe
 * of tracefs, BPF or another module. There is no notification when the last
 * task has dropped the address. Therefore:
 *
 *  - Memory that was registered with an exit handler (a struct lt_slot) is
 *    never returned to the allocator. It goes to lt_slots, and is reused for a
 *    probe with an exit handler. The number of slots is the largest number of
 *    such probes that existed at one time: one for each instance of func and
 *    accept, and for each side of a pair that is the return from a function.
 *  - When this module is unloaded, the slots stay allocated, 96 bytes each on
 *    x86-64: lt_fprobe_unload() reports how many. Nothing reads them, as no
 *    registered probe has their address; it is enough that they exist.
 *  - Probes of ours without an exit handler are in vmalloc()ed memory. Probes
 *    of tracefs and BPF are in kmalloc()ed memory, so an address that they
 *    leave behind on a shadow stack is never the address of a probe of ours
 *    without an exit handler.
 *
 * Calls of a slot's former probe may return after the slot is reused.
 * fprobe_return() finds the address of the struct among the registered ones and
 * reads the struct, without an ordering between the two. So all fields are
 * written, and a grace period has passed, before the slot is registered: an RCU
 * reader that finds the new registration has started after the fields were
 * written. The exit handlers also check that their probe follows the function
 * that returns: lt_calls_exit() here, returned() in fprobe.rs. If so, the
 * function really returns, and only its entry belonged to the former probe. A
 * tracker that needs the entry finds no event for it (func compares frames);
 * other trackers count the return like any other. The data on the shadow stack
 * may be from the other kind of probe, or from a tracer that had the address
 * before us: lt_calls_exit() does not use the data, and returned() ignores
 * calls without data, and accepts any value of the data.
 *
 * unregister_fprobe() itself waits for a grace period, and handlers run as RCU
 * readers: no handler is called after it returns. register_fprobe() waits, too,
 * if it fails at a point where handlers may already have been called.
 *
 * Only functions that may run in a probe are notrace.
 */
#define pr_fmt(fmt) "latency_tracker: " fmt

#include <linux/compiler.h>
#include <linux/err.h>
#include <linux/fprobe.h>
#include <linux/ftrace.h>
#include <linux/kallsyms.h>
#include <linux/kmemleak.h>
#include <linux/kobject.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/sprintf.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "fprobe.h"
#include "helpers.h"

bool lt_fprobe_possible(void)
{
	return IS_ENABLED(CONFIG_FPROBE);
}

#ifdef CONFIG_FPROBE

/* A flag each for task, softirq, hardirq and NMI, which nest in this order. */
static DEFINE_PER_CPU(bool[4], lt_inside);

notrace bool lt_fprobe_enter(void)
{
	bool *inside = &(*raw_cpu_ptr(&lt_inside))[interrupt_context_level()];

	if (*inside || lt_is_waking())
		return false;
	*inside = true;
	/* Read only by interrupts of this CPU. */
	barrier();
	return true;
}

notrace void lt_fprobe_leave(void)
{
	barrier();
	(*raw_cpu_ptr(&lt_inside))[interrupt_context_level()] = false;
}

notrace u64 lt_fprobe_argument(struct ftrace_regs *regs, u32 nth)
{
	return ftrace_regs_get_argument(regs, nth);
}

notrace u64 lt_fprobe_result(struct ftrace_regs *regs)
{
	return ftrace_regs_get_return_value(regs);
}

/*
 * Returns the module that a function is in, with a reference; NULL for the
 * kernel proper, and for this module, whose exit function removes all probes.
 * Fails with -EBUSY if the module is being loaded or unloaded: a reference to a
 * module whose init function is running protects nothing, see
 * module_tracepoints.c.
 *
 * The functions that find a module by its address or name are not exported. But
 * the name of the symbol contains the module's name, and the module's folder is
 * in /sys/module, as ours is: kset_find_obj() is exported, and <linux/module.h>
 * has the fields. Before its init function is called, and after its exit
 * function has returned, a module may lack the folder. Freeing a module waits
 * until there is no reference to the folder.
 */
static struct module *lt_module_of(unsigned long address, char *text)
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
		return ERR_PTR(-EBUSY);
	module = container_of(kobj, struct module_kobject, kobj)->mod;
	if (!module)
		module = ERR_PTR(-ENOENT);
	else if (module == THIS_MODULE)
		module = NULL;
	else if (READ_ONCE(module->state) != MODULE_STATE_LIVE ||
		 !try_module_get(module))
		module = ERR_PTR(-EBUSY);
	kobject_put(kobj);
	return module;
}

static void lt_put_modules(struct lt_fprobe *probe)
{
	struct module **module;

	for (module = probe->modules; module && *module; module++)
		module_put(*module);
	kfree(probe->modules);
}

/* Keeps the modules of the functions loaded as long as the probe exists. */
static int lt_get_modules(struct lt_fprobe *probe)
{
	struct fprobe_hlist *functions = probe->fp.hlist_array;
	char *text = kmalloc(KSYM_SYMBOL_LEN, GFP_KERNEL);
	struct module **next;
	int i, err = 0;

	next = kcalloc(functions->size + 1, sizeof(*next), GFP_KERNEL);
	probe->modules = next;
	if (!text || !next)
		err = -ENOMEM;
	for (i = 0; i < functions->size && !err; i++) {
		struct module *module =
			lt_module_of(functions->array[i].addr, text);

		if (IS_ERR(module))
			err = PTR_ERR(module);
		else if (module)
			*next++ = module;
	}
	kfree(text);
	return err;
}

/* Several functions with one callback, to which one word is passed. */

struct lt_calls {
	struct fprobe fp;
	lt_calls_fn fn;
	void *owner;
};

/* Memory of a probe, see above. The struct fprobe is first in each struct. */
struct lt_slot {
	union {
		struct fprobe fp;
		struct lt_fprobe probe;
		struct lt_calls calls;
	};
	/* Whether the slot was registered before. */
	bool stands;
	/* The next slot in lt_slots. */
	struct lt_slot *next;
};

static_assert(!offsetof(struct lt_slot, fp));
static_assert(!offsetof(struct lt_fprobe, fp));
static_assert(!offsetof(struct lt_calls, fp));

/* Unregistered slots with an exit handler. */
static struct lt_slot *lt_slots;
static DEFINE_MUTEX(lt_slots_lock);

static struct lt_slot *lt_slot_new(fprobe_entry_cb entry,
				   fprobe_exit_cb exit)
{
	struct lt_slot *slot = NULL;

	if (exit) {
		mutex_lock(&lt_slots_lock);
		slot = lt_slots;
		if (slot)
			lt_slots = slot->next;
		mutex_unlock(&lt_slots_lock);
		if (slot)
			memset(slot, 0, offsetof(struct lt_slot, stands));
		else
			slot = kzalloc_obj(*slot);
	} else {
		slot = vzalloc(sizeof(*slot));
	}
	if (!slot)
		return NULL;
	slot->fp.entry_handler = entry;
	slot->fp.exit_handler = exit;
	return slot;
}

/* Called once all fields are set, before the registration. */
static void lt_slot_ready(struct lt_slot *slot)
{
	if (slot->stands)
		synchronize_rcu();
}

/* Called when the slot is not registered, and no handler is running. */
static void lt_slot_free(struct lt_slot *slot)
{
	if (!slot->fp.exit_handler) {
		vfree(slot);
		return;
	}
	slot->stands = true;
	mutex_lock(&lt_slots_lock);
	slot->next = lt_slots;
	lt_slots = slot;
	mutex_unlock(&lt_slots_lock);
}

void lt_fprobe_unload(void)
{
	struct lt_slot *slot;
	unsigned int nr = 0;

	mutex_lock(&lt_slots_lock);
	while ((slot = lt_slots)) {
		lt_slots = slot->next;
		memset(slot, 0, sizeof(*slot));
		/* Unreachable from here on, and never freed: see above. */
		kmemleak_ignore(slot);
		nr++;
	}
	mutex_unlock(&lt_slots_lock);
	if (nr)
		pr_info("%u probes of returns stay allocated, %zu bytes each\n",
			nr, sizeof(*slot));
}

notrace bool lt_fprobe_follows(const struct fprobe *fp, unsigned long function)
{
	/* Freed after a grace period; NULL if the probe is being removed. */
	const struct fprobe_hlist *functions = READ_ONCE(fp->hlist_array);
	int i;

	for (i = 0; functions && i < functions->size; i++) {
		if (functions->array[i].addr == function)
			return true;
	}
	return false;
}

struct lt_fprobe *lt_fprobe_new(const char *name,
				fprobe_entry_cb entry,
				fprobe_exit_cb exit, size_t data_size,
				void *owner, void *measured)
{
	struct lt_slot *slot = lt_slot_new(entry, exit);
	struct lt_fprobe *probe;
	int err;

	if (!slot)
		return ERR_PTR(-ENOMEM);
	probe = &slot->probe;
	probe->owner = owner;
	probe->measured = measured;
	probe->fp.entry_data_size = exit ? data_size : 0;
	lt_slot_ready(slot);
	err = register_fprobe(&probe->fp, name, NULL);
	if (err) {
		lt_slot_free(slot);
		return ERR_PTR(err);
	}
	/* Until this is set, exit handlers call lt_fprobe_follows(). */
	WRITE_ONCE(probe->function, probe->fp.hlist_array->array[0].addr);
	err = lt_get_modules(probe);
	if (err) {
		lt_fprobe_free(probe);
		return ERR_PTR(err);
	}
	return probe;
}

u64 lt_fprobe_missed(const struct lt_fprobe *probe)
{
	return READ_ONCE(probe->fp.nmissed);
}

u64 lt_fprobe_free(struct lt_fprobe *probe)
{
	u64 missed;

	unregister_fprobe(&probe->fp);
	missed = lt_fprobe_missed(probe);
	lt_put_modules(probe);
	lt_slot_free(container_of(probe, struct lt_slot, probe));
	return missed;
}

static notrace int lt_calls_entry(struct fprobe *fp, unsigned long ip,
				  unsigned long caller,
				  struct ftrace_regs *regs, void *data)
{
	struct lt_calls *calls = container_of(fp, struct lt_calls, fp);

	calls->fn(calls->owner, ftrace_regs_get_argument(regs, 0));
	return 0;
}

static notrace void lt_calls_exit(struct fprobe *fp, unsigned long ip,
				  unsigned long caller,
				  struct ftrace_regs *regs, void *data)
{
	struct lt_calls *calls = container_of(fp, struct lt_calls, fp);

	if (lt_fprobe_follows(fp, ip))
		calls->fn(calls->owner, ftrace_regs_get_return_value(regs));
}

struct lt_calls *lt_calls_new(const char *const *names, u32 len,
			      bool returns, lt_calls_fn fn, void *owner)
{
	struct lt_slot *slot = lt_slot_new(returns ? NULL : lt_calls_entry,
					   returns ? lt_calls_exit : NULL);
	int err;

	if (!slot)
		return ERR_PTR(-ENOMEM);
	slot->calls.fn = fn;
	slot->calls.owner = owner;
	lt_slot_ready(slot);
	err = register_fprobe_syms(&slot->fp, (const char **)names, len);
	if (err) {
		lt_slot_free(slot);
		return ERR_PTR(err);
	}
	return &slot->calls;
}

u64 lt_calls_missed(const struct lt_calls *calls)
{
	return READ_ONCE(calls->fp.nmissed);
}

u64 lt_calls_free(struct lt_calls *calls)
{
	u64 missed;

	unregister_fprobe(&calls->fp);
	missed = lt_calls_missed(calls);
	lt_slot_free(container_of(calls, struct lt_slot, calls));
	return missed;
}

static notrace int lt_found_entry(struct fprobe *fp, unsigned long ip,
				  unsigned long caller,
				  struct ftrace_regs *regs, void *data)
{
	return 1;
}

/*
 * Finds functions by registering a probe briefly: this covers functions of
 * modules, and all functions with one name. The probe has the addresses where
 * they are traced, which may be after their first instruction.
 */
int lt_functions_find(const char *name, u64 *out, u32 max)
{
	struct fprobe_hlist *functions;
	struct lt_fprobe *probe;
	unsigned long offset;
	char *text, *plus;
	int nr;

	text = kmalloc(KSYM_SYMBOL_LEN, GFP_KERNEL);
	if (!text)
		return -ENOMEM;
	probe = lt_fprobe_new(name, lt_found_entry, NULL, 0, NULL, NULL);
	if (IS_ERR(probe)) {
		kfree(text);
		return PTR_ERR(probe);
	}
	functions = probe->fp.hlist_array;
	for (nr = 0; nr < functions->size && nr < max; nr++) {
		out[nr] = functions->array[nr].addr;
		/* name+0x4/0x20 [module] */
		sprint_symbol(text, out[nr]);
		plus = strchr(text, '+');
		if (plus && sscanf(plus, "+%lx/", &offset) == 1)
			out[nr] -= offset;
	}
	lt_fprobe_free(probe);
	kfree(text);
	return nr;
}

static notrace void lt_function_stub(unsigned long ip, unsigned long parent_ip,
				     struct ftrace_ops *ops,
				     struct ftrace_regs *regs)
{
}

int lt_function_check(const char *name)
{
	/* symbol finds the address, ops checks it: neither is ever armed. */
	struct kprobe *symbol;
	struct ftrace_ops *ops;
	struct module *module;
	int err = -ENOMEM;
	char *text;

	if (!IS_ENABLED(CONFIG_KPROBES)) {
		u64 first;

		err = lt_functions_find(name, &first, 1);
		return err < 0 ? err : 0;
	}
	symbol = kzalloc_obj(*symbol);
	ops = kzalloc_obj(*ops);
	text = kmalloc(KSYM_SYMBOL_LEN, GFP_KERNEL);
	if (!symbol || !ops || !text)
		goto out;
	symbol->symbol_name = name;
	symbol->flags = KPROBE_FLAG_DISABLED;
	/* Fails for functions that kprobes must not touch (func.md). */
	err = register_kprobe(symbol);
	if (err)
		goto out;
	ops->func = lt_function_stub;
	err = ftrace_set_filter_ip(ops, (unsigned long)symbol->addr, 0, 0);
	ftrace_free_filter(ops);
	/* Functions of ours that may run in a probe are notrace. */
	if (err && within_module((unsigned long)symbol->addr, THIS_MODULE))
		err = -EPERM;
	if (!err) {
		module = lt_module_of((unsigned long)symbol->addr, text);
		err = PTR_ERR_OR_ZERO(module);
		if (!err)
			module_put(module);
	}
	unregister_kprobe(symbol);
out:
	kfree(text);
	kfree(ops);
	kfree(symbol);
	return err;
}

#else /* !CONFIG_FPROBE */

struct lt_fprobe *lt_fprobe_new(const char *name,
				fprobe_entry_cb entry,
				fprobe_exit_cb exit, size_t data_size,
				void *owner, void *measured)
{
	return ERR_PTR(-EOPNOTSUPP);
}

struct lt_calls *lt_calls_new(const char *const *names, u32 len,
			      bool returns, lt_calls_fn fn, void *owner)
{
	return ERR_PTR(-EOPNOTSUPP);
}

int lt_functions_find(const char *name, u64 *out, u32 max)
{
	return -EOPNOTSUPP;
}

int lt_function_check(const char *name)
{
	return -ENOTSUPP;
}

/*
 * No probe exists: of the functions below, only lt_fprobe_unload() is ever
 * called.
 */

u64 lt_fprobe_free(struct lt_fprobe *probe)
{
	return 0;
}

u64 lt_calls_free(struct lt_calls *calls)
{
	return 0;
}

u64 lt_calls_missed(const struct lt_calls *calls)
{
	return 0;
}

u64 lt_fprobe_missed(const struct lt_fprobe *probe)
{
	return 0;
}

notrace bool lt_fprobe_follows(const struct fprobe *fp, unsigned long function)
{
	return false;
}

void lt_fprobe_unload(void)
{
}

notrace bool lt_fprobe_enter(void)
{
	return false;
}

notrace void lt_fprobe_leave(void)
{
}

notrace u64 lt_fprobe_argument(struct ftrace_regs *regs, u32 nth)
{
	return 0;
}

notrace u64 lt_fprobe_result(struct ftrace_regs *regs)
{
	return 0;
}

#endif /* CONFIG_FPROBE */
