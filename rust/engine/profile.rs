// SPDX-License-Identifier: GPL-2.0

//! A profile: the number of operations of each class by their duration, in powers of two.
//!
//! ```text
//!   probes ---> Counts     a table for each CPU, only ever counted up
//!                  |
//!                  | sum at one moment: a Snapshot
//!                  v
//!              History     profile    = now    - the last reset
//!                          previous   = the last reset - the one before it
//!                          1, 5, 15 min = now - the snapshot that old
//! ```
//!
//! Nothing is ever reset to zero. A reset takes a snapshot and keeps it; a profile is the
//! difference of two snapshots. Each operation increments one word once, so it is in the next
//! snapshot or the one after. Reading and resetting thus lose nothing, and delay no probe. A
//! snapshot does not show all CPUs at the same instant.
//!
//! # Contexts
//!
//! [`Counts::count`]: any. Everything else is for readers and a worker, under a lock of their own.

use crate::{
    engine::platform::Platform,
    sys::{
        atomic::{Atomic, Relaxed},
        memory::{NodeSlice, PerCpu},
    },
};
use kernel::{fmt, prelude::*};

/// The number of classes of a profile.
pub(crate) const CLASSES: usize = 8;

/// The number of rows: one for each power of two from 2^0 to 2^40 ns, and one for longer delays.
pub(crate) const ROWS: usize = 42;

const CELLS: usize = CLASSES * ROWS;

/// The classes of operations, in the order of the columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// System calls that read.
    Read,
    /// System calls that write.
    Write,
    /// System calls that read and write.
    ReadWrite,
    /// System calls that wait until written data is on stable storage.
    Sync,
    /// System calls that open a file or a connection.
    Open,
    /// System calls that close a file or a connection.
    Close,
    /// Reads of the block layer.
    BlockRead,
    /// Writes of the block layer.
    BlockWrite,
}

impl Class {
    /// All classes.
    pub(crate) const ALL: [Class; CLASSES] = [
        Class::Read,
        Class::Write,
        Class::ReadWrite,
        Class::Sync,
        Class::Open,
        Class::Close,
        Class::BlockRead,
        Class::BlockWrite,
    ];

    /// Returns the heading of the column.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Class::Read => "s_read",
            Class::Write => "s_write",
            Class::ReadWrite => "s_rw",
            Class::Sync => "s_sync",
            Class::Open => "s_open",
            Class::Close => "s_close",
            Class::BlockRead => "b_read",
            Class::BlockWrite => "b_write",
        }
    }

    /// Returns the class with this number.
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// Returns the row of a delay in nanoseconds. A delay of 0 is in the first row.
#[inline(always)]
pub(crate) fn row_of(delay: u64) -> usize {
    ((delay | 1).ilog2() as usize).min(ROWS - 1)
}

/// The counters of the probes, for each CPU.
pub(crate) struct Counts {
    cpus: PerCpu<[Atomic<u64>; CELLS]>,
}

impl Counts {
    /// Creates the counters, at zero. May sleep; fails with `ENOMEM`.
    pub(crate) fn new<P: Platform>() -> Result<Self> {
        let cpus = PerCpu::zeroed::<P>()?;
        Ok(Self { cpus })
    }

    /// Counts an operation. Any context.
    #[inline(always)]
    pub(crate) fn count<P: Platform>(&self, guard: &P::Guard, class: Class, delay: u64) {
        let cell = class as usize * ROWS + row_of(delay);
        P::count_nth::<0, CELLS>(guard, self.cpus.this::<P>(guard), cell);
    }

    fn sum_of(&self, cell: usize) -> u64 {
        // Relaxed: each word is exact, and a later read never finds less.
        let values = self.cpus.iter().map(|cpu| cpu[cell].load(Relaxed));
        values.fold(0, u64::wrapping_add)
    }
}

/// The counters at one moment: a time in nanoseconds, then the cells.
///
/// The words are atomic, because shared memory can then be changed without `unsafe`; the owner's
/// lock orders all accesses.
struct Snapshot<'a>(&'a [Atomic<u64>]);

