/* SPDX-License-Identifier: GPL-2.0 */
/* Allocations of a task that fail. */
#ifndef _LT_FAULTS_H
#define _LT_FAULTS_H

/* Makes that possible, until lt_faults_stop(). Returns 0 or a negative errno. */
int lt_faults_start(void);
void lt_faults_stop(void);

/*
 * The allocations of this task from the nth on fail, @count of them. With a
 * @count of 0 none.
 */
void lt_faults_arm(unsigned int nth, unsigned int count);

/* Ends that, and returns how many failed. */
unsigned int lt_faults_disarm(void);

#endif /* _LT_FAULTS_H */
