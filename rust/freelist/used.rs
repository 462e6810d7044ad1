// SPDX-License-Identifier: GPL-2.0

//! Records how much of a chunk was ever in use, so that searches skip the cells beyond.
//!
//! The cells of a new chunk are on their node's stack with the first cell on top, so they are
//! handed out upwards. Any context, NMI included.

use crate::sys::atomic::{Atomic, Relaxed};

/// Number of cells, from the first on, that may ever have been handed out.
pub(super) struct Used(Atomic<u32>);

impl Used {
    /// Creates the count of a chunk with no cell handed out.
    pub(super) fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Returns the number of cells that may ever have been handed out.
    pub(super) fn get(&self) -> usize {
        // Relaxed: see `note`.
        self.0.load(Relaxed) as usize
    }

    /// Records that the cell at `offset` is being handed out, perhaps for the first time.
    ///
    /// A CPU that sees later accesses of the caller to the cell, by release and acquire, also sees
    /// this record; other CPUs may miss both.
    #[inline]
    pub(super) fn note(&self, offset: u32) {
        let with = offset + 1;
        // Relaxed, both: a number that only grows, and orders nothing.
        let mut now = self.0.load(Relaxed);
        while now < with {
            match self.0.cmpxchg(now, with, Relaxed) {
                Ok(_) => return,
                Err(found) => now = found,
            }
        }
    }
}
