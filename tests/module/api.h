/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the tests of lt_api; see api.c. */
#ifndef _LT_API_H
#define _LT_API_H

#include <linux/types.h>

#include <latency_tracker.h>

/* Notes a failed check, and continues: the API accepts the error pointers that follow from it. */
void check(bool holds, const char *what, const char *test, int line);

#define CHECK(condition) check((condition), #condition, __func__, __LINE__)

struct data {
	u64 serial;
	char text[20];
};

/* The last report, and the number of reports. */
extern struct latency_tracker_report last;
extern u8 last_key[LATENCY_TRACKER_KEY_MAX];
extern struct data last_data;
extern int reports;

/* A callback that records the report, and increments reports. */
void late(const struct latency_tracker_report *report);

/* Waits for this many reports. The time limit is reached only if something is broken. */
bool reported(int count);

/* The configuration that tests begin with. Sets reports to 0. */
struct latency_tracker_config config(u32 key_size, u32 flags);

/* api_events.c */
void threshold(void);
void worst(void);
void keys_of_all_sizes(void);
void the_length_is_part_of_a_key(void);
void duplicates(void);
void a_crowd_is_bounded(void);
void a_unique_key_is_live_once(void);
void references(void);

/* api_trackers.c */
void timeouts(void);
void off(void);
void the_pool_grows(void);
void what_is_impossible_is_refused(void);
void a_callback_may_call(void);
void destroying_waits_for_callbacks(void);

/* A callback that takes a long time, and a thread that ends an event of its tracker. */
extern struct latency_tracker *slow_tracker;
extern bool slow_entered, slow_left;
void slow(const struct latency_tracker_report *report);
int end_slowly(void *arg);
void await_callback(void);

/* api_callbacks.c */
void disabling_waits_for_callbacks(void);
void no_callback_after_the_end(void);
void callbacks_within_callbacks(void);
void what_sleeps_is_refused_in_a_callback(void);
/* Makes a tracker of this name that has refused one callback. */
struct latency_tracker *nested_once(const char *name);

/* api_contexts.c */
void all_contexts(void);
void under_the_runqueue_lock(void);

#endif /* _LT_API_H */
