// SPDX-License-Identifier: GPL-2.0
/*
 * BPF programs that follow the chains of the tracker `tree` with end=switch: from an
 * interrupt or a timer's programmed expiry, through handlers and softirqs, including
 * those in a thread, to the switch to the task that is woken. They keep up to STEPS
 * steps with their times. The delay goes into a histogram of powers of two.
 *
 * The programs have every advantage. Typed tracepoints need no copies. An interrupt
 * that wakes no task touches one per-CPU map. A timer in a softirq extends the
 * softirq's path in place. What comes after a wakeup is stored by task in a hash map,
 * in place. They keep no names, do not search for paths that do not end, and count
 * whatever preempts a softirq on PREEMPT_RT as part of it. They do not forget a dead
 * task until its number is used again.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define E2BIG 7
#define SLOTS 64
/* The kernel has ten softirqs. With a power of two, a mask bounds the index. */
#define SOFTIRQS 16
/* Steps of a path up to a wakeup. The first is the expiry of a timer, if there is one. */
#define EARLY 8
#define STEPS 14
/* ksoftirqd, and on PREEMPT_RT ktimers. */
#define THREADS 2

struct task_struct {
	int pid;
	int prio;
} __attribute__((preserve_access_index));

struct hrtimer_clock_base {
	__s64 offset;
} __attribute__((preserve_access_index));

struct hrtimer {
	struct hrtimer_clock_base *base;
	bool is_soft;
	__s64 _softexpires;
} __attribute__((preserve_access_index));

enum kind {
	NONE,
	IRQ,
	VECTOR,
	TIMER,
	EXPIRE,
	RAISE,
	SOFTIRQ,
	WAKING,
	SWITCH,
	PREEMPTED,
};

/* One step: its time, kind and place. */
struct step {
	__u64 time;
	__u32 subject;
	__u16 kind;
	__u16 cpu;
};

/* A path up to a wakeup; it is empty if the number of its steps is 0. */
struct start {
	__u64 begin;
	__u32 number;
	struct step steps[EARLY];
};

/* A thread that runs softirqs; bench-sched.c sets tid, and relies on this layout. */
struct thread {
	__u32 tid;
	__u64 woken;
	__u64 switched;
};

/* The path of a woken task. */
struct path {
	__u64 begin;
	__u32 number;
	__u32 prio;
	struct step steps[STEPS];
};

/* Current and deferred work of a CPU. */
struct cpu {
	struct thread threads[THREADS];
	__u32 running;
	/* The softirq's path before its timer: the number of steps, and the start. */
	__u32 number;
	__u64 begin;
	__u64 vector;
	struct start local;
	struct start irq;
	struct start timer;
	struct start softirq;
	struct start raised[SOFTIRQS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct cpu);
	__uint(max_entries, 1);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, struct path);
	__uint(max_entries, 10240);
} paths SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, SLOTS);
} histogram SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 1);
} lost SEC(".maps");

static __always_inline void count(void *map, __u32 at)
{
	__u64 *slot = bpf_map_lookup_elem(map, &at);

	if (slot)
		*slot += 1;
}

static __always_inline __u32 log2_of(__u64 value)
{
	__u32 log = 0;

	for (int step = 32; step; step >>= 1) {
		if (value >> step) {
			value >>= step;
			log += step;
		}
	}
	return log;
}

static __always_inline struct cpu *this_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&cpus, &zero);
}

static __always_inline void add(struct start *start, enum kind kind,
				__u32 subject, __u64 now)
{
	__u32 at = start->number;

	if (at >= EARLY)
		return;
	start->steps[at].time = now;
	start->steps[at].subject = subject;
	start->steps[at].kind = kind;
	start->steps[at].cpu = bpf_get_smp_processor_id();
	start->number = at + 1;
}

/* In a path without a timer, the first place stays free. */
static __always_inline void begin(struct start *start, enum kind kind,
				  __u32 subject, __u64 now)
{
	start->begin = now;
	start->number = 1;
	start->steps[0].kind = NONE;
	add(start, kind, subject, now);
}

static __always_inline void copy(struct start *to, const struct start *from)
{
	to->begin = from->begin;
	to->number = from->number;
	for (__u32 at = 0; at < EARLY; at++) {
		if (at >= from->number)
			break;
		to->steps[at] = from->steps[at];
	}
}

/* Returns the path of the innermost context: a raise or wakeup here continues it. */
static __always_inline struct start *current_start(struct cpu *cpu)
{
	if (cpu->timer.number)
		return &cpu->timer;
	if (cpu->irq.number)
		return &cpu->irq;
	if (cpu->vector) {
		begin(&cpu->local, VECTOR, 0, cpu->vector);
		return &cpu->local;
	}
	if (cpu->softirq.number)
		return &cpu->softirq;
	return NULL;
}

