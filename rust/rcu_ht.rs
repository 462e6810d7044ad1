// SPDX-License-Identifier: GPL-2.0

//! The hash table that finds an event by its key: wait-free to search, lock-free to change.
//!
//! ```text
//!   hash ---> bucket, one cache line
//!             +------------------------+----------+---------------------------------+
//!             | 8 tags, one byte each  | overflow | 8 cell indices                  |
//!             +------------------------+----------+---------------------------------+
//!               0 = free slot            number of live events that found the
//!               else 7 bits of hash      bucket full, and went on to the next
//! ```
//!
//! # Idea
//!
//! The classic lock-free table links its entries, and then must keep a removed entry's memory
//! untouched until every reader has left: a grace period between `event_out` and reuse. Here an
//! entry has no link. It sits in a *slot*, and stays in this slot until it is removed; a reader
//! looks at slots, never at a chain, so recycled memory cannot lead it astray.
//!
//! The table is only an index: it yields *candidates*, cells that may hold the wanted key. The
//! caller decides by the cell's own state whether this is the event, and ends it by winning a
//! compare-and-swap on that state (event.rs). So a tag or index that is stale, because the slot was
//! emptied or reused during the search, costs a comparison and does no harm.
//!
//! # Rules
//!
//! - [`Table::insert`] claims a free slot by setting its tag (compare-and-swap), then writes the
//!   index. The caller publishes the event afterwards, by its state; no reader accepts a cell
//!   whose state is not live.
//! - [`Table::remove`] is called once, and only by the winner: it frees the slot.
//! - A full bucket sends the event on to the next one, and counts it in `overflow`; `remove` takes
//!   the count back. A search goes on to the next bucket exactly while `overflow` is not zero, so a
//!   search for a missing key usually ends at the first bucket.
//! - A table has at least two slots per cell, so different keys find a slot near their home. Events
//!   of one key share a home and a tag, and pile up beyond this home: about [`CROWD`] such events
//!   are accepted there, however many levels there are. (The count is approximate, and is not taken
//!   if the home has a free slot.) So a crowd takes up few buckets, which limits how much it slows
//!   down itself and its neighbours. No event is placed farther than [`REACH`] from its home. A
//!   refused event is counted as `crowded`.
//!
//! # A search
//!
//! ```text
//!   hash --> home bucket of the current level
//!              |  look: the slots with the tag of the hash
//!              v
//!            any? -- yes --> find_at_home: each is offered --> accepted: done
//!              | no                | none accepted
//!              v                   v
//!            overflow or others not 0? -- no --> not in the table
//!              | yes
//!              v
//!            find_beyond: overflow not 0: the buckets after the home, until `overflow` is 0
//!                         others not 0: in each older level, its home and the buckets after it
//! ```
//!
//! # Growing
//!
//! [`Table::grow`] makes a larger array of buckets, a new *level*, and all later events are
//! inserted there. Events in an older level stay there until they end; a search that finds nothing
//! in the current level searches the older ones, too, as long as there are any (`others`). No event
//! is moved, so growing takes only the time to allocate the array. Later, [`Table::reap`] frees the
//! levels that have become empty, by RCU:
//!
//! - A grace period after the switch, no insertion into the old level is in flight any longer, and
//!   the old level can only become emptier (`sealed`).
//! - A grace period after an empty level was removed from `others`, no search reads the level.
//!
//! # Guarantees
//!
//! An event that is live during all of a search is among its candidates: its tag and index were
//! written before it was published, they stay until it is removed, and every full bucket that it
//! passed counts it. A search may or may not find events inserted or removed meanwhile. The event's
//! level is searched: it was current when the event was inserted, so a search that sees the event
//! published sees this level or a newer one as current. A search that sees a newer level as current
//! also sees the event's level in `others`.
//!
//! # Contexts
//!
//! `insert`, `remove` and `find` run anywhere, NMI included, under the caller's guard, which is
//! an RCU read-side critical section; `new`, `grow` and `reap` may sleep.

