// SPDX-License-Identifier: GPL-2.0
/*
 * Pairs events with liburcu's lock-free hash table: insert, lookup, delete.
 *
 * All other costs of the table are left out: nodes come from an array, not from
 * malloc, and they are reused after a grace period, which passes outside the
 * measured time. The table has its final size.
 */
#define _LGPL_SOURCE
#include <linux/types.h>
#include <stdlib.h>
#include <time.h>
#include <urcu.h>
#include <urcu/rculfhash.h>

struct node {
	struct cds_lfht_node node;
	__u64 key[2];
	__u64 start;
};

struct lt_lfht {
	struct cds_lfht *table;
	__u64 live;
	/* for each thread, room for the live nodes and for the nodes that a run deletes */
	__u64 ring;
	struct node *nodes;
};

static unsigned long hash_of(const __u64 *key)
{
	__uint128_t product = (__uint128_t)(key[0] ^ 0x123456789abcdef1ull) *
			      (key[1] ^ 0xfeedbeefcafef00dull);
	__u64 folded = (__u64)(product >> 64) ^ (__u64)product;

	product = (__uint128_t)folded * 0x9e3779b97f4a7c15ull;
	return (__u64)(product >> 64) ^ (__u64)product;
}

static int match(struct cds_lfht_node *node, const void *wanted)
{
	const struct node *candidate = caa_container_of(node, struct node, node);
	const __u64 *key = wanted;

	return candidate->key[0] == key[0] && candidate->key[1] == key[1];
}

static void key_of(__u64 thread, __u64 n, __u64 *key)
{
	key[0] = 0xffff888100000000ull + n * 384;
	key[1] = 0x00800010 + thread;
}

static void begin(struct lt_lfht *lfht, __u64 thread, __u64 n)
{
	struct node *node = &lfht->nodes[thread * lfht->ring + (n & (lfht->ring - 1))];

	key_of(thread, n, node->key);
	node->start = n;
	cds_lfht_node_init(&node->node);
	rcu_read_lock();
	cds_lfht_add(lfht->table, hash_of(node->key), &node->node);
	rcu_read_unlock();
}

static __u64 end(struct lt_lfht *lfht, __u64 thread, __u64 n)
{
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;
	/* no event has this number */
	__u64 key[2], start = ~0ull;

	key_of(thread, n, key);
	rcu_read_lock();
	cds_lfht_lookup(lfht->table, hash_of(key), match, key, &iter);
	node = cds_lfht_iter_get_node(&iter);
	if (node && !cds_lfht_del(lfht->table, node))
		start = caa_container_of(node, struct node, node)->start;
	rcu_read_unlock();
	return start;
}

static __u64 thread_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/*
 * Runs `pairs` pairs, numbered from `from` on, and returns the CPU time of this thread in
 * nanoseconds, or 0 if a start was not found.
 */
__u64 lt_lfht_run(struct lt_lfht *lfht, __u64 thread, __u64 from, __u64 pairs)
{
	__u64 started, took, wrong = 0;

	rcu_register_thread();
	started = thread_time();
	for (__u64 n = from; n < from + pairs; n++) {
		begin(lfht, thread, n + lfht->live - 1);
		wrong |= end(lfht, thread, n) ^ n;
	}
	took = thread_time() - started;
	rcu_unregister_thread();
	/* the next run uses the nodes again */
	synchronize_rcu();
	return wrong ? 0 : took;
}

/* A table for these numbers of threads, live nodes per thread, and pairs per run; or NULL. */
struct lt_lfht *lt_lfht_new(__u64 threads, __u64 live, __u64 pairs)
{
	struct lt_lfht *lfht = calloc(1, sizeof(*lfht));
	unsigned long buckets = 1024;

	if (!lfht)
		return NULL;
	while (buckets < threads * live)
		buckets *= 2;
	lfht->live = live;
	for (lfht->ring = 1; lfht->ring < live + pairs; )
		lfht->ring *= 2;
	lfht->nodes = calloc(threads * lfht->ring, sizeof(*lfht->nodes));
	lfht->table = cds_lfht_new(buckets, buckets, buckets, 0, NULL);
	if (!lfht->nodes || !lfht->table)
		return NULL;
	rcu_register_thread();
	for (__u64 thread = 0; thread < threads; thread++)
		for (__u64 n = 0; n < live - 1; n++)
			begin(lfht, thread, n);
	rcu_unregister_thread();
	return lfht;
}
