// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Intervals without gaps, packed: each starts at the end of its predecessor, so only starts are stored, and the kind
//! of each is a number, since there are few kinds.
//!
//! ```text
//! begins  0  5  9          0..5 running, 5..9 blocked, 9..12 running: 8 bytes each,
//! kinds   0  1  0          where a state with two times would take 40
//! end            12        kind 0 is running, kind 1 blocked
//! ```

use std::hash::Hash;
use std::ops::Range;

use foldhash::HashMap;

use crate::list::push;
use crate::times::Times;

/// Distinct values, each stored once with a number.
#[derive(Debug, Clone)]
pub(crate) struct Kinds<K> {
    list: Vec<K>,
    numbers: HashMap<K, u32>,
}

impl<K> Default for Kinds<K> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            numbers: HashMap::default(),
        }
    }
}

impl<K: Copy + Eq + Hash> Kinds<K> {
    /// Size of a kind, in a list and in a table with room for twice as many.
    const BYTES: usize = 5 * size_of::<K>() + 24;

    pub(crate) fn number(&mut self, kind: K) -> u32 {
        let next = self.list.len() as u32;
        let number = *self.numbers.entry(kind).or_insert(next);
        if number == next {
            self.list.push(kind);
        }
        number
    }

    /// The numbered kinds.
    pub(crate) fn list(&self) -> &[K] {
        &self.list
    }

    pub(crate) fn into_list(self) -> Vec<K> {
        self.list
    }

    pub(crate) fn bytes(&self) -> usize {
        self.list.len() * Self::BYTES + 512
    }
}

/// Intervals without gaps, packed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tiles {
    begins: Times,
    kinds: Vec<u32>,
    /// End of the last interval.
    end: u64,
}

impl Tiles {
    /// Size of an interval, in bytes, except for the upper bits of its start.
    pub(crate) const BYTES: usize = Times::BYTES + size_of::<u32>();

    /// Adds an interval, which starts at the end of the last one.
    pub(crate) fn push(&mut self, begin: u64, end: u64, kind: u32) {
        self.begins.push(begin);
        push(&mut self.kinds, kind);
        self.end = end;
    }

    /// Extends the last interval to `end`.
    pub(crate) fn extend(&mut self, end: u64) {
        self.end = end;
    }

    /// Replaces the kind and the end of the last interval.
    pub(crate) fn replace_last(&mut self, end: u64, kind: u32) {
        if let Some(last) = self.kinds.last_mut() {
            *last = kind;
            self.end = end;
        }
    }

    /// Changes the kind of the intervals of `kind` that start at `since` or later.
    pub(crate) fn replace_since(&mut self, since: u64, kind: u32, by: u32) {
        let first = self.begins.before(since);
        let later = self.kinds.iter_mut().skip(first);
        later.filter(|of| **of == kind).for_each(|of| *of = by);
    }

    pub(crate) fn len(&self) -> usize {
        self.begins.len()
    }

    pub(crate) fn last_kind(&self) -> Option<u32> {
        self.kinds.last().copied()
    }

    /// The number of a kind, if one of the last intervals is of that kind: comparing a few kinds takes less time than
    /// [`Kinds::number`].
    pub(crate) fn recent<K: PartialEq>(&self, kind: &K, kinds: &[K]) -> Option<u32> {
        /// Number of intervals to examine: a thread runs, sleeps, waits for a CPU, and runs again.
        const RECENT: usize = 4;
        let mut recent = self.kinds.iter().rev().take(RECENT).copied();
        recent.find(|number| kinds.get(*number as usize) == Some(kind))
    }

    /// Start, end and kind of the interval at an index.
    pub(crate) fn get(&self, index: usize) -> Option<(u64, u64, u32)> {
        let begin = self.begins.get(index)?;
        let end = self.begins.get(index + 1).unwrap_or(self.end);
        Some((begin, end, *self.kinds.get(index)?))
    }

    /// Indexes of the intervals that overlap `from` to `to`.
    pub(crate) fn between(&self, from: u64, to: u64) -> Range<usize> {
        // Each interval ends where the next one begins.
        let mut first = self.begins.until(from).saturating_sub(1);
        if first + 1 == self.len() && self.end <= from {
            first = self.len();
        }
        first..self.begins.before(to).max(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn intervals_that_overlap_a_time_are_found(
            lengths in prop::collection::vec(1..4u64, 0..20), from in 0..50u64, took in 0..50u64
        ) {
            let mut tiles = Tiles::default();
            let mut all = Vec::new();
            let mut at = 5;
            for (kind, length) in (0..).zip(lengths) {
                tiles.push(at, at + length, kind);
                all.push((at, at + length, kind));
                at += length;
            }
            let to = from + took;
            let found: Vec<_> = tiles.between(from, to).map(|i| tiles.get(i).unwrap()).collect();
            all.retain(|(begin, end, _)| *end > from && *begin < to);
            if took > 0 {
                prop_assert_eq!(found, all);
            }
            prop_assert_eq!(tiles.get(tiles.len()), None);
        }
    }

    #[test]
    fn the_kinds_of_the_last_intervals_are_recent() {
        let mut tiles = Tiles::default();
        assert_eq!(tiles.recent(&"a", &["a"]), None);
        for (begin, kind) in (0..).zip([0, 1, 2, 3, 2]) {
            tiles.push(begin, begin + 1, kind);
        }
        let all = ["a", "b", "c", "d", "e"];
        let recent = all.map(|kind| tiles.recent(&kind, &all));
        assert_eq!(recent, [None, Some(1), Some(2), Some(3), None]);
    }

    #[test]
    fn a_kind_has_one_number() {
        let mut kinds = Kinds::default();
        assert_eq!(["a", "b", "a"].map(|k| kinds.number(k)), [0, 1, 0]);
        assert_eq!(kinds.list(), ["a", "b"]);
    }
}