use crate::{
    engine::{
        freelist::{Index, Link},
        platform::Platform,
    },
    sys::{
        atomic::{clear_byte, Acquire, Atomic, Relaxed, Release},
        memory::NodeSlice,
    },
};
use core::{array, cell::UnsafeCell, marker::PhantomData, ptr};
use kernel::prelude::*;
use place::{Offered, Place};
use tags::{equal_bytes, free_bytes, tag};

pub(crate) use place::{Candidate, Seen};

#[path = "rcu_ht/place.rs"]
mod place;
#[path = "rcu_ht/tags.rs"]
mod tags;

/// Number of slots of a bucket: one for each tag in a word.
const SLOTS: usize = 8;

/// Number of cells per bucket: the table is at most half full.
const CELLS_PER_BUCKET: u32 = 4;

/// Maximum number of levels at a time. Each is at least twice as large as its predecessor.
const LEVELS: usize = 24;

/// Number of buckets beyond its home in which an event may sit.
const REACH: usize = 512;

/// Limit on the events with one tag beyond their home bucket: further such events are refused.
const CROWD: u32 = 192;

/// Number of bytes of a cache line.
const LINE: usize = 64;

/// One bucket, one cache line.
///
/// # Invariants
///
/// Each word of `cells` is the number of an index that was inserted, or 0, the number of the first
/// cell, which every pool has.
#[repr(C, align(64))]
struct Bucket {
    /// [`SLOTS`] bytes, slot 0 the lowest: 0 for a free slot, else [`tag`] of the event's hash.
    tags: Atomic<u64>,
    /// Live events whose home is at or before this bucket and whose slot is beyond it.
    overflow: Atomic<u64>,
    /// The cell in each slot; meaningful where the tag is not 0.
    cells: [Atomic<u32>; SLOTS],
}

/// The slots of a home bucket that may hold the wanted event.
#[derive(Clone, Copy)]
pub(crate) struct Hits<'a> {
    bucket: &'a Bucket,
    /// The slots, as the high bits of their bytes.
    slots: u64,
}

/// An array of buckets.
///
/// # Invariants
///
/// The number of buckets is a power of two, and `mask` is one less; `offsets` is `mask` in bytes.
struct Level {
    buckets: NodeSlice<Bucket>,
    mask: usize,
    offsets: usize,
}

/// An owner of a level that readers may be using.
///
/// # Invariants
///
/// `address` is 0, or the address of the level in `owner`. The level is neither moved nor dropped
/// until a grace period after `address` became 0.
struct Holder {
    address: Atomic<u64>,
    owner: UnsafeCell<Option<NodeSlice<Level>>>,
}

/// The hash table. See the head of this file.
///
/// # Invariants
///
/// - `current` is the address of a level in `holders`, and that level stays for a grace period
///   after `current` was changed.
/// - Only the caller that holds `busy` changes `current`, `others`, `sealed` and the holders.
pub(crate) struct Table<P: Platform> {
    current: Atomic<u64>,
    /// A bit for each holder whose level is not current and may still have events.
    others: Atomic<u32>,
    /// The [`LEVELS`] holders, allocated separately: large and rarely accessed.
    holders: NodeSlice<Holder>,
    /// A bit for each level in `others` into which nothing is inserted any longer.
    sealed: Atomic<u32>,
    busy: Atomic<u32>,
    platform: PhantomData<P>,
}

// SAFETY: Readers get shared references to levels, which are made of atomics; owners are used
// by one caller at a time (type invariants).
unsafe impl<P: Platform> Sync for Table<P> {}
// SAFETY: A table owns its levels.
unsafe impl<P: Platform> Send for Table<P> {}

