// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What a processor did, stretch by stretch.

use crate::context::Context;
use crate::thread::ThreadId;

/// A processor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Processor {
    /// What it did, without gaps.
    pub stretches: Vec<Stretch>,
}

/// A processor did one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// From here, ns.
    pub begin: u64,
    /// To here; later than the begin.
    pub end: u64,
    /// What it did.
    pub used: Use,
}

/// What a processor does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Not known.
    Unknown,
    /// Nothing.
    Idle,
    /// Runs this thread.
    Thread(ThreadId),
    /// Works for nobody, or for somebody else than its thread.
    Context(Context),
}

impl Processor {
    /// The stretches that have a part between `from` and `to`.
    #[must_use]
    pub fn between(&self, from: u64, to: u64) -> &[Stretch] {
        let first = self.stretches.partition_point(|s| s.end <= from);
        let last = self.stretches.partition_point(|s| s.begin < to);
        self.stretches.get(first..last.max(first)).unwrap_or(&[])
    }
}
