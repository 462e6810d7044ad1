/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The processor's counters, before and after a short section. bindgen reads
 * this file; measure.c implements it for rust/sys/measure.rs.
 */
#ifndef _LATENCY_TRACKER_MEASURE_H
#define _LATENCY_TRACKER_MEASURE_H

#include <linux/types.h>

/* Number of events to choose from, see measure.c. */
#define LT_MEASURE_EVENTS 6

/* Maximum length of the parameter `measure`, with its NUL. */
#define LT_MEASURE_TEXT 128

/* Cost of the section between lt_measure_begin() and lt_measure_end(). */
struct lt_sample {
	u64 cycles;
	u64 events[LT_MEASURE_EVENTS];
	/* A bit for each event that counted all the time. */
	u32 counted;
	/* NMIs and machine checks that came in between. */
	u32 breaks;
};

/* The text of the parameter. */
const char *lt_measure_text(void);

/*
 * Starts counting events, by their positions in the table of measure.c, on each
 * CPU that is or comes online. An event that cannot be counted is not an error.
 * Called once; both functions may sleep.
 */
int lt_measure_start(const u32 *events, u32 nr);
void lt_measure_stop(void);
/* Returns how many CPUs count the nth event; if none, `err` has the reason. */
u32 lt_measure_cpus(u32 nth, int *err);

/* On one CPU, with interrupts off. */
void lt_measure_begin(struct lt_sample *sample);
void lt_measure_end(struct lt_sample *sample);

#endif /* _LATENCY_TRACKER_MEASURE_H */
