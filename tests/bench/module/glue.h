/* SPDX-License-Identifier: GPL-2.0 */
/* What lt_bench calls of the kernel and can not call from Rust. */
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
 * Two tracepoints, the begin and the end of something, or NULL; what is attached
 * to them is called as if this had happened on this CPU. Preemption off.
 */
enum ltb_pair { LTB_IRQ, LTB_SOFTIRQ, LTB_SYSCALL, LTB_PAIRS };
bool ltb_pair_find(enum ltb_pair pair, struct tracepoint *found[2]);
void ltb_pair(enum ltb_pair pair, struct tracepoint *const found[2]);

#endif /* _LT_BENCH_GLUE_H */