impl<P: Platform> Table<P> {
    /// Creates a table for at most `cells` live events. May sleep; fails with `ENOMEM`.
    pub(crate) fn new(cells: u32) -> Result<Self> {
        let table = Self {
            current: Atomic::new(0),
            others: Atomic::new(0),
            holders: NodeSlice::try_new(LEVELS, None, |_| {
                Ok(Holder {
                    address: Atomic::new(0),
                    owner: UnsafeCell::new(None),
                })
            })?,
            sealed: Atomic::new(0),
            busy: Atomic::new(0),
            platform: PhantomData,
        };
        // SAFETY: No other CPU has access to the table yet, so nothing else fills the holder, which
        // is empty.
        let address = unsafe { table.holders[0].fill(Level::new(buckets_for(cells))?) };
        // INVARIANT: A level in a holder. Relaxed: no other CPU has access to the table yet.
        table.current.store(address, Relaxed);
        Ok(table)
    }

    /// Inserts a cell under a hash, and stores the cell's place in its link. Returns `false`, and
    /// changes nothing, if the home is full and there are [`CROWD`] events with this tag beyond it,
    /// or no free slot within [`REACH`].
    ///
    /// The caller owns the cell, and publishes it afterwards with release ordering.
    #[inline(always)]
    pub(crate) fn insert(&self, guard: &P::Guard, hash: u64, cell: Index, link: &Link) -> bool {
        self.insert_at_home(guard, hash, cell, link) || self.insert_beyond(guard, hash, cell, link)
    }

    /// Inserts a cell into its home bucket, if the bucket has a free slot.
    ///
    /// For callers that call [`Table::insert`] out of line on failure.
    #[inline(always)]
    pub(crate) fn insert_at_home(
        &self,
        guard: &P::Guard,
        hash: u64,
        cell: Index,
        link: &Link,
    ) -> bool {
        let level = self.current(guard);
        level.home(hash).claim(tag(hash), cell, link)
    }

    /// Inserts a cell into a bucket after its home, unless too many events with its tag are there.
    #[cold]
    #[inline(never)]
    fn insert_beyond(&self, guard: &P::Guard, hash: u64, cell: Index, link: &Link) -> bool {
        let level = self.current(guard);
        !self.is_crowded(guard, level, hash) && level.insert_beyond(hash, cell, link)
    }

    /// Whether there are [`CROWD`] events with this tag beyond the home of a hash in the current
    /// level, and from its home on in the other levels.
    ///
    /// Other CPUs may insert and remove events meanwhile: the result is approximate, and the limit
    /// may be exceeded by the number of CPUs.
    fn is_crowded(&self, guard: &P::Guard, level: &Level, hash: u64) -> bool {
        // While the table grows, the current level may already be among the others.
        let others = || self.others(guard).filter(|other| !ptr::eq(*other, level));
        let at_most: u64 = others()
            .map(|other| other.beyond(hash) + SLOTS as u64)
            .sum();
        if level.beyond(hash) + at_most < u64::from(CROWD) {
            return false;
        }
        let mut left = CROWD - level.count(hash, 1, CROWD);
        for other in others() {
            left -= other.count(hash, 0, left);
        }
        left == 0
    }

    /// Frees the slot of an event that the caller has won. `link` is the cell's link; `found` is
    /// the candidate that the search returned.
    ///
    /// For a cell that is not in the table it frees nothing, or the slot of another cell.
    #[inline(always)]
    pub(crate) fn remove(&self, guard: &P::Guard, hash: u64, link: &Link, found: Candidate<'_>) {
        let place = Place::kept_in(link);
        // The place differs if the cell is not at home, or was found through a slot that was being
        // reused and still had its old index.
        match found.bucket_if_at(place) {
            Some(bucket) => bucket.free(hash, place.slot()),
            None => self.remove_beyond(guard, hash, place),
        }
    }

    #[cold]
    #[inline(never)]
    fn remove_beyond(&self, guard: &P::Guard, hash: u64, place: Place) {
        if let Some((level, bucket)) = self.level_of(guard, place) {
            level.bucket(bucket).free(hash, place.slot());
            let steps = bucket.wrapping_sub(home(hash)) & level.mask;
            level.leave(home(hash), steps);
        }
    }

