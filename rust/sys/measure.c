// SPDX-License-Identifier: GPL-2.0
/*
 * The processor's counters around a short section, see measure.h.
 *
 *   begin: NMIs, events, cycles |  the section  | end: cycles, events, NMIs
 *
 * The cycles are read innermost, so that they do not include reading the
 * events; the count of NMIs outermost, so that an NMI during any of these reads
 * is seen, too.
 *
 * The events are perf events, one set for each CPU. They count all the time,
 * and are read by rdpmc on x86. They are pinned: perf neither multiplexes nor
 * moves them, except in interrupts, which are off. An event for which perf has
 * no free counter is not counted.
 *
 * lt_measure_begin() and lt_measure_end() run in probes; lt_measure_start() and
 * lt_measure_stop() may sleep.
 */
#include <linux/bits.h>
#include <linux/cpuhotplug.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/hardirq.h>
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/timex.h>

#ifdef CONFIG_X86
#include <asm/tsc.h>
#endif

#include "measure.h"

static char lt_text[LT_MEASURE_TEXT];
module_param_string(measure, lt_text, sizeof(lt_text), 0400);
MODULE_PARM_DESC(measure, "What to count around each probe, to find out what it costs: cycles, and perf's events (default: nothing)");

const char *lt_measure_text(void)
{
	return lt_text;
}

static notrace u64 lt_cycles(void)
{
#ifdef CONFIG_X86
	return rdtsc_ordered();
#else
	return get_cycles();
#endif
}

/* Number of times that this CPU was interrupted although interrupts are off. */
static notrace u32 lt_breaks(void)
{
	u32 breaks = 0;

#ifdef CONFIG_X86
	breaks += this_cpu_read(irq_stat.counts[IRQ_COUNT_NMI]);
#ifdef CONFIG_X86_MCE
	breaks += this_cpu_read(irq_stat.counts[IRQ_COUNT_MCE_EXCEPTION]);
#endif
#endif
	return breaks;
}

#ifdef CONFIG_PERF_EVENTS

#define LT_MISSES(cache)                                                      \
	(PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_READ << 8 |     \
	 PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

/* In the order of EVENTS in rust/measure/tally.rs. */
static const struct {
	u32 type;
	u64 config;
} lt_table[LT_MEASURE_EVENTS] = {
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	{ PERF_TYPE_HW_CACHE, LT_MISSES(L1D) },
	{ PERF_TYPE_HW_CACHE, LT_MISSES(LL) },
	{ PERF_TYPE_HW_CACHE, LT_MISSES(DTLB) },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES },
};

static struct perf_event *lt_event_new(u32 at, unsigned int cpu)
{
	struct perf_event_attr attr = {
		.type = lt_table[at].type,
		.config = lt_table[at].config,
		.size = sizeof(attr),
		.pinned = 1,
	};
	struct perf_event *event;

	event = perf_event_create_kernel_counter(&attr, cpu, NULL, NULL, NULL);
	if (IS_ERR(event))
		return event;
	if (READ_ONCE(event->state) != PERF_EVENT_STATE_ACTIVE) {
		perf_event_release_kernel(event);
		return ERR_PTR(-EBUSY);
	}
	return event;
}

/* Whether the event counts now; if so, its count is in the low 40 bits. */
static notrace bool lt_event_read(struct perf_event *event, u64 *count)
{
	if (READ_ONCE(event->state) != PERF_EVENT_STATE_ACTIVE ||
	    event->hw.idx < 0)
		return false;
#ifdef CONFIG_X86
	u32 low, high;

	asm volatile("rdpmc" : "=a" (low), "=d" (high)
		     : "c" (event->hw.event_base_rdpmc));
	*count = low | (u64)high << 32;
#else
	event->pmu->read(event);
	*count = local64_read(&event->count);
#endif
	return true;
}

#else /* !CONFIG_PERF_EVENTS */

static struct perf_event *lt_event_new(u32 at, unsigned int cpu)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static notrace bool lt_event_read(struct perf_event *event, u64 *count)
{
	return false;
}

