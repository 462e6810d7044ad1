// SPDX-License-Identifier: GPL-2.0
/* lt_api: begin, end, keys and references. */
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "api.h"

void threshold(void)
{
	struct latency_tracker_config c = config(8, 0);
	struct latency_tracker *t = latency_tracker_create(&c);
	struct data data = { .serial = 42, .text = "of the event" };
	u64 key = 7;

	CHECK(!IS_ERR(t));
	CHECK(!latency_tracker_event_in_at(t, &key, 8, &data, 100, 0));
	CHECK(!latency_tracker_event_out_at(t, &key, 8, 3, 1100));
	CHECK(reports == 0);
	CHECK(!latency_tracker_event_in_at(t, &key, 8, &data, 100, 0));
	CHECK(!latency_tracker_event_out_at(t, &key, 8, 3, 1101));
	CHECK(reports == 1 && last.reason == LATENCY_TRACKER_THRESHOLD);
	CHECK(last.tracker == t && last.priv == &reports && last.id == 3);
	CHECK(last.start == 100 && last.end == 1101 && last.delay == 1001);
	CHECK(last.threshold == 1000);
	CHECK(last.key_size == 8 && !memcmp(last_key, &key, 8));
	CHECK(last.data_size == sizeof(data));
	CHECK(!memcmp(&last_data, &data, sizeof(data)));
	CHECK(latency_tracker_event_out(t, &key, 8, 0) == -ENOENT);
	latency_tracker_set_threshold(t, 5000);
	CHECK(!latency_tracker_event_in_at(t, &key, 8, NULL, 100, 0));
	CHECK(!latency_tracker_event_out_at(t, &key, 8, 3, 5100));
	CHECK(reports == 1);
	/* Without explicit times, the clock is read. */
	latency_tracker_set_threshold(t, 0);
	CHECK(!latency_tracker_event_in(t, &key, 8, NULL));
	udelay(5);
	CHECK(!latency_tracker_event_out(t, &key, 8, 0));
	CHECK(reports == 2 && last.delay >= 5000 && last_data.serial == 0);
	latency_tracker_destroy(t);
	/* Without a callback, nothing is reported. */
	c.callback = NULL;
	t = latency_tracker_create(&c);
	CHECK(!latency_tracker_event_in_at(t, &key, 8, NULL, 100, 0));
	CHECK(!latency_tracker_event_out_at(t, &key, 8, 3, 1101));
	CHECK(reports == 2);
	latency_tracker_destroy(t);
}

void worst(void)
{
	struct latency_tracker_config c = config(8, LATENCY_TRACKER_WORST);
	struct latency_tracker *t = latency_tracker_create(&c);
	static const u64 delays[] = { 900, 2000, 1500, 2000, 2001 };
	static const int expected[] = { 0, 1, 1, 1, 2 };
	u64 key = 1;
	int i;

	CHECK(!IS_ERR(t));
	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		CHECK(!latency_tracker_event_in_at(t, &key, 8, NULL, 10, 0));
		CHECK(!latency_tracker_event_out_at(t, &key, 8, 0,
						    10 + delays[i]));
		CHECK(reports == expected[i]);
	}
	latency_tracker_destroy(t);
}

void keys_of_all_sizes(void)
{
	u8 key[LATENCY_TRACKER_KEY_MAX], copy[LATENCY_TRACKER_KEY_MAX];
	struct latency_tracker_event *event;
	u32 size;

	memset(key, 0xa5, sizeof(key));
	for (size = 1; size <= LATENCY_TRACKER_KEY_MAX; size++) {
		struct latency_tracker_config c = config(size, 0);
		struct latency_tracker *t;

		c.data_size = (size - 1) * 4;
		t = latency_tracker_create(&c);
		CHECK(!IS_ERR(t));
		CHECK(!latency_tracker_event_in_at(t, key, size, NULL, 5, 0));
		key[size - 1] ^= 1;
		CHECK(latency_tracker_event_out(t, key, size, 0) == -ENOENT);
		key[size - 1] ^= 1;
		CHECK(latency_tracker_event_out(t, key, size - 1, 0) == -EINVAL);
		CHECK(latency_tracker_event_out(t, key, size + 1, 0) == -EINVAL);
		event = latency_tracker_lookup(t, key, size);
		CHECK(!IS_ERR(event));
		CHECK(latency_tracker_event_key(t, event, copy, size) == size);
		CHECK(!memcmp(key, copy, size));
		latency_tracker_event_put(t, event);
		CHECK(!latency_tracker_event_out(t, key, size, 0));
		CHECK(last.key_size == size && !memcmp(last_key, key, size));
		CHECK(last.data_size == (size - 1) * 4);
		latency_tracker_destroy(t);
	}
}

