// SPDX-License-Identifier: GPL-2.0

//! Periods of counters that are never reset: the differences of snapshots.
//!
//! ```text
//!   probes ---> counters     words for each CPU, only ever counted up
//!                  |
//!                  | sum at one moment: a Snapshot
//!                  v
//!              Snapshots     current  = now            - the last reset
//!                            previous = the last reset - the one before it
//! ```
//!
//! A reset takes a snapshot and keeps it; a [`Period`] is the difference of two snapshots. Each
//! operation increments one word once, and a later read of a word never finds less, so the
//! increment is in all snapshots from some snapshot on: in exactly one of any row of adjoining
//! periods. Reading and resetting thus lose nothing and count nothing twice, and no probe waits for
//! either, or executes an instruction for them. A snapshot is not of one instant on all CPUs.
//!
//! # Contexts
//!
//! For readers and workers, under a lock of the owner.

use crate::sys::{
    atomic::{Atomic, Relaxed},
    memory::NodeSlice,
};
use kernel::prelude::*;

/// The counters at one moment: a time in nanoseconds, then the cells.
///
/// Atomic, because shared memory can then be changed without `unsafe`; the owner's lock orders all
/// accesses.
struct Snapshot<'a>(&'a [Atomic<u64>]);

impl Snapshot<'_> {
    fn time(&self) -> u64 {
        self.0[0].load(Relaxed)
    }

    fn cell(&self, cell: usize) -> u64 {
        self.0[1 + cell].load(Relaxed)
    }

    fn take(&self, now: u64, value: impl Fn(usize) -> u64) {
        self.0[0].store(now, Relaxed);
        for (cell, word) in self.0[1..].iter().enumerate() {
            word.store(value(cell), Relaxed);
        }
    }

    fn copy(&self, other: &Snapshot<'_>) {
        for (to, from) in self.0.iter().zip(other.0) {
            to.store(from.load(Relaxed), Relaxed);
        }
    }
}

// The positions of the snapshots.
const PREVIOUS: usize = 0;
/// The position of the snapshot of the last reset.
pub(crate) const RESET: usize = 1;
const NOW: usize = 2;
/// The position of the first snapshot of the owner.
pub(crate) const FIRST_OWN: usize = 3;

/// The snapshots of a set of counters. Their user has exclusive access.
pub(crate) struct Snapshots {
    words: NodeSlice<Atomic<u64>>,
    /// Number of words of a snapshot.
    each: usize,
}

impl Snapshots {
    /// Creates snapshots of this number of cells: those of the periods, and `own` for the owner.
    /// All are of `now`, with nothing counted. Sleeps; fails with `ENOMEM`.
    pub(crate) fn new(cells: usize, own: usize, now: u64) -> Result<Self> {
        let each = 1 + cells;
        let words = NodeSlice::try_new((FIRST_OWN + own) * each, None, |at| {
            Ok(Atomic::new(if at % each == 0 { now } else { 0 }))
        })?;
        Ok(Self { words, each })
    }

    fn snapshot(&self, at: usize) -> Snapshot<'_> {
        Snapshot(&self.words[at * self.each..][..self.each])
    }

    /// Returns the time of a snapshot.
    pub(crate) fn time(&self, at: usize) -> u64 {
        self.snapshot(at).time()
    }

    /// Takes a snapshot: `value` returns the total of each cell.
    pub(crate) fn take(&mut self, at: usize, now: u64, value: impl Fn(usize) -> u64) {
        self.snapshot(at).take(now, value);
    }

    /// Ends the current period at `now`, and starts the next.
    pub(crate) fn reset(&mut self, now: u64, value: impl Fn(usize) -> u64) {
        self.snapshot(PREVIOUS).copy(&self.snapshot(RESET));
        self.take(RESET, now, value);
    }

    /// Returns the period that the last reset ended; an empty one before the first reset.
    pub(crate) fn previous(&self) -> Period<'_> {
        Period {
            begin: self.snapshot(PREVIOUS),
            end: self.snapshot(RESET),
        }
    }

    /// Returns the period from a snapshot, such as [`RESET`], until now.
    pub(crate) fn since(
        &mut self,
        begin: usize,
        now: u64,
        value: impl Fn(usize) -> u64,
    ) -> Period<'_> {
        self.take(NOW, now, value);
        Period {
            begin: self.snapshot(begin),
            end: self.snapshot(NOW),
        }
    }
}

/// The counts between two snapshots.
pub(crate) struct Period<'a> {
    begin: Snapshot<'a>,
    end: Snapshot<'a>,
}

impl Period<'_> {
    /// Returns the count of a cell.
    pub(crate) fn cell(&self, cell: usize) -> u64 {
        self.end.cell(cell).wrapping_sub(self.begin.cell(cell))
    }

    /// Returns the start and the end of the period.
    pub(crate) fn times(&self) -> (u64, u64) {
        (self.begin.time(), self.end.time())
    }
}
