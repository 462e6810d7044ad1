// SPDX-License-Identifier: GPL-2.0
/*
 * lt_api: calls of the API from threads, softirqs, hard interrupts and NMIs that
 * interrupt each other, and calls under the runqueue lock. Each event is late, so its
 * end calls a callback and raises an alert.
 */
#include "interrupts.c"

#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/sched.h>

#include "api.h"

#define LT_THREAD	0
#define LT_CONTEXTS	4
#define LT_ENOUGH	300

static struct latency_tracker *contexts_tracker;
static atomic_t calls[LT_CONTEXTS], told[LT_CONTEXTS], faults;

static notrace void tell(const struct latency_tracker_report *report)
{
	atomic_inc(&told[*(const u64 *)report->data]);
}

/* One event, unknown to other contexts, from its start to its end. */
static void one(enum lt_context context, unsigned int cpu, bool ours, void *arg)
{
	struct latency_tracker *t = contexts_tracker;
	u64 key = (u64)context << 32 | cpu, data = context;
	struct latency_tracker_event *event;

	atomic_inc(&calls[context]);
	if (latency_tracker_event_in_at(t, &key, 8, &data, 1, 0))
		atomic_inc(&faults);
	event = latency_tracker_lookup(t, &key, 8);
	if (IS_ERR(event) || latency_tracker_event_start(t, event) != 1)
		atomic_inc(&faults);
	if (latency_tracker_event_out(t, &key, 8, 0))
		atomic_inc(&faults);
	if (latency_tracker_event_is_live(t, event))
		atomic_inc(&faults);
	latency_tracker_event_put(t, event);
}

static void busy(unsigned int cpu, void *arg)
{
	unsigned int nr = *(unsigned int *)arg, other = (cpu + 1) % nr, i;

	lt_interrupts_start();
	/* Each thread sends NMIs to the next CPU. */
	for (i = 0; lt_interrupts_came(other) < LT_ENOUGH; i++) {
		one(LT_THREAD, cpu, false, NULL);
		if (i % 8 == 0)
			lt_interrupts_nmi(other);
		if (i % 64 == 0)
			cond_resched();
	}
}

void all_contexts(void)
{
	struct latency_tracker_config c = config(8, 0);
	unsigned int nr = min(num_online_cpus(), 2U);
	int i, err;

	c.callback = tell;
	c.data_size = sizeof(u64);
	contexts_tracker = latency_tracker_create(&c);
	CHECK(!IS_ERR(contexts_tracker));
	err = lt_interrupts_new(nr, one, NULL);
	CHECK(!err);
	if (err) {
		latency_tracker_destroy(contexts_tracker);
		return;
	}
	CHECK(!lt_run_on_cpus(nr, busy, &nr));
	lt_interrupts_stop();
	lt_interrupts_free();
	latency_tracker_destroy(contexts_tracker);
	CHECK(atomic_read(&faults) == 0);
	for (i = 0; i < LT_CONTEXTS; i++) {
		CHECK(atomic_read(&calls[i]) > 0);
		CHECK(atomic_read(&told[i]) == atomic_read(&calls[i]));
	}
	CHECK(atomic_read(&calls[LT_NMI]) >= nr * LT_ENOUGH);
}

static struct latency_tracker *switch_tracker;
static u32 switch_tid;
static int switches;

static notrace void count_mine(const struct latency_tracker_report *report)
{
	if (*(const u32 *)report->key == switch_tid)
		WRITE_ONCE(switches, switches + 1);
}

/* The tracepoint sched_switch: how long tasks are off the CPU. */
static notrace void on_switch(void *data, bool preempt,
			      struct task_struct *prev,
			      struct task_struct *next, unsigned int prev_state)
{
	u32 tid = prev->pid;

	if (tid)
		latency_tracker_event_in(switch_tracker, &tid, 4, NULL);
	tid = next->pid;
	if (tid)
		latency_tracker_event_out(switch_tracker, &tid, 4, 0);
}

void under_the_runqueue_lock(void)
{
	struct latency_tracker_config c = config(4, LATENCY_TRACKER_UNIQUE);
	struct tracepoint *tp = lt_tracepoint_find("sched_switch");
	int i;

	c.callback = count_mine;
	c.threshold = 0;
	c.capacity = 4096;
	switch_tid = current->pid;
	switch_tracker = latency_tracker_create(&c);
	CHECK(!IS_ERR(switch_tracker));
	CHECK(tp && !tracepoint_probe_register(tp, on_switch, NULL));
	/*
	 * Each sleep takes this thread off the CPU, unless the machine is so
	 * slow that the sleep is over before the switch.
	 */
	for (i = 0; i < 10000 && READ_ONCE(switches) < 100; i++)
		fsleep(1000);
	if (tp)
		tracepoint_probe_unregister(tp, on_switch, NULL);
	latency_tracker_destroy(switch_tracker);
	CHECK(switches >= 100);
}
