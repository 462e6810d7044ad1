// SPDX-License-Identifier: GPL-2.0

//! The current task, as far as a probe may look at it.

use crate::sys::bindings;
use core::mem::MaybeUninit;

/// Ids in the initial namespace, and the command name.
#[derive(Clone, Copy)]
pub(crate) struct Task {
    /// Thread group id.
    pub(crate) pid: u32,
    /// Thread id.
    pub(crate) tid: u32,
    /// When it was born, in nanoseconds of `CLOCK_MONOTONIC`.
    pub(crate) born: u64,
    /// Command name, 16 bytes padded with NUL.
    pub(crate) comm: [u64; 2],
}

/// The current task, if the CPU is running one and not an interrupt. Any context.
pub(crate) fn current() -> Option<Task> {
    // SAFETY: Reads the preemption counter.
    if !unsafe { bindings::lt_in_task() } {
        return None;
    }
    let mut task = MaybeUninit::<bindings::lt_task>::uninit();
    // SAFETY: `current` is always valid; the function fills all of the structure. The name may
    // be changing, which at worst mixes two names; it is always terminated.
    let task = unsafe {
        bindings::lt_current(task.as_mut_ptr());
        task.assume_init()
    };
    Some(Task {
        pid: task.pid,
        tid: task.tid,
        born: task.born,
        comm: task.comm,
    })
}
