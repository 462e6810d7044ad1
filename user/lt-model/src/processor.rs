// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The activity of a processor, in stretches.

use std::fmt;
use std::sync::Arc;

use crate::context::Context;
use crate::ids::ThreadId;
use crate::tiles::{Kinds, Tiles};

/// A processor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Processor {
    /// Its activity, without gaps.
    pub stretches: Stretches,
}

/// A stretch in which a processor had one use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Start, ns.
    pub begin: u64,
    /// End, ns; later than the start.
    pub end: u64,
    /// The use of the processor.
    pub used: Use,
}

/// A use of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Use {
    /// Not known.
    Unknown,
    /// Idle.
    Idle,
    /// Runs this thread.
    Thread(ThreadId),
    /// Runs this context, which does not work for the current thread.
    Context(Context),
}

impl Use {
    /// Number of this use: 0 if unknown, 1 if idle, then even for threads and odd for contexts.
    pub(crate) fn number(self, contexts: &mut Kinds<Context>) -> u32 {
        match self {
            Self::Unknown => 0,
            Self::Idle => 1,
            // 2^31 threads would not fit into memory.
            Self::Thread(id) => id.0 * 2 + 2,
            Self::Context(context) => contexts.number(context) * 2 + 3,
        }
    }

    fn of(number: u32, contexts: &[Context]) -> Option<Self> {
        Some(match number {
            0 => Self::Unknown,
            1 => Self::Idle,
            even if even % 2 == 0 => Self::Thread(ThreadId(even / 2 - 1)),
            odd => Self::Context(*contexts.get((odd as usize - 3) / 2)?),
        })
    }
}

impl Processor {
    /// The stretches that overlap `from` to `to`.
    pub fn between(&self, from: u64, to: u64) -> impl Iterator<Item = Stretch> + Clone {
        let all = &self.stretches;
        all.tiles
            .between(from, to)
            .filter_map(|index| all.get(index))
    }
}

/// The stretches of a processor, in 6 or 8 bytes each: each starts at the end of its predecessor.
#[derive(Clone, Default)]
pub struct Stretches {
    tiles: Tiles,
    contexts: Arc<[Context]>,
}

impl Stretches {
    pub(crate) fn new(tiles: Tiles, contexts: Kinds<Context>) -> Self {
        Self {
            tiles,
            contexts: contexts.into_list().into(),
        }
    }

    /// The stretch at an index.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Stretch> {
        let (begin, end, used) = self.tiles.get(index)?;
        let used = Use::of(used, &self.contexts)?;
        Some(Stretch { begin, end, used })
    }

    /// All stretches, in time order.
    pub fn iter(&self) -> impl Iterator<Item = Stretch> + Clone {
        (0..self.tiles.len()).filter_map(|index| self.get(index))
    }
}

impl fmt::Debug for Stretches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for Stretches {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Stretches {}
