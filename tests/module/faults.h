/* SPDX-License-Identifier: GPL-2.0 */
/* Makes allocations of a task fail. */
#ifndef _LT_FAULTS_H
#define _LT_FAULTS_H

/* Makes failures possible until lt_faults_stop(). Returns 0 or a negative errno. */
int lt_faults_start(void);
void lt_faults_stop(void);

/*
 * From the nth on, @count allocations of this task fail; with a @count of 0, none.
 */
void lt_faults_arm(unsigned int nth, unsigned int count);

/* Ends the failures, and returns how many allocations failed. */
unsigned int lt_faults_disarm(void);

#endif /* _LT_FAULTS_H */
