// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `NAME/histogram`: log-linear buckets, `low high count` in ns, [low, high), 8 per power of two.
//!
//! Only the bucket of a quantile is known: [`Histogram::percentiles`] returns the upper bound of
//! the bucket, which is at most 1/8 above the true value, or the maximum if that is less.

use serde::Serialize;

use crate::ParseError;

/// The quantiles that are printed: name, parts per million.
pub const PERCENTILES: [(&str, u64); 5] = [
    ("p50", 500_000),
    ("p90", 900_000),
    ("p99", 990_000),
    ("p99.9", 999_000),
    ("p99.99", 999_900),
];

/// `count` delays d with low <= d < high, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// The smallest delay in this bucket.
    pub low: u64,
    /// The smallest delay above this bucket.
    pub high: u64,
    /// Number of delays.
    pub count: u64,
}

/// A quantile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Percentile {
    /// Name, such as `p99.9`.
    pub name: &'static str,
    /// Upper bound, ns.
    pub ns: u64,
}

/// Non-empty buckets, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Histogram {
    /// The buckets.
    pub buckets: Vec<Bucket>,
}

impl Histogram {
    /// Parses the file.
    ///
    /// # Errors
    /// Names the line, and the word or the range that is wrong.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut buckets: Vec<Bucket> = Vec::new();
        for (i, line) in text
            .lines()
            .enumerate()
            .filter(|(_, l)| !l.trim().is_empty())
        {
            let bucket = parse_bucket(line).map_err(|e| e.at_line(i + 1))?;
            if buckets.last().is_some_and(|last| bucket.low < last.high) {
                return Err(ParseError::new(line, "buckets in ascending order").at_line(i + 1));
            }
            buckets.push(bucket);
        }
        Ok(Self { buckets })
    }

    /// Returns the total number of delays.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|b| b.count).sum()
    }

    /// Returns the delays since `earlier` was read.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |b: &Bucket| {
            let same = earlier.buckets.iter().find(|e| e.low == b.low);
            same.map_or(0, |e| e.count)
        };
        let grown = self.buckets.iter().map(|b| Bucket {
            count: b.count.saturating_sub(before(b)),
            ..*b
        });
        Self {
            buckets: grown.filter(|b| b.count > 0).collect(),
        }
    }

    /// Returns an upper bound of the quantile `ppm`, in parts per million: the longest delay of its bucket, ns. `None`
    /// if there are no delays.
    #[must_use]
    pub fn quantile(&self, ppm: u64) -> Option<u64> {
        let count = u128::from(self.count());
        let rank = (count * u128::from(ppm)).div_ceil(1_000_000).max(1);
        let mut seen = 0;
        let bucket = self.buckets.iter().find(|b| {
            seen += u128::from(b.count);
            seen >= rank
        })?;
        Some(bucket.high - 1)
    }

    /// Returns p50 to p99.99, limited to `max`, the longest delay according to the counters (0:
    /// unknown).
    #[must_use]
    pub fn percentiles(&self, max: u64) -> Vec<Percentile> {
        let cap = if max == 0 { u64::MAX } else { max };
        let known = PERCENTILES.iter().filter_map(|&(name, ppm)| {
            let ns = self.quantile(ppm)?.min(cap);
            Some(Percentile { name, ns })
        });
        known.collect()
    }
}

fn parse_bucket(line: &str) -> Result<Bucket, ParseError> {
    let mut words = line.split_whitespace();
    let mut number = || {
        let word = words.next().unwrap_or("");
        let value = word.parse::<u64>();
        value.map_err(|_| ParseError::new(word, "low high count, three numbers"))
    };
    let (low, high, count) = (number()?, number()?, number()?);
    if let Some(word) = words.next() {
        return Err(ParseError::new(word, "the end of the line"));
    }
    if high <= low {
        return Err(ParseError::new(
            high.to_string(),
            format!("a number above {low}"),
        ));
    }
    Ok(Bucket { low, high, count })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(buckets: &[(u64, u64, u64)]) -> Histogram {
        let text: Vec<String> = buckets
            .iter()
            .map(|(l, h, c)| format!("{l} {h} {c}"))
            .collect();
        Histogram::parse(&text.join("\n")).unwrap()
    }

    #[test]
    fn quantiles_are_upper_bounds() {
        let h = of(&[(64, 72, 50), (128, 144, 49), (1024, 1152, 1)]);
        assert_eq!(h.count(), 100);
        assert_eq!(h.quantile(500_000), Some(71));
        assert_eq!(h.quantile(500_001), Some(143));
        assert_eq!(h.quantile(990_000), Some(143));
        assert_eq!(h.quantile(1_000_000), Some(1151));
        assert_eq!(h.percentiles(1100).last().unwrap().ns, 1100);
        assert_eq!(Histogram::default().quantile(500_000), None);
    }

    #[test]
    fn an_interval_is_the_difference() {
        let before = of(&[(64, 72, 50), (128, 144, 49)]);
        let after = of(&[(64, 72, 50), (128, 144, 52), (256, 288, 1)]);
        assert_eq!(after.since(&before), of(&[(128, 144, 3), (256, 288, 1)]));
    }

    #[test]
    fn the_line_and_word_at_fault_are_named() {
        for (text, line, word) in [
            ("1 2 3\n4 x 6", 2, "x"),
            ("1 2", 1, ""),
            ("1 2 3 4", 1, "4"),
            ("2 2 3", 1, "2"),
            ("8 16 1\n1 2 1", 2, "1 2 1"),
        ] {
            let err = Histogram::parse(text).unwrap_err();
            assert_eq!((err.line, err.word.as_str()), (line, word), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_quantile_bounds_at_least_its_share(counts in prop::collection::vec(1u64..1000, 1..20), ppm in 1u64..=1_000_000) {
            let buckets: Vec<_> = counts.iter().enumerate().map(|(i, &c)| (i as u64 * 8, i as u64 * 8 + 8, c)).collect();
            let h = of(&buckets);
            let q = h.quantile(ppm).unwrap();
            let below: u64 = h.buckets.iter().filter(|b| b.high - 1 <= q).map(|b| b.count).sum();
            prop_assert!(u128::from(below) * 1_000_000 >= u128::from(h.count()) * u128::from(ppm));
        }
    }
}
