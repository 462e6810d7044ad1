// SPDX-License-Identifier: GPL-2.0

//! The delays of an instance since the last reset, and in the period that the reset ended.
//!
//! ```text
//!   cells of a snapshot    | set 0: unlabelled | set 1: row 0 | set 2: row 1 | ...
//!   a set (delays.rs)      | sum | - | - | bucket 0 | bucket 1 | ...
//! ```
//!
//! All sets are in one snapshot, so in each period the rows of labels add up to the whole. The
//! counters themselves are not reset (snapshot.rs): a reader that takes differences of them, or
//! compares them with other counters, never sees them decrease. A period has no extremes, which no
//! difference of snapshots can give.
//!
//! The sum and the buckets of a set are different words, read one after the other. Each is exact,
//! but a delay that ends during a reset may have its count in one period and its time in the other.
//!
//! The memory for snapshots is allocated when a period is first read, or ended by a reset.
//!
//! # Contexts
//!
//! For readers, under a lock of the owner. All functions sleep.

use crate::engine::{
    delays::{Delays, WORDS},
    snapshot::{Period, Snapshots, RESET},
    stats::Stats,
};
use kernel::prelude::*;

/// A period of an instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    /// From the last reset, or the creation, until now.
    Current,
    /// The period that the last reset ended; an empty one before the first reset.
    Previous,
}

/// The periods of an instance. Their user has exclusive access.
pub(crate) struct Periods {
    /// When the first period started.
    created: u64,
    snapshots: Option<Snapshots>,
}

impl Periods {
    /// Creates periods of counters of which nothing is counted at `now`.
    pub(crate) const fn new(now: u64) -> Self {
        Self {
            created: now,
            snapshots: None,
        }
    }

    /// Returns the snapshots. Fails with `ENOMEM`, and has then changed nothing.
    fn snapshots(&mut self, stats: &Stats) -> Result<&mut Snapshots> {
        let snapshots = match self.snapshots.take() {
            Some(snapshots) => snapshots,
            // Nothing was reset, so all periods start at zero.
            None => Snapshots::new(stats.sets() * WORDS, 0, self.created)?,
        };
        Ok(self.snapshots.insert(snapshots))
    }

    /// Ends the current period at `now`, and starts the next. Calls `pause` before each set. Fails
    /// with `ENOMEM`, and has then changed nothing.
    pub(crate) fn reset(&mut self, stats: &Stats, now: u64, pause: impl Fn()) -> Result {
        let snapshots = self.snapshots(stats)?;
        snapshots.reset(now, |cell| value(stats, cell, &pause));
        Ok(())
    }

    /// Returns the delays of a period; the current one ends at `now`. Calls `pause` before each
    /// set. Fails with `ENOMEM`.
    pub(crate) fn get(
        &mut self,
        which: Which,
        stats: &Stats,
        now: u64,
        pause: impl Fn(),
    ) -> Result<PeriodDelays<'_>> {
        let snapshots = self.snapshots(stats)?;
        Ok(PeriodDelays(match which {
            Which::Current => snapshots.since(RESET, now, |cell| value(stats, cell, &pause)),
            Which::Previous => snapshots.previous(),
        }))
    }
}

/// Returns the total of a cell now.
fn value(stats: &Stats, cell: usize, pause: &impl Fn()) -> u64 {
    let (set, at) = (cell / WORDS, cell % WORDS);
    if at == 0 {
        pause();
    }
    stats.word_of(set, at)
}

/// The delays of a period.
pub(crate) struct PeriodDelays<'a>(Period<'a>);

impl PeriodDelays<'_> {
    /// Returns the start and the end of the period.
    pub(crate) fn times(&self) -> (u64, u64) {
        self.0.times()
    }

    /// Returns the delays of some sets together, by their numbers ([`Stats::set_of`]).
    pub(crate) fn of<S>(&self, sets: S) -> Sets<'_, S>
    where
        S: Iterator<Item = usize> + Clone,
    {
        Sets {
            period: &self.0,
            sets,
        }
    }
}

/// The delays of some sets in a period.
pub(crate) struct Sets<'a, S> {
    period: &'a Period<'a>,
    sets: S,
}

impl<S: Iterator<Item = usize> + Clone> Delays for Sets<'_, S> {
    fn sum_of(&self, at: usize) -> u64 {
        let sets = self.sets.clone();
        let values = sets.map(|set| self.period.cell(set * WORDS + at));
        values.fold(0, u64::wrapping_add)
    }
}
