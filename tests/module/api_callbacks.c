// SPDX-License-Identifier: GPL-2.0
/*
 * lt_api: callbacks. A callback has returned when the API reports that it has,
 * callbacks may nest, and some functions are refused in a callback.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "api.h"

void disabling_waits_for_callbacks(void)
{
	struct latency_tracker_config c = config(8, 0);
	struct task_struct *task;
	u64 key = 1;

	slow_entered = false;
	slow_left = false;
	c.callback = slow;
	slow_tracker = latency_tracker_create(&c);
	CHECK(!latency_tracker_event_in_at(slow_tracker, &key, 8, NULL, 5, 0));
	task = kthread_run(end_slowly, NULL, "lt_api");
	CHECK(!IS_ERR(task));
	await_callback();
	/* Disabling waits only for a grace period, which also waits for the callback. */
	CHECK(!latency_tracker_set_enabled(slow_tracker, false));
	CHECK(slow_left);
	if (!IS_ERR(task))
		kthread_stop(task);
	latency_tracker_destroy(slow_tracker);
}

#define LT_SLOTS	64
#define LT_OBJECTS	20000

/*
 * Whether the object behind each event is freed. A real module would free the object
 * where the tests set its flag.
 */
static bool *freed;
static int timeout_calls, late_uses;

static void use(const struct latency_tracker_report *report)
{
	const struct data *data = report->data;
	int i;

	if (report->reason != LATENCY_TRACKER_TIMEOUT)
		return;
	WRITE_ONCE(timeout_calls, timeout_calls + 1);
	/* Waits briefly, so that ends occur in the middle of the callback. */
	for (i = 0; i < 20; i++) {
		if (READ_ONCE(freed[data->serial])) {
			WRITE_ONCE(late_uses, late_uses + 1);
			return;
		}
		udelay(1);
	}
}

/* Ends an event by its key or by a reference. Returns whether it has ended. */
static bool end_and_free(struct latency_tracker *t, u64 object, int *reporting)
{
	u64 key = object % LT_SLOTS;
	struct latency_tracker_event *event;
	int err;

	if (object % 3) {
		err = latency_tracker_event_out(t, &key, 8, 0);
	} else {
		event = latency_tracker_lookup(t, &key, 8);
		if (IS_ERR(event))
			return false;
		err = latency_tracker_event_out_event(t, event, 0, 0);
		latency_tracker_event_put(t, event);
	}
	if (err == LATENCY_TRACKER_ENDED_REPORTING)
		++*reporting;
	else if (!err)
		WRITE_ONCE(freed[object], true);
	return err >= 0;
}

void no_callback_after_the_end(void)
{
	struct latency_tracker_config c = config(8, 0);
	int begun, before, i, tries, ends = 0, over = 0, reporting = 0;
	struct latency_tracker *t;
	struct data data = {};
	u64 key;

	freed = vzalloc(LT_OBJECTS + LT_SLOTS);
	if (!freed) {
		CHECK(freed);
		return;
	}
	c.callback = use;
	c.capacity = LT_SLOTS;
	c.threshold = ~0ULL;
	c.timeout = 2 * NSEC_PER_MSEC;
	/* The search runs on the CPU that created the tracker, and the ends on another, if any. */
	set_cpus_allowed_ptr(current, cpumask_of(cpumask_first(cpu_online_mask)));
	t = latency_tracker_create(&c);
	CHECK(!IS_ERR(t));
	set_cpus_allowed_ptr(current, cpumask_of(cpumask_last(cpu_online_mask)));
	timeout_calls = 0;
	late_uses = 0;
	for (begun = 0; begun < LT_OBJECTS; begun += LT_SLOTS) {
		before = READ_ONCE(timeout_calls);
		for (i = 0; i < LT_SLOTS; i++) {
			key = i;
			data.serial = begun + i;
			CHECK(!latency_tracker_event_in(t, &key, 8, &data));
		}
		/*
		 * Waits until a quarter of the events have timed out, since the host
		 * may hold up the searching CPU. Then ends all events, one after
		 * another, while the others time out.
		 */
		for (tries = 0; tries < 1000; tries++) {
			if (READ_ONCE(timeout_calls) - before > LT_SLOTS / 4)
				break;
			fsleep(100);
		}
		for (i = 0; i < LT_SLOTS; i++)
			ends += end_and_free(t, begun + i, &reporting);
	}
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	CHECK(!latency_tracker_synchronize(t));
	/* None of the callbacks that were reported as running still runs. */
	for (i = 0; i < begun; i++) {
		over += freed[i];
		WRITE_ONCE(freed[i], true);
	}
	pr_info("lt_api: of %d ends with %d timeouts %d came in a callback\n",
		ends, timeout_calls, reporting);
	CHECK(ends == begun && over + reporting == ends);
	CHECK(timeout_calls > begun / 4);
	CHECK(late_uses == 0);
	/* With one CPU, nothing can end an event during its callback. */
	CHECK(num_online_cpus() == 1 || reporting > 0);
	latency_tracker_destroy(t);
	CHECK(late_uses == 0);
	vfree(freed);
}