#endif /* CONFIG_PERF_EVENTS */

/*
 * Counters are at least 40 bits wide, and no section counts that far: the
 * difference is right even if the counter has wrapped.
 */
#define LT_WIDTH GENMASK_ULL(39, 0)

/* The chosen events, on how many CPUs they count, and why not on the others. */
static u32 lt_chosen[LT_MEASURE_EVENTS];
static u32 lt_nr_chosen;
static u32 lt_cpus[LT_MEASURE_EVENTS];
static int lt_errors[LT_MEASURE_EVENTS];
static int lt_hotplug_state;

/* NULL for an event that is not counted. Read with interrupts off. */
struct lt_events {
	struct perf_event *of[LT_MEASURE_EVENTS];
};

static DEFINE_PER_CPU(struct lt_events, lt_events);

notrace void lt_measure_begin(struct lt_sample *sample)
{
	const struct lt_events *events = this_cpu_ptr(&lt_events);
	u32 i;

	sample->breaks = lt_breaks();
	sample->counted = 0;
	for (i = 0; i < lt_nr_chosen; i++) {
		struct perf_event *event = READ_ONCE(events->of[i]);

		if (event && lt_event_read(event, &sample->events[i]))
			sample->counted |= BIT(i);
	}
	sample->cycles = lt_cycles();
}

notrace void lt_measure_end(struct lt_sample *sample)
{
	const struct lt_events *events = this_cpu_ptr(&lt_events);
	u64 now;
	u32 i;

	sample->cycles = lt_cycles() - sample->cycles;
	for (i = 0; i < lt_nr_chosen; i++) {
		struct perf_event *event = READ_ONCE(events->of[i]);

		if (!(sample->counted & BIT(i)))
			continue;
		if (event && lt_event_read(event, &now))
			sample->events[i] = (now - sample->events[i]) & LT_WIDTH;
		else
			sample->counted &= ~BIT(i);
	}
	sample->breaks = lt_breaks() - sample->breaks;
}

/* CPU hotplug calls these two for one CPU at a time. */
static int lt_measure_online(unsigned int cpu)
{
	struct lt_events *events = per_cpu_ptr(&lt_events, cpu);
	u32 i;

	for (i = 0; i < lt_nr_chosen; i++) {
		struct perf_event *event = lt_event_new(lt_chosen[i], cpu);

		if (IS_ERR(event)) {
			WRITE_ONCE(lt_errors[i], PTR_ERR(event));
			continue;
		}
		/* Release: that CPU finds only a complete event. */
		smp_store_release(&events->of[i], event);
		WRITE_ONCE(lt_cpus[i], lt_cpus[i] + 1);
	}
	return 0;
}

static int lt_measure_offline(unsigned int cpu)
{
	struct lt_events *events = per_cpu_ptr(&lt_events, cpu);
	struct lt_events old = *events;
	u32 i;

	for (i = 0; i < lt_nr_chosen; i++)
		WRITE_ONCE(events->of[i], NULL);
	synchronize_rcu();
	for (i = 0; i < lt_nr_chosen; i++) {
		if (!old.of[i])
			continue;
		perf_event_release_kernel(old.of[i]);
		WRITE_ONCE(lt_cpus[i], lt_cpus[i] - 1);
	}
	return 0;
}

int lt_measure_start(const u32 *events, u32 nr)
{
	int state;

	if (nr > LT_MEASURE_EVENTS)
		return -EINVAL;
	memcpy(lt_chosen, events, nr * sizeof(*events));
	lt_nr_chosen = nr;
	state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "latency_tracker:measure",
				  lt_measure_online, lt_measure_offline);
	if (state < 0)
		return state;
	lt_hotplug_state = state;
	return 0;
}

void lt_measure_stop(void)
{
	cpuhp_remove_state(lt_hotplug_state);
}

u32 lt_measure_cpus(u32 nth, int *err)
{
	if (nth >= lt_nr_chosen) {
		*err = -EINVAL;
		return 0;
	}
	*err = READ_ONCE(lt_errors[nth]);
	return READ_ONCE(lt_cpus[nth]);
}
