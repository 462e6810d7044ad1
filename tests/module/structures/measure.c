// SPDX-License-Identifier: GPL-2.0
/*
 * Measures the cost of each structure, in a machine whose time stamp counter counts instructions,
 * and its losses when CPUs use it at once. Prints a line for each figure: `result NAME LIVE TOTAL
 * CALLS`, as lt_bench prints.
 *
 *	pair_X LIVE	a pair, first in, first out, with that many live; one CPU
 *	back_X LIVE	giving an object back after a grace period
 *	batch_X LIVE	a pair; that many begin, and then end on the same CPU
 *	across_X LIVE	a pair; that many begin, and then end on the other CPU
 *	lost_X CPUS	pairs lost, of 1,000
 *	worst_X CPUS	pairs lost, of 1,000, on the CPU that lost most
 *	lost_across_X, worst_across_X CPUS
 *			these losses, if each CPU ends the events of the next CPU
 */
#include "run.h"

#include <linux/irqflags.h>
#include <linux/module.h>
#include <asm/msr.h>

static const struct lts_structure *const none[] = { &lts_nothing, &lts_clocks };

const struct lts_structure lts_engine = {
	.id = "L", .what = "the engine",
	.create = lts_engine_create, .destroy = lts_engine_destroy,
	.begin = lts_engine_begin, .end = lts_engine_end, .count = lts_engine_count,
};

const struct lts_structure *lts_number(unsigned int number)
{
	if (number < LTS_COMBINATIONS)
		return &lts_combinations[number];
	number -= LTS_COMBINATIONS;
	return number == 0 ? &lts_engine : number == 1 ? &lts_objpool : NULL;
}

static void report(const char *what, const char *id, u64 live, u64 total, u64 calls)
{
	pr_info("result %s_%s %llu %llu %llu\n", what, id, live, total, calls);
}

/* Makes a store for live events, and for ended ones that a grace period must free. */
static void *create(const struct lts_structure *structure, u64 live, u64 calls)
{
	return structure->create(live + live / 16 + 1 + (structure->deferred ? calls : 0));
}

/* One CPU */

static u64 pairs(const struct lts_structure *structure, void *store, u64 live, u64 first, u64 calls)
{
	unsigned long flags;
	u64 key[LTS_KEY];
	u64 start, took;

	local_irq_save(flags);
	start = rdtsc();
	for (u64 n = first; n < first + calls; n++) {
		lts_key(key, 0, n + live - 1);
		structure->begin(store, key);
		lts_key(key, 0, n);
		structure->end(store, key);
	}
	took = rdtsc() - start;
	local_irq_restore(flags);
	return took;
}

static int measure(const struct lts_structure *structure, u64 live, u64 calls)
{
	/*
	 * Long enough that every live event has begun between ends: until then, each delay is a
	 * new maximum.
	 */
	u64 before = max(calls, live);
	void *store = create(structure, live, before + calls);
	struct lts_counts counts;
	u64 key[LTS_KEY];
	u64 took, times;

	if (!store)
		return -ENOMEM;
	for (u64 n = 0; n < live - 1; n++) {
		lts_key(key, 0, n);
		structure->begin(store, key);
	}
	/* One-time work is over after the first round. */
	pairs(structure, store, live, 0, before);
	took = pairs(structure, store, live, before, calls);
	report("pair", structure->id, live, took, calls);
	for (u64 n = before + calls; n < before + calls + live - 1; n++) {
		lts_key(key, 0, n);
		structure->end(store, key);
	}
	structure->count(store, &counts);
	if (structure->deferred)
		structure->settle(store);
	if (structure->deferred) {
		structure->returned(store, &took, &times);
		report("back", structure->id, live, took, times);
	}
	structure->destroy(store);
	/* On one CPU, nothing may be lost. */
	return counts.begun != counts.ended || counts.dropped || counts.busy ? -EIO : 0;
}

