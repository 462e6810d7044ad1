// SPDX-License-Identifier: GPL-2.0
/*
 * Start and end of an operation, as BPF programs usually pair them: the start is kept
 * in a hash map, and the end looks it up and adds the delay to a histogram of powers
 * of two. As in the engine, both halves read the clock, and keys have 16 bytes.
 *
 * There is no tracepoint: lt_bench runs the programs itself, with the key as arguments.
 * The maps are the fastest that fit: a preallocated hash table for the starts, and a
 * per-CPU array for the histogram. As in many BPF programs, there are no exact
 * counters, and a full map is not noticed.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#define SLOTS 64

struct key {
	__u64 words[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct key);
	__type(value, __u64);
	/* the loader sets the number */
	__uint(max_entries, 1);
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
	struct key key = { { ctx->args[0], ctx->args[1] } };
	__u64 now = bpf_ktime_get_ns();

	bpf_map_update_elem(&starts, &key, &now, BPF_ANY);
	return 0;
}

SEC("raw_tp")
int end(struct bpf_raw_tracepoint_args *ctx)
{
	struct key key = { { ctx->args[0], ctx->args[1] } };
	__u64 *begun, *slot;
	__u32 log;

	begun = bpf_map_lookup_elem(&starts, &key);
	if (!begun)
		return 0;
	log = log2_of(bpf_ktime_get_ns() - *begun);
	bpf_map_delete_elem(&starts, &key);
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
