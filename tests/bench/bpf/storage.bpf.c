// SPDX-License-Identifier: GPL-2.0
/*
 * A pair as BPF programs measure it if a task performs one such operation at a time:
 * the start is kept in the storage of the task, without a key, a table or a deletion.
 * The end is as in pair.bpf.c, whose loader also loads this file.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#define SLOTS 64

struct task_struct;

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} starts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, SLOTS);
} histogram SEC(".maps");

/* The position of the highest set bit; there is no instruction for it. */
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

SEC("raw_tp")
int start(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 *begun;

	begun = bpf_task_storage_get(&starts, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (begun)
		*begun = bpf_ktime_get_ns();
	return 0;
}

SEC("raw_tp")
int end(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 *begun, *slot;
	__u32 log;

	begun = bpf_task_storage_get(&starts, task, 0, 0);
	if (!begun || !*begun)
		return 0;
	log = log2_of(bpf_ktime_get_ns() - *begun);
	*begun = 0;
	slot = bpf_map_lookup_elem(&histogram, &log);
	if (slot)
		*slot += 1;
	return 0;
}

/* The cost of calling a program. */
SEC("raw_tp")
int empty(struct bpf_raw_tracepoint_args *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
