// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The parts of a model to keep, if not all of it.

use std::hash::Hash;

use foldhash::HashMap;

use crate::ids::ThreadId;

/// Selected parts of the activity of threads and processors.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    threads: HashMap<ThreadId, Spans>,
    processors: HashMap<u32, Spans>,
}

/// Starts and ends of disjoint ranges, in time order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spans(Vec<(u64, u64)>);

impl Spans {
    pub(crate) fn add(&mut self, from: u64, to: u64) {
        let place = self.0.partition_point(|(_, end)| *end < from);
        let joined = self.0[place..].partition_point(|(begin, _)| *begin <= to) + place;
        let all = self.0.get(place..joined).unwrap_or_default();
        let from = all.first().map_or(from, |(begin, _)| from.min(*begin));
        let to = all.last().map_or(to, |(_, end)| to.max(*end));
        self.0.splice(place..joined, [(from, to)]);
    }

    /// If there are more than `most` ranges, fills the shorter half of the gaps between them.
    pub(crate) fn limit(&mut self, most: usize) {
        if self.0.len() <= most {
            return;
        }
        let gap = |last: &(u64, u64), next: &(u64, u64)| next.0 - last.1;
        let gaps = self.0.windows(2).map(|two| gap(&two[0], &two[1]));
        let mut gaps: Vec<u64> = gaps.collect();
        if gaps.is_empty() {
            return;
        }
        let middle = gaps.len() / 2;
        let longest = *gaps.select_nth_unstable(middle).1;
        self.0.dedup_by(|next, last| {
            let is_filled = gap(last, next) <= longest;
            if is_filled {
                last.1 = next.1;
            }
            is_filled
        });
    }

    /// Whether a range has a part of the time between two times.
    pub(crate) fn has(&self, from: u64, to: u64) -> bool {
        let place = self.0.partition_point(|(_, end)| *end <= from);
        self.0.get(place).is_some_and(|(begin, _)| *begin < to)
    }

    /// Whether one range has all of the time between two times.
    pub(crate) fn covers(&self, from: u64, to: u64) -> bool {
        let place = self.0.partition_point(|(_, end)| *end < to);
        self.0.get(place).is_some_and(|(begin, _)| *begin <= from)
    }

    /// Adds all ranges of `other`. This is fast if most ranges of `other` are before most ranges of this list: the
    /// latter are moved only once.
    fn add_all(&mut self, other: &Self) {
        let Some((_, end)) = other.0.last() else {
            return;
        };
        let place = self.0.partition_point(|(begin, _)| begin <= end);
        let mut all = [&self.0[..place], &other.0[..]].concat();
        all.sort_unstable();
        let mut joined = Self::default();
        for (from, to) in all {
            joined.add(from, to);
        }
        self.0.splice(..place, joined.0);
    }

    /// Whether all of the time in the ranges of `other` is in a range.
    fn has_all(&self, other: &Self) -> bool {
        let mut each = other.0.iter();
        each.all(|(from, to)| from >= to || self.covers(*from, *to))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// End of the last range.
    pub(crate) fn end(&self) -> Option<u64> {
        self.0.last().map(|(_, end)| *end)
    }

    /// Removes and returns the ranges that end after `time`.
    pub(crate) fn take_after(&mut self, time: u64) -> Vec<(u64, u64)> {
        let place = self.0.partition_point(|(_, end)| *end <= time);
        self.0.split_off(place)
    }

    /// Memory in use, approximately, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        64 + self.0.capacity() * size_of::<(u64, u64)>()
    }
}

impl Wanted {
    /// Adds the activity of a thread between two times.
    pub fn thread(&mut self, id: ThreadId, from: u64, to: u64) {
        self.threads.entry(id).or_default().add(from, to);
    }

    /// Adds the activity of a processor between two times.
    pub fn processor(&mut self, cpu: u32, from: u64, to: u64) {
        self.processors.entry(cpu).or_default().add(from, to);
    }

