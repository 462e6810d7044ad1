// SPDX-License-Identifier: GPL-2.0
/* lt_api: trackers as a whole, timeouts, and callbacks that call the API. */
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/string.h>

#include "api.h"

void timeouts(void)
{
	struct latency_tracker_config c = config(8, 0);
	struct latency_tracker *t;
	u64 ms = NSEC_PER_MSEC, never = LATENCY_TRACKER_NO_TIMEOUT;
	u64 key = 3, own = 4, none = 5;

	c.timeout = 3600 * NSEC_PER_SEC;
	c.threshold = ~0ULL;
	c.min_event_timeout = 20 * ms;
	t = latency_tracker_create(&c);
	CHECK(!IS_ERR(t));
	CHECK(!latency_tracker_event_in(t, &key, 8, NULL));
	CHECK(!latency_tracker_event_in_at(t, &none, 8, NULL, 0, never));
	CHECK(latency_tracker_event_in_at(t, &own, 8, NULL, 0, ms) == -EINVAL);
	CHECK(!latency_tracker_event_in_at(t, &own, 8, NULL, 0, 25 * ms));
	CHECK(reported(1));
	CHECK(last.reason == LATENCY_TRACKER_TIMEOUT);
	CHECK(!memcmp(last_key, &own, 8));
	CHECK(last.threshold == 25 * ms && last.delay >= 25 * ms);
	/* The event is still pending, and its end is reported, too. */
	CHECK(latency_tracker_event_out(t, &own, 8, 6) >= 0);
	CHECK(reports == 2 && last.reason == LATENCY_TRACKER_LATE);
	CHECK(last.id == 6);
	/* A change of the common timeout also applies to pending events. */
	CHECK(!latency_tracker_set_timeout(t, ms));
	CHECK(reported(3));
	CHECK(!memcmp(last_key, &key, 8) && last.threshold == ms);
	CHECK(!latency_tracker_event_out(t, &none, 8, 0));
	CHECK(reports == 3);
	CHECK(latency_tracker_set_timeout(t, ~0ULL) == -ERANGE);
	latency_tracker_destroy(t);
}

void off(void)
{
	struct latency_tracker_config c = config(8, 0);
	struct latency_tracker *t = latency_tracker_create(&c);
	u64 key = 3;

	CHECK(!IS_ERR(t));
	CHECK(!latency_tracker_event_in(t, &key, 8, NULL));
	CHECK(!latency_tracker_set_enabled(t, false));
	CHECK(latency_tracker_event_in(t, &key, 8, NULL) == -EAGAIN);
	CHECK(latency_tracker_event_out(t, &key, 8, 0) == -ENOENT);
	CHECK(!latency_tracker_set_enabled(t, true));
	CHECK(!latency_tracker_event_in(t, &key, 8, NULL));
	latency_tracker_destroy(t);
}

void the_pool_grows(void)
{
	struct latency_tracker_config c = config(8, 0);
	struct latency_tracker *t;
	u64 key = 0;
	int tries;

	c.capacity = 8;
	c.max_capacity = 64;
	t = latency_tracker_create(&c);
	CHECK(!IS_ERR(t));
	for (tries = 0; tries < 1000 && key < 64; tries++) {
		if (latency_tracker_event_in(t, &key, 8, NULL))
			msleep(20);
		else
			key++;
	}
	CHECK(key == 64);
	CHECK(latency_tracker_event_in(t, &key, 8, NULL) == -ENOSPC);
	CHECK(latency_tracker_clear(t) == 64);
	latency_tracker_destroy(t);
}

#define REFUSED(error, field, value)					\
	do {								\
		struct latency_tracker_config bad = config(8, 0);	\
									\
		bad.field = (value);					\
		CHECK(latency_tracker_create(&bad) == ERR_PTR(error));	\
	} while (0)

void what_is_impossible_is_refused(void)
{
	struct {
		struct latency_tracker_config config;
		u64 unknown;
	} newer = { .config = config(8, 0) };
	struct latency_tracker_config c = config(8, 0);
	struct latency_tracker *t = latency_tracker_create(&c);
	u64 key = 3;

	CHECK(!IS_ERR(t));
	CHECK(latency_tracker_create(&c) == ERR_PTR(-EEXIST));
	REFUSED(-EINVAL, size, sizeof(c) - 8);
	REFUSED(-EINVAL, owner, NULL);
	REFUSED(-EINVAL, name, NULL);
	REFUSED(-EINVAL, name, "no good");
	REFUSED(-EINVAL, name, "control");
	REFUSED(-EINVAL, key_size, 0);
	REFUSED(-EINVAL, key_size, 65);
	REFUSED(-EINVAL, data_size, 257);
	REFUSED(-EINVAL, capacity, 0);
	REFUSED(-EINVAL, max_capacity, 15);
	REFUSED(-EINVAL, timeout, ~0ULL);
	REFUSED(-EINVAL, min_event_timeout, ~0ULL);
	REFUSED(-EINVAL, flags, 1U << 31);
	CHECK(latency_tracker_event_in(NULL, &key, 8, NULL) == -EINVAL);
	CHECK(latency_tracker_event_in(t, NULL, 8, NULL) == -EINVAL);
	latency_tracker_destroy(t);
	/* Destroys a tracker twice, and a tracker that never existed. */
	latency_tracker_destroy(t);
	latency_tracker_destroy(NULL);
	latency_tracker_destroy(ERR_PTR(-ENOMEM));
	/* A later version of the header, with its new fields set and unset. */
	newer.config.size = sizeof(newer);
	newer.unknown = 1;
	CHECK(latency_tracker_create(&newer.config) == ERR_PTR(-E2BIG));
	newer.unknown = 0;
	t = latency_tracker_create(&newer.config);
	CHECK(!IS_ERR(t));
	latency_tracker_destroy(t);
}

