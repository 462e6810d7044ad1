/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the combinations consist of: objects, counters, the fields of the free lists and of the
 * tables, and the chains that need no lock. The peers use the counters and the hash.
 */
#ifndef _LT_STRUCTURES_STORE_H
#define _LT_STRUCTURES_STORE_H

#include <linux/hash.h>
#include <linux/jhash.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/percpu.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "structures.h"

/* A histogram of powers of two. */
#define LTS_SLOTS 65

struct lts_local {
	struct lts_counts counts;
	u64 slots[LTS_SLOTS];
	/* The time when an object was last given back after a grace period. */
	u64 last;
	u64 took;
	u64 times;
};

struct lts_store;

struct lts_object {
	/* Used while the object is free. */
	union {
		struct list_head free;
		struct llist_node lfree;
	};
	/* Used while the object is live, and until no reader sees it. */
	union {
		struct hlist_node node;
		struct rhash_head rhash;
		unsigned long next;
	};
	u64 key[LTS_KEY];
	u64 start;
	bool live;
	struct lts_store *store;
	struct rcu_head rcu;
};

struct lts_store {
	raw_spinlock_t lock;
	struct list_head free;
	struct llist_head lfree;
	u32 mask;
	struct hlist_head *heads;
	unsigned long *chains;
	struct rhashtable rhash;
	struct lts_local __percpu *local;
	struct lts_object *objects;
};

#define lts_inc(local, field) this_cpu_inc((local)->counts.field)

static __always_inline bool lts_same(const u64 *a, const u64 *b)
{
	return a[0] == b[0] && a[1] == b[1];
}

/* Like rhashtable's default for keys of that size. */
static __always_inline u32 lts_hash(const u64 *key)
{
	return jhash2((const u32 *)key, LTS_KEY * 2, 0x12345678);
}

/* Counts one delay. */
static __always_inline void lts_record(struct lts_local __percpu *local, u64 start)
{
	u64 delay = ktime_get_mono_fast_ns() - start;

	this_cpu_inc(local->slots[fls64(delay)]);
	lts_inc(local, ended);
}

void lts_count_local(struct lts_local __percpu *local, struct lts_counts *counts);

/*
 * A table without locks, like liburcu's cds_lfht without resizing. It consists of
 * chains. A removed node is marked in its link, and then unlinked by the CPU that
 * removed it, or by another CPU that removes a node of the same chain at that time.
 * An object may be used again only after a grace period: until then, other CPUs may
 * follow the object's link, and compare a head with the object's address.
 */
#define LTS_REMOVED 1UL

static __always_inline struct lts_object *lts_at(unsigned long link)
{
	return (struct lts_object *)(link & ~LTS_REMOVED);
}

static __always_inline void lts_chain_add(unsigned long *head, struct lts_object *object)
{
	unsigned long first = READ_ONCE(*head);

	/* Release: a CPU that follows the link sees the key. */
	do {
		WRITE_ONCE(object->next, first);
	} while (!try_cmpxchg_release(head, &first, (unsigned long)object));
}

static __always_inline struct lts_object *lts_chain_find(unsigned long *head, const u64 *key)
{
	/* Address dependencies order these reads after the release in lts_chain_add(). */
	struct lts_object *object = lts_at(READ_ONCE(*head));

	while (object) {
		unsigned long next = READ_ONCE(object->next);

		if (!(next & LTS_REMOVED) && lts_same(object->key, key))
			return object;
		object = lts_at(next);
	}
	return NULL;
}

/* Marks the object; returns whether this call did. */
static __always_inline bool lts_chain_claim(struct lts_object *object)
{
	unsigned long next = READ_ONCE(object->next);

	do {
		if (next & LTS_REMOVED)
			return false;
	} while (!try_cmpxchg(&object->next, &next, next | LTS_REMOVED));
	return true;
}

/* Unlinks all marked objects of a chain. */
static __always_inline void lts_chain_clean(unsigned long *head)
{
	unsigned long *link, at, next;

again:
	link = head;
	at = READ_ONCE(*link);
	while (lts_at(at)) {
		next = READ_ONCE(lts_at(at)->next);
		if (!(next & LTS_REMOVED)) {
			link = &lts_at(at)->next;
			at = next;
			continue;
		}
		/* Fails if the preceding object was removed, or an object was added. */
		if (cmpxchg(link, at, next & ~LTS_REMOVED) != at)
			goto again;
		at = next & ~LTS_REMOVED;
	}
}

#endif /* _LT_STRUCTURES_STORE_H */
