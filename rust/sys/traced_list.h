/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The trackers that have a tracepoint of their own, alert_NAME. Included with
 * another LT_TRACED() each time.
 */
LT_TRACED(tree)

#include "declared_list.h"
