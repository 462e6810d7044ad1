// SPDX-License-Identifier: GPL-2.0

//! How long each kind of step took, on all chains that have reached their end, late or not.
//!
//! ```text
//!   end of a chain ---> for each step: its kind, the time until the next one
//!                        |
//!                        v
//!                      sum, maximum, and a histogram for each kind, on each CPU ---> NAME/steps
//! ```
//!
//! The histogram is the engine's coarse one, so a quantile is at most a quarter too high. Steps
//! that a chain has left out, and the step before them, are not counted: the time of each is not
//! recorded.
//!
//! # Contexts
//!
//! [`Totals::count`]: any. Showing: a task that may sleep.

use super::{
    chain::{Kind, Look},
    Guard,
};
use crate::{
    engine::{
        histogram::{group_bounds, group_of, FIRST_GROUP},
        platform::Platform,
    },
    instance::Table,
    sys::{
        atomic::{Atomic, Relaxed},
        memory::PerCpu,
        platform::Kernel, //
    },
};
use kernel::{prelude::*, seq_file::SeqFile, seq_print};

/// The kinds that can have a successor, and their names in chains.
pub(super) const KINDS: [(Kind, &str); 19] = [
    (Kind::Irq, "irq"),
    (Kind::Vector, "vector"),
    (Kind::Due, "timer"),
    (Kind::Expire, "expire"),
    (Kind::Raise, "raise"),
    (Kind::Softirq, "softirq"),
    (Kind::Waking, "waking"),
    (Kind::Switch, "switch"),
    (Kind::Preempted, "preempted"),
    (Kind::Lock, "lock"),
    (Kind::Sleep, "sleep"),
    (Kind::Begin, "begin"),
    (Kind::Queue, "queue"),
    (Kind::Work, "work"),
    (Kind::Wheel, "wheel"),
    (Kind::Call, "call"),
    (Kind::Called, "called"),
    (Kind::Throttled, "throttled"),
    (Kind::Reads, "reads"),
];

// The words of a kind: the sum, the maximum, and the groups, each at its own number. The words
// between the maximum and the first group remain 0.
const SUM: usize = 0;
const MAX: usize = 1;
/// The last group also has all longer times, more than four minutes.
const LAST_GROUP: usize = FIRST_GROUP + 143;
const ONE: usize = LAST_GROUP + 1;
const _: () = assert!(MAX < FIRST_GROUP);

/// The words of each kind, by its number.
type Local = [[Atomic<u64>; ONE]; Kind::LAST as usize + 1];

/// The totals of an instance. See the head of this file.
pub(super) struct Totals {
    cpus: PerCpu<Local>,
}

impl Totals {
    /// Creates the totals, at zero. May sleep; fails with `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        let cpus = PerCpu::zeroed::<Kernel>()?;
        Ok(Self { cpus })
    }

    /// Counts the steps of a chain that ends at `end`.
    #[inline(always)]
    pub(super) fn count(&self, guard: &Guard, chain: &impl Look, end: u64) {
        let words = self.cpus.this::<Kernel>(guard);
        let of = |kind: u64| words.get(kind as usize);
        chain.each_time(end, of, |one, time| {
            Kernel::count_nth::<0, ONE>(guard, one, group_of(time).min(LAST_GROUP));
            Kernel::add_word::<SUM, ONE>(guard, one, time);
            // Relaxed, and without an exchange: only this CPU writes the word, and ends of chains
            // do not interrupt each other. They are in the scheduler, on the way to user space, or
            // in a system call with the guard held.
            if time > one[MAX].load(Relaxed) {
                one[MAX].store(time, Relaxed);
            }
        });
    }

    fn sum_of(&self, kind: usize, at: usize) -> u64 {
        // Relaxed: each value is exact; together they are an approximate snapshot.
        let values = self.cpus.iter().map(|words| words[kind][at].load(Relaxed));
        values.fold(0, u64::wrapping_add)
    }

    fn max_of(&self, kind: usize) -> u64 {
        let values = self.cpus.iter().map(|words| words[kind][MAX].load(Relaxed));
        values.max().unwrap_or(0)
    }

    /// Returns an upper bound of the 99th percentile of a kind, of which there are `count` steps.
    fn p99(&self, kind: usize, count: u64, max: u64) -> u64 {
        let rank = count - count / 100;
        let mut seen = 0;
        for group in FIRST_GROUP..LAST_GROUP {
            seen += self.sum_of(kind, group);
            if seen >= rank {
                let (_, above) = group_bounds(group);
                return max.min(above - 1);
            }
        }
        max
    }
}

impl Table for Totals {
    fn show(&self, out: &SeqFile) {
        seq_print!(out, "step count mean p99 max\n");
        for (kind, name) in KINDS {
            let kind = kind as usize;
            let groups = (FIRST_GROUP..ONE).map(|group| self.sum_of(kind, group));
            let count: u64 = groups.sum();
            if let Some(mean) = self.sum_of(kind, SUM).checked_div(count) {
                let max = self.max_of(kind);
                let p99 = self.p99(kind, count, max);
                seq_print!(out, "{name} {count} {mean} {p99} {max}\n");
            }
        }
    }
}