void the_length_is_part_of_a_key(void)
{
	struct latency_tracker_config c =
		config(64, LATENCY_TRACKER_VARIABLE_KEYS);
	struct latency_tracker *t = latency_tracker_create(&c);
	static const u8 zeros[64];
	size_t size;

	CHECK(!IS_ERR(t));
	for (size = 1; size <= 16; size++)
		CHECK(!latency_tracker_event_in(t, zeros, size, NULL));
	CHECK(latency_tracker_event_in(t, zeros, 64, NULL) == -ENOSPC);
	CHECK(latency_tracker_event_in(t, zeros, 0, NULL) == -EINVAL);
	CHECK(latency_tracker_event_in(t, zeros, 65, NULL) == -EINVAL);
	CHECK(latency_tracker_event_out(t, zeros, 17, 0) == -ENOENT);
	for (size = 1; size <= 16; size++) {
		CHECK(!latency_tracker_event_out(t, zeros, size, 0));
		CHECK(latency_tracker_event_out(t, zeros, size, 0) == -ENOENT);
	}
	latency_tracker_destroy(t);
}

struct visits {
	u64 starts;
	int stop_after;
	int seen;
};

static int visit(struct latency_tracker *t, struct latency_tracker_event *event,
		 void *arg)
{
	struct visits *visits = arg;

	visits->starts += latency_tracker_event_start(t, event);
	return ++visits->seen == visits->stop_after;
}

void duplicates(void)
{
	struct latency_tracker_config c = config(4, 0);
	struct latency_tracker *t = latency_tracker_create(&c);
	struct latency_tracker_event *event;
	struct visits visits = {}, first = { .stop_after = 1 };
	u32 key = 9;
	u64 start;

	CHECK(!IS_ERR(t));
	for (start = 1; start <= 1000; start *= 10)
		CHECK(!latency_tracker_event_in_at(t, &key, 4, NULL, start, 0));
	CHECK(latency_tracker_for_each(t, &key, 4, visit, &visits) == 4);
	CHECK(visits.starts == 1111);
	CHECK(latency_tracker_for_each(t, &key, 4, visit, &first) == 1);
	CHECK(latency_tracker_for_each(t, &key, 4, NULL, NULL) == -EINVAL);
	CHECK(!latency_tracker_event_out_at(t, &key, 4, 0, 1500));
	/* Ends this event, although older events of its key are live. */
	event = latency_tracker_event_in_get(t, &key, 4, NULL, 7, 0);
	CHECK(!IS_ERR(event));
	CHECK(!latency_tracker_event_out_event(t, event, 5, 2007));
	CHECK(last.start == 7 && last.delay == 2000 && last.id == 5);
	CHECK(latency_tracker_event_out_event(t, event, 5, 0) == -ENOENT);
	latency_tracker_event_put(t, event);
	CHECK(latency_tracker_event_out_all(t, &key, 4, 0, 1500) == 3);
	CHECK(latency_tracker_event_out_all(t, &key, 4, 0, 1500) == -ENOENT);
	latency_tracker_destroy(t);
}

/* Runs a call with interrupts off, and notes how many ns the longest one took. */
#define MEASURED(longest, call) ({					\
	u64 *_longest = &(longest);					\
	unsigned long _flags;						\
	typeof(call) _result;						\
	u64 _begin;							\
									\
	local_irq_save(_flags);						\
	_begin = ktime_get_ns();					\
	_result = call;							\
	*_longest = max(*_longest, ktime_get_ns() - _begin);		\
	local_irq_restore(_flags);					\
	_result;							\
})

/*
 * However many events of one key are live, no call takes a long time, and a refused call returns an
 * error. The times are printed. vm/api-crowd compares them with the limit on a machine whose clock
 * counts instructions: on other machines, the host may take the CPU away during a call.
 */