    /// Offers the cells that may be stored under `hash`, until `take` accepts one.
    #[inline(always)]
    pub(crate) fn find<'a, R>(
        &'a self,
        guard: &'a P::Guard,
        hash: u64,
        mut take: impl FnMut(Candidate<'a>) -> Option<R>,
    ) -> Option<R> {
        let hits = self.look(guard, hash)?;
        if let Some(found) = self.find_at_home(hits, &mut take) {
            return Some(found);
        }
        if self.is_perhaps_beyond(hits) {
            return self.find_beyond(guard, hash, &mut take);
        }
        None
    }

    /// Offers cells, as [`Table::find`], starting from the result of [`Table::look`]. `take` has no
    /// state, so it can be copied.
    #[inline(always)]
    pub(crate) fn find_among<'a, R>(
        &'a self,
        guard: &'a P::Guard,
        hash: u64,
        hits: Hits<'a>,
        take: impl Fn(Candidate<'a>) -> Option<R> + Copy,
    ) -> Option<R> {
        // Each part gets a copy. The copy for the second part needs memory, but is rarely made.
        let mut at_home = take;
        if let Some(found) = self.find_at_home(hits, &mut at_home) {
            return Some(found);
        }
        if self.is_perhaps_beyond(hits) {
            let mut beyond = take;
            return self.find_beyond(guard, hash, &mut beyond);
        }
        None
    }

    /// Returns the slots of the home bucket that may hold the event, or `None` if the event is not
    /// in the table.
    #[inline(always)]
    pub(crate) fn look<'a>(&'a self, guard: &'a P::Guard, hash: u64) -> Option<Hits<'a>> {
        let bucket = self.current(guard).home(hash);
        let slots = bucket.hits(tag(hash));
        let hits = Hits { bucket, slots };
        (slots != 0 || self.is_perhaps_beyond(hits)).then_some(hits)
    }

    /// As [`Table::look`], for callers that usually miss: returns early if the bucket is empty.
    #[inline(always)]
    pub(crate) fn look_in_vain<'a>(&'a self, guard: &'a P::Guard, hash: u64) -> Option<Hits<'a>> {
        let bucket = self.current(guard).home(hash);
        let tags = bucket.tags();
        let slots = if tags == 0 {
            0
        } else {
            equal_bytes(tags, tag(hash))
        };
        let hits = Hits { bucket, slots };
        (slots != 0 || self.is_perhaps_beyond(hits)).then_some(hits)
    }

    /// Offers the candidates in the home bucket to `take`.
    #[inline(always)]
    pub(crate) fn find_at_home<'a, R>(
        &self,
        hits: Hits<'a>,
        take: &mut impl FnMut(Candidate<'a>) -> Option<R>,
    ) -> Option<R> {
        let bucket = hits.bucket;
        bucket.offer(hits.slots, Bucket::seen_at_home, take)
    }

    /// Whether the event may be outside its home bucket, where [`Table::find_beyond`] searches.
    #[inline(always)]
    pub(crate) fn is_perhaps_beyond(&self, hits: Hits<'_>) -> bool {
        // Relaxed: an event that was published before this search began was counted in `overflow`
        // before it was published. `grow` adds a level to `others` before it stores the next
        // current level (release). So if this search has loaded (acquire) a newer current level
        // than the event's, it sees the event's level in `others`.
        hits.bucket.overflow.load(Relaxed) != 0 || self.others.load(Relaxed) != 0
    }

    /// Searches the buckets after the home, and the older levels.
    #[cold]
    #[inline(never)]
    pub(crate) fn find_beyond<'a, R>(
        &'a self,
        guard: &'a P::Guard,
        hash: u64,
        take: &mut impl FnMut(Candidate<'a>) -> Option<R>,
    ) -> Option<R> {
        let level = self.current(guard);
        let home = level.home(hash);
        // Relaxed: as in `is_perhaps_beyond`.
        if home.overflow.load(Relaxed) != 0 {
            if let Some(found) = level.search(hash, 1, take) {
                return Some(found);
            }
        }
        self.others(guard)
            .find_map(|older| older.search(hash, 0, take))
    }

