// SPDX-License-Identifier: GPL-2.0

//! The index that names a cell, and the word that links a free cell to the next.
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
//! Only the pool and the table make an [`Index`] and write a [`Link`]. So no other code can make
//! the pool follow a number that names no cell, not even by returning a cell that it does not own,
//! or by inserting a free cell into the table.
//!
//! # Contexts
//!
//! Any, including NMI.

use super::{CHUNK, CHUNK_BITS, INDEX_MASK};
use crate::sys::atomic::{Acquire, Atomic, Relaxed};

const DEPTH_SHIFT: u32 = 32;

/// Marks a place in the table; clear in the link of a free cell.
const KEPT: u64 = 1 << 63;

/// Names a cell of the pool that made the index.
///
/// An engine owns one pool and one table, and passes indices only between these two.
///
/// # Invariants
///
/// An index is at most [`INDEX_MASK`] - 1, and names a cell of the pool that made the index. The
/// cell lives as long as the pool.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Index(u32);

impl Index {
    /// Converts a number from [`Index::to_raw`] back.
    ///
    /// # Safety
    ///
    /// The number is 0, or came from an index of the same pool.
    #[inline(always)]
    pub(crate) unsafe fn from_raw(raw: u32) -> Self {
        // INVARIANT: The function's contract; a pool has at least one cell.
        Self(raw)
    }

    /// Returns the index as a number.
    #[inline(always)]
    pub(crate) fn to_raw(self) -> u32 {
        self.0
    }

    /// Returns the index named by the low bits of a stack's head, which are not 0.
    #[inline(always)]
    pub(super) fn on_top(top: u64) -> Self {
        // INVARIANT: The invariant of `Stack` and `Cache`.
        Self((top as u32).wrapping_sub(1))
    }

    /// Returns the low bits of a stack's head with this cell on top.
    #[inline(always)]
    pub(super) fn as_top(self) -> u64 {
        u64::from(self.0) + 1
    }

    /// Returns the index of the first cell of a filled chunk.
    #[inline(always)]
    pub(super) fn first_of(chunk: usize) -> Self {
        // INVARIANT: A chunk has a cell.
        Self((chunk as u32) << CHUNK_BITS)
    }

    /// Returns the index of the cell at an offset in the chunk that starts with this cell. There
    /// must be a cell at this offset.
    #[inline(always)]
    pub(super) fn with_offset(self, offset: usize) -> Self {
        // INVARIANT: The caller passes the offset of a cell that exists.
        Self(self.0 | offset as u32)
    }

    /// Returns the number of the cell's chunk.
    #[inline(always)]
    pub(super) fn chunk(self) -> usize {
        (self.0 >> CHUNK_BITS) as usize
    }

    /// Returns the cell's offset in its chunk.
    #[inline(always)]
    pub(super) fn offset(self) -> usize {
        (self.0 & (CHUNK - 1)) as usize
    }
}

/// A word of a cell. The pool uses it while the cell is free, and the table while the cell is in
/// the table.
///
/// # Invariants
///
/// The highest bit is set, or the low bits are 0 or one more than the index of a cell of the pool.
pub(crate) struct Link(Atomic<u64>);

impl Link {
    /// Creates the link of a new cell.
    pub(crate) fn new() -> Self {
        // INVARIANT: The low bits are 0.
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

    /// Returns the word that was kept for the table; any word if the cell is not in the table.
    #[inline(always)]
    pub(crate) fn kept(&self) -> u64 {
        // Relaxed: only owners and holders of a reference call this, and they acquired the word
        // with the cell.
        self.0.load(Relaxed)
    }

    /// Links the cell to `top`, the low bits of the stack's head, and stores the cell's own depth.
    #[inline(always)]
    pub(super) fn set(&self, depth: u64, top: u64) {
        // INVARIANT: The caller read `top` from the head of a stack. Relaxed: published by the
        // exchange.
        self.0.store(depth << DEPTH_SHIFT | top, Relaxed);
    }

    /// Returns the cell below this one on its stack, as the low bits of a head; `None` if this cell
    /// is in the table.
    #[inline(always)]
    pub(super) fn next(&self) -> Option<u64> {
        // Relaxed: if the cell is taken and its link overwritten meanwhile, the tag has moved and
        // the exchange fails.
        let link = self.0.load(Relaxed);
        (link & KEPT == 0).then_some(link & INDEX_MASK)
    }

    /// Returns the depth of the cell on its stack, for a caller that then checks whether it is
    /// still on top.
    pub(super) fn checked_depth(&self) -> u64 {
        // Acquire: the caller's next reads come after this.
        self.0.load(Acquire) >> DEPTH_SHIFT
    }

    /// Returns the number of cells on the stack from this cell down; any value if the cell is on no
    /// stack.
    #[inline(always)]
    pub(super) fn depth(&self) -> u64 {
        // Relaxed: as in `next`.
        self.0.load(Relaxed) >> DEPTH_SHIFT
    }
}
