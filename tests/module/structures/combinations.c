// SPDX-License-Identifier: GPL-2.0
/*
 * The eleven combinations of a free list, a table and a lock in Table 4.1 of
 * Desfossez's thesis, built from what the kernel offers today.
 *
 *	free list   list_head under the lock, or an llist: filled without a lock,
 *	            emptied by one CPU at a time (under the lock), or, without a
 *	            lock, within RCU
 *	table       hlist_heads under the lock; an rhashtable of constant size,
 *	            searched without the lock, changed under it; chains without a
 *	            lock (store.h)
 *	lock        a raw spinlock, interrupts off: probes also run in interrupts
 *	            and under the scheduler's locks; waited for, or tried once
 *
 * There is one lock per store. Objects of an rhashtable are used again at once, so an object that
 * was found is checked again under the lock. Objects of the chains are used again after a grace
 * period, by call_rcu(), which also makes it safe to take them from an llist on several CPUs at
 * once.
 * (call_rcu() is not allowed everywhere that a probe may run: it may wake RCU's threads.)
 */
#include "store.h"

#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/vmalloc.h>
#include <asm/msr.h>

enum lts_pool { LIST, LLIST };
enum lts_table { HLIST, RHASH, CHAINS };
enum lts_lock { SPIN, TRY, NONE };

static const struct rhashtable_params lts_rhash = {
	.key_len = sizeof(u64) * LTS_KEY,
	.key_offset = offsetof(struct lts_object, key),
	.head_offset = offsetof(struct lts_object, rhash),
};

/* Lock and pool */

static __always_inline bool lts_lock(struct lts_store *store, unsigned long *flags,
				     const enum lts_lock lock)
{
	if (lock == TRY)
		return raw_spin_trylock_irqsave(&store->lock, *flags);
	if (lock == SPIN)
		raw_spin_lock_irqsave(&store->lock, *flags);
	return true;
}

static __always_inline void lts_unlock(struct lts_store *store, unsigned long flags,
				       const enum lts_lock lock)
{
	if (lock != NONE)
		raw_spin_unlock_irqrestore(&store->lock, flags);
}

static __always_inline struct lts_object *lts_take(struct lts_store *store,
						   const enum lts_pool pool)
{
	struct lts_object *object;
	struct llist_node *node;

	if (pool == LIST) {
		object = list_first_entry_or_null(&store->free, struct lts_object, free);
		if (object)
			list_del(&object->free);
		return object;
	}
	node = llist_del_first(&store->lfree);
	return node ? llist_entry(node, struct lts_object, lfree) : NULL;
}

/* Gives an object back. A list requires the lock. */
static __always_inline void lts_give(struct lts_store *store, struct lts_object *object,
				     const enum lts_pool pool)
{
	if (pool == LIST)
		list_add(&object->free, &store->free);
	else
		llist_add(&object->lfree, &store->lfree);
}

/* Objects come back after a grace period; each call measures how long the previous one took. */
static __always_inline void lts_returned(struct lts_store *store)
{
	struct lts_local *local = this_cpu_ptr(store->local);
	u64 now = rdtsc();

	/* RCU calls ten callbacks in a row, and then does other work. */
	if (now - local->last < 1000) {
		local->took += now - local->last;
		local->times++;
	}
	local->last = now;
}

static void lts_give_list(struct rcu_head *head)
{
	struct lts_object *object = container_of(head, struct lts_object, rcu);
	struct lts_store *store = object->store;
	unsigned long flags;

	raw_spin_lock_irqsave(&store->lock, flags);
	lts_give(store, object, LIST);
	lts_returned(store);
	raw_spin_unlock_irqrestore(&store->lock, flags);
}

static void lts_give_llist(struct rcu_head *head)
{
	struct lts_object *object = container_of(head, struct lts_object, rcu);
	struct lts_store *store = object->store;

	preempt_disable();
	lts_give(store, object, LLIST);
	lts_returned(store);
	preempt_enable();
}

/* Starts */

static __always_inline int lts_begin(void *data, const u64 *key, const enum lts_pool pool,
				     const enum lts_table table, const enum lts_lock lock)
{
	struct lts_store *store = data;
	struct lts_object *object;
	unsigned long flags;
	u32 hash = table == RHASH ? 0 : lts_hash(key) & store->mask;
	u64 now = ktime_get_mono_fast_ns();
	int err = 0;

	/* All of it is an RCU read-side critical section; with a lock, interrupts are also off. */
	rcu_read_lock();
	if (!lts_lock(store, &flags, lock)) {
		rcu_read_unlock();
		lts_inc(store->local, busy);
		return -EBUSY;
	}
	object = lts_take(store, pool);
	if (!object) {
		lts_unlock(store, flags, lock);
		rcu_read_unlock();
		lts_inc(store->local, dropped);
		return -ENOSPC;
	}
	object->start = now;
	object->key[0] = key[0];
	object->key[1] = key[1];
	if (table == CHAINS) {
		/* The lock protects only the free list. */
		lts_unlock(store, flags, lock);
		lts_chain_add(&store->chains[hash], object);
	} else if (table == HLIST) {
		hlist_add_head(&object->node, &store->heads[hash]);
		lts_unlock(store, flags, lock);
	} else {
		object->live = true;
		err = rhashtable_insert_fast(&store->rhash, &object->rhash, lts_rhash);
		if (err) {
			object->live = false;
			lts_give(store, object, pool);
		}
		lts_unlock(store, flags, lock);
	}
	rcu_read_unlock();
	if (unlikely(err)) {
		lts_inc(store->local, dropped);
		return -ENOSPC;
	}
	lts_inc(store->local, begun);
	return 0;
}

