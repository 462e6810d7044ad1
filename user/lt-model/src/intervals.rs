// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The intervals of a thread, packed.

use std::fmt;
use std::sync::Arc;

use crate::ids::WakerId;
use crate::list::{push, with_room};
use crate::state::{Interval, State};
use crate::tiles::{Kinds, Tiles};
use crate::times::{Times, differ};

/// A state of a thread, and its CPU.
pub(crate) type Doing = (State, Option<u32>);

/// The intervals of a thread: 6 bytes for each, or 8 if there are more than 2^16 kinds, and 8 for each waker. An
/// interval starts at the end of its predecessor, so only starts are stored.
#[derive(Clone, Default)]
pub struct Intervals {
    tiles: Tiles,
    /// The wakers, by the index of the interval that each ended. A thread with 2^32 intervals would not fit into
    /// memory.
    wakers: Vec<(u32, WakerId)>,
    kinds: Arc<[Doing]>,
}

/// Number of stored elements in the intervals of several threads.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stored {
    intervals: usize,
    wakers: usize,
    /// Changes of the upper bits of starts.
    highs: usize,
    /// The largest number of a kind.
    largest: u32,
}

impl Stored {
    /// Counts an interval of a kind, or the extension of one.
    pub(crate) fn add(
        &mut self,
        (begin, end): (u64, u64),
        kind: u32,
        waker: Option<WakerId>,
        is_new: bool,
    ) {
        self.largest = self.largest.max(kind);
        self.intervals += usize::from(is_new);
        self.wakers += usize::from(waker.is_some());
        self.highs += usize::from(differ(begin, end));
    }

    /// Upper bound of the memory in use, in bytes, except for a few elements of each thread.
    pub(crate) fn bytes(&self) -> usize {
        with_room(self.intervals * Tiles::size(self.largest))
            + with_room(self.wakers * size_of::<(u32, WakerId)>())
            // Only starts are stored, so an extension stores no upper bits.
            + self.highs.min(self.intervals) * Times::HIGH
    }
}

impl Intervals {
    /// Adds an interval of a kind; it starts at the end of the last one.
    pub(crate) fn push(&mut self, begin: u64, end: u64, kind: u32, waker: Option<WakerId>) {
        self.tiles.push(begin, end, kind);
        self.ended_by(waker);
    }

    /// The number of a kind, if one of the last intervals is of that kind.
    pub(crate) fn recent(&self, kind: Doing, kinds: &Kinds<Doing>) -> Option<u32> {
        self.tiles.recent(&kind, kinds.list())
    }

    /// Extends the last interval, which `waker` then ends. Returns false if the last interval is of another kind.
    pub(crate) fn extend(&mut self, end: u64, kind: u32, waker: Option<WakerId>) -> bool {
        if self.tiles.last_kind() != Some(kind) {
            return false;
        }
        self.tiles.extend(end);
        self.ended_by(waker);
        true
    }

    /// Sets the waker that ended the last interval.
    fn ended_by(&mut self, waker: Option<WakerId>) {
        let Some(waker) = waker else {
            return;
        };
        let last = self.len().saturating_sub(1) as u32;
        match self.wakers.last_mut() {
            Some((of, known)) if *of == last => *known = waker,
            _ => push(&mut self.wakers, (last, waker)),
        }
    }

    /// Replaces the last interval, keeping its start; stores nothing new.
    pub(crate) fn replace_last(&mut self, end: u64, kind: u32) {
        self.tiles.replace_last(end, kind);
        let last = self.len().saturating_sub(1) as u32;
        self.wakers.pop_if(|(of, _)| *of == last);
    }

    /// The waker that ended the interval at an index.
    fn waker(&self, index: usize) -> Option<WakerId> {
        let place = self
            .wakers
            .binary_search_by_key(&index, |(of, _)| *of as usize);
        self.wakers.get(place.ok()?).map(|(_, waker)| *waker)
    }

    /// The intervals, each with the index of its kind.
    pub(crate) fn packed(&self) -> impl Iterator<Item = (u64, u64, u32, Option<WakerId>)> + Clone {
        (0..self.len()).filter_map(|index| {
            let (begin, end, kind) = self.tiles.get(index)?;
            Some((begin, end, kind, self.waker(index)))
        })
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
        Some(Interval {
            begin,
            end,
            state,
            cpu,
            waker: self.waker(index),
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
