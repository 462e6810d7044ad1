// SPDX-License-Identifier: GPL-2.0

//! The index that names a cell, and the word by which a free cell names the next.
//!
//! ```text
//!   63          32      24                0
//!  +--------------+------+----------------+
//!  |    depth     |  0   | next index + 1 |    while the cell is on a stack
//!  +-+------------+------+----------------+
//!  |1|         a place in the table       |    while the event is in the table
//!  +-+------------------------------------+
//! ```
//!
//! Only the pool and the table make an [`Index`] and write a [`Link`], so that no other code can
//! make the pool follow a number that names no cell: not even if it gives back a cell that is not
//! its own, or enters one in the table that is free. Any context, NMI included.

use super::{CHUNK, CHUNK_BITS, INDEX_MASK};
use crate::sys::atomic::{Acquire, Atomic, Relaxed};

const DEPTH_SHIFT: u32 = 32;

/// Tells a place in the table from the link of a free cell.
const KEPT: u64 = 1 << 63;

/// Names a cell of the pool that made it.
///
/// An engine has one pool and one table, which are its own, and gives what it gets from the one
/// to the other only.
///
/// # Invariants
///
/// It is at most [`INDEX_MASK`] - 1, and names a cell of the pool that made it, which stays as
/// long as the pool.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Index(u32);

impl Index {
    /// Back from [`Index::to_raw`].
    ///
    /// # Safety
    ///
    /// The number is of an index of the pool with which it is used again, or 0.
    #[inline(always)]
    pub(crate) unsafe fn from_raw(raw: u32) -> Self {
        // INVARIANT: The function's contract; a pool has at least one cell.
        Self(raw)
    }

    /// As a number.
    #[inline(always)]
    pub(crate) fn to_raw(self) -> u32 {
        self.0
    }

    /// The index that the low bits of a stack's head name, which are not 0.
    #[inline(always)]
    pub(super) fn on_top(top: u64) -> Self {
        // INVARIANT: That of `Stack` and `Cache`.
        Self((top as u32).wrapping_sub(1))
    }

    /// The low bits of a stack's head whose top this is.
    #[inline(always)]
    pub(super) fn as_top(self) -> u64 {
        u64::from(self.0) + 1
    }

    /// The first cell of a filled chunk.
    #[inline(always)]
    pub(super) fn first_of(chunk: usize) -> Self {
        // INVARIANT: A chunk has a cell.
        Self((chunk as u32) << CHUNK_BITS)
    }

    /// The cell at an offset in the chunk whose first cell this is; there is one.
    #[inline(always)]
    pub(super) fn with_offset(self, offset: usize) -> Self {
        // INVARIANT: As the caller says.
        Self(self.0 | offset as u32)
    }

    /// The number of its chunk.
    #[inline(always)]
    pub(super) fn chunk(self) -> usize {
        (self.0 >> CHUNK_BITS) as usize
    }

    /// Its place in the chunk.
    #[inline(always)]
    pub(super) fn offset(self) -> usize {
        (self.0 & (CHUNK - 1)) as usize
    }
}

/// A word of a cell that is the pool's while the cell is free, and the table's while the cell is in
/// it.
///
/// # Invariants
///
/// The highest bit is set, or the low bits are 0 or one more than the index of a cell of the pool.
pub(crate) struct Link(Atomic<u64>);

impl Link {
    /// The link of a new cell.
    pub(crate) fn new() -> Self {
        // INVARIANT: 0.
        Self(Atomic::new(0))
    }

    /// Keeps a word for the table.
    ///
    /// # Safety
    ///
    /// The highest bit is set.
    #[inline(always)]
    pub(crate) unsafe fn keep(&self, word: u64) {
        debug_assert!(word & KEPT != 0);
        // INVARIANT: The function's contract. Relaxed: published with the event.
        self.0.store(word, Relaxed);
    }

    /// The word that was kept, if the cell is in the table.
    #[inline(always)]
    pub(crate) fn kept(&self) -> u64 {
        // Relaxed: only owners and holders of a reference ask, and the word came with the cell.
        self.0.load(Relaxed)
    }

    /// Makes a link: to what was on top (low bits of a stack's head), as the cell at this depth.
    #[inline(always)]
    pub(super) fn set(&self, depth: u64, top: u64) {
        // INVARIANT: The caller read `top` from the head of a stack. Relaxed: published by the
        // exchange.
        self.0.store(depth << DEPTH_SHIFT | top, Relaxed);
    }

    /// What is below this cell on its stack, as low bits of a head; `None` if it is on none.
    #[inline(always)]
    pub(super) fn next(&self) -> Option<u64> {
        // Relaxed: if the cell is taken and its link overwritten meanwhile, the tag has moved and
        // the exchange fails.
        let link = self.0.load(Relaxed);
        (link & KEPT == 0).then_some(link & INDEX_MASK)
    }

    /// Depth of the cell on its stack, for a caller that checks next whether it is still on top.
    pub(super) fn checked_depth(&self) -> u64 {
        // Acquire: what the caller looks at next is looked at after this.
        self.0.load(Acquire) >> DEPTH_SHIFT
    }

    /// How many cells there are on its stack from this one on; anything if it is on none.
    #[inline(always)]
    pub(super) fn depth(&self) -> u64 {
        // Relaxed: as in `next`.
        self.0.load(Relaxed) >> DEPTH_SHIFT
    }
}