/* Ends: how the object is found and taken out, by table */

static __always_inline int lts_end_hlist(struct lts_store *store, const u64 *key, u64 *start,
					 const enum lts_pool pool, const enum lts_lock lock)
{
	struct hlist_head *head = &store->heads[lts_hash(key) & store->mask];
	struct lts_object *object;
	unsigned long flags;

	if (!lts_lock(store, &flags, lock))
		return -EBUSY;
	hlist_for_each_entry(object, head, node) {
		if (lts_same(object->key, key))
			goto found;
	}
	lts_unlock(store, flags, lock);
	return -ENOENT;

found:
	hlist_del(&object->node);
	*start = object->start;
	if (pool == LIST)
		lts_give(store, object, LIST);
	lts_unlock(store, flags, lock);
	if (pool == LLIST)
		lts_give(store, object, LLIST);
	return 0;
}

static __always_inline int lts_end_rhash(struct lts_store *store, const u64 *key, u64 *start,
					 const enum lts_pool pool, const enum lts_lock lock)
{
	struct lts_object *object;
	unsigned long flags;
	bool found;

	do {
		object = rhashtable_lookup_fast(&store->rhash, key, lts_rhash);
		if (!object)
			return -ENOENT;
		if (!lts_lock(store, &flags, lock))
			return -EBUSY;
		/* The object may have been reused for another key meanwhile. */
		found = object->live && lts_same(object->key, key);
		if (found) {
			rhashtable_remove_fast(&store->rhash, &object->rhash, lts_rhash);
			object->live = false;
			*start = object->start;
			if (pool == LIST)
				lts_give(store, object, LIST);
		}
		lts_unlock(store, flags, lock);
	} while (!found);
	if (pool == LLIST)
		lts_give(store, object, LLIST);
	return 0;
}

static __always_inline int lts_end_chains(struct lts_store *store, const u64 *key, u64 *start,
					  const enum lts_pool pool)
{
	unsigned long *head = &store->chains[lts_hash(key) & store->mask];
	struct lts_object *object;

	do {
		object = lts_chain_find(head, key);
		if (!object)
			return -ENOENT;
	} while (!lts_chain_claim(object));
	lts_chain_clean(head);
	*start = object->start;
	call_rcu(&object->rcu, pool == LIST ? lts_give_list : lts_give_llist);
	return 0;
}

static __always_inline int lts_end(void *data, const u64 *key, const enum lts_pool pool,
				   const enum lts_table table, const enum lts_lock lock)
{
	struct lts_store *store = data;
	u64 start = 0;
	int err;

	rcu_read_lock();
	switch (table) {
	case HLIST:
		err = lts_end_hlist(store, key, &start, pool, lock);
		break;
	case RHASH:
		err = lts_end_rhash(store, key, &start, pool, lock);
		break;
	default:
		err = lts_end_chains(store, key, &start, pool);
		break;
	}
	rcu_read_unlock();
	if (likely(!err))
		lts_record(store->local, start);
	else if (err == -EBUSY)
		lts_inc(store->local, missed);
	else
		lts_inc(store->local, unmatched);
	return err;
}

/* Stores */

void lts_count_local(struct lts_local __percpu *local, struct lts_counts *counts)
{
	int cpu;

	memset(counts, 0, sizeof(*counts));
	for_each_possible_cpu(cpu) {
		struct lts_local *one = per_cpu_ptr(local, cpu);

		counts->begun += one->counts.begun;
		counts->ended += one->counts.ended;
		counts->dropped += one->counts.dropped;
		counts->busy += one->counts.busy;
		counts->missed += one->counts.missed;
		counts->unmatched += one->counts.unmatched;
		for (int slot = 0; slot < LTS_SLOTS; slot++)
			counts->delays += one->slots[slot];
	}
}

static void lts_count(void *data, struct lts_counts *counts)
{
	struct lts_store *store = data;

	lts_count_local(store->local, counts);
}

static void lts_settle(void *data)
{
	rcu_barrier();
}

static void lts_returned_sum(void *data, u64 *took, u64 *times)
{
	struct lts_store *store = data;
	int cpu;

	*took = 0;
	*times = 0;
	for_each_possible_cpu(cpu) {
		*took += per_cpu_ptr(store->local, cpu)->took;
		*times += per_cpu_ptr(store->local, cpu)->times;
	}
}

