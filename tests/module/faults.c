// SPDX-License-Identifier: GPL-2.0
/*
 * Makes allocations of a task fail.
 *
 * The kernel's own fault injection makes one allocation of a system call fail. But
 * kvmalloc() tries twice, so both attempts must fail; and if memory has run out, all
 * allocations fail. So this module decides instead, where the kernel calls its
 * fault injection: for slabs, and for pages.
 */
#include <linux/compiler.h>
#include <linux/gfp.h>
#include <linux/kprobes.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>
#include <linux/sched.h>

#include "faults.h"

/* Only the task whose allocations fail writes the fields other than @task. */
static struct {
	struct task_struct *task;
	unsigned int nth;
	unsigned int count;
	unsigned int seen;
	unsigned int failed;
} lt_faults;

/* Returns 0 for an allocation of the task that may fail, and 1 to skip others. */
static int lt_fault_entry(struct kretprobe_instance *instance,
			  struct pt_regs *regs, gfp_t flags)
{
	if (READ_ONCE(lt_faults.task) != current || !in_task() ||
	    flags & __GFP_NOFAIL)
		return 1;
	return 0;
}

static int lt_fault_slab(struct kretprobe_instance *instance,
			 struct pt_regs *regs)
{
	return lt_fault_entry(instance, regs, regs_get_kernel_argument(regs, 1));
}

static int lt_fault_page(struct kretprobe_instance *instance,
			 struct pt_regs *regs)
{
	return lt_fault_entry(instance, regs, regs_get_kernel_argument(regs, 0));
}

static int lt_fault_return(struct kretprobe_instance *instance,
			   struct pt_regs *regs)
{
	unsigned int seen = ++lt_faults.seen;

	if (seen < lt_faults.nth || seen - lt_faults.nth >= lt_faults.count)
		return 0;
	lt_faults.failed++;
	/* An error for should_failslab(), and true for should_fail_alloc_page(). */
	regs_set_return_value(regs, 1);
	return 0;
}

static struct kretprobe lt_fault_probes[] = {
	{
		.kp.symbol_name = "should_failslab",
		.entry_handler = lt_fault_slab,
		.handler = lt_fault_return,
	}, {
		.kp.symbol_name = "should_fail_alloc_page",
		.entry_handler = lt_fault_page,
		.handler = lt_fault_return,
	},
};

static struct kretprobe *lt_fault_list[] = {
	&lt_fault_probes[0], &lt_fault_probes[1],
};

int lt_faults_start(void)
{
	return register_kretprobes(lt_fault_list, ARRAY_SIZE(lt_fault_list));
}

void lt_faults_stop(void)
{
	unregister_kretprobes(lt_fault_list, ARRAY_SIZE(lt_fault_list));
}

void lt_faults_arm(unsigned int nth, unsigned int count)
{
	lt_faults.nth = nth;
	lt_faults.count = count;
	lt_faults.seen = 0;
	lt_faults.failed = 0;
	barrier();
	WRITE_ONCE(lt_faults.task, current);
}

unsigned int lt_faults_disarm(void)
{
	WRITE_ONCE(lt_faults.task, NULL);
	barrier();
	return lt_faults.failed;
}
