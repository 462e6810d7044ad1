// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The samples of one loop: counted, summed up and put into bins, in constant memory.
//!
//! Sums are integers, so they do not round, and the bins add up to the number of samples. The usual
//! one-pass formula (Welford's) divides for each sample, which would take longer than everything else
//! in the loop, and rounds each time. A sum of squares needs 128 bits: the square of 2^64 - 1 ns, 584
//! years, just fits.
//!
//! The bins are the bins of the module's histograms: one for each ns below 8, then eight for each
//! power of two. They take less than 4 KiB, so that recording a sample does not itself cause cache
//! misses.

use lt_proc::{Bucket, Histogram, Slice};
use serde::{Deserialize, Serialize};

const SUB_BITS: u32 = 3;
const SUB: usize = 1 << SUB_BITS;

/// The number of bins.
pub const BINS: usize = (64 - SUB_BITS as usize + 1) * SUB;

/// Returns the bin of a sample.
#[inline(always)]
fn bin(ns: u64) -> usize {
    let shift = (ns | SUB as u64).ilog2() - SUB_BITS;
    shift as usize * SUB + (ns >> shift) as usize
}

/// Returns the smallest sample of a bin, and the smallest sample above it; `u64::MAX` for the last
/// bin, which has no end.
fn bounds(bin: usize) -> (u64, u64) {
    let low = |bin: usize| match bin / SUB {
        0 => bin as u64,
        octave => ((SUB + bin % SUB) as u64) << (octave - 1),
    };
    let high = if bin + 1 < BINS {
        low(bin + 1)
    } else {
        u64::MAX
    };
    (low(bin), high)
}

/// Samples, in ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    count: u64,
    min: u64,
    max: u64,
    sum: u64,
    squares: u128,
    bins: Box<[u64; BINS]>,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            count: 0,
            min: u64::MAX,
            max: 0,
            sum: 0,
            squares: 0,
            bins: Box::new([0; BINS]),
        }
    }
}

impl Record {
    /// Adds one sample.
    #[inline(always)]
    pub fn add(&mut self, ns: u64) {
        self.count += 1;
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        self.sum = self.sum.wrapping_add(ns);
        self.squares = self
            .squares
            .wrapping_add(u128::from(ns).wrapping_mul(u128::from(ns)));
        self.bins[bin(ns)] += 1;
    }

    /// Adds the samples of another record.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum = self.sum.wrapping_add(other.sum);
        self.squares = self.squares.wrapping_add(other.squares);
        for (mine, theirs) in self.bins.iter_mut().zip(other.bins.iter()) {
            *mine += theirs;
        }
    }

    /// Adds the samples of a slice of the kernel's loop, which uses the same bins.
    pub fn add_slice(&mut self, slice: &Slice) {
        self.count += slice.loops;
        self.min = self.min.min(slice.min);
        self.max = self.max.max(slice.max);
        self.sum = self.sum.wrapping_add(slice.sum);
        self.squares = self.squares.wrapping_add(slice.squares);
        for (low, count) in &slice.bins {
            self.bins[bin(*low)] += count;
        }
    }

    /// Returns the number of samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the bins that have samples.
    #[must_use]
    pub fn histogram(&self) -> Histogram {
        let used = self
            .bins
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0);
        let bucket = |(bin, count): (usize, &u64)| {
            let (low, high) = bounds(bin);
            Bucket {
                low,
                high,
                count: *count,
            }
        };
        Histogram {
            buckets: used.map(bucket).collect(),
        }
    }

    /// Returns the statistics of the samples; `None` if there are none.
    #[must_use]
    pub fn statistics(&self) -> Option<Statistics> {
        if self.count == 0 {
            return None;
        }
        let (count, sum) = (u128::from(self.count), u128::from(self.sum));
        // The squares of the distances from the integer just below the mean are exact, and their sum is
        // small. Only the last steps round.
        let near = sum / count;
        let rest = (sum % count) as f64 / self.count as f64;
        let squared = count.wrapping_mul(near).wrapping_mul(near);
        let mixed = near.wrapping_mul(sum).wrapping_mul(2);
        let around = self.squares.wrapping_add(squared).wrapping_sub(mixed);
        let variance = (around as f64 / self.count as f64 - rest * rest).max(0.0);
        Some(Statistics {
            loops: self.count,
            min: self.min,
            max: self.max,
            sum: self.sum,
            mean: near as f64 + rest,
            variance,
            deviation: variance.sqrt(),
        })
    }
}

