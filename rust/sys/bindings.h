/* SPDX-License-Identifier: GPL-2.0 */
/* bindgen's input for rust/sys/bindings.rs; see Makefile.bindgen. */
#include <generated/utsrelease.h>
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/proc_fs.h>

#include <asm/unistd.h>

#include "../../include/latency_tracker.h"
#include "fprobe.h"
#include "helpers.h"
#include "measure.h"
#include "tracepoints.h"
