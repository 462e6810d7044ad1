// SPDX-License-Identifier: GPL-2.0
/*
 * The threads of lt_structures: the code that all test modules use, in a separate
 * object because an object belongs to one module.
 */
#include "../threads.c"
