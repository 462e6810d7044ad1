// SPDX-License-Identifier: GPL-2.0
/* The helpers that rust/sys calls: the same file that the module is made of. */
#include "../../rust/sys/helpers.c"
