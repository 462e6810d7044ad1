/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel functions that lt_bench cannot call from Rust. */
#ifndef _LT_BENCH_GLUE_H
#define _LT_BENCH_GLUE_H

#include <linux/types.h>

/* Disable this CPU's interrupts; restore them. */
unsigned long ltb_irq_save(void);
void ltb_irq_restore(unsigned long flags);

/* Free memory in bytes. */
u64 ltb_free_memory(void);

/* lib/objpool: a pool of nr objects, or NULL; pop and push one; free it. */
struct objpool_head *ltb_objpool_new(int nr, int size);
void ltb_objpool_cycle(struct objpool_head *pool);
void ltb_objpool_free(struct objpool_head *pool);

/*
 * BPF: get the jitted raw tracepoint program behind a file descriptor of the
 * current task, or NULL; run it once, preemption off; put it.
 */
struct bpf_prog *ltb_bpf_get(int fd);
u32 ltb_bpf_run(struct bpf_prog *prog, const u64 *args);
void ltb_bpf_put(struct bpf_prog *prog);

/* Call the tracepoint block_rq_insert with an artificial request. */
struct request;
struct request *ltb_request_new(void);
void ltb_request_inserted(struct request *rq);
void ltb_request_free(struct request *rq);

/*
 * Find the tracepoint sched_switch, or NULL; call its probes for a switch from
 * one of two tasks to the other, preemption off.
 */
struct tracepoint *ltb_switch_find(void);
void ltb_switch(struct tracepoint *tp, int prev, int next, unsigned int state);

/*
 * Scenarios to measure, from start to end on this CPU. The probes attached to a
 * tracepoint are called as if it had been hit; functions are really called.
 */
enum ltb_what {
	LTB_IRQ,
	LTB_SOFTIRQ,
	/* read() and getpid(). */
	LTB_READ,
	LTB_GETPID,
	/* A kernel function; two kernel functions in turn. */
	LTB_CALL,
	LTB_CALLS,
	LTB_WORK,
	LTB_PACKET,
	/* A packet is passed to GRO; a socket sends: end events without a start. */
	LTB_GRO,
	LTB_SEND,
	/* The first process is switched in. */
	LTB_SWITCH,
	/* A task wakes the first process. */
	LTB_WAKING,
	/* A softirq after an interrupt wakes the first process. */
	LTB_CHAIN,
	/*
	 * An interrupt wakes the first process, which runs and sleeps; without and
	 * with a preemption in between.
	 */
	LTB_LIFE,
	LTB_PREEMPTED,
	/* A timer function, called by the timer's interrupt, wakes the first process. */
	LTB_TIMER,
	/*
	 * The timer's interrupt raises a softirq, ksoftirqd is switched in to run it,
	 * and the timer function that it calls wakes the first process.
	 */
	LTB_SOFT_TIMER,
	LTB_WHATS
};

/* Allocate a scenario, or NULL. May sleep. */
struct ltb_way *ltb_way_new(enum ltb_what what);
/* Attach an empty function to each of its tracepoints; false if that fails. May sleep. */
bool ltb_way_attach(struct ltb_way *way);
/* Run the scenario once, preemption off. */
void ltb_way_pass(const struct ltb_way *way);
void ltb_way_free(struct ltb_way *way);

#endif /* _LT_BENCH_GLUE_H */
