// SPDX-License-Identifier: GPL-2.0
/*
 * The threads of lt_structures: those of all modules of tests, in an object of
 * its own because an object belongs to one module.
 */
#include "../threads.c"
