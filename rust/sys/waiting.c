// SPDX-License-Identifier: GPL-2.0
/*
 * State of the tasks that are not running. No policy here: see helpers.h and
 * rust/sys/waiting.rs.
 */
#include <linux/idr.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>
#include <linux/spinlock.h>
#include <linux/thread_info.h>

#include <asm/syscall.h>

#include "helpers.h"

struct task_struct *lt_task_next(u32 *tid)
{
	struct task_struct *task = NULL;
	struct pid *pid;
	int next = *tid;

	rcu_read_lock();
	while (!task) {
		pid = idr_get_next(&init_pid_ns.idr, &next);
		if (!pid)
			break;
		*tid = next++;
		/* the id may belong only to a process group or a session */
		task = get_pid_task(pid, PIDTYPE_PID);
	}
	rcu_read_unlock();
	return task;
}

unsigned long lt_task_lock(struct task_struct *task)
	__acquires(&task->pi_lock)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&task->pi_lock, flags);
	return flags;
}

void lt_task_unlock(struct task_struct *task, unsigned long flags)
	__releases(&task->pi_lock)
{
	raw_spin_unlock_irqrestore(&task->pi_lock, flags);
}

bool lt_task_syscall(struct task_struct *task, struct lt_syscall *out)
{
#ifdef CONFIG_X86_64
	struct pt_regs *regs = task_pt_regs(task);
	unsigned long args[6];
	int i;

	/* A task that exits never returns from its call. */
	if (task->flags & (PF_KTHREAD | PF_USER_WORKER | PF_EXITING))
		return false;
	out->number = syscall_get_nr(task, regs);
	out->result = regs->ax;
	out->compat = false;
#ifdef CONFIG_IA32_EMULATION
	out->compat |= task_thread_info(task)->status & TS_COMPAT;
#endif
#ifdef CONFIG_X86_X32_ABI
	out->compat |= !!(regs->orig_ax & __X32_SYSCALL_BIT);
#endif
	syscall_get_arguments(task, regs, args);
	for (i = 0; i < 3; i++)
		out->arguments[i] = args[i];
	return true;
#else
	return false;
#endif
}

u64 lt_task_mutex(const struct task_struct *task)
{
	static_assert(__same_type(task->blocked_on, struct mutex *));
	return (unsigned long)READ_ONCE(task->blocked_on);
}
