// SPDX-License-Identifier: GPL-2.0

//! A log of the use of a CPU: how long each interrupt, softirq or task had it, as sums among which
//! a wait for the CPU is divided.
//!
//! ```text
//!   runs      | A    | B | A | B | C  | A   |
//!   waits          ^1          ^2
//!   segments  ... | A+A, B | B, C, A...       oldest first; each holds sums
//! ```
//!
//! A *slice* is the time for which one rival had the CPU, and is added when it is over. A log holds
//! one sort of rivals, whose times are from one clock of wait.rs. So the exact part of a wait that
//! this sort took is known, and the log only divides it.
//!
//! When a wait begins, the next slice that ends begins a new segment. Within a segment, the slices
//! of one rival become one sum, if that sum is among the latest [`SEARCHED`]. So no wait begins in
//! the middle of a segment, except within its first slice. Going back from the latest sum, a wait
//! takes the whole of each sum, until its part is used up, which happens in the first sum of its
//! segment. Several waits share the segments, and none has a table of its own. If there are more
//! sums than the log holds, the oldest are overwritten: then a part of the wait remains that
//! belongs to no rival.
//!
//! A wait for this CPU may be started by another CPU, which announces the wait a moment after it
//! has read the clock. A slice that ends meanwhile is added to a sum of the last segment, and that
//! sum is then the last of the segment to end. The end of each sum shows whether the sum ended
//! before the wait began, and nothing is taken from the sums that did.
//!
//! A log belongs to one CPU, and is not changed and read at the same time. Relaxed everywhere: the
//! number of waits orders nothing else in memory.

use crate::sys::atomic::{Atomic, Relaxed};

/// Number of sums in a log.
pub(crate) const LOG: usize = 64;
/// Number of latest sums that are searched for the rival whose slice is added.
const SEARCHED: u64 = 8;

/// A rival: a [`super::rivals::who`], and a name.
pub(crate) type Who = [u64; 3];

/// The words of a sum: the rival, its time, and the end of its last slice.
const TIME: usize = 3;
const END: usize = 4;
const SUM: usize = 5;

/// The sums of a log, separately, since they are too large for the stack. All words may be 0 at
/// first.
pub(crate) type Sums = [[Atomic<u64>; SUM]; LOG];

#[inline(always)]
fn sum(sums: &Sums, nth: u64) -> &[Atomic<u64>; SUM] {
    &sums[nth as usize % LOG]
}

/// The log of one sort of rivals on a CPU. See the head of this file.
pub(crate) struct Log {
    /// Number of waits that had begun when the latest segment was started.
    waits: Atomic<u64>,
    /// Positions of the first sum of the latest segment, and of the next sum. Both count all sums
    /// ever made.
    first: Atomic<u64>,
    next: Atomic<u64>,
}

impl Log {
    pub(crate) fn new() -> Self {
        let word = || Atomic::new(0);
        Self {
            waits: word(),
            first: word(),
            next: word(),
        }
    }

    /// Clears the log, while nothing else uses it.
    pub(crate) fn reset(&self) {
        for word in [&self.waits, &self.first, &self.next] {
            word.store(0, Relaxed);
        }
    }

    /// Adds a slice of `who` that ended at `end`. `waits` is the number of waits for this CPU that
    /// have begun.
    #[inline(always)]
    pub(crate) fn add(&self, sums: &Sums, waits: u64, who: Who, time: u64, end: u64) {
        let next = self.next.load(Relaxed);
        if self.waits.load(Relaxed) != waits {
            self.waits.store(waits, Relaxed);
            self.first.store(next, Relaxed);
        }
        let least = self.first.load(Relaxed).max(next.saturating_sub(SEARCHED));
        for nth in (least..next).rev() {
            let sum = sum(sums, nth);
            if (0..3).all(|at| sum[at].load(Relaxed) == who[at]) {
                sum[TIME].store(sum[TIME].load(Relaxed).wrapping_add(time), Relaxed);
                sum[END].store(end, Relaxed);
                return;
            }
        }
        let words = [who[0], who[1], who[2], time, end];
        for (word, value) in sum(sums, next).iter().zip(words) {
            word.store(value, Relaxed);
        }
        self.next.store(next.wrapping_add(1), Relaxed);
    }

    /// Divides `part`, the time that this sort of rivals took of a wait that began at `since`:
    /// calls `see` for each sum, perhaps several times for one rival. Returns the time that belongs
    /// to no rival.
    pub(crate) fn divide(
        &self,
        sums: &Sums,
        since: u64,
        part: u64,
        mut see: impl FnMut(Who, u64),
    ) -> u64 {
        let (next, mut left) = (self.next.load(Relaxed), part);
        for nth in (next.saturating_sub(LOG as u64)..next).rev() {
            if left == 0 {
                break;
            }
            let [who @ .., time, end] = sum(sums, nth);
            if end.load(Relaxed) > since {
                let time = time.load(Relaxed).min(left);
                left -= time;
                see(who.each_ref().map(|word| word.load(Relaxed)), time);
            }
        }
        left
    }
}
