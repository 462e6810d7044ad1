// SPDX-License-Identifier: GPL-2.0

//! The ring of recorded alerts: any context writes, any number of readers follow, and neither a
//! writer nor a reader waits.
//!
//! ```text
//!    version   words               tail     version of the slot for alert number n:
//!   +-------+---------------------+------+    2n + 1   being written
//!   | 2n    | time, delay, ...    | ...  |    2n       written, until overwritten
//!   +-------+---------------------+------+
//! ```
//!
//! All slots have the same number of words, and all tails of a ring have the same length. Each
//! record says how many words of its tail are in use.
//!
//! A writer draws a number, claims that number's slot by a compare-and-swap of its version, writes
//! the words, and marks the slot as written. The oldest alert is overwritten; each reader has its
//! own cursor and learns how many it missed. A writer gives up if its slot is still being written
//! by a writer a whole lap behind, or has been claimed by a writer a whole lap ahead. It notes that
//! in the slot, so that no reader waits for a number that never comes.
//!
//! The ring limits no rate: `max_alerts` is checked before an alert gets here (instance/raise.rs),
//! and the rate of wakeups is limited in notify.rs. Contexts: [`Ring::push`] and [`Ring::read`]
//! any, NMI included; `new` may sleep.

use crate::sys::{
    atomic::{Acquire, Atomic, Relaxed, Release},
    memory::NodeSlice,
};
use core::array;
use kernel::prelude::*;

/// Number of words of a record, which record.rs defines.
pub(crate) const WORDS: usize = 32;

/// A record, in words.
pub(crate) type Words = [u64; WORDS];

struct Slot {
    version: Atomic<u64>,
    /// The highest number of an alert that was lost because another alert had this slot.
    skipped: Atomic<u64>,
    words: [Atomic<u64>; WORDS],
}

/// A ring of recorded alerts. See the head of this file.
///
/// # Invariants
///
/// The number of slots is a power of two, and `mask` is one less. There are `depth` words in
/// `tails` for each slot.
pub(crate) struct Ring {
    slots: NodeSlice<Slot>,
    /// The tails of all slots, `depth` words each.
    tails: NodeSlice<Atomic<u64>>,
    depth: usize,
    mask: u64,
    /// The number of the newest alert, 0 before the first.
    head: Atomic<u64>,
}

/// The result of reading an alert by its number.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "callers match on it at once")]
pub(crate) enum Read {
    /// The alert.
    Ready(Words),
    /// The alert has not been raised, or is being written at this moment.
    NotYet,
    /// The alert was overwritten, or never written.
    Lost,
}

impl Ring {
    /// Creates a ring of `len` alerts, a power of two, with tails of `depth` words. May sleep;
    /// fails with `EINVAL` or `ENOMEM`.
    pub(crate) fn new(len: u32, depth: usize) -> Result<Self> {
        if !len.is_power_of_two() {
            return Err(EINVAL);
        }
        let slots = NodeSlice::try_new(len as usize, None, |_| {
            Ok(Slot {
                version: Atomic::new(0),
                skipped: Atomic::new(0),
                words: array::from_fn(|_| Atomic::new(0)),
            })
        })?;
        let words = (len as usize).checked_mul(depth).ok_or(ENOMEM)?;
        let tails = NodeSlice::try_new(words, None, |_| Ok(Atomic::new(0)))?;
        // INVARIANT: `len` is a power of two, and there are `depth` times as many words.
        Ok(Self {
            slots,
            tails,
            depth,
            mask: u64::from(len) - 1,
            head: Atomic::new(0),
        })
    }

    /// Records an alert, which `fill` makes from its number, with as much of `tail` as fits in the
    /// slot. Returns the number; `Err` with the number if the alert is lost.
    pub(crate) fn push(
        &self,
        fill: impl FnOnce(u64) -> Words,
        tail: &[u64],
    ) -> core::result::Result<u64, u64> {
        // Relaxed: the version orders the words; the number alone orders nothing.
        let number = self.head.fetch_add(1, Relaxed) + 1;
        let slot = self.slot(number);
        let version = slot.version.load(Relaxed);
        // Acquire: our words are written after the words of the slot's last writer.
        if version & 1 != 0
            || version >= number << 1
            || slot
                .version
                .cmpxchg(version, (number << 1) | 1, Acquire)
                .is_err()
        {
            // The highest number stays, whatever the order in which losing writers store theirs.
            // Relaxed: the reader only compares numbers.
            let mut last = slot.skipped.load(Relaxed);
            while last < number {
                match slot.skipped.cmpxchg(last, number, Relaxed) {
                    Ok(_) => break,
                    Err(now) => last = now,
                }
            }
            return Err(number);
        }
        let words = slot.words.iter().zip(fill(number));
        let tail = self.tail_of(number).iter().zip(tail.iter().copied());
        for (word, value) in Iterator::chain(words, tail) {
            // Release: a reader of the old alert that sees this word sees the new version too.
            word.store(value, Release);
        }
        // Release: a reader that sees the version sees the words.
        slot.version.store(number << 1, Release);
        Ok(number)
    }

    /// Returns the number of the newest alert, 0 before the first.
    pub(crate) fn head(&self) -> u64 {
        self.head.load(Relaxed)
    }

    /// Returns the number of the oldest alert that may still be in the ring.
    pub(crate) fn tail(&self) -> u64 {
        self.head().saturating_sub(self.mask).max(1)
    }

    /// Looks up an alert by its number, and copies as much of its tail as fits in `tail`. The
    /// content of `tail` is valid only if the result is [`Read::Ready`].
    pub(crate) fn read(&self, number: u64, tail: &mut [u64]) -> Read {
        let slot = self.slot(number);
        // Acquire: the words are read after the version.
        let version = slot.version.load(Acquire);
        if version > (number << 1) | 1 {
            return Read::Lost;
        }
        if version == (number << 1) | 1 {
            return Read::NotYet;
        }
        if version != number << 1 {
            // Relaxed: see `push`.
            return if slot.skipped.load(Relaxed) >= number {
                Read::Lost
            } else {
                Read::NotYet
            };
        }
        // Acquire: if a word is newer, so is the version read below.
        let words = array::from_fn(|i| slot.words[i].load(Acquire));
        for (copy, word) in tail.iter_mut().zip(self.tail_of(number)) {
            // Acquire: as for the words.
            *copy = word.load(Acquire);
        }
        if slot.version.load(Relaxed) == version {
            Read::Ready(words)
        } else {
            Read::Lost
        }
    }

    fn slot(&self, number: u64) -> &Slot {
        // The mask keeps it in bounds, by the type invariant.
        &self.slots[(number & self.mask) as usize]
    }

    fn tail_of(&self, number: u64) -> &[Atomic<u64>] {
        let start = (number & self.mask) as usize * self.depth;
        // Always there, by the type invariant.
        self.tails
            .get(start..start + self.depth)
            .unwrap_or_default()
    }
}