    /// Whether it has all parts that `other` has.
    #[must_use]
    pub fn has_all(&self, other: &Self) -> bool {
        fn has_all<K: Eq + Hash>(all: &HashMap<K, Spans>, other: &HashMap<K, Spans>) -> bool {
            let none = Spans::default();
            let mut each = other.iter();
            each.all(|(of, spans)| all.get(of).unwrap_or(&none).has_all(spans))
        }
        has_all(&self.threads, &other.threads) && has_all(&self.processors, &other.processors)
    }

    /// Adds all parts that `other` has.
    pub fn add_all(&mut self, other: &Self) {
        for (id, spans) in &other.threads {
            self.threads.entry(*id).or_default().add_all(spans);
        }
        for (cpu, spans) in &other.processors {
            self.processors.entry(*cpu).or_default().add_all(spans);
        }
    }

    /// Whether it has no parts.
    pub(crate) fn is_empty(&self) -> bool {
        self.threads.is_empty() && self.processors.is_empty()
    }

    pub(crate) fn has_thread(&self, id: ThreadId, from: u64, to: u64) -> bool {
        self.threads.get(&id).is_some_and(|s| s.has(from, to))
    }

    pub(crate) fn has_processor(&self, cpu: u32, from: u64, to: u64) -> bool {
        self.processors.get(&cpu).is_some_and(|s| s.has(from, to))
    }

    /// Memory in use, approximately, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let all = self.threads.values().chain(self.processors.values());
        all.map(Spans::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn added_times_are_covered(
            added in prop::collection::vec((0..40u64, 1..6u64), 0..10), from in 0..40u64, took in 1..6u64
        ) {
            let mut spans = Spans::default();
            added.iter().for_each(|(from, took)| spans.add(*from, from + took));
            let to = from + took;
            let there = added.iter().any(|(begin, took)| *begin < to && begin + took > from);
            prop_assert_eq!(spans.has(from, to), there);
            let has_all = (from..to).all(|at| spans.has(at, at + 1));
            prop_assert_eq!(spans.covers(from, to), has_all);
            prop_assert!(spans.0.windows(2).all(|pair| pair[0].1 < pair[1].0), "{spans:?}");
        }
    }

    proptest! {
        #[test]
        fn lists_of_times_are_joined_compared_and_divided(
            lists in prop::collection::vec(prop::collection::vec((0..40u64, 0..6u64), 0..10), 2), at in 0..50u64
        ) {
            let of = |list: &[(u64, u64)]| {
                let mut spans = Spans::default();
                list.iter().for_each(|(from, took)| spans.add(*from, from + took));
                spans
            };
            let (one, other) = (of(&lists[0]), of(&lists[1]));
            let mut both = one.clone();
            both.add_all(&other);
            let has = |spans: &Spans, at| spans.has(at, at + 1);
            for at in 0..50 {
                prop_assert_eq!(has(&both, at), has(&one, at) || has(&other, at));
            }
            prop_assert!(both.0.windows(2).all(|pair| pair[0].1 < pair[1].0), "{both:?}");
            prop_assert!(both.has_all(&one) && both.has_all(&other));
            prop_assert_eq!(one.has_all(&other), (0..50).all(|at| has(&one, at) || !has(&other, at)));
            let later = both.take_after(at);
            prop_assert!(both.end().is_none_or(|end| end <= at));
            prop_assert!(later.iter().all(|(_, end)| *end > at));
        }
    }

    #[test]
    fn the_shorter_gaps_of_too_many_ranges_are_filled() {
        let mut spans = Spans::default();
        for (from, to) in [(0, 10), (12, 20), (100, 110), (113, 120), (500, 510)] {
            spans.add(from, to);
        }
        spans.limit(5);
        assert_eq!(spans.0.len(), 5);
        // The gaps are 2, 80, 3 and 380 long.
        spans.limit(4);
        assert_eq!(spans.0, [(0, 120), (500, 510)]);
        spans.limit(0);
        spans.limit(0);
        assert_eq!(spans.0, [(0, 510)]);
    }
}