int lts_measure(unsigned int calls, bool bpf, bool by_task)
{
	static const u64 lives[] = { 1, 1000, 64000 };
	const struct lts_structure *structure;
	int err = 0;

	for (int i = 0; i < ARRAY_SIZE(none) && !bpf; i++)
		err = err ?: measure(none[i], 1, calls);
	/* One event per task. */
	if (by_task)
		return measure(&lts_bpf_task, 1, calls);
	for (int i = 0; i < ARRAY_SIZE(lives) && bpf; i++)
		err = err ?: measure(&lts_bpf, lives[i], calls);
	for (int i = 0; i < ARRAY_SIZE(lives) && !bpf; i++)
		lts_for_each(structure)
			err = err ?: measure(structure, lives[i], calls);
	return err;
}

/* Two CPUs: one works at a time, and the other waits */

/*
 * Calls between two reads of the counter. The counter also counts the instructions
 * of interrupts on the other CPU. In most rounds, no interrupt falls into a short slice.
 */
#define SLICE 1000

struct across {
	const struct lts_structure *structure;
	void *store;
	u64 live;
	u64 first;
	unsigned int who;
	bool ends;
	/* Cost of each slice in this round: its starts and ends. */
	u64 *took;
};

static void half(unsigned int cpu, void *arg)
{
	struct across *across = arg;
	unsigned long flags;
	u64 key[LTS_KEY];
	u64 end = across->first + across->live;
	u64 *took = across->took;
	u64 n = across->first;
	int (*call)(void *store, const u64 *key);

	if (cpu != across->who)
		return;
	call = across->ends ? across->structure->end : across->structure->begin;
	/* Waits until the other CPU is idle. */
	fsleep(5000);
	while (n < end) {
		u64 until = min(n + SLICE, end);
		u64 start, slice;

		local_irq_save(flags);
		start = rdtsc();
		for (; n < until; n++) {
			lts_key(key, 0, n);
			call(across->store, key);
		}
		slice = rdtsc() - start;
		local_irq_restore(flags);
		*took = slice + (across->ends ? *took : 0);
		took++;
	}
}

/*
 * Reports the sum of the slices' costs. The cost of a slice is its smallest in several
 * rounds, starts and ends together: where starts find objects depends on where ends
 * have put them.
 */
static int batches(const struct lts_structure *structure, u64 live, unsigned int ender,
		   const char *what)
{
	struct across across = { .structure = structure, .live = live };
	u64 slices = DIV_ROUND_UP(live, SLICE);
	/* Many live events take a long time, but few of their many slices are disturbed. */
	int rounds = slices > 1 ? 8 : 16;
	struct lts_counts counts;
	u64 *least = kcalloc(2 * slices, sizeof(*least), GFP_KERNEL);
	u64 total = 0;
	int err = 0;

	across.store = create(structure, live, live);
	if (!least || !across.store) {
		err = -ENOMEM;
		goto out;
	}
	across.took = least + slices;
	for (int round = 0; round < rounds && !err; round++) {
		for (int ends = 0; ends < 2 && !err; ends++) {
			across.ends = ends;
			across.who = ends ? ender : 0;
			err = lt_run_on_cpus(2, half, &across);
		}
		/* One-time work is over after the first round. */
		for (u64 i = 0; i < slices; i++)
			least[i] = round <= 1 ? across.took[i] : min(least[i], across.took[i]);
		across.first += live;
		if (structure->deferred)
			structure->settle(across.store);
	}
	structure->count(across.store, &counts);
	for (u64 i = 0; i < slices; i++)
		total += least[i];
	if (!err)
		report(what, structure->id, live, total, live);
	if (counts.begun != counts.ended || counts.dropped || counts.busy)
		err = err ?: -EIO;
out:
	if (across.store)
		structure->destroy(across.store);
	kfree(least);
	return err;
}