/// Number of words of a snapshot.
const WORDS: usize = 1 + CELLS;

impl Snapshot<'_> {
    fn time(&self) -> u64 {
        self.0[0].load(Relaxed)
    }

    fn cell(&self, cell: usize) -> u64 {
        self.0[1 + cell].load(Relaxed)
    }

    fn take(&self, counts: &Counts, now: u64) {
        self.0[0].store(now, Relaxed);
        for (cell, word) in self.0[1..].iter().enumerate() {
            word.store(counts.sum_of(cell), Relaxed);
        }
    }

    fn copy(&self, other: &Snapshot<'_>) {
        for (to, from) in self.0.iter().zip(other.0) {
            to.store(from.load(Relaxed), Relaxed);
        }
    }
}

/// A window that ends now, with snapshots at its possible starts.
struct Window {
    /// Its length in nanoseconds.
    length: u64,
    /// Number of snapshots taken.
    taken: usize,
}

/// Number of equally spaced snapshots in the length of a window.
const STEPS: u64 = 12;

/// Number of snapshots of a window: [`STEPS`], and the one at its start.
const SLOTS: usize = STEPS as usize + 1;

const MINUTE: u64 = 60_000_000_000;

/// The windows, in minutes.
pub(crate) const WINDOWS: [u64; 3] = [1, 5, 15];

/// The positions of the snapshots.
const PREVIOUS: usize = 0;
const RESET: usize = 1;
const NOW: usize = 2;
const FIRST_SLOT: usize = 3;
const SNAPSHOTS: usize = FIRST_SLOT + WINDOWS.len() * SLOTS;

/// The span of a profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Span {
    /// From the last reset, or the creation.
    SinceReset,
    /// The profile that the last reset ended.
    Previous,
    /// One of [`WINDOWS`].
    Window(usize),
}

/// The snapshots. The caller has exclusive access.
pub(crate) struct History {
    words: NodeSlice<Atomic<u64>>,
    windows: [Window; WINDOWS.len()],
}

impl History {
    /// Creates a history that starts at `now`, with nothing counted. May sleep; fails with
    /// `ENOMEM`.
    pub(crate) fn new(now: u64) -> Result<Self> {
        let words = NodeSlice::try_new(SNAPSHOTS * WORDS, None, |_| Ok(Atomic::new(0)))?;
        let windows = WINDOWS.map(|minutes| Window {
            length: minutes.wrapping_mul(MINUTE),
            taken: 1,
        });
        let this = Self { words, windows };
        for at in 0..SNAPSHOTS {
            this.snapshot(at).0[0].store(now, Relaxed);
        }
        Ok(this)
    }

