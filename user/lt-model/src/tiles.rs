// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Intervals without gaps, packed: each starts at the end of its predecessor, so only starts are stored, and the kind
//! of each is a number, since there are few kinds.
//!
//! ```text
//! begins  0  5  9          0..5 running, 5..9 blocked, 9..12 running: 6 bytes each,
//! kinds   0  1  0          where a state with two times would take 40
//! end            12        kind 0 is running, kind 1 blocked
//! ```

use std::hash::Hash;
use std::ops::Range;

use foldhash::HashMap;

use crate::list::Long;
use crate::times::Times;

/// Distinct values, each with a number.
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
    /// Size of a kind, in bytes: in a list, and in a table with room for twice as many kinds.
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

/// Numbers, in two bytes each if all fit.
#[derive(Debug, Clone)]
enum Numbers {
    Small(Long<u16>),
    Large(Long<u32>),
}

impl Default for Numbers {
    fn default() -> Self {
        Self::Small(Long::default())
    }
}

impl Numbers {
    /// The largest number that takes two bytes.
    const SMALL: u32 = u16::MAX as u32;

    /// Makes all numbers large if this one does not fit into two bytes.
    fn fit(&mut self, number: u32) {
        if let Self::Small(small) = self
            && number > Self::SMALL
        {
            let mut large = Long::default();
            small.iter().for_each(|of| large.push(u32::from(*of)));
            *self = Self::Large(large);
        }
    }

    fn push(&mut self, number: u32) {
        self.fit(number);
        match self {
            Self::Small(all) => all.push(number as u16),
            Self::Large(all) => all.push(number),
        }
    }

    /// Replaces the number at an index, if there is one.
    fn set(&mut self, index: usize, number: u32) {
        self.fit(number);
        match self {
            Self::Small(all) => all.set(index, number as u16),
            Self::Large(all) => all.set(index, number),
        }
    }

    fn get(&self, index: usize) -> Option<u32> {
        match self {
            Self::Small(all) => all.get(index).map(|of| u32::from(*of)),
            Self::Large(all) => all.get(index).copied(),
        }
    }

    /// The last number for which `is` is true, among the last `most` numbers. Of these, it may miss those in an earlier
    /// part of the list.
    fn recent(&self, most: usize, is: impl Fn(u32) -> bool) -> Option<u32> {
        match self {
            Self::Small(all) => {
                let last = all.tail().iter().rev().take(most);
                last.map(|of| u32::from(*of)).find(|of| is(*of))
            }
            Self::Large(all) => {
                let last = all.tail().iter().rev().take(most);
                last.copied().find(|of| is(*of))
            }
        }
    }
}

/// Intervals without gaps, packed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tiles {
    begins: Times,
    kinds: Numbers,
    /// End of the last interval.
    end: u64,
}

impl Tiles {
    /// Size of an interval, in bytes, except for the upper bits of its start. `largest` is the largest number of a kind.
    pub(crate) fn size(largest: u32) -> usize {
        let kind = match largest {
            0..=Numbers::SMALL => size_of::<u16>(),
            _ => size_of::<u32>(),
        };
        Times::BYTES + kind
    }

    /// Adds an interval, which starts at the end of the last one.
    pub(crate) fn push(&mut self, begin: u64, end: u64, kind: u32) {
        self.begins.push(begin);
        self.kinds.push(kind);
        self.end = end;
    }

    /// Extends the last interval to `end`.
    pub(crate) fn extend(&mut self, end: u64) {
        self.end = end;
    }

    /// Replaces the kind and the end of the last interval.
    pub(crate) fn replace_last(&mut self, end: u64, kind: u32) {
        if let Some(last) = self.len().checked_sub(1) {
            self.kinds.set(last, kind);
            self.end = end;
        }
    }

    /// Changes the intervals of `kind` that start at `since` or later to the kind `by`.
    pub(crate) fn replace_since(&mut self, since: u64, kind: u32, by: u32) {
        for index in self.begins.before(since)..self.len() {
            if self.kinds.get(index) == Some(kind) {
                self.kinds.set(index, by);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.begins.len()
    }

    pub(crate) fn last_kind(&self) -> Option<u32> {
        self.kinds.get(self.len().checked_sub(1)?)
    }

    /// The number of a kind, if one of the last intervals is of that kind: comparing a few kinds takes less time than
    /// [`Kinds::number`].
    pub(crate) fn recent<K: PartialEq>(&self, kind: &K, kinds: &[K]) -> Option<u32> {
        /// Number of intervals to examine: a thread runs, sleeps, waits for a CPU, and runs again.
        const RECENT: usize = 4;
        let is = |number: u32| kinds.get(number as usize) == Some(kind);
        self.kinds.recent(RECENT, is)
    }

    /// Start, end and kind of the interval at an index.
    pub(crate) fn get(&self, index: usize) -> Option<(u64, u64, u32)> {
        let begin = self.begins.get(index)?;
        let end = self.begins.get(index + 1).unwrap_or(self.end);
        Some((begin, end, self.kinds.get(index)?))
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
    fn the_number_of_a_kind_may_be_large() {
        let kinds = [7, 0, Numbers::SMALL, Numbers::SMALL + 1, 7, u32::MAX];
        let filled = |kinds: &[u32]| {
            let mut tiles = Tiles::default();
            for (begin, kind) in (0..).zip(kinds) {
                tiles.push(begin, begin + 1, *kind);
                assert_eq!(tiles.last_kind(), Some(*kind));
            }
            tiles
        };
        let all = |tiles: &Tiles| -> Vec<u32> {
            let each = (0..tiles.len()).filter_map(|index| tiles.get(index));
            each.map(|(.., kind)| kind).collect()
        };
        assert_eq!(all(&filled(&kinds)), kinds);
        // The numbers become large only when they are replaced.
        for by in [9, Numbers::SMALL + 2] {
            let mut tiles = filled(&[7, 0, 7, 8]);
            tiles.replace_since(1, 7, by);
            tiles.replace_last(9, by + 1);
            assert_eq!(all(&tiles), [7, 0, by, by + 1]);
            assert_eq!(tiles.get(3), Some((3, 9, by + 1)));
        }
        let [small, large] = [Numbers::SMALL, Numbers::SMALL + 1].map(Tiles::size);
        assert_eq!((small, large), (6, 8));
    }

    #[test]
    fn a_kind_has_one_number() {
        let mut kinds = Kinds::default();
        assert_eq!(["a", "b", "a"].map(|k| kinds.number(k)), [0, 1, 0]);
        assert_eq!(kinds.list(), ["a", "b"]);
    }
}