static int depth, deepest, calls_within;
static unsigned long first_frame, last_frame;

/* Begins and ends its own key from within the callback, forever if allowed. */
static void within(const struct latency_tracker_report *report)
{
	struct latency_tracker *t = report->tracker;
	u8 key[LATENCY_TRACKER_KEY_MAX];
	int err;

	calls_within++;
	depth++;
	deepest = max(deepest, depth);
	last_frame = (unsigned long)__builtin_frame_address(0);
	if (depth == 1)
		first_frame = last_frame;
	memcpy(key, report->key, report->key_size);
	err = latency_tracker_event_in_at(t, key, report->key_size, report->data,
					  10, 0);
	CHECK(!err);
	if (!err)
		CHECK(!latency_tracker_event_out_at(t, key, report->key_size,
						    report->id, 5000));
	depth--;
}

static void nest(u32 key_size, u32 data_size)
{
	u8 key[LATENCY_TRACKER_KEY_MAX] = { 1 };
	struct latency_tracker_config c = config(key_size, 0);
	struct latency_tracker *t;
	unsigned long bytes;

	c.callback = within;
	c.data_size = data_size;
	t = latency_tracker_create(&c);
	CHECK(!IS_ERR(t));
	deepest = 0;
	calls_within = 0;
	CHECK(!latency_tracker_event_in_at(t, key, key_size, NULL, 10, 0));
	CHECK(!latency_tracker_event_out_at(t, key, key_size, 0, 5000));
	CHECK(depth == 0);
	CHECK(deepest == LATENCY_TRACKER_NESTED_MAX);
	CHECK(calls_within == LATENCY_TRACKER_NESTED_MAX);
	/* The nesting count is back at 0: another event nests as deeply. */
	CHECK(!latency_tracker_event_in_at(t, key, key_size, NULL, 10, 0));
	CHECK(!latency_tracker_event_out_at(t, key, key_size, 0, 5000));
	CHECK(calls_within == 2 * LATENCY_TRACKER_NESTED_MAX);
	bytes = (first_frame - last_frame) / (LATENCY_TRACKER_NESTED_MAX - 1);
	pr_info("lt_api: keys of %u, data of %u: %lu bytes of stack a callback\n",
		key_size, data_size, bytes);
	latency_tracker_destroy(t);
}

void callbacks_within_callbacks(void)
{
	nest(8, 0);
	nest(16, 64);
	nest(64, 256);
}

struct latency_tracker *nested_once(const char *name)
{
	struct latency_tracker_config c = config(8, 0);
	struct latency_tracker *t;
	u64 key = 1;

	c.name = name;
	c.callback = within;
	t = latency_tracker_create(&c);
	if (IS_ERR(t))
		return t;
	latency_tracker_event_in_at(t, &key, 8, NULL, 10, 0);
	latency_tracker_event_out_at(t, &key, 8, 0, 5000);
	return t;
}

static int refusals;

static void call_what_sleeps(const struct latency_tracker_report *report)
{
	struct latency_tracker *t = report->tracker;
	struct latency_tracker_config c = config(8, 0);

	c.name = "api_inside";
	CHECK(latency_tracker_create(&c) == ERR_PTR(-EDEADLK));
	CHECK(latency_tracker_set_enabled(t, false) == -EDEADLK);
	CHECK(latency_tracker_set_timeout(t, 0) == -EDEADLK);
	CHECK(latency_tracker_synchronize(t) == -EDEADLK);
	CHECK(latency_tracker_clear(t) == 0);
	latency_tracker_destroy(t);
	/* Pairs with the acquire of the waiting test. */
	smp_store_release(&refusals, refusals + 1);
}

void what_sleeps_is_refused_in_a_callback(void)
{
	struct latency_tracker_config c = config(8, 0);
	struct latency_tracker *t;
	u64 key = 1, other = 2;
	int i;

	c.callback = call_what_sleeps;
	c.timeout = NSEC_PER_MSEC;
	t = latency_tracker_create(&c);
	CHECK(!IS_ERR(t));
	refusals = 0;
	/* Callbacks of a timeout and of an end. */
	CHECK(!latency_tracker_event_in(t, &key, 8, NULL));
	/* Pairs with the release in call_what_sleeps(). */
	for (i = 0; i < 1000 && smp_load_acquire(&refusals) < 1; i++)
		msleep(20);
	CHECK(refusals == 1);
	CHECK(!latency_tracker_event_in_at(t, &other, 8, NULL, 5, 0));
	CHECK(latency_tracker_event_out_at(t, &other, 8, 0, 2000) >= 0);
	CHECK(refusals >= 2);
	/* The tracker still works. */
	CHECK(!latency_tracker_event_in_at(t, &other, 8, NULL, 5, 0));
	CHECK(latency_tracker_clear(t) == 2);
	latency_tracker_destroy(t);
}
