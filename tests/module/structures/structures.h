/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ways to pair a start with its end by a key, behind one interface: the eleven
 * combinations of Desfossez's thesis (Table 4.1, A to K), the engine, and others.
 *
 *	begin: take an object from the pool, read the clock, enter it under the key
 *	end:   find the key, take it out, read the clock, count the delay in a
 *	       histogram, give the object back
 *
 * Each structure counts its operations, and above all its losses. The counts of the BPF
 * programs, which their loader keeps, and of the two baselines are all 0 here.
 */
#ifndef _LT_STRUCTURES_H
#define _LT_STRUCTURES_H

#include <linux/types.h>

/* Words of a key. */
#define LTS_KEY 2

/* Results of the starts and ends of a structure; an approximate snapshot. */
struct lts_counts {
	u64 begun;
	u64 ended;
	/* Starts that found no free object. */
	u64 dropped;
	/* Starts and ends that did not get the lock. */
	u64 busy;
	u64 missed;
	/* Ends of keys that were not live. */
	u64 unmatched;
	/* Delays in the histogram. */
	u64 delays;
};

/**
 * struct lts_structure - a way to pair events
 * @id: its letter
 * @what: its parts, for a person
 * @trylock: whether it gives up if it does not get the lock
 * @deferred: whether an object is free again only after a grace period
 * @create: returns a store for that many live events, or NULL. May sleep
 * @destroy: frees a store, in which no event is live. May sleep
 * @begin: returns 0, -ENOSPC without a free object, or -EBUSY without the lock.
 *	Any context but NMI
 * @end: returns 0, -ENOENT if the key is not live, or -EBUSY without the lock.
 *	Any context but NMI
 * @settle: waits until ended objects are free again, if @deferred. May sleep
 * @count: fills in the counters
 * @returned: the total cost of giving objects back after a grace period, and how
 *	often it was measured, if @deferred
 */
struct lts_structure {
	const char *id;
	const char *what;
	bool trylock;
	bool deferred;
	void *(*create)(unsigned int capacity);
	void (*destroy)(void *store);
	int (*begin)(void *store, const u64 *key);
	int (*end)(void *store, const u64 *key);
	void (*settle)(void *store);
	void (*count)(void *store, struct lts_counts *counts);
	void (*returned)(void *store, u64 *took, u64 *times);
};

/* combinations.c */
#define LTS_COMBINATIONS 11
extern const struct lts_structure lts_combinations[LTS_COMBINATIONS];
/* peers.c */
extern const struct lts_structure lts_objpool;
extern const struct lts_structure lts_nothing;
extern const struct lts_structure lts_clocks;

/* BPF programs by file descriptors of the current task; 0 or a negative errno. */
extern const struct lts_structure lts_bpf;
extern const struct lts_structure lts_bpf_task;
int lts_bpf_get(int begin, int end);
void lts_bpf_put(void);

/* ../structures.rs: the engine. */
void *lts_engine_create(unsigned int capacity);
void lts_engine_destroy(void *store);
int lts_engine_begin(void *store, const u64 *key);
int lts_engine_end(void *store, const u64 *key);
void lts_engine_count(void *store, struct lts_counts *counts);

/* Number of pairs of a CPU, and number of lost pairs. */
struct lts_share {
	u64 pairs;
	u64 lost;
};

/*
 * check.c and measure.c: run when the module is loaded. Return 0 or a negative
 * errno. May sleep.
 */
int lts_check(void);
int lts_measure(unsigned int calls, bool bpf, bool by_task);
int lts_measure_across(unsigned int live, bool bpf);
int lts_crowd(unsigned int cpus, unsigned int live, unsigned int rounds,
	      bool across, bool bpf);

#endif /* _LT_STRUCTURES_H */