    /// Offers the cells that may be stored under `hash`, each with the slot in which it was seen,
    /// until `see` accepts one.
    ///
    /// For callers that must see an event only once. [`Table::find`] may offer a cell twice: if
    /// the table grows meanwhile, or through the old index of a slot that is being claimed. Here
    /// each slot is read once, and [`Seen::is_place_of`] identifies the event's own slot.
    pub(crate) fn visit<R>(
        &self,
        guard: &P::Guard,
        hash: u64,
        mut see: impl FnMut(Seen) -> Option<R>,
    ) -> Option<R> {
        let level = self.current(guard);
        level.search(hash, 0, &mut see).or_else(|| {
            // If the table has grown since, this level is among the others.
            self.others(guard)
                .filter(|other| !ptr::eq(*other, level))
                .find_map(|other| other.search(hash, 0, &mut see))
        })
    }

    /// Iterates over the levels that are not current and may still have events.
    fn others<'a>(&'a self, guard: &'a P::Guard) -> impl Iterator<Item = &'a Level> {
        // Acquire: if we see the new current level, we also see the bit of the old level (see
        // `is_perhaps_beyond`). If we see a bit, we also see the address.
        let others = self.others.load(Acquire);
        let holders = self.holders.iter().enumerate();
        let there = holders.filter(move |(number, _)| others & 1 << number != 0);
        there.filter_map(|(_, holder)| holder.get::<P>(guard))
    }

    /// Ensures room for `cells` live events, and returns whether the table had to grow for that.
    /// May sleep. Fails with `ENOMEM`, with `EBUSY` while another `grow` or `reap` is running, or
    /// with `ENOSPC` if there are [`LEVELS`] levels; then the table is unchanged.
    pub(crate) fn grow(&self, cells: u32) -> Result<bool> {
        let _busy = Busy::enter(&self.busy)?;
        let len = buckets_for(cells);
        // Relaxed, here and below: only the caller that holds `busy` writes these.
        let current = self.current.load(Relaxed);
        let of_current = |holder: &Holder| holder.address.load(Relaxed) == current;
        let is_empty = |holder: &Holder| holder.address.load(Relaxed) == 0;
        let old = self.holders.iter().position(of_current).ok_or(EINVAL)?;
        // SAFETY: Only the caller that holds `busy` changes the owner, and we hold it.
        let owner = unsafe { &*self.holders[old].owner.get() };
        if owner.as_ref().is_some_and(|level| level[0].mask >= len - 1) {
            return Ok(false);
        }
        let new = self.holders.iter().position(is_empty).ok_or(ENOSPC)?;
        let level = Level::new(len)?;
        // SAFETY: We hold `busy`, and the holder is empty: no CPU reads its owner.
        let address = unsafe { self.holders[new].fill(level) };
        let others = self.others.load(Relaxed) | 1 << old;
        // Release: a CPU that sees the bit also sees the holder's address.
        self.others.store(others, Release);
        // INVARIANT: A level in a holder; the old level stays in its own holder.
        // Release: a CPU that sees the new level also sees its buckets, and the bit of the old
        // level.
        self.current.store(address, Release);
        Ok(true)
    }

    /// Frees the older levels that have become empty, and returns how many are left. May sleep;
    /// fails with `EBUSY` as `grow` does.
    pub(crate) fn reap(&self) -> Result<u32> {
        let _busy = Busy::enter(&self.busy)?;
        let others = self.others.load(Relaxed);
        if others != self.sealed.load(Relaxed) {
            // After this, every insertion that started when the level was current has ended.
            P::synchronize();
            self.sealed.store(others, Relaxed);
        }
        for (number, holder) in self.holders.iter().enumerate() {
            let bit = 1 << number;
            // Relaxed, here and below: only the caller that holds `busy` writes these.
            if self.sealed.load(Relaxed) & bit == 0 {
                continue;
            }
            // SAFETY: Only the caller that holds `busy` changes the owner, and we hold it.
            let owner = unsafe { &*holder.owner.get() };
            if !owner.as_ref().is_some_and(|level| level[0].is_empty()) {
                continue;
            }
            self.sealed.store(self.sealed.load(Relaxed) & !bit, Relaxed);
            self.others.store(self.others.load(Relaxed) & !bit, Relaxed);
            // Relaxed: nothing is published.
            holder.address.store(0, Relaxed);
            // After this, every search that may have seen the bit has ended.
            P::synchronize();
            // SAFETY: We hold `busy`. The level is empty, so no removal of an event needs it; it is
            // neither current nor among the others, and a grace period has passed since.
            drop(unsafe { (*holder.owner.get()).take() });
        }
        Ok(self.others.load(Relaxed).count_ones())
    }

