// SPDX-License-Identifier: GPL-2.0
/*
 * lt_api: each promise of include/latency_tracker.h, as another module sees it.
 *
 * It loads only if all tests pass, and the log names each. What must not happen
 * in passing is asked for by parameters: forget=1 leaves without destroying a
 * tracker, leak=1 without returning a reference.
 */
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>

#include <latency_tracker.h>

static unsigned int failures;

/* Notes what does not hold, and goes on: errors are handed from call to call. */
static void check(bool holds, const char *what, const char *test, int line)
{
	if (holds)
		return;
	pr_err("lt_api: %s: FAILED at line %d: %s\n", test, line, what);
	failures++;
}

#define CHECK(condition) check((condition), #condition, __func__, __LINE__)

static bool forget;
module_param(forget, bool, 0400);
static bool leak;
module_param(leak, bool, 0400);

struct data {
	u64 serial;
	char text[20];
};

/* What was reported last, and how often. */
static struct latency_tracker_report last;
static u8 last_key[LATENCY_TRACKER_KEY_MAX];
static struct data last_data;
static int reports;

static void late(const struct latency_tracker_report *report)
{
	last = *report;
	memcpy(last_key, report->key, report->key_size);
	memcpy(&last_data, report->data,
	       min_t(size_t, report->data_size, sizeof(last_data)));
	/* Last: others wait for it. */
	smp_store_release(&reports, reports + 1);
}

static struct latency_tracker_config config(u32 key_size, u32 flags)
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

static void threshold(void)
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
	/* Without explicit times: the clock. */
	latency_tracker_set_threshold(t, 0);
	CHECK(!latency_tracker_event_in(t, &key, 8, NULL));
	udelay(5);
	CHECK(!latency_tracker_event_out(t, &key, 8, 0));
	CHECK(reports == 2 && last.delay >= 5000 && last_data.serial == 0);
	latency_tracker_destroy(t);
}

static void worst(void)
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

static void keys_of_all_sizes(void)
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

static void the_length_is_part_of_a_key(void)
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

static void duplicates(void)
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
	CHECK(!latency_tracker_event_out_at(t, &key, 4, 0, 1500));
	/* One that is meant. */
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

static void a_unique_key_is_live_once(void)
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

static void references(void)
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
	/* It ends, and can still be read; its memory is its own. */
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
	/* As many as there can be. */
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
	CHECK(latency_tracker_event_get(t, NULL) == -EINVAL);
	latency_tracker_destroy(t);
}

/* Waits, with a limit that is reached only if something is broken. */
static bool reported(int count)
{
	int i;

	/* Pairs with the release in late(). */
	for (i = 0; i < 1000 && smp_load_acquire(&reports) < count; i++)
		msleep(20);
	return reports == count;
}

static void timeouts(void)
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
	/* It is pending still, and its end is reported, too. */
	CHECK(!latency_tracker_event_out(t, &own, 8, 6));
	CHECK(reports == 2 && last.reason == LATENCY_TRACKER_LATE);
	CHECK(last.id == 6);
	/* The common timeout changes, for what is pending, too. */
	CHECK(!latency_tracker_set_timeout(t, ms));
	CHECK(reported(3));
	CHECK(!memcmp(last_key, &key, 8) && last.threshold == ms);
	CHECK(!latency_tracker_event_out(t, &none, 8, 0));
	CHECK(reports == 3);
	CHECK(latency_tracker_set_timeout(t, ~0ULL) == -ERANGE);
	latency_tracker_destroy(t);
}

static void off(void)
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

#define REFUSED(error, field, value)					\
	do {								\
		struct latency_tracker_config bad = config(8, 0);	\
									\
		bad.field = (value);					\
		CHECK(latency_tracker_create(&bad) == ERR_PTR(error));	\
	} while (0)

static void what_is_impossible_is_refused(void)
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
	/* Once only; and what never was. */
	latency_tracker_destroy(t);
	latency_tracker_destroy(NULL);
	latency_tracker_destroy(ERR_PTR(-ENOMEM));
	/* A later version of the header, with something set and without. */
	newer.config.size = sizeof(newer);
	newer.unknown = 1;
	CHECK(latency_tracker_create(&newer.config) == ERR_PTR(-E2BIG));
	newer.unknown = 0;
	t = latency_tracker_create(&newer.config);
	CHECK(!IS_ERR(t));
	latency_tracker_destroy(t);
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
	{ "a_unique_key_is_live_once", a_unique_key_is_live_once },
	{ "references", references },
	{ "timeouts", timeouts },
	{ "off", off },
	{ "what_is_impossible_is_refused", what_is_impossible_is_refused },
};

static struct latency_tracker *left;

static int __init api_init(void)
{
	struct latency_tracker_config c = config(8, LATENCY_TRACKER_SHOW_KEYS);
	u64 key = 0x1234;
	int i;

	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		unsigned int before = failures;

		tests[i].test();
		if (failures == before)
			pr_info("lt_api: %s: ok\n", tests[i].name);
	}
	if (failures)
		return -EIO;
	/* For those who look at /proc meanwhile; and pending at the end. */
	c.name = "api_left";
	c.timeout = NSEC_PER_MSEC;
	left = latency_tracker_create(&c);
	if (IS_ERR(left))
		return PTR_ERR(left);
	latency_tracker_event_in(left, &key, sizeof(key), NULL);
	if (leak)
		latency_tracker_lookup(left, &key, sizeof(key));
	return 0;
}

static void __exit api_exit(void)
{
	if (!forget)
		latency_tracker_destroy(left);
}

module_init(api_init);
module_exit(api_exit);
MODULE_DESCRIPTION("Tests of include/latency_tracker.h");
MODULE_LICENSE("GPL");
