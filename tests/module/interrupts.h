/* SPDX-License-Identifier: GPL-2.0 */
/* Interrupts for the tests: see interrupts.c. */
#ifndef _LT_SELFTEST_INTERRUPTS_H
#define _LT_SELFTEST_INTERRUPTS_H

#include <linux/types.h>

/* Where a handler runs. `Context` of contexts/storm.rs has the same values. */
enum lt_context {
	LT_SOFTIRQ = 1,		/* on PREEMPT_RT a thread */
	LT_HARDIRQ = 2,
	LT_NMI = 3,
};

/*
 * Called in these contexts. ours: whether the interrupted instruction belongs to this
 * module, if that is known (in a softirq it is not).
 */
typedef void (*lt_interrupt_fn)(enum lt_context context, unsigned int cpu,
				bool ours, void *arg);

/* Prepares interrupts for CPUs 0 to nr - 1. Returns 0 or a negative errno. */
int lt_interrupts_new(unsigned int nr, lt_interrupt_fn fn, void *arg);

/* Starts hard interrupts and softirqs on the CPU of the calling thread. */
void lt_interrupts_start(void);

/* Sends an NMI to a CPU, unless one is on its way. */
void lt_interrupts_nmi(unsigned int cpu);

/* How many NMIs were sent to a CPU, and how many came. */
u64 lt_interrupts_sent(unsigned int cpu);
u64 lt_interrupts_came(unsigned int cpu);

/* Stops all interrupts, and waits for running ones. */
void lt_interrupts_stop(void);

/* Frees the interrupts. */
void lt_interrupts_free(void);

#endif /* _LT_SELFTEST_INTERRUPTS_H */