    /// Returns the sum of the distances, in buckets, of all events from their home; a measure of
    /// crowding.
    #[cfg(not(CONFIG_RUST))]
    pub(crate) fn overflowing(&self) -> u64 {
        let overflow = |level: &Level| -> u64 {
            let buckets = level.buckets.iter();
            buckets.map(|b| b.overflow.load(Relaxed)).sum()
        };
        self.all_levels().map(overflow).sum()
    }

    /// Whether the table is empty: no tag, no overflow.
    #[cfg(not(CONFIG_RUST))]
    pub(crate) fn is_empty(&self) -> bool {
        self.all_levels().all(Level::is_empty)
    }

    /// Iterates over all levels, for tests that do not grow the table meanwhile.
    #[cfg(not(CONFIG_RUST))]
    fn all_levels(&self) -> impl Iterator<Item = &Level> {
        // SAFETY: No other CPU changes the owners meanwhile.
        let owners = self.holders.iter().map(|h| unsafe { &*h.owner.get() });
        owners.flatten().map(|level| &level[0])
    }

    #[inline(always)]
    fn current<'a>(&'a self, _: &'a P::Guard) -> &'a Level {
        // Acquire: the level is read next.
        let address = self.current.load(Acquire);
        // SAFETY: By the type invariant this is a level that stays for a grace period, and the
        // guard is an RCU read-side critical section.
        unsafe { &*ptr::with_exposed_provenance(address as usize) }
    }

    /// Returns the level of a place, and the number of the bucket in it.
    fn level_of<'a>(&'a self, guard: &'a P::Guard, place: Place) -> Option<(&'a Level, usize)> {
        let holders = self.holders.iter();
        let mut levels = holders.filter_map(|holder| holder.get::<P>(guard));
        levels.find_map(|level| Some((level, level.number_of(place)?)))
    }
}

impl Holder {
    /// Returns the level, if there is one.
    fn get<'a, P: Platform>(&'a self, _: &'a P::Guard) -> Option<&'a Level> {
        // Acquire: the level is read next.
        match self.address.load(Acquire) {
            0 => None,
            // SAFETY: By the type invariant this is a level that stays for a grace period, and the
            // guard is an RCU read-side critical section.
            address => Some(unsafe { &*ptr::with_exposed_provenance(address as usize) }),
        }
    }

    /// Stores a level and returns its address.
    ///
    /// # Safety
    ///
    /// The holder is empty, and no other CPU fills or empties it at the same time.
    unsafe fn fill(&self, level: NodeSlice<Level>) -> u64 {
        let address = level.as_ptr().expose_provenance() as u64;
        // INVARIANT: The level in `owner`: moving a `NodeSlice` does not move its values.
        // SAFETY: By the function's contract no other CPU uses the owner.
        unsafe { *self.owner.get() = Some(level) };
        // Release: a CPU that sees the address also sees the buckets.
        self.address.store(address, Release);
        address
    }
}

/// Permission to grow or reap the table, exclusive until dropped.
struct Busy<'a>(&'a Atomic<u32>);

impl<'a> Busy<'a> {
    fn enter(busy: &'a Atomic<u32>) -> Result<Self> {
        // Acquire: we see the accesses of the last holder.
        busy.cmpxchg(0, 1, Acquire).map_err(|_| EBUSY)?;
        Ok(Self(busy))
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        // Release: the next holder sees our accesses.
        self.0.store(0, Release);
    }
}

