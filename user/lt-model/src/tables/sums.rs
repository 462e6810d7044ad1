// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Count, sum, extremes and percentiles of durations, in bounded memory.
//!
//! Up to [`EXACT`] durations are kept, and percentiles are exact. Beyond that, all durations are counted in
//! buckets like those of the kernel module's histograms, eight for each power of two: a percentile is then the upper
//! bound of its bucket, or the longest duration if that is less. It is at most 1/8 above the true value.

use std::collections::BTreeMap;

/// Number of durations that are kept one by one.
pub const EXACT: usize = 1024;

/// Sums of durations, ns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sums {
    /// Number of durations.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The shortest; 0 if there are none.
    pub least: u64,
    /// The longest.
    pub most: u64,
    values: Values,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Values {
    /// All durations.
    Exact(Vec<u64>),
    /// Number of durations in each bucket.
    Counted(BTreeMap<u16, u64>),
}

impl Default for Values {
    fn default() -> Self {
        Self::Exact(Vec::new())
    }
}

impl Values {
    /// The number of durations in each bucket.
    fn counted(self) -> BTreeMap<u16, u64> {
        match self {
            Self::Exact(all) => {
                let mut counted = BTreeMap::new();
                for took in all {
                    *counted.entry(bucket_of(took)).or_default() += 1;
                }
                counted
            }
            Self::Counted(counted) => counted,
        }
    }
}

/// Number of bits below the leading bit that select a bucket.
const BITS: u32 = 3;

/// The bucket of a duration.
fn bucket_of(took: u64) -> u16 {
    let shift = (took | 1 << BITS).ilog2() - BITS;
    ((shift << BITS) + (took >> shift) as u32) as u16
}

/// The longest duration of a bucket.
fn last_of(bucket: u16) -> u64 {
    let (octave, place) = (
        u32::from(bucket) >> BITS,
        u64::from(bucket) & ((1 << BITS) - 1),
    );
    match octave {
        0 => place,
        _ => (((place + (1 << BITS) + 1) as u128) << (octave - 1)).wrapping_sub(1) as u64,
    }
}

impl Sums {
    /// Adds a duration.
    pub fn add(&mut self, took: u64) {
        self.sum = self.sum.saturating_add(took);
        self.value(took);
    }

    /// Counts a duration without adding it to the sum.
    pub(super) fn value(&mut self, took: u64) {
        self.least = match self.count {
            0 => took,
            _ => self.least.min(took),
        };
        self.most = self.most.max(took);
        self.count += 1;
        match &mut self.values {
            Values::Exact(all) if all.len() < EXACT => all.push(took),
            Values::Counted(counted) => *counted.entry(bucket_of(took)).or_default() += 1,
            values => {
                let mut counted = std::mem::take(values).counted();
                *counted.entry(bucket_of(took)).or_default() += 1;
                *values = Values::Counted(counted);
            }
        }
    }

    /// Adds all durations of another sum.
    pub(super) fn join(&mut self, other: &Self) {
        self.sum = self.sum.saturating_add(other.sum);
        self.least = match (self.count, other.count) {
            (0, _) => other.least,
            (_, 0) => self.least,
            _ => self.least.min(other.least),
        };
        self.most = self.most.max(other.most);
        self.count += other.count;
        match (&mut self.values, &other.values) {
            (Values::Exact(all), Values::Exact(more)) if all.len() + more.len() <= EXACT => {
                all.extend(more);
            }
            (values, more) => {
                let mut counted = std::mem::take(values).counted();
                for (bucket, count) in more.clone().counted() {
                    *counted.entry(bucket).or_default() += count;
                }
                *values = Values::Counted(counted);
            }
        }
    }

    /// Whether percentiles are exact.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        matches!(self.values, Values::Exact(_))
    }

    /// Upper bound of each bucket that has durations, and the number of durations in the bucket. No bucket crosses a
    /// power of two.
    #[must_use]
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        let counted = self.values.clone().counted().into_iter();
        let bucket = |(bucket, count)| (last_of(bucket), count);
        counted.map(bucket).collect()
    }

    /// The smallest duration that at least `percent` % of all durations do not exceed, or an upper bound of it. `None`
    /// if there are no durations.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100);
        let rank = u64::try_from(rank.max(1)).ok()?;
        match &self.values {
            Values::Exact(all) => {
                let mut all = all.clone();
                all.sort_unstable();
                all.get(usize::try_from(rank - 1).ok()?).copied()
            }
            Values::Counted(counted) => {
                let mut seen = 0;
                let bucket = counted.iter().find(|(_, count)| {
                    seen += **count;
                    seen >= rank
                });
                bucket.map(|(bucket, _)| last_of(*bucket).min(self.most))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_match_the_buckets_of_the_kernel_module() {
        // The bounds that an instance's histogram prints.
        for (low, high) in [
            (0, 1),
            (7, 8),
            (8, 9),
            (15, 16),
            (16, 18),
            (18_874_368, 20_971_520),
        ] {
            assert_eq!(bucket_of(low), bucket_of(high - 1), "{low}");
            assert_ne!(bucket_of(low), bucket_of(high), "{low}");
            assert_eq!(last_of(bucket_of(low)), high - 1);
        }
        assert_eq!(last_of(bucket_of(u64::MAX)), u64::MAX);
    }

    #[test]
    fn few_durations_have_exact_percentiles() {
        let mut sums = Sums::default();
        assert_eq!(sums.percentile(50), None);
        (1..=100).rev().for_each(|took| sums.add(took * 1000));
        assert_eq!(
            (sums.count, sums.sum, sums.least, sums.most),
            (100, 5_050_000, 1000, 100_000)
        );
        let of = |percent| sums.percentile(percent);
        assert_eq!(
            (of(50), of(90), of(99)),
            (Some(50_000), Some(90_000), Some(99_000))
        );
        assert!(sums.is_exact());
    }

    proptest! {
        #[test]
        fn joined_sums_are_the_sums_of_all(
            all in prop::collection::vec(0..u64::MAX / 5000, 0..2000), place in 0..2000usize,
        ) {
            let of = |all: &[u64]| {
                let mut sums = Sums::default();
                all.iter().for_each(|took| sums.add(*took));
                sums
            };
            let (first, second) = all.split_at(place.min(all.len()));
            let mut joined = of(first);
            joined.join(&of(second));
            prop_assert_eq!(joined, of(&all));
        }

        #[test]
        fn a_percentile_is_at_most_an_eighth_too_high(
            mut all in prop::collection::vec(0..u64::MAX / 5000, 1..3000), percent in 1..=100u64,
        ) {
            let mut sums = Sums::default();
            all.iter().for_each(|took| sums.add(*took));
            all.sort_unstable();
            let rank = (all.len() as u64 * percent).div_ceil(100).max(1) as usize;
            let (is, told) = (all[rank - 1], sums.percentile(percent).unwrap());
            prop_assert_eq!(sums.is_exact(), all.len() <= EXACT);
            let mut octaves: BTreeMap<Option<u32>, u64> = BTreeMap::new();
            for took in &all {
                *octaves.entry(took.checked_ilog2()).or_default() += 1;
            }
            for (longest, count) in sums.buckets() {
                let left = octaves.get_mut(&longest.checked_ilog2()).unwrap();
                *left = left.checked_sub(count).unwrap();
            }
            prop_assert!(octaves.values().all(|left| *left == 0), "{octaves:?}");
            match sums.is_exact() {
                true => prop_assert_eq!(told, is),
                false => prop_assert!(told >= is && told - is <= is / 8, "{told} {is}"),
            }
        }
    }
}
