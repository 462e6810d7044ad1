// SPDX-License-Identifier: GPL-2.0

//! The loop of `bench loop --in-kernel`: reads the clock repeatedly with interrupts off, and does
//! nothing else. So neither an interrupt nor a task can cause a gap between two readings, only an
//! NMI, the firmware, the hardware, or the host of a virtual machine.
//!
//! ```text
//!   a task writes a question  | interrupts off: now, now, now, ..... , now | the answer, and user
//!                                                     |<----->|              space rests
//!                                                       peak
//! ```
//!
//! A question is one write to the file `hwnoise`; a read returns the answer (sys/procfs/query.rs).
//! Each question runs one slice of at most a millisecond, on the CPU of the task. That is far below
//! the limits of the lockup detectors and of RCU's stall detector, which count in seconds. A
//! signal, or the unloading of the module, waits for at most one slice. User space decides how long
//! a CPU rests between slices. A peak is a gap of at least the threshold.
//!
//! Nothing is allocated or started before the first question.

use crate::engine::histogram::{bounds, bucket_of, BUCKETS};
use kernel::{
    fmt::{self, Write},
    prelude::*, //
};

/// Maximum length of a slice, in nanoseconds.
pub(crate) const LONGEST: u64 = 1_000_000;

/// Maximum number of peaks that a slice keeps. Later peaks are only counted.
const KEPT: usize = 16;

/// Number of initial readings that are ignored, since they miss the cache.
const WARM_UP: u64 = 5;

/// The parameters of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Length of the slice, in nanoseconds.
    length: u64,
    /// Minimum length of a peak, in nanoseconds.
    threshold: u64,
}

impl Plan {
    /// Parses `LENGTH THRESHOLD`, decimal nanoseconds. Fails with `EINVAL`, or `ERANGE` for a
    /// length that is 0 or above [`LONGEST`].
    pub(crate) fn parse(text: &[u8]) -> Result<Self> {
        let text = core::str::from_utf8(text).map_err(|_| EINVAL)?;
        let (length, threshold) = text.split_once(' ').ok_or(EINVAL)?;
        let number = |digits: &str| {
            // `parse` would accept a sign.
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            let number = digits.parse::<u64>().ok();
            number.filter(|_| is_number).ok_or(EINVAL)
        };
        let plan = Self {
            length: number(length)?,
            threshold: number(threshold)?,
        };
        if plan.length == 0 || plan.length > LONGEST {
            return Err(ERANGE);
        }
        Ok(plan)
    }
}

/// The results of a slice: gaps between consecutive readings, in nanoseconds.
pub(crate) struct Found<'a> {
    loops: u64,
    min: u64,
    max: u64,
    sum: u64,
    squares: u128,
    /// The number of peaks.
    peaks: u64,
    /// The start and the length of each of the first peaks.
    kept: [(u64, u64); KEPT],
    bins: &'a mut [u32],
}

pub(crate) const BINS: usize = BUCKETS;

impl<'a> Found<'a> {
    /// Creates empty results. `bins` are [`BINS`] zeroes, allocated by the caller.
    pub(crate) fn new(bins: &'a mut [u32]) -> Self {
        Self {
            loops: 0,
            min: u64::MAX,
            max: 0,
            sum: 0,
            squares: 0,
            peaks: 0,
            kept: [(0, 0); KEPT],
            bins,
        }
    }

    /// Runs the loop on this CPU. `clock` returns nanoseconds. The caller turns interrupts off.
    pub(crate) fn measure(&mut self, plan: Plan, clock: impl Fn() -> u64) {
        let mut last = clock();
        for _ in 0..WARM_UP {
            last = clock();
        }
        let end = last.saturating_add(plan.length);
        // A reading takes longer than 4 ns, so this limit is reached only if the clock stands still
        // because its own interrupt is off. Without the limit, the CPU would never leave the loop.
        for _ in 0..plan.length / 4 + 1 {
            let now = clock();
            self.add(last, now.saturating_sub(last), plan.threshold);
            last = now;
            if now >= end {
                break;
            }
        }
    }

    #[inline(always)]
    fn add(&mut self, begin: u64, took: u64, threshold: u64) {
        self.loops += 1;
        self.min = self.min.min(took);
        self.max = self.max.max(took);
        self.sum = self.sum.wrapping_add(took);
        let square = u128::from(took).wrapping_mul(u128::from(took));
        self.squares = self.squares.wrapping_add(square);
        if let Some(bin) = self.bins.get_mut(bucket_of(took)) {
            *bin += 1;
        }
        if took >= threshold {
            if let Some(kept) = self.kept.get_mut(self.peaks as usize) {
                *kept = (begin, took);
            }
            self.peaks += 1;
        }
    }

    /// Prints the results: `key value` lines, a line for each kept peak (start, length), and one
    /// for each bin that is not empty (lowest value, number of gaps).
    pub(crate) fn print(&self, out: &mut dyn Write) -> fmt::Result {
        out.write_fmt(fmt!("loops {}\n", self.loops))?;
        out.write_fmt(fmt!("min {}\n", self.min))?;
        out.write_fmt(fmt!("max {}\n", self.max))?;
        out.write_fmt(fmt!("sum {}\n", self.sum))?;
        out.write_fmt(fmt!("squares {}\n", self.squares))?;
        out.write_fmt(fmt!("peaks {}\n", self.peaks))?;
        let kept = self.kept.iter().take(self.peaks.min(KEPT as u64) as usize);
        for (begin, took) in kept {
            out.write_fmt(fmt!("peak {begin} {took}\n"))?;
        }
        for (bin, &count) in self.bins.iter().enumerate().filter(|(_, &count)| count > 0) {
            out.write_fmt(fmt!("bin {} {count}\n", bounds(bin).0))?;
        }
        Ok(())
    }
}