/// Returns the number of buckets of a table for this many cells.
fn buckets_for(cells: u32) -> usize {
    cells.div_ceil(CELLS_PER_BUCKET).next_power_of_two() as usize
}

impl Level {
    /// Creates a level of `len` buckets, which must be a power of two. The level is in a slice, so
    /// that it has a fixed address.
    fn new(len: usize) -> Result<NodeSlice<Self>> {
        NodeSlice::try_new(1, None, |_| {
            // INVARIANT: `len` is a power of two.
            Ok(Self {
                buckets: NodeSlice::try_new(len, None, |_| Ok(Bucket::new()))?,
                mask: len - 1,
                offsets: (len - 1) * LINE,
            })
        })
    }

    /// Returns the bucket with the number `home(hash)`.
    #[inline(always)]
    fn home(&self, hash: u64) -> &Bucket {
        // Loom's atomics have another size.
        if size_of::<Bucket>() != LINE {
            return self.bucket(home(hash));
        }
        let buckets = self.buckets.as_ptr();
        // SAFETY: By the type invariant the masked offset is the offset of a bucket.
        unsafe { &*buckets.byte_add(hash as usize & self.offsets) }
    }

    #[inline(always)]
    fn bucket(&self, number: usize) -> &Bucket {
        // SAFETY: By the type invariant the masked number is below the number of buckets.
        unsafe { self.buckets.get_unchecked(number & self.mask) }
    }

    /// Returns the number of the bucket of a place, if it is in this level.
    fn number_of(&self, place: Place) -> Option<usize> {
        let offset = place
            .bucket()
            .addr()
            .wrapping_sub(self.buckets.as_ptr().addr());
        let number = offset / size_of::<Bucket>();
        (number <= self.mask).then_some(number)
    }

    fn insert_beyond(&self, hash: u64, cell: Index, link: &Link) -> bool {
        let (home, reach) = (home(hash), self.reach());
        for step in 0..reach {
            let next = home.wrapping_add(step);
            // Relaxed: published with the event, as tag and index are.
            self.bucket(next).overflow.add(1, Relaxed);
            let bucket = self.bucket(next.wrapping_add(1));
            if bucket.claim(tag(hash), cell, link) {
                return true;
            }
        }
        self.leave(home, reach);
        false
    }

    /// Returns the number of events that sit beyond the home of a hash, or are on their way there.
    fn beyond(&self, hash: u64) -> u64 {
        // Relaxed: an approximate count. Each of these events passed its home.
        self.home(hash).overflow.load(Relaxed)
    }

    /// Returns the number of events with this tag, at most `most`, counted from the bucket that is
    /// `step` after the home of a hash.
    fn count(&self, hash: u64, step: usize, most: u32) -> u32 {
        let mut seen = 0;
        for step in step..=self.reach() {
            let bucket = self.bucket(home(hash).wrapping_add(step));
            // Relaxed, here and below: an approximate count.
            seen += equal_bytes(bucket.tags.load(Relaxed), tag(hash)).count_ones();
            if seen >= most || bucket.overflow.load(Relaxed) == 0 {
                break;
            }
        }
        seen.min(most)
    }

    /// Returns the maximum distance of an event from its home.
    fn reach(&self) -> usize {
        self.mask.min(REACH)
    }

    /// Searches from the bucket that is `step` after the home of `hash`.
    fn search<'a, C: Offered<'a>, R>(
        &'a self,
        hash: u64,
        mut step: usize,
        take: &mut impl FnMut(C) -> Option<R>,
    ) -> Option<R> {
        while step <= self.reach() {
            let bucket = self.bucket(home(hash).wrapping_add(step));
            let hits = bucket.hits(tag(hash));
            if let Some(found) = bucket.offer(hits, C::offered, take) {
                return Some(found);
            }
            // Relaxed: an event that was published before this search began was counted before it
            // was published.
            if bucket.overflow.load(Relaxed) == 0 {
                break;
            }
            step += 1;
        }
        None
    }