/* Begins and ends the key again, from within the callback of its end. */
static void again(const struct latency_tracker_report *report)
{
	struct latency_tracker *t = report->tracker;
	u64 key = *(const u64 *)report->key;
	struct latency_tracker_event *event;

	reports++;
	if (report->id == 1) {
		CHECK(!latency_tracker_event_in_at(t, &key, 8, NULL, 10, 0));
		CHECK(!latency_tracker_event_out_at(t, &key, 8, 2, 5000));
		CHECK(reports == 2);
		latency_tracker_set_threshold(t, 2000);
	}
	if (report->id != 2) {
		CHECK(!latency_tracker_event_in_at(t, &key, 8, NULL, 20, 0));
		event = latency_tracker_lookup(t, &key, 8);
		CHECK(!IS_ERR(event));
		latency_tracker_event_put(t, event);
	}
}

struct ends {
	struct latency_tracker_event *kept;
	int seen;
};

static int end_and_keep(struct latency_tracker *t,
			struct latency_tracker_event *event, void *arg)
{
	struct ends *ends = arg;

	CHECK(!latency_tracker_event_get(t, event));
	CHECK(!latency_tracker_event_out_event(t, event, 2, 5000));
	CHECK(!latency_tracker_event_is_live(t, event));
	latency_tracker_event_put(t, ends->kept);
	ends->kept = event;
	return ++ends->seen < 2 ? 0 : 1;
}

void a_callback_may_call(void)
{
	struct latency_tracker_config c = config(8, 0);
	struct latency_tracker *t;
	struct ends ends = {};
	u64 key = 1;
	int i, ended;

	c.callback = again;
	t = latency_tracker_create(&c);
	CHECK(!IS_ERR(t));
	CHECK(!latency_tracker_event_in_at(t, &key, 8, NULL, 5, 0));
	CHECK(!latency_tracker_event_out_at(t, &key, 8, 1, 3000));
	CHECK(reports == 2);
	/* Ends all events of the key, including one that the callback begins. */
	for (i = 0; i < 3; i++)
		CHECK(!latency_tracker_event_in_at(t, &key, 8, NULL, 5, 0));
	reports = 0;
	ended = latency_tracker_event_out_all(t, &key, 8, 3, 5000);
	/* Events that begin meanwhile may end, too; the call still terminates. */
	CHECK(ended >= 4 && reports == ended);
	CHECK(latency_tracker_for_each(t, &key, 8, end_and_keep, &ends) == 2);
	CHECK(latency_tracker_event_start(t, ends.kept) == 20);
	CHECK(latency_tracker_clear(t) == 2);
	latency_tracker_event_put(t, ends.kept);
	latency_tracker_destroy(t);
}

struct latency_tracker *slow_tracker;
bool slow_entered, slow_left;

void slow(const struct latency_tracker_report *report)
{
	/* Pairs with the acquire in await_callback(). */
	smp_store_release(&slow_entered, true);
	mdelay(300);
	WRITE_ONCE(slow_left, true);
}

void await_callback(void)
{
	int i;

	/* Pairs with the release in slow(). */
	for (i = 0; i < 1000 && !smp_load_acquire(&slow_entered); i++)
		msleep(20);
	CHECK(slow_entered);
}

int end_slowly(void *arg)
{
	u64 key = 1;

	latency_tracker_event_out(slow_tracker, &key, 8, 0);
	while (!kthread_should_stop())
		msleep(20);
	return 0;
}

void destroying_waits_for_callbacks(void)
{
	struct latency_tracker_config c = config(8, 0);
	struct task_struct *task;
	u64 key = 1;

	/* The callback of an end. */
	c.callback = slow;
	slow_tracker = latency_tracker_create(&c);
	CHECK(!latency_tracker_event_in_at(slow_tracker, &key, 8, NULL, 5, 0));
	task = kthread_run(end_slowly, NULL, "lt_api");
	CHECK(!IS_ERR(task));
	await_callback();
	latency_tracker_destroy(slow_tracker);
	CHECK(slow_left);
	if (!IS_ERR(task))
		kthread_stop(task);
	/* The callback of a timeout. */
	slow_entered = false;
	slow_left = false;
	c.timeout = NSEC_PER_MSEC;
	slow_tracker = latency_tracker_create(&c);
	CHECK(!latency_tracker_event_in_at(slow_tracker, &key, 8, NULL, 5, 0));
	await_callback();
	latency_tracker_destroy(slow_tracker);
	CHECK(slow_left);
}
