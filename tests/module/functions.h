/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The functions of lt_functions. If they were static, the compiler might replace them
 * with variants of other names.
 */
#ifndef _LATENCY_TRACKER_TEST_FUNCTIONS_H
#define _LATENCY_TRACKER_TEST_FUNCTIONS_H

struct completion;

int lt_fn_delay(unsigned int nth, unsigned int ms);
int lt_fn_sleep(unsigned int nth, unsigned int ms);
int lt_fn_recurse(unsigned int depth, unsigned int ms);
int lt_fn_tick(unsigned int nth, unsigned int ms);
void lt_fn_exit(struct completion *done);

#endif /* _LATENCY_TRACKER_TEST_FUNCTIONS_H */