    /// Decrements the overflow counts of `steps` buckets, from `home` on.
    fn leave(&self, home: usize, steps: usize) {
        for step in 0..steps {
            let bucket = self.bucket(home.wrapping_add(step));
            // Release: a CPU that sees the lower count also sees the freed slot.
            bucket.overflow.fetch_sub(1, Release);
        }
    }

    /// Whether the level is empty.
    fn is_empty(&self) -> bool {
        // Acquire: the CPU that emptied the level has finished with it before the level is freed.
        let is_empty = |b: &Bucket| b.tags.load(Acquire) == 0 && b.overflow.load(Acquire) == 0;
        self.buckets.iter().all(is_empty)
    }
}

impl Bucket {
    fn new() -> Self {
        Self {
            tags: Atomic::new(0),
            overflow: Atomic::new(0),
            cells: array::from_fn(|_| Atomic::new(0)),
        }
    }

    #[inline(always)]
    fn cell(&self, slot: usize) -> &Atomic<u32> {
        debug_assert!(slot < SLOTS);
        // SAFETY: Slots come from the position of a bit in a word of `SLOTS` bytes.
        unsafe { self.cells.get_unchecked(slot) }
    }

    #[inline(always)]
    fn seen_at_home(&self, slot: usize, cell: Index) -> Candidate<'_> {
        Candidate::seen_in(cell, self, slot)
    }

    /// Claims a free slot for a cell, and stores the place in its link.
    #[inline(always)]
    fn claim(&self, tag: u64, cell: Index, link: &Link) -> bool {
        loop {
            let tags = self.tags.load(Relaxed);
            let free = free_bytes(tags);
            if free == 0 {
                return false;
            }
            let shift = free.trailing_zeros() & !7;
            // Acquire: pairs with the release in `free`; we write the slot only after its
            // last user has left it.
            if self
                .tags
                .cmpxchg(tags, tags | tag << shift, Acquire)
                .is_ok()
            {
                let slot = (shift / 8) as usize;
                // Release: a reader of the index may read the cell, so it must see that the cell
                // exists (growing, freelist.rs).
                // INVARIANT: The number of an index.
                self.cell(slot).store(cell.to_raw(), Release);
                Place::of(self, slot).keep_in(link);
                return true;
            }
        }
    }

    /// Returns the slots with this tag, as the high bits of their bytes; there may be false
    /// positives.
    #[inline(always)]
    fn hits(&self, tag: u64) -> u64 {
        equal_bytes(self.tags(), tag)
    }

    /// Returns the tags of all slots, for a search.
    #[inline(always)]
    fn tags(&self) -> u64 {
        // Acquire: the index of a slot is read after its tag.
        self.tags.load(Acquire)
    }

    /// Offers the cells in these slots, until `take` accepts one.
    #[inline(always)]
    fn offer<'a, C, R>(
        &'a self,
        mut slots: u64,
        seen: impl Fn(&'a Self, usize, Index) -> C,
        take: &mut impl FnMut(C) -> Option<R>,
    ) -> Option<R> {
        while slots != 0 {
            let slot = slots.trailing_zeros() as usize / 8;
            slots &= slots - 1;
            // Acquire: see `claim`. A stale index names some cell, whose own state decides.
            let cell = self.cell(slot).load(Acquire);
            // SAFETY: By the type invariant this is the number of an index that was inserted, or of
            // the first cell; pool and table go together (`Index`).
            let cell = unsafe { Index::from_raw(cell) };
            if let Some(found) = take(seen(self, slot, cell)) {
                return Some(found);
            }
        }
        None
    }

    /// Frees the slot of an event with this hash.
    #[inline(always)]
    fn free(&self, hash: u64, slot: u32) {
        // The byte holds this tag until the winner of the event clears it. Release, by
        // `clear_byte`: the next caller that claims the slot is ordered after our use of it.
        clear_byte(&self.tags, slot, tag(hash));
    }
}

/// Returns the home bucket of this hash, before it is masked to the size of the table.
///
/// The lowest bits are not used, so that a mask alone makes the hash an offset in bytes.
#[inline(always)]
fn home(hash: u64) -> usize {
    hash as usize / LINE
}
