/* SPDX-License-Identifier: GPL-2.0 */
/* Kernel threads for the tests: one function on several CPUs at once, or in a crowd of threads. */
#ifndef _LT_SELFTEST_THREADS_H
#define _LT_SELFTEST_THREADS_H

typedef void (*lt_thread_fn)(unsigned int cpu, void *arg);

/*
 * Runs fn on CPUs 0 to nr - 1 at once, in a thread bound to each, and waits for
 * all threads. Returns 0, or a negative errno if they could not be started.
 */
int lt_run_on_cpus(unsigned int nr, lt_thread_fn fn, void *arg);

/*
 * Starts nr threads. Each calls fn repeatedly, on any CPU, with the number of the
 * thread instead of a CPU. Returns 0 or a negative errno. There is one crowd at a time.
 */
int lt_crowd_start(unsigned int nr, lt_thread_fn fn, void *arg);

/* Stops the crowd, and waits for its threads. */
void lt_crowd_stop(void);

/*
 * Number of guards so far that ended by a call of lt_preempt_enable(). Use it on one CPU at a time.
 */
unsigned long lt_guards_ended_by_call(void);

/* Called by the engine's guards; counts the calls. */
void lt_preempt_enable(void);

/* Acts as if a wakeup required a reschedule of this CPU. Preemption must be off. */
void lt_want_to_schedule(void);
bool lt_wants_to_schedule(void);

/* Sleeps for a moment. */
void lt_doze(void);

#endif /* _LT_SELFTEST_THREADS_H */
