// SPDX-License-Identifier: GPL-2.0

//! The hash table that finds an event by its key: wait-free to search, lock-free to change.
//!
//! ```text
//!   hash ---> bucket, one cache line
//!             +------------------------+----------+---------------------------------+
//!             | 8 tags, one byte each  | overflow | 8 cell indices                  |
//!             +------------------------+----------+---------------------------------+
//!               0 = free slot            how many events came by, found it full,
//!               else 8 bits of hash      and went on to the next bucket
//! ```
//!
//! # Idea
//!
//! The classic lock-free table links its entries, and then has to keep a removed entry's memory
//! untouched until every reader has left: a grace period between `event_out` and reuse. Here an
//! entry has no link. It sits in a *slot*, and it stays in this slot until it is removed; a
//! reader looks at slots, never at a chain, so it can not be led astray by recycled memory.
//!
//! The table is only an index: it yields *candidates*, cells whose key may be the one asked for.
//! The caller decides by the cell's own state whether this is the event, and to end it means to
//! win a compare-and-swap on that state (event.rs). So a tag or index that is stale, because the
//! slot was emptied or reused while somebody looked, costs a comparison and does no harm.
//!
//! # Rules
//!
//! - [`Table::insert`] claims a free slot by setting its tag (compare-and-swap), then writes the
//!   index. The caller publishes the event afterwards, by its state; nobody believes a cell whose
//!   state is not live.
//! - [`Table::remove`] may be called by the winner only, once: it frees the slot.
//! - A full bucket sends the event on to the next one, and counts it in `overflow`; `remove`
//!   takes the count back. A search goes on to the next bucket exactly while `overflow` is not
//!   zero, so searches for what is not there end at the first bucket, nearly always.
//! - A table has at least two slots a cell, so an insertion finds one; if others keep taking the
//!   free slots before it for a whole round, it gives up and the event is counted as `full`.
//!
//! # What is promised
//!
//! An event that is live during all of a search is among its candidates: its tag and index were
//! written before it was published, they stay until it is removed, and every full bucket that it
//! passed counts it. Events inserted or removed during the search may or may not be met.
//!
//! # Contexts
//!
//! `insert`, `remove` and `find` run anywhere, NMI included, under the caller's guard; `new`
//! sleeps. The bucket array is freed only after a grace period.

use crate::sys::{
    atomic::{Acquire, Atomic, Relaxed, Release},
    memory::NodeSlice,
};
use core::array;
use kernel::prelude::*;

/// Slots of a bucket: as many as there are tags in a word.
const SLOTS: usize = 8;
const SLOT_BITS: u32 = 3;

/// Cells for which a bucket is provided: the table is at most half full.
const CELLS_PER_BUCKET: u32 = 4;

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// One bucket, one cache line.
#[repr(C, align(64))]
struct Bucket {
    /// [`SLOTS`] bytes, slot 0 the lowest: 0 for a free slot, else [`tag`] of the event's hash.
    tags: Atomic<u64>,
    /// Live events whose home is at or before this bucket and whose slot is beyond it.
    overflow: Atomic<u64>,
    /// The cell in each slot; meaningful where the tag is not 0.
    cells: [Atomic<u32>; SLOTS],
}

impl Bucket {
    fn new() -> Self {
        Self {
            tags: Atomic::new(0),
            overflow: Atomic::new(0),
            cells: array::from_fn(|_| Atomic::new(0)),
        }
    }
}

/// Where an event sits: bucket and slot. Kept by the event, given back to [`Table::remove`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place(u64);

impl Place {
    fn new(bucket: usize, slot: u32) -> Self {
        Self(((bucket as u64) << SLOT_BITS) | u64::from(slot))
    }

    /// As a word, for the event to keep.
    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    /// Back from [`Place::to_bits`].
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    fn bucket(self) -> usize {
        (self.0 >> SLOT_BITS) as usize
    }

    fn slot(self) -> u32 {
        (self.0 & (SLOTS as u64 - 1)) as u32
    }
}

/// The table. See the head of this file.
///
/// # Invariants
///
/// The number of buckets is a power of two, and `mask` is one less.
pub(crate) struct Table {
    buckets: NodeSlice<Bucket>,
    mask: usize,
}

impl Table {
    /// Makes a table for at most `cells` live events. Sleeps; fails with `ENOMEM`.
    pub(crate) fn new(cells: u32) -> Result<Self> {
        let len = cells.div_ceil(CELLS_PER_BUCKET).next_power_of_two() as usize;
        // INVARIANT: `len` is a power of two.
        Ok(Self {
            buckets: NodeSlice::try_new(len, None, |_| Ok(Bucket::new()))?,
            mask: len - 1,
        })
    }

    /// Enters a cell under a hash; gives up after a round in which others took every free slot.
    ///
    /// The caller owns the cell, and publishes it afterwards with release ordering.
    #[inline]
    pub(crate) fn insert(&self, hash: u64, cell: u32) -> Option<Place> {
        let home = self.home(hash);
        if let Some(slot) = self.claim(home, hash, cell) {
            return Some(Place::new(home, slot));
        }
        self.insert_beyond(home, hash, cell)
    }

