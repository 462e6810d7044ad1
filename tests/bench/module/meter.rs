// SPDX-License-Identifier: GPL-2.0

//! Measures the cost of a call by the time stamp counter or, on arm64, the counter of the generic
//! timer.
//!
//! In a machine whose time is the number of executed instructions (scripts/vm --icount 0), the
//! counter advances by one with each instruction, so the figures are exact and the same in every
//! run. On arm64 this requires a counter of 1 GHz, which QEMU's CPU `max` has; QEMU's older CPUs
//! have a counter of 62.5 MHz. Elsewhere the figures are cycles of the counter, with the usual
//! noise.

use crate::sys;
use kernel::prelude::*;

/// Measures operations, each by the same number of calls.
pub(crate) struct Meter {
    calls: u64,
}

impl Meter {
    /// Creates a meter that measures `calls` calls of each operation. Reports the steps of the
    /// counter during 1,000 instructions: tests/bench/report.py refuses the figures unless they are
    /// 1,000 and a few for the call.
    pub(crate) fn new(calls: u64) -> Self {
        let meter = Self { calls };
        meter.report("counter", 0, ticks(thousand), 1_000);
        meter
    }

    /// Returns the number of measured calls of each operation. [`Meter::row`] makes twice as many.
    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    /// Runs `operation` in a loop with interrupts off, and reports the total cost, loop included.
    ///
    /// The argument of `operation` counts from 0. The first half of the calls is not reported,
    /// since it includes one-time work, such as the first access to a page.
    #[inline(always)]
    pub(crate) fn row(&self, name: &str, live: u64, mut operation: impl FnMut(u64)) {
        // One loop for both rounds: if called in two places, the operation would not be inlined.
        let mut total = 0;
        for round in 0..2 {
            let first = self.calls.wrapping_mul(round);
            total = ticks(|| {
                for n in first..first.wrapping_add(self.calls) {
                    operation(n);
                }
            });
        }
        self.report(name, live, total, self.calls);
    }

    /// Prints the total cost of `calls` calls, made with `live` events live.
    pub(crate) fn report(&self, name: &str, live: u64, total: u64, calls: u64) {
        pr_info!("result {name} {live} {total} {calls}\n");
    }
}

/// Executes 1,000 instructions, not counting the call itself.
#[inline(never)]
fn thousand() {
    // SAFETY: Does nothing.
    unsafe {
        core::arch::asm!(
            ".rept 1000",
            "nop",
            ".endr",
            options(nomem, nostack, preserves_flags),
        );
    }
}

/// Reads the counter.
#[inline(always)]
pub(crate) fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: Reads a counter that every x86-64 processor has.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let now;
        // SAFETY: Reads a counter that every arm64 processor has, after all earlier instructions.
        unsafe { core::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) now) };
        now
    }
}

/// Returns the cost of `work`, run with interrupts off, in steps of the counter.
#[inline(always)]
pub(crate) fn ticks(work: impl FnOnce()) -> u64 {
    let flags = sys::irq_save();
    let start = now();
    work();
    let end = now();
    sys::irq_restore(flags);
    end.wrapping_sub(start)
}