static void crowd(int attempts, u64 threshold)
{
	struct latency_tracker_config c = config(4, 0);
	struct latency_tracker *t;
	u64 in = 0, other = 0, out = 0, all = 0;
	int i, err, live = 0, refused = 0, unlucky = 0;
	u32 key = 9;

	c.capacity = attempts;
	c.data_size = 0;
	c.threshold = threshold;
	t = latency_tracker_create(&c);
	CHECK(!IS_ERR(t));
	for (i = 0; i < attempts; i++) {
		err = MEASURED(in, latency_tracker_event_in_at(t, &key, 4, NULL,
							       1, 0));
		live += !err;
		refused += err == -EBUSY;
		if (i % 1024 == 0)
			cond_resched();
	}
	CHECK(live >= 192 && live <= 200);
	CHECK(live + refused == attempts);
	for (key = 10; key < 1010; key++) {
		err = MEASURED(other, latency_tracker_event_in(t, &key, 4, NULL));
		/* One key in half a million has the home and the tag of the crowd. */
		if (err == -EBUSY && !unlucky++)
			continue;
		CHECK(!err);
		CHECK(!MEASURED(other, latency_tracker_event_out(t, &key, 4, 0)));
	}
	key = 9;
	CHECK(!MEASURED(out, latency_tracker_event_out(t, &key, 4, 0)));
	CHECK(MEASURED(all, latency_tracker_event_out_all(t, &key, 4, 0, 0)) ==
	      live - 1);
	/* Events of the other keys are late, too. */
	CHECK(reports == (threshold ? 0 : live + 1000 - unlucky));
	pr_info("lt_api: %d of one key: in %llu, another key %llu, out %llu, all %llu ns\n",
		attempts, in, other, out, all);
	latency_tracker_destroy(t);
}

/* A crowd while the capacity grows, with events in each level of the table. */
static void crowd_of_levels(u64 threshold)
{
	enum { LEVELS = 21, TRIES = 300 };
	struct latency_tracker_config c = config(4, 0);
	u64 in = 0, other = 0, out = 0, all = 0;
	int i, err, level, live = 0, others = 0;
	struct latency_tracker *t;
	u32 key = 9, next = 10;

	c.capacity = 1;
	c.max_capacity = 1 << (LEVELS - 1);
	c.data_size = 0;
	c.threshold = threshold;
	t = latency_tracker_create(&c);
	CHECK(!IS_ERR(t));
	for (level = 0; level < LEVELS; level++) {
		while (live + others < 1 << level) {
			err = MEASURED(other, latency_tracker_event_in(t, &next, 4, NULL));
			others += !err;
			/*
			 * Another error: the key may have the tag of the crowd, and no room in its
			 * home bucket. Then the next key is tried.
			 */
			if (err == -ENOSPC)
				msleep(20);
			else
				next++;
			if (next % 1024 == 0)
				cond_resched();
		}
		for (i = 0; i < TRIES; i++)
			live += !MEASURED(in, latency_tracker_event_in(t, &key, 4,
								       NULL));
	}
	CHECK(live >= 192 && live <= 200 + 8 * LEVELS);
	CHECK(next - 10 - others < (1 << LEVELS) / 1000);
	CHECK(!MEASURED(out, latency_tracker_event_out(t, &key, 4, 0)));
	CHECK(MEASURED(all, latency_tracker_event_out_all(t, &key, 4, 0, 0)) ==
	      live - 1);
	CHECK(reports == (threshold ? 0 : live));
	pr_info("lt_api: %d of one key: in %llu, another key %llu, out %llu, all %llu ns\n",
		LEVELS * TRIES, in, other, out, all);
	latency_tracker_destroy(t);
}

void a_crowd_is_bounded(void)
{
	crowd(8000, U64_MAX);
	crowd(8000, 0);
	crowd(200000, U64_MAX);
	crowd_of_levels(U64_MAX);
	crowd_of_levels(0);
}

void a_unique_key_is_live_once(void)
{
	struct latency_tracker_config c = config(8, LATENCY_TRACKER_UNIQUE);
	struct latency_tracker *t;
	struct visits visits = {};
	u64 key = 1;

	c.capacity = 1;
	t = latency_tracker_create(&c);
	CHECK(!IS_ERR(t));
	CHECK(!latency_tracker_event_in_at(t, &key, 8, NULL, 100, 0));
	CHECK(!latency_tracker_event_in_at(t, &key, 8, NULL, 200, 0));
	CHECK(latency_tracker_for_each(t, &key, 8, visit, &visits) == 1);
	CHECK(visits.starts == 200);
	latency_tracker_destroy(t);
}

