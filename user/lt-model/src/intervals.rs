// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The intervals of a thread, packed.

use std::fmt;
use std::sync::Arc;

use crate::ids::WakerId;
use crate::state::{Interval, State};
use crate::tiles::{Kinds, Tiles, push};

/// A state of a thread, and its CPU.
pub(crate) type Doing = (State, Option<u32>);

/// Stands for no waker.
const NONE: u32 = u32::MAX;

/// The intervals of a thread, in 16 bytes each: each starts at the end of its predecessor.
#[derive(Clone, Default)]
pub struct Intervals {
    tiles: Tiles,
    wakers: Vec<u32>,
    kinds: Arc<[Doing]>,
}

impl Intervals {
    /// Size of an interval, in bytes.
    pub(crate) const BYTES: usize = Tiles::BYTES + size_of::<u32>();

    /// Adds an interval of a kind; it starts at the end of the last one.
    pub(crate) fn push(&mut self, begin: u64, end: u64, kind: u32, waker: Option<WakerId>) {
        self.tiles.push(begin, end, kind);
        push(&mut self.wakers, waker.map_or(NONE, |waker| waker.0));
    }

    /// Extends the last interval, which `waker` then ends. Returns false if the last interval is of another kind.
    pub(crate) fn extend(&mut self, end: u64, kind: u32, waker: Option<WakerId>) -> bool {
        if self.tiles.last_kind() != Some(kind) {
            return false;
        }
        self.tiles.extend(end);
        if let (Some(last), Some(waker)) = (self.wakers.last_mut(), waker) {
            *last = waker.0;
        }
        true
    }

    /// Replaces the last interval, keeping its start; stores nothing new.
    pub(crate) fn replace_last(&mut self, end: u64, kind: u32) {
        self.tiles.replace_last(end, kind);
        if let Some(last) = self.wakers.last_mut() {
            *last = NONE;
        }
    }

    /// The intervals, each with the index of its kind.
    pub(crate) fn packed(&self) -> impl Iterator<Item = (u64, u64, u32, Option<WakerId>)> + Clone {
        let wakers = self
            .wakers
            .iter()
            .map(|w| (*w != NONE).then_some(WakerId(*w)));
        let all = (0..self.len()).filter_map(|index| self.tiles.get(index));
        all.zip(wakers)
            .map(|((a, b, kind), waker)| (a, b, kind, waker))
    }

    /// Sets the table of kinds.
    pub(crate) fn set_kinds(&mut self, kinds: &Arc<[Doing]>) {
        self.kinds = Arc::clone(kinds);
    }

    /// Number of intervals.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tiles.len()
    }

    /// Whether there are no intervals.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The interval at an index.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Interval> {
        let (begin, end, kind) = self.tiles.get(index)?;
        let (state, cpu) = *self.kinds.get(kind as usize)?;
        let waker = self.wakers.get(index).filter(|waker| **waker != NONE);
        Some(Interval {
            begin,
            end,
            state,
            cpu,
            waker: waker.map(|waker| WakerId(*waker)),
        })
    }

    /// The first interval.
    #[must_use]
    pub fn first(&self) -> Option<Interval> {
        self.get(0)
    }

    /// The last interval.
    #[must_use]
    pub fn last(&self) -> Option<Interval> {
        self.get(self.len().checked_sub(1)?)
    }

    /// All intervals, in time order.
    pub fn iter(&self) -> impl Iterator<Item = Interval> + Clone {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// The intervals that overlap `from` to `to`.
    pub fn between(&self, from: u64, to: u64) -> impl DoubleEndedIterator<Item = Interval> + Clone {
        self.tiles
            .between(from, to)
            .filter_map(|index| self.get(index))
    }
}

impl FromIterator<Interval> for Intervals {
    /// Each interval must start at the end of its predecessor.
    fn from_iter<I: IntoIterator<Item = Interval>>(all: I) -> Self {
        let mut kinds = Kinds::default();
        let mut intervals = Self::default();
        for one in all {
            let kind = kinds.number((one.state, one.cpu));
            intervals.push(one.begin, one.end, kind, one.waker);
        }
        intervals.kinds = kinds.into_list().into();
        intervals
    }
}

impl fmt::Debug for Intervals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for Intervals {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Intervals {}
