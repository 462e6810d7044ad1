// SPDX-License-Identifier: GPL-2.0

//! How far a chunk of cells was ever in use, so that searches need not look at the rest.
//!
//! The cells of a new chunk lie on their node's stack so that the first one is on top: they are
//! handed out upwards. Any context, NMI included.

use crate::sys::atomic::{Atomic, Relaxed};

/// Number of cells, from the first on, that have ever been handed out, or more.
pub(super) struct Used(Atomic<u32>);

impl Used {
    /// None.
    pub(super) fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// The number.
    pub(super) fn get(&self) -> usize {
        // Relaxed: see `note`.
        self.0.load(Relaxed) as usize
    }

    /// Notes that the cell at `offset` is handed out: for the first time, it may be.
    ///
    /// A CPU that knows of what the caller does with the cell next, by release and acquire, sees
    /// this, too; others may miss both.
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
