// SPDX-License-Identifier: GPL-2.0
/*
 * Checks that each structure pairs events, counts its losses, and returns all objects: on one CPU,
 * across two, and on two at once.
 */
#include "run.h"

#include <linux/module.h>

/* Twice MINE are live at a time; a round begins three times as many. */
#define CAPACITY 1000
#define MINE 300
#define ROUNDS 8

static bool fine(const struct lts_structure *structure, const char *what, bool is)
{
	if (!is)
		pr_err("%s: FAILED: %s\n", structure->id, what);
	return is;
}

static void settle(const struct lts_structure *structure, void *store)
{
	if (structure->deferred)
		structure->settle(store);
}

/* Exhausts the pool, then ends everything, once. The pool is complete if this succeeds twice. */
static int all_of_it(const struct lts_structure *structure, void *store, u64 first)
{
	struct lts_counts before, after;
	u64 key[LTS_KEY];
	u64 n;

	structure->count(store, &before);
	for (n = 0; n < CAPACITY; n++) {
		lts_key(key, 0, first + n);
		if (!fine(structure, "an object is missing",
			  !structure->begin(store, key)))
			return -EIO;
	}
	lts_key(key, 0, first + n);
	if (!fine(structure, "more events begin than there are objects",
		  structure->begin(store, key) == -ENOSPC))
		return -EIO;
	if (!fine(structure, "an event ends that did not begin",
		  structure->end(store, key) == -ENOENT))
		return -EIO;
	for (n = 0; n < CAPACITY; n++) {
		lts_key(key, 0, first + n);
		if (!fine(structure, "an event does not end",
			  !structure->end(store, key)))
			return -EIO;
		if (!fine(structure, "an event ends twice",
			  structure->end(store, key) == -ENOENT))
			return -EIO;
	}
	settle(structure, store);
	structure->count(store, &after);
	if (!fine(structure, "begun, wrongly counted",
		  after.begun - before.begun == CAPACITY))
		return -EIO;
	if (!fine(structure, "ended, wrongly counted",
		  after.ended - before.ended == CAPACITY))
		return -EIO;
	if (!fine(structure, "delays, wrongly counted",
		  after.delays - before.delays == CAPACITY))
		return -EIO;
	if (!fine(structure, "dropped, not counted",
		  after.dropped - before.dropped == 1))
		return -EIO;
	if (!fine(structure, "unmatched, not counted",
		  after.unmatched - before.unmatched == CAPACITY + 1))
		return -EIO;
	return 0;
}

/* Two events of one key begin and end separately. */
static int same_key_twice(const struct lts_structure *structure, void *store)
{
	u64 key[LTS_KEY];

	lts_key(key, 0, 1);
	if (!fine(structure, "a key does not begin twice",
		  !structure->begin(store, key) && !structure->begin(store, key)))
		return -EIO;
	if (!fine(structure, "a key does not end twice",
		  !structure->end(store, key) && !structure->end(store, key)))
		return -EIO;
	if (!fine(structure, "a key ends more than twice",
		  structure->end(store, key) == -ENOENT))
		return -EIO;
	settle(structure, store);
	return 0;
}

/* Each CPU ends its own events; then each ends the other's; then both try to end all events. */
struct pair_work {
	const struct lts_structure *structure;
	void *store;
	atomic_t arrived;
	/* An event was not found, or was found although it had not begun. */
	bool wrong;
	u64 begun[2];
	u64 ended[2];
	u64 lost[2];
	/* Whether an event of the round has begun, by CPU. */
	bool live[2][MINE];
};

static int end_surely(const struct lts_structure *structure, void *store, const u64 *key)
{
	int err;

	do {
		err = structure->end(store, key);
	} while (err == -EBUSY);
	return err;
}

static void begin_mine(struct pair_work *work, unsigned int cpu, u64 first)
{
	u64 key[LTS_KEY];

	for (u64 n = 0; n < MINE; n++) {
		int err;

		lts_key(key, cpu, first + n);
		err = work->structure->begin(work->store, key);
		work->live[cpu][n] = !err;
		if (!err)
			work->begun[cpu]++;
		else
			work->lost[cpu]++;
	}
}

