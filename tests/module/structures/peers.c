// SPDX-License-Identifier: GPL-2.0
/*
 * Other ways to pair events, behind the same interface: lib/objpool with hlist_bl, and BPF programs
 * that the caller has loaded. Also two baselines: a pair of calls that do nothing, and one that
 * only reads the clock and counts.
 */
#include "store.h"

#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/list_bl.h>
#include <linux/objpool.h>
#include <linux/rcupdate.h>

/* lib/objpool, and a table with a bit of each head as its lock. */

struct lts_bl_object {
	struct hlist_bl_node node;
	u64 key[LTS_KEY];
	u64 start;
};

struct lts_bl_store {
	struct objpool_head pool;
	u32 mask;
	struct hlist_bl_head *heads;
	struct lts_local __percpu *local;
};

static int lts_bl_begin(void *data, const u64 *key)
{
	struct lts_bl_store *store = data;
	struct hlist_bl_head *head = &store->heads[lts_hash(key) & store->mask];
	u64 now = ktime_get_mono_fast_ns();
	struct lts_bl_object *object;
	unsigned long flags;

	object = objpool_pop(&store->pool);
	if (!object) {
		lts_inc(store->local, dropped);
		return -ENOSPC;
	}
	object->start = now;
	object->key[0] = key[0];
	object->key[1] = key[1];
	local_irq_save(flags);
	hlist_bl_lock(head);
	hlist_bl_add_head(&object->node, head);
	hlist_bl_unlock(head);
	local_irq_restore(flags);
	lts_inc(store->local, begun);
	return 0;
}

static int lts_bl_end(void *data, const u64 *key)
{
	struct lts_bl_store *store = data;
	struct hlist_bl_head *head = &store->heads[lts_hash(key) & store->mask];
	struct lts_bl_object *object;
	struct hlist_bl_node *at;
	unsigned long flags;

	local_irq_save(flags);
	hlist_bl_lock(head);
	hlist_bl_for_each_entry(object, at, head, node) {
		if (lts_same(object->key, key)) {
			hlist_bl_del(&object->node);
			break;
		}
	}
	hlist_bl_unlock(head);
	local_irq_restore(flags);
	if (!at) {
		lts_inc(store->local, unmatched);
		return -ENOENT;
	}
	lts_record(store->local, object->start);
	objpool_push(object, &store->pool);
	return 0;
}

static void lts_bl_count(void *data, struct lts_counts *counts)
{
	struct lts_bl_store *store = data;

	lts_count_local(store->local, counts);
}

static void lts_bl_destroy(void *data)
{
	struct lts_bl_store *store = data;

	if (store->pool.cpu_slots)
		objpool_fini(&store->pool);
	free_percpu(store->local);
	kvfree(store->heads);
	kfree(store);
}

static void *lts_bl_create(unsigned int capacity)
{
	struct lts_bl_store *store = kzalloc_obj(*store);
	u32 buckets = roundup_pow_of_two(capacity);

	if (!store)
		return NULL;
	store->mask = buckets - 1;
	store->heads = kvcalloc(buckets, sizeof(*store->heads), GFP_KERNEL);
	store->local = alloc_percpu(struct lts_local);
	if (!store->heads || !store->local ||
	    objpool_init(&store->pool, capacity, sizeof(struct lts_bl_object),
			 GFP_KERNEL, NULL, NULL, NULL)) {
		store->pool.cpu_slots = NULL;
		lts_bl_destroy(store);
		return NULL;
	}
	return store;
}

const struct lts_structure lts_objpool = {
	.id = "N", .what = "objpool, hlist_bl, bit locks",
	.create = lts_bl_create, .destroy = lts_bl_destroy,
	.begin = lts_bl_begin, .end = lts_bl_end, .count = lts_bl_count,
};

/* BPF: the loader has made the map, so create has nothing to do. */

static struct bpf_prog *lts_bpf_progs[2];
static char lts_bpf_store;

static void *lts_bpf_create(unsigned int capacity)
{
	return &lts_bpf_store;
}

static void lts_bpf_destroy(void *data)
{
}

static int lts_bpf_run(const struct bpf_prog *prog, const u64 *key)
{
	preempt_disable();
	rcu_read_lock();
	bpf_prog_run(prog, key);
	rcu_read_unlock();
	preempt_enable();
	return 0;
}

static int lts_bpf_begin(void *data, const u64 *key)
{
	return lts_bpf_run(lts_bpf_progs[0], key);
}

static int lts_bpf_end(void *data, const u64 *key)
{
	return lts_bpf_run(lts_bpf_progs[1], key);
}

/* The loader counts delays. */
static void lts_bpf_count(void *data, struct lts_counts *counts)
{
	memset(counts, 0, sizeof(*counts));
}

const struct lts_structure lts_bpf = {
	.id = "M", .what = "BPF, hash map",
	.create = lts_bpf_create, .destroy = lts_bpf_destroy,
	.begin = lts_bpf_begin, .end = lts_bpf_end, .count = lts_bpf_count,
};

const struct lts_structure lts_bpf_task = {
	.id = "O", .what = "BPF, storage of the task",
	.create = lts_bpf_create, .destroy = lts_bpf_destroy,
	.begin = lts_bpf_begin, .end = lts_bpf_end, .count = lts_bpf_count,
};

void lts_bpf_put(void)
{
	for (int i = 0; i < ARRAY_SIZE(lts_bpf_progs); i++) {
		if (lts_bpf_progs[i])
			bpf_prog_put(lts_bpf_progs[i]);
		lts_bpf_progs[i] = NULL;
	}
}

int lts_bpf_get(int begin, int end)
{
	const int fds[] = { begin, end };

	for (int i = 0; i < ARRAY_SIZE(fds); i++) {
		struct bpf_prog *prog = bpf_prog_get_type_dev(fds[i], BPF_PROG_TYPE_RAW_TRACEPOINT,
							      false);

		if (IS_ERR(prog)) {
			lts_bpf_put();
			return PTR_ERR(prog);
		}
		lts_bpf_progs[i] = prog;
		/* Measuring the interpreter would be pointless. */
		if (!prog->jited) {
			lts_bpf_put();
			return -EINVAL;
		}
	}
	return 0;
}

/* No structure */

static noinline int lts_no_call(void *data, const u64 *key)
{
	barrier();
	return 0;
}

const struct lts_structure lts_nothing = {
	.id = "none", .what = "calls that do nothing",
	.create = lts_bpf_create, .destroy = lts_bpf_destroy,
	.begin = lts_no_call, .end = lts_no_call, .count = lts_bpf_count,
};

static DEFINE_PER_CPU(struct lts_local, lts_clocks_local);
static DEFINE_PER_CPU(u64, lts_clocks_start);

static int lts_clocks_begin(void *data, const u64 *key)
{
	this_cpu_write(lts_clocks_start, ktime_get_mono_fast_ns());
	lts_inc(&lts_clocks_local, begun);
	return 0;
}

static int lts_clocks_end(void *data, const u64 *key)
{
	lts_record(&lts_clocks_local, this_cpu_read(lts_clocks_start));
	return 0;
}

const struct lts_structure lts_clocks = {
	.id = "clocks", .what = "two clock reads, counters, histogram",
	.create = lts_bpf_create, .destroy = lts_bpf_destroy,
	.begin = lts_clocks_begin, .end = lts_clocks_end, .count = lts_bpf_count,
};