    fn snapshot(&self, at: usize) -> Snapshot<'_> {
        Snapshot(&self.words[at * WORDS..][..WORDS])
    }

    /// Returns a snapshot of a window, by its number since the creation.
    fn slot(&self, window: usize, number: usize) -> Snapshot<'_> {
        self.snapshot(FIRST_SLOT + window * SLOTS + number % SLOTS)
    }

    /// Ends the profile at `now`, and starts the next.
    pub(crate) fn reset(&mut self, counts: &Counts, now: u64) {
        self.snapshot(PREVIOUS).copy(&self.snapshot(RESET));
        self.snapshot(RESET).take(counts, now);
    }

    /// Takes the snapshots that are due. Returns the nanoseconds until the next one is due.
    pub(crate) fn take_due(&mut self, counts: &Counts, now: u64) -> u64 {
        let mut next = MINUTE;
        for at in 0..WINDOWS.len() {
            let Window { length, taken } = self.windows[at];
            let step = length / STEPS;
            let last = self.slot(at, taken.wrapping_sub(1)).time();
            let age = now.saturating_sub(last);
            if age >= step {
                self.slot(at, taken).take(counts, now);
                self.windows[at].taken = taken.wrapping_add(1);
                next = next.min(step);
            } else {
                next = next.min(step.wrapping_sub(age));
            }
        }
        next
    }

    /// Returns the snapshot at the start of a window that ends at `now`: the newest snapshot that
    /// is old enough, or else the oldest.
    fn first_of(&self, window: usize, now: u64) -> Snapshot<'_> {
        let Window { length, taken } = self.windows[window];
        let oldest = taken.saturating_sub(SLOTS);
        let newest_first = (oldest..taken)
            .rev()
            .map(|number| self.slot(window, number));
        let mut begin = self.slot(window, oldest);
        for snapshot in newest_first {
            if now.saturating_sub(snapshot.time()) >= length {
                begin = snapshot;
                break;
            }
        }
        begin
    }

    /// Returns the profile of a span, which ends at `now`, or for [`Span::Previous`] at the last
    /// reset.
    pub(crate) fn profile(&mut self, counts: &Counts, span: Span, now: u64) -> Profile<'_> {
        if span == Span::Previous {
            return Profile {
                begin: self.snapshot(PREVIOUS),
                end: self.snapshot(RESET),
            };
        }
        self.snapshot(NOW).take(counts, now);
        let begin = match span {
            Span::Window(window) => self.first_of(window, now),
            Span::SinceReset | Span::Previous => self.snapshot(RESET),
        };
        Profile {
            begin,
            end: self.snapshot(NOW),
        }
    }
}

/// Counts of operations by class and delay, between two moments.
///
/// Prints as a table, see Documentation/ABI/testing.
pub(crate) struct Profile<'a> {
    begin: Snapshot<'a>,
    end: Snapshot<'a>,
}

impl Profile<'_> {
    /// Number of operations of a class with a delay in this row.
    pub(crate) fn count(&self, class: Class, row: usize) -> u64 {
        let cell = class as usize * ROWS + row;
        self.end.cell(cell).wrapping_sub(self.begin.cell(cell))
    }

    /// Returns the start and the end of the profile.
    pub(crate) fn times(&self) -> (u64, u64) {
        (self.begin.time(), self.end.time())
    }
}

impl fmt::Display for Profile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (begin, end) = self.times();
        f.write_fmt(fmt!("# begin={begin} end={end}\n"))?;
        f.write_fmt(fmt!("{:<15}", "range"))?;
        for class in Class::ALL {
            f.write_fmt(fmt!(" {:>11}", class.name()))?;
        }
        f.write_str("\n")?;
        for row in 0..ROWS {
            f.write_fmt(fmt!("{}", Range(row)))?;
            for class in Class::ALL {
                f.write_fmt(fmt!(" {:>11}", self.count(class, row)))?;
            }
            f.write_str("\n")?;
        }
        Ok(())
    }
}

/// The bounds of a row, as `[1us,2us[`, padded. Each unit is 1024 times the one below it.
struct Range(usize);

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = (Power(self.0), Power(self.0 + 1));
        let (low, low_unit) = low.parts();
        if self.0 + 1 >= ROWS {
            // As wide as the other rows.
            return f.write_fmt(fmt!("[{low}{low_unit},inf[{:<4}", ""));
        }
        let (high, high_unit) = high.parts();
        let digits = |number: u32| number.checked_ilog10().map_or(1, |more| more as usize + 1);
        let width = 3 + digits(low) + low_unit.len() + digits(high) + high_unit.len();
        let pad = 15usize.saturating_sub(width);
        f.write_fmt(fmt!("[{low}{low_unit},{high}{high_unit}[{:pad$}", ""))
    }
}

/// A power of two of nanoseconds.
struct Power(usize);

impl Power {
    /// Returns a number and its unit.
    fn parts(&self) -> (u32, &'static str) {
        const UNITS: [&str; 4] = ["ns", "us", "ms", "s"];
        let unit = (self.0 / 10).min(UNITS.len() - 1);
        (1 << (self.0 - 10 * unit), UNITS[unit])
    }
}