/// Statistics of samples, in ns. The variance is the variance of the whole population, not an
/// estimate from a sample of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Number of samples.
    pub loops: u64,
    /// The shortest sample.
    pub min: u64,
    /// The longest sample.
    pub max: u64,
    /// Sum of all samples.
    pub sum: u64,
    /// Mean of the samples.
    pub mean: f64,
    /// The mean square of the distance from the mean.
    pub variance: f64,
    /// Standard deviation: the square root of the variance.
    pub deviation: f64,
}

#[cfg(test)]
#[expect(dead_code, reason = "the module uses more of it")]
#[path = "../../../../rust/engine/histogram.rs"]
mod module;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bins_are_as_in_the_module() {
        assert_eq!(BINS, module::BUCKETS);
        for i in 0..BINS {
            assert_eq!(bounds(i), module::bounds(i), "bin {i}");
        }
        for value in (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1]) {
            assert_eq!(bin(value), module::bucket_of(value), "{value}");
        }
        assert_eq!(bin(u64::MAX), BINS - 1);
    }

    #[test]
    fn an_empty_record_has_no_statistics() {
        assert_eq!(Record::default().statistics(), None);
        assert_eq!(Record::default().histogram().count(), 0);
    }

    fn record(samples: &[u64]) -> Record {
        let mut record = Record::default();
        samples.iter().for_each(|ns| record.add(*ns));
        record
    }

    #[test]
    fn a_slice_of_the_kernel_equals_its_samples() {
        let slice = Slice {
            loops: 4,
            min: 10,
            max: 41,
            sum: 101,
            squares: 3481,
            bins: vec![(10, 2), (40, 2)],
            ..Slice::default()
        };
        let mut both = record(&[7]);
        both.add_slice(&slice);
        assert_eq!(both, record(&[10, 7, 40, 41, 10]));
    }

    #[test]
    fn known_samples_give_known_statistics() {
        let s = record(&[2, 4, 4, 4, 5, 5, 7, 9]).statistics().unwrap();
        assert_eq!((s.loops, s.min, s.max, s.sum), (8, 2, 9, 40));
        assert_eq!((s.mean, s.variance, s.deviation), (5.0, 4.0, 2.0));
    }

    /// For samples far from zero, the difference of two large sums would lose a small variance.
    #[test]
    fn a_small_variance_far_from_zero_survives() {
        let far = 3_600_000_000_000_000_000;
        let s = record(&[far, far + 2]).statistics().unwrap();
        assert_eq!((s.variance, s.deviation), (1.0, 1.0));
    }

    proptest! {
        #[test]
        fn the_invariants_of_npt_hold(samples in prop::collection::vec(prop_oneof![0u64..100, 0u64..1 << 50], 1..300)) {
            let record = record(&samples);
            let s = record.statistics().unwrap();
            let bins = record.histogram();
            prop_assert_eq!(bins.count(), s.loops);
            prop_assert_eq!(s.sum, samples.iter().sum::<u64>());
            prop_assert!((s.mean * s.loops as f64 - s.sum as f64).abs() <= s.sum as f64 * 1e-12);
            prop_assert!((s.deviation * s.deviation - s.variance).abs() <= s.variance * 1e-12);
            let mean = samples.iter().map(|v| *v as f64).sum::<f64>() / samples.len() as f64;
            let two_pass = samples.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>() / samples.len() as f64;
            prop_assert!((s.variance - two_pass).abs() <= two_pass * 1e-6 + 1e-6, "{} {}", s.variance, two_pass);
            prop_assert!(bins.buckets.first().unwrap().low <= s.min && s.max < bins.buckets.last().unwrap().high);
            for bucket in &bins.buckets {
                let inside = samples.iter().filter(|v| (bucket.low..bucket.high).contains(v)).count();
                prop_assert_eq!(inside as u64, bucket.count);
            }
        }

        #[test]
        fn parts_add_up_to_the_whole(samples in prop::collection::vec(0u64..1 << 50, 0..100), cut in 0usize..100) {
            let cut = cut.min(samples.len());
            let mut parts = record(&samples[..cut]);
            parts.merge(&record(&samples[cut..]));
            prop_assert_eq!(parts, record(&samples));
        }
    }
}