static int both_ways(const struct lts_structure *structure, u64 live)
{
	return batches(structure, live, 0, "batch") ?: batches(structure, live, 1, "across");
}

int lts_measure_across(unsigned int live, bool bpf)
{
	const struct lts_structure *structure;
	int err;

	if (bpf)
		return both_ways(&lts_bpf, live);
	err = both_ways(&lts_nothing, live);
	lts_for_each(structure)
		err = err ?: both_ways(structure, live);
	return err;
}

/* Many CPUs at once */

struct crowd {
	const struct lts_structure *structure;
	void *store;
	unsigned int cpus;
	unsigned int live;
	unsigned int rounds;
	bool across;
	atomic_t arrived;
	struct lts_share *shares;
};

static void member(unsigned int cpu, void *arg)
{
	struct crowd *crowd = arg;
	const struct lts_structure *structure = crowd->structure;
	struct lts_share *share = &crowd->shares[cpu];
	unsigned int whose = crowd->across ? (cpu + 1) % crowd->cpus : cpu;
	u64 key[LTS_KEY];

	lts_meet(&crowd->arrived, crowd->cpus);
	for (unsigned int round = 0; round < crowd->rounds; round++) {
		for (u64 n = 0; n < crowd->live; n++) {
			lts_key(key, cpu, n);
			share->pairs++;
			if (structure->begin(crowd->store, key))
				share->lost++;
		}
		if (crowd->across)
			lts_meet(&crowd->arrived, crowd->cpus);
		for (u64 n = 0; n < crowd->live; n++) {
			int err;

			lts_key(key, whose, n);
			err = structure->end(crowd->store, key);
			if (err != -EBUSY)
				continue;
			while (err == -EBUSY) {
				cpu_relax();
				err = structure->end(crowd->store, key);
			}
			/* Lost: without the retries, the event would have remained live. */
			if (!err)
				share->lost++;
		}
		if (crowd->across)
			lts_meet(&crowd->arrived, crowd->cpus);
		cond_resched();
	}
}

static int crowd_of(const struct lts_structure *structure, struct crowd *crowd)
{
	struct lts_share all = {};
	u64 worst = 0;
	int err;

	crowd->structure = structure;
	crowd->store = structure->create(crowd->cpus * crowd->live * 17 / 16 + 1);
	if (!crowd->store)
		return -ENOMEM;
	memset(crowd->shares, 0, crowd->cpus * sizeof(*crowd->shares));
	atomic_set(&crowd->arrived, 0);
	err = lt_run_on_cpus(crowd->cpus, member, crowd);
	structure->destroy(crowd->store);
	if (err)
		return err;
	for (unsigned int cpu = 0; cpu < crowd->cpus; cpu++) {
		all.pairs += crowd->shares[cpu].pairs;
		all.lost += crowd->shares[cpu].lost;
		worst = max(worst, crowd->shares[cpu].lost);
	}
	/* Only the loader knows the losses of these programs. */
	if (structure == &lts_bpf)
		return 0;
	report(crowd->across ? "lost_across" : "lost", structure->id, crowd->cpus,
	       1000 * all.lost, all.pairs);
	report(crowd->across ? "worst_across" : "worst", structure->id, crowd->cpus,
	       1000 * worst, all.pairs / crowd->cpus);
	return 0;
}

int lts_crowd(unsigned int cpus, unsigned int live, unsigned int rounds, bool across, bool bpf)
{
	const struct lts_structure *structure;
	struct crowd crowd = { .cpus = cpus, .live = live, .rounds = rounds, .across = across };
	int err = 0;

	crowd.shares = kcalloc(cpus, sizeof(*crowd.shares), GFP_KERNEL);
	if (!crowd.shares)
		return -ENOMEM;
	if (bpf)
		err = crowd_of(&lts_bpf, &crowd);
	else
		lts_for_each(structure)
			err = err ?: crowd_of(structure, &crowd);
	kfree(crowd.shares);
	return err;
}