static void lts_destroy(void *data)
{
	struct lts_store *store = data;

	rcu_barrier();
	if (store->rhash.tbl)
		rhashtable_destroy(&store->rhash);
	free_percpu(store->local);
	kvfree(store->heads);
	kvfree(store->chains);
	kvfree(store->objects);
	kfree(store);
}

/*
 * Makes a store whose tables have at least as many chains as there are objects. All three
 * kinds of table are made; each combination uses one.
 */
static void *lts_create(unsigned int capacity)
{
	struct rhashtable_params params = lts_rhash;
	struct lts_store *store = kzalloc_obj(*store);
	u32 buckets = roundup_pow_of_two(capacity);

	if (!store)
		return NULL;
	raw_spin_lock_init(&store->lock);
	INIT_LIST_HEAD(&store->free);
	init_llist_head(&store->lfree);
	store->mask = buckets - 1;
	store->heads = kvcalloc(buckets, sizeof(*store->heads), GFP_KERNEL);
	store->chains = kvcalloc(buckets, sizeof(*store->chains), GFP_KERNEL);
	store->objects = kvcalloc(capacity, sizeof(*store->objects), GFP_KERNEL);
	store->local = alloc_percpu(struct lts_local);
	/* Large enough that the table does not grow, which would queue work. */
	params.nelem_hint = min(capacity, U16_MAX);
	if (!store->heads || !store->chains || !store->objects || !store->local ||
	    rhashtable_init(&store->rhash, &params)) {
		lts_destroy(store);
		return NULL;
	}
	for (unsigned int i = 0; i < capacity; i++)
		store->objects[i].store = store;
	return store;
}

static void *lts_create_list(unsigned int capacity)
{
	struct lts_store *store = lts_create(capacity);

	for (unsigned int i = 0; store && i < capacity; i++)
		lts_give(store, &store->objects[i], LIST);
	return store;
}

static void *lts_create_llist(unsigned int capacity)
{
	struct lts_store *store = lts_create(capacity);

	for (unsigned int i = 0; store && i < capacity; i++)
		lts_give(store, &store->objects[i], LLIST);
	return store;
}

/* LTS_FUNCTIONS(letter, pool, table, lock) */
#define LTS_FUNCTIONS(letter, ...)						\
	static int lts_begin_##letter(void *store, const u64 *key)		\
	{									\
		return lts_begin(store, key, __VA_ARGS__);			\
	}									\
	static int lts_end_##letter(void *store, const u64 *key)		\
	{									\
		return lts_end(store, key, __VA_ARGS__);			\
	}

LTS_FUNCTIONS(a, LIST, HLIST, SPIN)
LTS_FUNCTIONS(b, LIST, HLIST, TRY)
LTS_FUNCTIONS(c, LLIST, HLIST, SPIN)
LTS_FUNCTIONS(d, LLIST, HLIST, TRY)
LTS_FUNCTIONS(e, LIST, RHASH, SPIN)
LTS_FUNCTIONS(f, LIST, RHASH, TRY)
LTS_FUNCTIONS(g, LLIST, RHASH, SPIN)
LTS_FUNCTIONS(h, LLIST, RHASH, TRY)
LTS_FUNCTIONS(i, LIST, CHAINS, SPIN)
LTS_FUNCTIONS(j, LIST, CHAINS, TRY)
LTS_FUNCTIONS(k, LLIST, CHAINS, NONE)

#define LTS_STRUCTURE(upper, letter, list, words, with_try, late)		\
	{									\
		.id = #upper, .what = words,					\
		.trylock = with_try, .deferred = late,				\
		.create = lts_create_##list, .destroy = lts_destroy,		\
		.begin = lts_begin_##letter, .end = lts_end_##letter,		\
		.settle = lts_settle, .count = lts_count,			\
		.returned = lts_returned_sum,					\
	}

const struct lts_structure lts_combinations[LTS_COMBINATIONS] = {
	LTS_STRUCTURE(A, a, list, "list, hlist, spinlock", false, false),
	LTS_STRUCTURE(B, b, list, "list, hlist, trylock", true, false),
	LTS_STRUCTURE(C, c, llist, "llist, hlist, spinlock", false, false),
	LTS_STRUCTURE(D, d, llist, "llist, hlist, trylock", true, false),
	LTS_STRUCTURE(E, e, list, "list, rhashtable, spinlock", false, false),
	LTS_STRUCTURE(F, f, list, "list, rhashtable, trylock", true, false),
	LTS_STRUCTURE(G, g, llist, "llist, rhashtable, spinlock", false, false),
	LTS_STRUCTURE(H, h, llist, "llist, rhashtable, trylock", true, false),
	LTS_STRUCTURE(I, i, list, "list, lock-free chains, spinlock", false, true),
	LTS_STRUCTURE(J, j, list, "list, lock-free chains, trylock", true, true),
	LTS_STRUCTURE(K, k, llist, "llist, lock-free chains, no lock", false, true),
};
