// SPDX-License-Identifier: GPL-2.0

//! A timer whose function is called, and the clocks of timers.
//!
//! C headers: [`include/linux/hrtimer.h`](srctree/include/linux/hrtimer.h),
//! [`include/linux/timer.h`](srctree/include/linux/timer.h)

use crate::sys::bindings as helpers;

/// A timer whose function is about to be called. Times are `CLOCK_MONOTONIC`.
#[derive(Clone, Copy)]
pub(crate) struct Timer {
    /// When it was to be called at the earliest: the time that was asked for.
    pub(crate) due: u64,
    /// The same with the slack by which it may be late on purpose.
    pub(crate) latest: u64,
    /// The address of the function.
    pub(crate) function: u64,
    /// Its clock, from 1, if it is one of the [`CLOCKS`]; 0: one that is never set.
    pub(crate) clock: usize,
    /// The time of that clock minus `CLOCK_MONOTONIC`, as this CPU has it.
    pub(crate) offset: u64,
}

impl Timer {
    pub(super) fn of(raw: &helpers::lt_timer) -> Self {
        Self {
            due: raw.due,
            latest: raw.latest,
            function: raw.function,
            clock: raw.clock as usize,
            offset: raw.offset,
        }
    }
}

/// How many clocks there are that may be set: `CLOCK_REALTIME`, `CLOCK_BOOTTIME`, `CLOCK_TAI`.
pub(crate) const CLOCKS: usize = helpers::LT_CLOCKS as usize;

/// Their times minus `CLOCK_MONOTONIC`. Any context.
pub(crate) fn clock_offsets() -> [u64; CLOCKS] {
    let mut offsets = [0; CLOCKS];
    // SAFETY: There is room for all.
    unsafe { helpers::lt_clock_offsets(offsets.as_mut_ptr()) };
    offsets
}