static __always_inline struct thread *thread_of(struct cpu *cpu, __u32 tid)
{
	for (int at = 0; at < THREADS; at++)
		if (cpu->threads[at].tid == tid)
			return &cpu->threads[at];
	return NULL;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(irq_entry, int irq)
{
	struct cpu *cpu = this_cpu();

	if (cpu)
		begin(&cpu->irq, IRQ, irq, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(irq_exit)
{
	struct cpu *cpu = this_cpu();

	if (cpu)
		cpu->irq.number = 0;
	return 0;
}

SEC("tp_btf/local_timer_entry")
int BPF_PROG(vector_entry)
{
	struct cpu *cpu = this_cpu();

	if (cpu)
		cpu->vector = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/local_timer_exit")
int BPF_PROG(vector_exit)
{
	struct cpu *cpu = this_cpu();

	if (cpu)
		cpu->vector = 0;
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(expire, struct hrtimer *timer)
{
	struct cpu *cpu = this_cpu();
	struct start *start;
	__u64 due;

	if (!cpu)
		return 0;
	due = timer->_softexpires - timer->base->offset;
	if (timer->is_soft) {
		start = &cpu->softirq;
		cpu->begin = start->begin;
		cpu->number = start->number;
		start->number += !start->number;
	} else {
		start = &cpu->timer;
		start->number = 1;
	}
	start->begin = due;
	start->steps[0].time = due;
	start->steps[0].subject = 0;
	start->steps[0].kind = TIMER;
	start->steps[0].cpu = bpf_get_smp_processor_id();
	if (!timer->is_soft && cpu->vector)
		add(start, VECTOR, 0, cpu->vector);
	add(start, EXPIRE, 0, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(expired)
{
	struct cpu *cpu = this_cpu();

	if (!cpu)
		return 0;
	/* A timer of an interrupt may be nested in a timer of a softirq, not vice versa. */
	if (cpu->timer.number) {
		cpu->timer.number = 0;
		return 0;
	}
	cpu->softirq.begin = cpu->begin;
	cpu->softirq.number = cpu->number;
	cpu->softirq.steps[0].kind = NONE;
	return 0;
}

SEC("tp_btf/softirq_raise")
int BPF_PROG(raise, unsigned int number)
{
	struct cpu *cpu = this_cpu();
	struct start *start, *raised;

	if (!cpu)
		return 0;
	raised = &cpu->raised[number & (SOFTIRQS - 1)];
	start = current_start(cpu);
	if (raised->number || !start)
		return 0;
	copy(raised, start);
	add(raised, RAISE, number, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq, unsigned int number)
{
	struct cpu *cpu = this_cpu();
	struct thread *thread;
	struct start *raised;
	__u64 last;
	__u32 at;

	if (!cpu)
		return 0;
	raised = &cpu->raised[number & (SOFTIRQS - 1)];
	at = raised->number - 1;
	if (at >= EARLY)
		return 0;
	last = raised->steps[at].time;
	copy(&cpu->softirq, raised);
	raised->number = 0;
	thread = thread_of(cpu, cpu->running);
	/* Steps after the raise are on the path. */
	if (thread && thread->woken >= last)
		add(&cpu->softirq, WAKING, thread->tid, thread->woken);
	if (thread && thread->switched >= last)
		add(&cpu->softirq, SWITCH, thread->tid, thread->switched);
	add(&cpu->softirq, SOFTIRQ, number, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_over)
{
	struct cpu *cpu = this_cpu();

	if (cpu)
		cpu->softirq.number = 0;
	return 0;
}

static __always_inline void follow(struct path *path, enum kind kind,
				   __u32 subject, __u64 now)
{
	__u32 at = path->number;

	if (at >= STEPS)
		return;
	path->steps[at].time = now;
	path->steps[at].subject = subject;
	path->steps[at].kind = kind;
	path->steps[at].cpu = bpf_get_smp_processor_id();
	path->number = at + 1;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(waking, struct task_struct *task)
{
	struct cpu *cpu = this_cpu();
	struct path path = {};
	struct thread *thread;
	struct start *start;
	__u32 tid = task->pid;

	if (!cpu)
		return 0;
	thread = thread_of(cpu, tid);
	if (thread) {
		thread->woken = bpf_ktime_get_ns();
		thread->switched = 0;
		return 0;
	}
	start = current_start(cpu);
	if (!start)
		return 0;
	path.begin = start->begin;
	path.number = start->number;
	path.prio = task->prio;
	for (__u32 at = 0; at < EARLY; at++) {
		if (at >= start->number)
			break;
		path.steps[at] = start->steps[at];
	}
	follow(&path, WAKING, tid, bpf_ktime_get_ns());
	/* a path that the task already has is older, and stays */
	if (bpf_map_update_elem(&paths, &tid, &path, BPF_NOEXIST) == -E2BIG)
		count(&lost, 0);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switched, bool preempt, struct task_struct *prev,
	     struct task_struct *next)
{
	__u32 from = prev->pid, to = next->pid;
	struct cpu *cpu = this_cpu();
	struct thread *thread;
	struct path *path;
	__u64 now;

	if (!cpu)
		return 0;
	cpu->running = to;
	thread = thread_of(cpu, to);
	if (thread)
		thread->switched = bpf_ktime_get_ns();
	path = from && preempt ? bpf_map_lookup_elem(&paths, &from) : NULL;
	if (path)
		follow(path, PREEMPTED, to, bpf_ktime_get_ns());
	path = to ? bpf_map_lookup_elem(&paths, &to) : NULL;
	if (!path)
		return 0;
	now = bpf_ktime_get_ns();
	follow(path, SWITCH, to, now);
	count(&histogram, log2_of(now - path->begin));
	bpf_map_delete_elem(&paths, &to);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
