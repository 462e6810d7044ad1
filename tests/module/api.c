// SPDX-License-Identifier: GPL-2.0
/*
 * lt_api: tests the promises of include/latency_tracker.h, as another module sees them.
 *
 * It loads only if all tests pass, and the log names each test. A parameter
 * requests misbehaviour instead of the tests: with forget=1, unloading does not
 * destroy a tracker; with fail=1, loading fails and does not destroy it; with
 * leak=1, the tracker is destroyed while a reference to its event is held, and
 * the reference is used afterwards. With only=NAME, only that test runs. Once the
 * module is loaded, writing N to the parameter `operation` makes an operation of
 * api_left that takes N nanoseconds.
 */
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "api.h"

static bool forget;
module_param(forget, bool, 0400);
static bool fail;
module_param(fail, bool, 0400);
static bool leak;
module_param(leak, bool, 0400);
static char *only = "";
module_param(only, charp, 0400);

static unsigned int failures;

void check(bool holds, const char *what, const char *test, int line)
{
	if (holds)
		return;
	pr_err("lt_api: %s: FAILED at line %d: %s\n", test, line, what);
	failures++;
}

struct latency_tracker_report last;
u8 last_key[LATENCY_TRACKER_KEY_MAX];
struct data last_data;
int reports;

void late(const struct latency_tracker_report *report)
{
	last = *report;
	memcpy(last_key, report->key, report->key_size);
	memcpy(&last_data, report->data,
	       min_t(size_t, report->data_size, sizeof(last_data)));
	/* Set last: readers wait for it. */
	smp_store_release(&reports, reports + 1);
}

bool reported(int count)
{
	int i;

	/* Pairs with the release in late(). */
	for (i = 0; i < 1000 && smp_load_acquire(&reports) < count; i++)
		msleep(20);
	return reports == count;
}

struct latency_tracker_config config(u32 key_size, u32 flags)
{
	struct latency_tracker_config config = {
		LATENCY_TRACKER_CONFIG("api"),
		.key_size = key_size,
		.data_size = sizeof(struct data),
		.capacity = 16,
		.threshold = 1000,
		.callback = late,
		.priv = &reports,
		.flags = flags,
	};

	reports = 0;
	return config;
}

static const struct {
	const char *name;
	void (*test)(void);
} tests[] = {
	{ "threshold", threshold },
	{ "worst", worst },
	{ "keys_of_all_sizes", keys_of_all_sizes },
	{ "the_length_is_part_of_a_key", the_length_is_part_of_a_key },
	{ "duplicates", duplicates },
	{ "a_crowd_is_bounded", a_crowd_is_bounded },
	{ "a_unique_key_is_live_once", a_unique_key_is_live_once },
	{ "references", references },
	{ "timeouts", timeouts },
	{ "off", off },
	{ "the_pool_grows", the_pool_grows },
	{ "what_is_impossible_is_refused", what_is_impossible_is_refused },
	{ "a_callback_may_call", a_callback_may_call },
	{ "destroying_waits_for_callbacks", destroying_waits_for_callbacks },
	{ "disabling_waits_for_callbacks", disabling_waits_for_callbacks },
	{ "no_callback_after_the_end", no_callback_after_the_end },
	{ "callbacks_within_callbacks", callbacks_within_callbacks },
	{ "what_sleeps_is_refused_in_a_callback",
	  what_sleeps_is_refused_in_a_callback },
#ifdef CONFIG_X86_64
	{ "all_contexts", all_contexts },
	{ "under_the_runqueue_lock", under_the_runqueue_lock },
#endif
};

static struct latency_tracker *left, *nested;
static struct latency_tracker_event *leaked;

static int run(void)
{
	int i, done = 0;

	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		unsigned int before = failures;

		if (*only && strcmp(only, tests[i].name))
			continue;
		tests[i].test();
		done++;
		if (failures == before)
			pr_info("lt_api: %s: ok\n", tests[i].name);
	}
	if (!done)
		return -EINVAL;
	return failures ? -EIO : 0;
}

static int operation_set(const char *text, const struct kernel_param *param)
{
	u64 key = 0x5678, delay;
	int err;

	err = kstrtou64(text, 0, &delay);
	if (err)
		return err;
	err = latency_tracker_event_in_at(left, &key, sizeof(key), NULL, 5, 0);
	if (err)
		return err;
	err = latency_tracker_event_out_at(left, &key, sizeof(key), 0, 5 + delay);
	/* LATENCY_TRACKER_ENDED_REPORTING is not an error. */
	return min(err, 0);
}

static const struct kernel_param_ops operation = { .set = operation_set };
module_param_cb(operation, &operation, NULL, 0200);

static int __init api_init(void)
{
	struct latency_tracker_config c = config(8, LATENCY_TRACKER_SHOW_KEYS);
	u64 key = 0x1234;
	int err;

	err = forget || fail || leak ? 0 : run();
	if (err)
		return err;
	/* For tests/vm/api.sh, which reads /proc; the event is still pending on unload. */
	c.name = "api_left";
	c.timeout = NSEC_PER_MSEC;
	left = latency_tracker_create(&c);
	if (IS_ERR(left))
		return PTR_ERR(left);
	latency_tracker_event_in_at(left, &key, sizeof(key), NULL, 5, 0);
	if (!fail && !leak && !forget)
		nested = nested_once("api_nested");
	if (leak)
		leaked = latency_tracker_lookup(left, &key, sizeof(key));
	return fail ? -EIO : 0;
}

static void __exit api_exit(void)
{
	if (forget)
		return;
	latency_tracker_destroy(nested);
	latency_tracker_destroy(left);
	if (!leak)
		return;
	/* The event is no longer live, but its reference is still valid. */
	CHECK(!latency_tracker_event_is_live(left, leaked));
	CHECK(latency_tracker_event_start(left, leaked) == 5);
	latency_tracker_event_put(left, leaked);
	pr_info("lt_api: a reference that is left: %s\n",
		failures ? "FAILED" : "ok");
}

module_init(api_init);
module_exit(api_exit);
MODULE_DESCRIPTION("Tests of include/latency_tracker.h");
MODULE_LICENSE("GPL");