/* Checks that an invalid or returned reference causes an error, and nothing else. */
static void not_a_reference(struct latency_tracker *t, unsigned long number)
{
	struct latency_tracker_event *bad = (void *)number;
	u64 word = 42;

	CHECK(latency_tracker_event_start(t, bad) == 0);
	CHECK(!latency_tracker_event_is_live(t, bad));
	CHECK(latency_tracker_event_get(t, bad) == -EINVAL);
	CHECK(latency_tracker_event_key(t, bad, &word, 8) == -EINVAL);
	CHECK(latency_tracker_event_data(t, bad, &word, 8) == -EINVAL);
	CHECK(latency_tracker_event_out_event(t, bad, 0, 0) == -EINVAL);
	CHECK(word == 42);
	latency_tracker_event_put(t, bad);
}

void references(void)
{
	struct latency_tracker_config c = config(8, 0);
	struct latency_tracker *t;
	struct latency_tracker_event *event, *other;
	struct data data = { .serial = 1, .text = "first" }, copy;
	u64 key = 3;
	int i;

	c.capacity = 1;
	t = latency_tracker_create(&c);
	CHECK(!IS_ERR(t));
	CHECK(latency_tracker_lookup(t, &key, 8) == ERR_PTR(-ENOENT));
	CHECK(!latency_tracker_event_in_at(t, &key, 8, &data, 50, 0));
	event = latency_tracker_lookup(t, &key, 8);
	CHECK(!IS_ERR(event));
	CHECK(latency_tracker_event_is_live(t, event));
	/* After its end the event can still be read; its memory is not reused. */
	CHECK(!latency_tracker_event_out_at(t, &key, 8, 0, 60));
	CHECK(!latency_tracker_event_is_live(t, event));
	CHECK(latency_tracker_event_start(t, event) == 50);
	CHECK(latency_tracker_event_data(t, event, &copy, sizeof(copy)) ==
	      sizeof(copy));
	CHECK(!memcmp(&data, &copy, sizeof(copy)));
	CHECK(latency_tracker_event_in(t, &key, 8, NULL) == -ENOSPC);
	CHECK(!latency_tracker_event_get(t, event));
	latency_tracker_event_put(t, event);
	CHECK(latency_tracker_event_in(t, &key, 8, NULL) == -ENOSPC);
	latency_tracker_event_put(t, event);
	/* The maximum number of references. */
	CHECK(!latency_tracker_event_in(t, &key, 8, NULL));
	for (i = 0; i < LATENCY_TRACKER_REFS_MAX; i++) {
		other = latency_tracker_lookup(t, &key, 8);
		CHECK(!IS_ERR(other));
	}
	CHECK(latency_tracker_lookup(t, &key, 8) == ERR_PTR(-EBUSY));
	CHECK(latency_tracker_event_get(t, other) == -EBUSY);
	CHECK(latency_tracker_clear(t) == 1);
	CHECK(!latency_tracker_event_is_live(t, other));
	for (i = 0; i < LATENCY_TRACKER_REFS_MAX; i++)
		latency_tracker_event_put(t, other);
	CHECK(!latency_tracker_event_in(t, &key, 8, NULL));
	latency_tracker_event_put(t, NULL);
	latency_tracker_event_put(t, ERR_PTR(-ENOENT));
	/*
	 * Numbers that were never returned as a reference: with the number of the live event's
	 * cell, of a cell that is not there, of a chunk that is not there, and others.
	 */
	not_a_reference(t, 0);
	not_a_reference(t, 1);
	not_a_reference(t, 2);
	not_a_reference(t, 12);
	not_a_reference(t, 5000);
	not_a_reference(t, 0xffffff);
	not_a_reference(t, 0xffffffff);
	not_a_reference(t, 0x100000001);
	not_a_reference(t, (unsigned long)t);
	not_a_reference(t, -EINVAL);
	CHECK(latency_tracker_clear(t) == 1);
	latency_tracker_destroy(t);
}
