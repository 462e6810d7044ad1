// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The distribution of one measurement, ours or another tool's, as bins.

use lt_proc::{Bucket, Histogram, Percentile};

/// A distribution.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curve {
    /// The name of the measurement.
    pub name: String,
    /// The bins, ascending, in ns.
    pub bins: Histogram,
    /// Number of samples above the last bin, by an unknown amount.
    pub over: u64,
    /// The shortest sample, if known.
    pub min: Option<u64>,
    /// The mean, if known.
    pub mean: Option<f64>,
    /// The longest sample, if known.
    pub max: Option<u64>,
}

impl Curve {
    /// Returns the number of samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.bins.count() + self.over
    }

    /// Adds the samples of another measurement. Both are assumed to have the same bins, as two runs
    /// of one tool have; overlapping bins stay side by side.
    pub fn merge(&mut self, other: &Self) {
        let (mine, theirs) = (self.count(), other.count());
        if mine + theirs == 0 {
            return;
        }
        self.mean = self
            .mean
            .zip(other.mean)
            .map(|(one, two)| (one * mine as f64 + two * theirs as f64) / (mine + theirs) as f64);
        // Unless both have a minimum, it is unknown: a bin only bounds its samples.
        self.min = self.min.zip(other.min).map(|(one, two)| one.min(two));
        self.max = self.max.zip(other.max).map(|(one, two)| one.max(two));
        self.over += other.over;
        let bins = &mut self.bins.buckets;
        for bin in &other.bins.buckets {
            let known = bins
                .iter_mut()
                .find(|known| (known.low, known.high) == (bin.low, bin.high));
            match known {
                Some(known) => known.count += bin.count,
                None => bins.push(*bin),
            }
        }
        bins.sort_by_key(|bin| (bin.low, bin.high));
    }

    /// Returns upper bounds of p50 to p99.99. A percentile above the last bin is the longest
    /// sample, or missing if that is unknown.
    #[must_use]
    pub fn percentiles(&self) -> Vec<Percentile> {
        let mut whole = self.bins.clone();
        if self.over > 0 {
            let low = whole.buckets.last().map_or(0, |last| last.high);
            let high = self.max.map_or(u64::MAX, |max| max.saturating_add(1));
            whole.buckets.push(Bucket {
                low,
                high: high.max(low.saturating_add(1)),
                count: self.over,
            });
        }
        let mut known = whole.percentiles(self.max.unwrap_or(0));
        known.retain(|percentile| percentile.ns < u64::MAX - 1);
        known
    }

    /// Returns the lower bound of each bin that has samples, and of the range above the last bin, with the share of
    /// samples that took this long or longer. The shares start with 1 and never rise.
    #[must_use]
    pub fn shares(&self) -> Vec<(u64, f64)> {
        let count = self.count();
        let mut left = count;
        let mut points = Vec::new();
        let over = self.bins.buckets.last().map(|last| (last.high, self.over));
        let over = over.filter(|(_, over)| *over > 0);
        let bins = self.bins.buckets.iter().map(|bin| (bin.low, bin.count));
        for (low, inside) in bins.chain(over).filter(|(_, inside)| *inside > 0) {
            points.push((low, left as f64 / count as f64));
            left -= inside;
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bin(low: u64, high: u64, count: u64) -> Bucket {
        Bucket { low, high, count }
    }

    #[test]
    fn shares_fall_from_one_and_include_samples_above_the_bins() {
        let curve = Curve {
            bins: Histogram {
                buckets: vec![bin(0, 1000, 90), bin(1000, 2000, 0), bin(5000, 6000, 9)],
            },
            over: 1,
            ..Curve::default()
        };
        assert_eq!(curve.count(), 100);
        assert_eq!(curve.shares(), [(0, 1.0), (5000, 0.1), (6000, 0.01)]);
        let p = |curve: &Curve| curve.percentiles().iter().map(|p| p.ns).collect::<Vec<_>>();
        // p50, p90, p99. A higher percentile is unknown without the longest sample.
        assert_eq!(p(&curve), [999, 999, 5999]);
        let known = Curve {
            max: Some(70_000),
            ..curve
        };
        assert_eq!(p(&known), [999, 999, 5999, 70_000, 70_000]);
    }

    #[test]
    fn the_parts_of_a_measurement_add_up() {
        let part = |bins: &[(u64, u64)], over, min, mean, max| Curve {
            bins: Histogram {
                buckets: bins
                    .iter()
                    .map(|(low, n)| bin(*low, low + 1000, *n))
                    .collect(),
            },
            over,
            min: Some(min),
            mean: Some(mean),
            max: Some(max),
            ..Curve::default()
        };
        let mut whole = part(&[(2000, 5), (3000, 1)], 0, 2000, 2200.0, 3100);
        whole.merge(&part(&[(1000, 1), (2000, 4)], 1, 1500, 3200.0, 90_000));
        let bins = [bin(1000, 2000, 1), bin(2000, 3000, 9), bin(3000, 4000, 1)];
        assert_eq!((whole.bins.buckets.as_slice(), whole.over), (&bins[..], 1));
        assert_eq!((whole.min, whole.max), (Some(1500), Some(90_000)));
        assert_eq!((whole.mean, whole.count()), (Some(2700.0), 12));
        whole.merge(&Curve::default());
        assert_eq!(
            (whole.count(), whole.max),
            (12, None),
            "one part has no maximum"
        );
    }

    #[test]
    fn an_empty_curve_has_neither_shares_nor_percentiles() {
        assert!(Curve::default().shares().is_empty());
        assert!(Curve::default().percentiles().is_empty());
    }
}
