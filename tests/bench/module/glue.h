/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel functions that lt_bench cannot call from Rust. */
#ifndef _LT_BENCH_GLUE_H
#define _LT_BENCH_GLUE_H

#include <linux/types.h>

/* Interrupts of this CPU off, and back as they were. */
unsigned long ltb_irq_save(void);
void ltb_irq_restore(unsigned long flags);

/* Free memory in bytes. */
u64 ltb_free_memory(void);

/* lib/objpool: a pool of nr objects, or NULL; one pop and push. */
struct objpool_head *ltb_objpool_new(int nr, int size);
void ltb_objpool_cycle(struct objpool_head *pool);
void ltb_objpool_free(struct objpool_head *pool);

/*
 * BPF: the jitted raw tracepoint program behind a file descriptor of the current
 * task, or NULL; one run with these arguments, preemption off.
 */
struct bpf_prog *ltb_bpf_get(int fd);
u32 ltb_bpf_run(struct bpf_prog *prog, const u64 *args);
void ltb_bpf_put(struct bpf_prog *prog);

/* The tracepoint block_rq_insert, with a request that never was. */
struct request;
struct request *ltb_request_new(void);
void ltb_request_inserted(struct request *rq);
void ltb_request_free(struct request *rq);

/*
 * The tracepoint sched_switch, or NULL; what is attached to it is called, from
 * one of two tasks to the other. Preemption off.
 */
struct tracepoint *ltb_switch_find(void);
void ltb_switch(struct tracepoint *tp, int prev, int next, unsigned int state);

/*
 * What happens from a begin to its end, on this CPU: the probes attached to its
 * tracepoints are called as if it had happened, functions are called.
 */
enum ltb_what {
	LTB_IRQ,
	LTB_SOFTIRQ,
	/* read(), and getpid(). */
	LTB_READ,
	LTB_GETPID,
	/* A function of the kernel; one, and then another one. */
	LTB_CALL,
	LTB_CALLS,
	LTB_WORK,
	LTB_PACKET,
	/* A socket sends: an end without a begin. */
	LTB_SEND,
	/* The first process is switched in. */
	LTB_SWITCH,
	/* A task wakes it. */
	LTB_WAKING,
	/* It was woken by a softirq after an interrupt. */
	LTB_CHAIN,
	/* It was woken by an interrupt, runs, and sleeps; is preempted in between. */
	LTB_LIFE,
	LTB_PREEMPTED,
	/* It was woken by a timer, whose function a local interrupt calls. */
	LTB_TIMER,
	/*
	 * A local interrupt raised a softirq, a thread of softirqs was switched in to
	 * run it, and the function of a timer that it called woke the first process.
	 */
	LTB_SOFT_TIMER,
	LTB_WHATS
};

/* One, or NULL. Sleeps. */
struct ltb_way *ltb_way_new(enum ltb_what what);
/* Attaches a function that does nothing to each of its tracepoints. Sleeps. */
bool ltb_way_attach(struct ltb_way *way);
/* Preemption off. */
void ltb_way_pass(const struct ltb_way *way);
void ltb_way_free(struct ltb_way *way);

#endif /* _LT_BENCH_GLUE_H */
