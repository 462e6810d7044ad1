// SPDX-License-Identifier: GPL-2.0
/*
 * The stack of the current task in user space, by frame pointers.
 *
 * The kernel's own walkers are not exported, and may fault pages in. This one
 * reads only what is in memory: copy_from_user_nofault() neither sleeps nor
 * takes a lock, with interrupts on or off. The registers of user space are those
 * that the entry code has saved. They stay as they are until the task returns, or
 * replaces its program.
 *
 * A frame record has two words, on x86 and on arm64: the frame pointer of the
 * caller, and the return address. User space may have written anything there, so
 * the pointers must be aligned and must increase: a chain that loops ends.
 */
#include <linux/compiler.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/uaccess.h>

#include "helpers.h"

struct lt_frame {
	u64 next;
	u64 ret;
};

struct lt_frame_32 {
	u32 next;
	u32 ret;
};

/* A copy that faults hits tracepoints, whose probes may start another walk. */
static DEFINE_PER_CPU(bool, lt_user_walking);

static notrace bool lt_user_frame(struct lt_frame *frame, u64 fp, bool is_wide)
{
	struct lt_frame_32 narrow;

	if (is_wide)
		return !copy_from_user_nofault(frame,
					       (void __user *)(unsigned long)fp,
					       sizeof(*frame));
	if (copy_from_user_nofault(&narrow, (void __user *)(unsigned long)fp,
				   sizeof(narrow)))
		return false;
	frame->next = narrow.next;
	frame->ret = narrow.ret;
	return true;
}

/* The frame pointer of user space, and the size of its words. */
#if defined(CONFIG_X86_64)

static notrace bool lt_user_start(struct pt_regs *regs, u64 *fp, bool *is_wide)
{
	*fp = regs->bp;
	*is_wide = user_64bit_mode(regs);
	return true;
}

#define lt_user_address(address) (address)

#elif defined(CONFIG_ARM64)

static notrace bool lt_user_start(struct pt_regs *regs, u64 *fp, bool *is_wide)
{
	*fp = regs->regs[29];
	*is_wide = true;
	/* Compilers for 32 bits do not agree on a frame record. */
	return !compat_user_mode(regs);
}

/* Strips the pointer authentication code. */
#define lt_user_address(address) ptrauth_strip_user_insn_pac(address)

#else

static notrace bool lt_user_start(struct pt_regs *regs, u64 *fp, bool *is_wide)
{
	return false;
}

#define lt_user_address(address) (address)

#endif

static notrace enum lt_user_end lt_user_walk(u64 *entries, u32 size, u32 *len)
{
	struct pt_regs *regs = task_pt_regs(current);
	u64 fp, least = user_stack_pointer(regs);
	struct lt_frame frame;
	bool is_wide;

	entries[(*len)++] = instruction_pointer(regs);
	if (!lt_user_start(regs, &fp, &is_wide))
		return LT_USER_UNSUPPORTED;
	while (fp) {
		if (fp < least || fp & ((is_wide ? sizeof(u64) : sizeof(u32)) - 1))
			return LT_USER_BROKEN;
		if (*len == size)
			return LT_USER_DEPTH;
		if (!lt_user_frame(&frame, fp, is_wide))
			return LT_USER_UNREADABLE;
		if (!frame.ret)
			return LT_USER_OUTERMOST;
		entries[(*len)++] = lt_user_address(frame.ret);
		least = fp + 1;
		fp = frame.next;
	}
	return LT_USER_OUTERMOST;
}

notrace enum lt_user_end lt_user_stack(u64 *entries, u32 size, u32 *len)
{
	enum lt_user_end end;

	*len = 0;
	if (!in_task() || !size)
		return LT_USER_NONE;
	if (current->flags & (PF_KTHREAD | PF_USER_WORKER))
		return LT_USER_KERNEL;
	/*
	 * During execve(), the memory may already be the new program's, and the
	 * registers still the old one's.
	 */
	if (!current->mm || current->in_execve ||
	    __this_cpu_read(lt_user_walking))
		return LT_USER_NONE;
	__this_cpu_write(lt_user_walking, true);
	/* A probe that starts another walk sees the mark. */
	barrier();
	end = lt_user_walk(entries, size, len);
	barrier();
	__this_cpu_write(lt_user_walking, false);
	return end;
}