    #[cold]
    fn insert_beyond(&self, home: usize, hash: u64, cell: u32) -> Option<Place> {
        for step in 0..self.mask {
            // Relaxed: published with the event, as tag and index are.
            self.bucket(home + step).overflow.add(1, Relaxed);
            let bucket = (home + step + 1) & self.mask;
            if let Some(slot) = self.claim(bucket, hash, cell) {
                return Some(Place::new(bucket, slot));
            }
        }
        self.leave(home, self.mask);
        None
    }

    /// Frees the slot of an event that the caller has won.
    #[inline]
    pub(crate) fn remove(&self, hash: u64, place: Place) {
        let bucket = self.bucket(place.bucket());
        // The byte holds this tag until we take it away, so the subtraction borrows nothing.
        // Release: whoever claims the slot next is ordered after our use of it.
        bucket
            .tags
            .fetch_sub(tag(hash) << (place.slot() * 8), Release);
        let steps = place.bucket().wrapping_sub(self.home(hash)) & self.mask;
        if steps != 0 {
            self.leave(self.home(hash), steps);
        }
    }

    /// Offers the cells that may be filed under `hash`, until `take` accepts one.
    #[inline]
    pub(crate) fn find<R>(&self, hash: u64, mut take: impl FnMut(u32) -> Option<R>) -> Option<R> {
        let home = self.home(hash);
        let pattern = tag(hash) * LOW_BITS;
        for step in 0..=self.mask {
            let bucket = self.bucket(home + step);
            // Acquire: the index of a slot is read after its tag.
            let mut hits = zero_bytes(bucket.tags.load(Acquire) ^ pattern);
            while hits != 0 {
                let slot = hits.trailing_zeros() as usize / 8;
                hits &= hits - 1;
                // Relaxed: a stale index names some cell, whose own state tells the truth.
                if let Some(found) = take(bucket.cell(slot).load(Relaxed)) {
                    return Some(found);
                }
            }
            // Relaxed: an event that was published before this search began was counted before.
            if bucket.overflow.load(Relaxed) == 0 {
                break;
            }
        }
        None
    }

    /// How many events sit outside their home bucket now; a measure of crowding.
    #[cfg(not(CONFIG_RUST))]
    pub(crate) fn overflowing(&self) -> u64 {
        self.buckets.iter().map(|b| b.overflow.load(Relaxed)).sum()
    }

    /// Whether nothing is in the table: no tag, no overflow.
    #[cfg(not(CONFIG_RUST))]
    pub(crate) fn is_empty(&self) -> bool {
        self.buckets
            .iter()
            .all(|b| b.tags.load(Relaxed) == 0 && b.overflow.load(Relaxed) == 0)
    }

    /// Claims a free slot of one bucket.
    #[inline]
    fn claim(&self, bucket: usize, hash: u64, cell: u32) -> Option<u32> {
        let bucket = self.bucket(bucket);
        loop {
            let tags = bucket.tags.load(Relaxed);
            let free = zero_bytes(tags);
            if free == 0 {
                return None;
            }
            let slot = free.trailing_zeros() / 8;
            // Acquire: pairs with the release in `remove`; we write the slot only after its
            // last user has left it.
            if bucket
                .tags
                .cmpxchg(tags, tags | (tag(hash) << (slot * 8)), Acquire)
                .is_ok()
            {
                // Relaxed: published with the event.
                bucket.cell(slot as usize).store(cell, Relaxed);
                return Some(slot);
            }
        }
    }

    /// Takes back the overflow count of `steps` buckets from `home` on.
    #[cold]
    fn leave(&self, home: usize, steps: usize) {
        for step in 0..steps {
            // Release: after the slot beyond was freed.
            self.bucket(home + step).overflow.fetch_sub(1, Release);
        }
    }

    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        hash as usize & self.mask
    }

    #[inline(always)]
    fn bucket(&self, number: usize) -> &Bucket {
        // SAFETY: By the type invariant the masked number is below the number of buckets.
        unsafe { self.buckets.get_unchecked(number & self.mask) }
    }
}

impl Bucket {
    #[inline(always)]
    fn cell(&self, slot: usize) -> &Atomic<u32> {
        debug_assert!(slot < SLOTS);
        // SAFETY: Slots come from the position of a bit in a word of `SLOTS` bytes.
        unsafe { self.cells.get_unchecked(slot) }
    }
}

/// Eight bits of the hash that do not choose the bucket; never 0.
#[inline(always)]
fn tag(hash: u64) -> u64 {
    (hash >> 56).max(1)
}

/// The high bit of every byte that is zero. A byte above a zero byte may be reported too when
/// it is 1: the lowest hit is exact, the others are candidates.
#[inline(always)]
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(LOW_BITS) & !word & HIGH_BITS
}
