/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the checks and the measurements of the structures. */
#ifndef _LT_STRUCTURES_RUN_H
#define _LT_STRUCTURES_RUN_H

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/slab.h>

#include "../threads.h"
#include "structures.h"

extern const struct lts_structure lts_engine;

/* The n-th structure that needs no loader (A to K, the engine, objpool), or NULL. */
const struct lts_structure *lts_number(unsigned int number);

#define lts_for_each(structure)						\
	for (unsigned int at_ = 0; ((structure) = lts_number(at_)); at_++)

/* The n-th key of a CPU: an address such as a request has, and a device. */
static __always_inline void lts_key(u64 *key, unsigned int cpu, u64 n)
{
	key[0] = 0xffff888100000000ULL + n * 384;
	key[1] = 0x00800010 + cpu;
}

/* Waits until this many CPUs are here. They share the counter, which begins at 0. */
static inline void lts_meet(atomic_t *arrived, int cpus)
{
	/*
	 * The increment is a full barrier, and the read that sees the last increment an acquire:
	 * what each CPU did before it arrived is visible to all after they have met.
	 */
	int until = roundup(atomic_inc_return(arrived), cpus);
	int tries = 0;

	while (atomic_read_acquire(arrived) < until) {
		/* The other CPUs may wait for the processor on which an emulator runs this one. */
		if (++tries < 1000)
			cpu_relax();
		else
			fsleep(20);
	}
}

#endif /* _LT_STRUCTURES_RUN_H */
