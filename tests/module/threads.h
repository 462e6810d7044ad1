/* SPDX-License-Identifier: GPL-2.0 */
/* Kernel threads for the tests: one function on several CPUs at once. */
#ifndef _LT_SELFTEST_THREADS_H
#define _LT_SELFTEST_THREADS_H

typedef void (*lt_thread_fn)(unsigned int cpu, void *arg);

/*
 * Runs fn on CPUs 0 to nr - 1 at once, in a thread bound to each, and waits for
 * all of them. Returns 0, or a negative errno if they could not be started.
 */
int lt_run_on_cpus(unsigned int nr, lt_thread_fn fn, void *arg);

#endif /* _LT_SELFTEST_THREADS_H */
