// SPDX-License-Identifier: GPL-2.0

//! Timers whose function is about to be called, and the clocks of timers.
//!
//! C headers: [`include/linux/hrtimer.h`](srctree/include/linux/hrtimer.h),
//! [`include/linux/timer.h`](srctree/include/linux/timer.h)

use crate::sys::bindings as helpers;
use core::{
    marker::PhantomData,
    ptr::{addr_of, NonNull}, //
};
use kernel::bindings;

/// A timer whose function is about to be called. Times are `CLOCK_MONOTONIC`.
#[derive(Clone, Copy)]
pub(crate) struct Timer {
    /// Soft expiry: the requested time.
    pub(crate) due: u64,
    /// Hard expiry: the soft one plus the slack.
    pub(crate) latest: u64,
    /// The address of the function.
    pub(crate) function: u64,
    /// The timer's clock: its position among the [`CLOCKS`], from 1; 0 for `CLOCK_MONOTONIC`, and
    /// for a timer of the wheel.
    pub(crate) clock: usize,
    /// The time of that clock minus `CLOCK_MONOTONIC`, as known on this CPU.
    pub(crate) offset: u64,
}

impl Timer {
    /// Converts a timer of the wheel.
    pub(super) fn of_wheel(raw: &helpers::lt_timer) -> Self {
        Self {
            due: raw.due,
            latest: raw.latest,
            function: raw.function,
            clock: 0,
            offset: 0,
        }
    }
}

/// A high-resolution timer whose function is about to be called, during the tracepoint.
///
/// # Invariants
///
/// The timer, and its base, are valid for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct HighRes<'a> {
    raw: NonNull<bindings::hrtimer>,
    _during: PhantomData<&'a bindings::hrtimer>,
}

impl<'a> HighRes<'a> {
    /// # Safety
    ///
    /// The timer, and its base, are valid for `'a`.
    #[inline(always)]
    pub(super) unsafe fn from_raw(raw: *mut bindings::hrtimer) -> Self {
        // INVARIANT: The function's contract.
        Self {
            // SAFETY: The function's contract: it is not null.
            raw: unsafe { NonNull::new_unchecked(raw) },
            _during: PhantomData,
        }
    }

    /// Reads the fields.
    pub(crate) fn read(self) -> Timer {
        self.read_with(clock_of)
    }

    /// Reads the fields if the clock is `CLOCK_MONOTONIC`, the usual one.
    #[inline(always)]
    pub(crate) fn read_monotonic(self) -> Option<Timer> {
        let mut is_monotonic = false;
        let timer = self.read_with(|id| {
            is_monotonic = id as u32 == bindings::CLOCK_MONOTONIC;
            0
        });
        is_monotonic.then_some(timer)
    }

    /// Reads the fields. The lock of the base is not held: another CPU may start the timer again
    /// meanwhile, and then its next expiry is read. Each word is read once, so a wrong time is
    /// the worst outcome.
    #[inline(always)]
    fn read_with(self, clock: impl FnOnce(bindings::clockid_t) -> usize) -> Timer {
        let raw = self.raw.as_ptr();
        // SAFETY: The type invariant; these fields are numbers and pointers.
        let (base, due, latest, function) = unsafe {
            (
                addr_of!((*raw).base).read_volatile(),
                addr_of!((*raw)._softexpires).read_volatile(),
                addr_of!((*raw).node.expires).read_volatile(),
                addr_of!((*raw).function).read_volatile(),
            )
        };
        let base = base.cast::<u8>();
        // SAFETY: As above: this is where the base has them, and helpers.c asserts their types.
        let (offset, id) = unsafe {
            (
                base.add(helpers::LT_CLOCK_BASE_OFFSET as usize)
                    .cast::<bindings::ktime_t>()
                    .read_volatile(),
                base.add(helpers::LT_CLOCK_BASE_CLOCK as usize)
                    .cast::<bindings::clockid_t>()
                    .read_volatile(),
            )
        };
        Timer {
            due: due.wrapping_sub(offset) as u64,
            latest: latest.wrapping_sub(offset) as u64,
            function: function.map_or(0, |function| function as usize as u64),
            clock: clock(id),
            offset: offset as u64,
        }
    }
}

/// Returns the number of a clock, see [`Timer::clock`].
fn clock_of(id: bindings::clockid_t) -> usize {
    // In the order of lt_clock_offsets().
    const IDS: [u32; CLOCKS] = [
        bindings::CLOCK_REALTIME,
        bindings::CLOCK_BOOTTIME,
        bindings::CLOCK_TAI,
    ];
    let at = IDS.iter().position(|&one| one == id as u32);
    at.map_or(0, |at| at + 1)
}

/// Number of clocks that may jump against `CLOCK_MONOTONIC`: `CLOCK_REALTIME`, `CLOCK_BOOTTIME`,
/// `CLOCK_TAI`.
pub(crate) const CLOCKS: usize = helpers::LT_CLOCKS as usize;

/// Returns the times of these clocks minus `CLOCK_MONOTONIC`. Any context.
pub(crate) fn clock_offsets() -> [u64; CLOCKS] {
    let mut offsets = [0; CLOCKS];
    // SAFETY: There is room for all.
    unsafe { helpers::lt_clock_offsets(offsets.as_mut_ptr()) };
    offsets
}
