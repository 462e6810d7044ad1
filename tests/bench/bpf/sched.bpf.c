// SPDX-License-Identifier: GPL-2.0
/*
 * Measures the waits of the trackers `wakeup` and `offcpu` with BPF programs: the
 * times when a task was woken and switched out are kept until it is switched in;
 * the delay goes into a histogram of powers of two.
 *
 * The programs have every advantage: typed tracepoints, which need no copies, one
 * program per tracepoint for both waits, and per-CPU maps for the histograms. There
 * are three variants:
 *
 *   facts    starts are in hash maps, as in common tools, with the facts of our
 *            alerts: the waker, the wakee, the CPU, the task that was switched
 *            out, why, and the priority
 *   hash     the time alone, in hash maps
 *   storage  the time alone, in the storage of the task
 *
 * No variant searches for waits that do not end, or counts pending waits.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define SLOTS 64
#define PF_KTHREAD 0x00200000
#define TASK_DEAD 0x80

struct task_struct {
	int pid;
	int tgid;
	int prio;
	unsigned int policy;
	unsigned int flags;
	unsigned int __state;
	char comm[16];
} __attribute__((preserve_access_index));

/* The variant that this is compiled for. */
static const bool facts = WAY_facts, in_task = WAY_storage;

/* The kind of wait. */
enum what {
	WAKEUP,
	OFFCPU,
	WHATS,
};

struct starts {
	__u64 time[WHATS];
};

struct actor {
	__u32 pid;
	__u32 tid;
	char comm[16];
};

struct wait {
	__u64 time;
	struct actor owner;
	struct actor waker;
	__u64 woken;
	__u32 cpu;
	__u32 policy;
	int prio;
	__u32 state;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 10240);
} wakeups SEC(".maps"), offcpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, struct wait);
	__uint(max_entries, 10240);
} wakeup_facts SEC(".maps"), offcpu_facts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct starts);
} of_task SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, WHATS * SLOTS);
} histogram SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 1);
} lost SEC(".maps");

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

static __always_inline void lose(void)
{
	__u32 zero = 0;
	__u64 *count = bpf_map_lookup_elem(&lost, &zero);

	if (count)
		*count += 1;
}

static __always_inline void describe(struct actor *actor,
				     struct task_struct *task)
{
	actor->pid = task->tgid;
	actor->tid = task->pid;
	bpf_probe_read_kernel(actor->comm, sizeof(actor->comm), task->comm);
}

static __always_inline void fill(struct wait *wait, struct task_struct *task,
				 __u64 now)
{
	wait->time = now;
	wait->cpu = bpf_get_smp_processor_id();
	wait->policy = task->policy;
	wait->prio = task->prio;
	describe(&wait->owner, task);
}

static __always_inline void begin(struct task_struct *task, enum what what,
				  __u64 now)
{
	struct starts *starts;
	__u32 pid = task->pid;

	if (in_task) {
		starts = bpf_task_storage_get(&of_task, task, NULL,
					      BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (starts)
			starts->time[what] = now;
		else
			lose();
	} else if (what == WAKEUP) {
		if (bpf_map_update_elem(&wakeups, &pid, &now, BPF_ANY))
			lose();
	} else if (bpf_map_update_elem(&offcpus, &pid, &now, BPF_ANY)) {
		lose();
	}
}

static __always_inline void woken(struct task_struct *task)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	__u64 now = bpf_ktime_get_ns();
	struct wait wait = {}, *off;
	__u32 tid = task->pid;

	if (!facts) {
		begin(task, WAKEUP, now);
		return;
	}
	fill(&wait, task, now);
	describe(&wait.waker, waker);
	if (bpf_map_update_elem(&wakeup_facts, &tid, &wait, BPF_ANY))
		lose();
	off = bpf_map_lookup_elem(&offcpu_facts, &tid);
	if (off) {
		off->woken = now;
		describe(&off->waker, waker);
	}
}

static __always_inline void left(struct task_struct *task, unsigned int state,
				 __u64 now)
{
	struct wait wait = {};
	__u32 tid = task->pid;

	if (!facts) {
		begin(task, OFFCPU, now);
		return;
	}
	fill(&wait, task, now);
	wait.state = state;
	if (bpf_map_update_elem(&offcpu_facts, &tid, &wait, BPF_ANY))
		lose();
}

static __always_inline void add(__u64 start, __u64 now, enum what what)
{
	__u32 at = what * SLOTS + log2_of(now - start);
	__u64 *slot = bpf_map_lookup_elem(&histogram, &at);

	if (slot)
		*slot += 1;
}

static __always_inline void end(struct task_struct *task, __u64 now)
{
	struct starts *starts;
	__u32 pid = task->pid;
	struct wait *wait;
	__u64 *start;

	if (in_task) {
		starts = bpf_task_storage_get(&of_task, task, NULL, 0);
		if (!starts)
			return;
		for (int what = 0; what < WHATS; what++) {
			if (!starts->time[what])
				continue;
			add(starts->time[what], now, what);
			starts->time[what] = 0;
		}
	} else if (facts) {
		wait = bpf_map_lookup_elem(&wakeup_facts, &pid);
		if (wait) {
			add(wait->time, now, WAKEUP);
			bpf_map_delete_elem(&wakeup_facts, &pid);
		}
		wait = bpf_map_lookup_elem(&offcpu_facts, &pid);
		if (wait) {
			add(wait->time, now, OFFCPU);
			bpf_map_delete_elem(&offcpu_facts, &pid);
		}
	} else {
		start = bpf_map_lookup_elem(&wakeups, &pid);
		if (start) {
			add(*start, now, WAKEUP);
			bpf_map_delete_elem(&wakeups, &pid);
		}
		start = bpf_map_lookup_elem(&offcpus, &pid);
		if (start) {
			add(*start, now, OFFCPU);
			bpf_map_delete_elem(&offcpus, &pid);
		}
	}
}

SEC("tp_btf/sched_waking")
int BPF_PROG(waking, struct task_struct *task)
{
	woken(task);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(wakeup_new, struct task_struct *task)
{
	woken(task);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switched, bool preempt, struct task_struct *prev,
	     struct task_struct *next, unsigned int state)
{
	__u64 now = bpf_ktime_get_ns();

	if (prev->pid && !(prev->flags & PF_KTHREAD) && !(state & TASK_DEAD))
		left(prev, state, now);
	if (next->pid)
		end(next, now);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