/* Ends the events of CPU @whose on CPU @cpu, and counts them. */
static void end_those_of(struct pair_work *work, unsigned int cpu, unsigned int whose, u64 first,
			 bool all)
{
	u64 key[LTS_KEY];

	for (u64 n = 0; n < MINE; n++) {
		int err;

		lts_key(key, whose, first + n);
		err = end_surely(work->structure, work->store, key);
		if (!err)
			work->ended[cpu]++;
		/* Exactly the events that began are found. */
		if (all && !err != work->live[whose][n])
			WRITE_ONCE(work->wrong, true);
	}
}

static void two_at_once(unsigned int cpu, void *arg)
{
	struct pair_work *work = arg;

	for (int round = 0; round < ROUNDS; round++) {
		u64 first = (u64)round * MINE;

		/* Its own events. */
		begin_mine(work, cpu, first);
		end_those_of(work, cpu, cpu, first, true);
		lts_meet(&work->arrived, 2);
		/* The other CPU's events. */
		begin_mine(work, cpu, first);
		lts_meet(&work->arrived, 2);
		end_those_of(work, cpu, 1 - cpu, first, true);
		lts_meet(&work->arrived, 2);
		/* Both CPUs try to end all events. */
		begin_mine(work, cpu, first);
		lts_meet(&work->arrived, 2);
		end_those_of(work, cpu, 0, first, false);
		end_those_of(work, cpu, 1, first, false);
		lts_meet(&work->arrived, 2);
		if (cpu == 0)
			settle(work->structure, work->store);
		lts_meet(&work->arrived, 2);
	}
}

static int on_two(const struct lts_structure *structure, void *store)
{
	struct pair_work *work = kzalloc_obj(*work);
	struct lts_counts before, after;
	u64 begun, ended, lost;
	bool wrong;
	int err;

	if (!work)
		return -ENOMEM;
	work->structure = structure;
	work->store = store;
	structure->count(store, &before);
	err = lt_run_on_cpus(2, two_at_once, work);
	structure->count(store, &after);
	begun = work->begun[0] + work->begun[1];
	ended = work->ended[0] + work->ended[1];
	lost = work->lost[0] + work->lost[1];
	wrong = work->wrong;
	kfree(work);
	if (err)
		return err;
	if (!fine(structure, "two CPUs: not found, or found although it had not begun",
		  !wrong))
		return -EIO;
	if (!fine(structure, "two CPUs: begun and ended differ, or are 0",
		  begun == ended && begun))
		return -EIO;
	if (!fine(structure, "two CPUs: begun, wrongly counted",
		  after.begun - before.begun == begun))
		return -EIO;
	if (!fine(structure, "two CPUs: ended, wrongly counted",
		  after.ended - before.ended == ended))
		return -EIO;
	if (!fine(structure, "two CPUs: delays, wrongly counted",
		  after.delays - before.delays == ended))
		return -EIO;
	if (!fine(structure, "two CPUs: lost, wrongly counted",
		  after.dropped - before.dropped + after.busy - before.busy == lost))
		return -EIO;
	if (!fine(structure, "two CPUs: an event is lost without a reason",
		  !lost || structure->trylock || structure->deferred))
		return -EIO;
	settle(structure, store);
	return 0;
}

static int one_of_all(const struct lts_structure *structure)
{
	void *store = structure->create(CAPACITY);
	int err;

	if (!store)
		return -ENOMEM;
	err = all_of_it(structure, store, 0);
	if (!err)
		err = same_key_twice(structure, store);
	if (!err)
		err = on_two(structure, store);
	if (!err)
		err = all_of_it(structure, store, 2 * CAPACITY);
	if (!err) {
		struct lts_counts counts;

		structure->count(store, &counts);
		pr_info("%s: ok: %s: begun=%llu ended=%llu dropped=%llu busy=%llu missed=%llu unmatched=%llu\n",
			structure->id, structure->what, counts.begun, counts.ended,
			counts.dropped, counts.busy, counts.missed, counts.unmatched);
	}
	/* After a failure some events may be live, but no callback outlives the module. */
	settle(structure, store);
	if (!err)
		structure->destroy(store);
	return err;
}

int lts_check(void)
{
	const struct lts_structure *structure;
	int failed = 0;

	lts_for_each(structure) {
		int err = one_of_all(structure);

		if (err)
			failed = err;
	}
	return failed;
}
