/* SPDX-License-Identifier: GPL-2.0 */
/* For code that keeps its CPU busy until a clock has reached a time. */
#ifndef _LT_SPIN_H
#define _LT_SPIN_H

#include <linux/compiler.h>
#include <linux/processor.h>

/*
 * Called between two readings of the clock. Takes a few microseconds at most, nearly all
 * for plain instructions: if a machine counts instructions, its emulator leaves the
 * translated code at each reading of a clock and at each cpu_relax(), and udelay() does
 * little else. At cpu_relax() the other CPUs get their turn.
 */
static inline void lt_spin(void)
{
	unsigned int i;

	for (i = 0; i < 1000; i++)
		barrier();
	cpu_relax();
}

#endif /* _LT_SPIN_H */
