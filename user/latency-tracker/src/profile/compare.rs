// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tests whether two histograms have the same distribution: Pearson's chi-squared test of homogeneity.
//!
//! The test is valid if no expected count is below 5, so rows are merged with the rows of longer delays until
//! this is true. If fewer than two rows are left, there is no test. With many operations, even the smallest
//! difference is significant. So the largest difference of the shares is also reported: it shows the size.

use anyhow::{Result, ensure};
use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// The minimum expected count.
const LEAST: f64 = 5.0;

/// The result of comparing two histograms.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Comparison {
    /// Number of operations in each profile.
    pub(crate) before: u64,
    pub(crate) after: u64,
    /// The test, if there are enough operations for one.
    #[serde(flatten)]
    pub(crate) test: Option<Test>,
    /// Where the shares differ most; none if either profile has no operations.
    #[serde(flatten)]
    pub(crate) moved: Option<Moved>,
}

/// The result of a test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Test {
    pub(crate) chi_squared: f64,
    pub(crate) degrees: usize,
    /// Probability of a difference this large by chance.
    pub(crate) p: f64,
}

/// A bound, and the shares of operations that took that long or longer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Moved {
    /// The shortest delay of a row, ns.
    pub(crate) bound: u64,
    pub(crate) share_before: f64,
    pub(crate) share_after: f64,
}

impl Moved {
    /// The increase of the share; negative if it has decreased.
    pub(crate) fn change(&self) -> f64 {
        self.share_after - self.share_before
    }
}

/// Compares two histograms; `low` has the shortest delay of each row, in ns.
pub(crate) fn compare(low: &[u64], before: &[u64], after: &[u64]) -> Result<Comparison> {
    let rows = low.len();
    ensure!(
        before.len() == rows && after.len() == rows,
        "the histograms have different rows"
    );
    let (total_before, total_after): (u64, u64) = (before.iter().sum(), after.iter().sum());
    Ok(Comparison {
        before: total_before,
        after: total_after,
        test: test(&merge(before, after)),
        moved: (total_before > 0 && total_after > 0).then(|| moved(low, before, after)),
    })
}

/// Merges rows with the rows of longer delays until the expected counts are large enough. Rows left
/// at the end are merged into the last merged one.
fn merge(before: &[u64], after: &[u64]) -> Vec<[f64; 2]> {
    let sum = |counts: &[u64]| counts.iter().sum::<u64>() as f64;
    let (before_all, after_all) = (sum(before), sum(after));
    let smaller_part = before_all.min(after_all) / (before_all + after_all);
    let mut merged: Vec<[f64; 2]> = Vec::new();
    let mut open = [0.0; 2];
    for (b, a) in before.iter().zip(after) {
        open = [open[0] + *b as f64, open[1] + *a as f64];
        if (open[0] + open[1]) * smaller_part >= LEAST {
            merged.push(open);
            open = [0.0; 2];
        }
    }
    if let Some(last) = merged.last_mut() {
        *last = [last[0] + open[0], last[1] + open[1]];
    }
    merged
}

/// Tests merged rows; `None` if there are fewer than two.
fn test(rows: &[[f64; 2]]) -> Option<Test> {
    let degrees = rows.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
    let sum = |side: usize| rows.iter().map(|row| row[side]).sum::<f64>();
    let sums = [sum(0), sum(1)];
    let all = sums[0] + sums[1];
    let term = |row: &[f64; 2], side: usize| {
        let expected = (row[0] + row[1]) * sums[side] / all;
        (row[side] - expected).powi(2) / expected
    };
    let chi_squared = rows.iter().map(|row| term(row, 0) + term(row, 1)).sum();
    let distribution = ChiSquared::new(degrees as f64).ok()?;
    Some(Test {
        chi_squared,
        degrees,
        p: distribution.sf(chi_squared),
    })
}

/// Returns the bound at which the cumulative shares differ most.
fn moved(low: &[u64], before: &[u64], after: &[u64]) -> Moved {
    let shares = |counts: &[u64]| -> Vec<f64> {
        let all = counts.iter().sum::<u64>() as f64;
        let mut left = all;
        let mut shares = Vec::new();
        for count in counts {
            shares.push(left / all);
            left -= *count as f64;
        }
        shares
    };
    let points = low.iter().zip(shares(before)).zip(shares(after));
    let points = points.map(|((bound, share_before), share_after)| Moved {
        bound: *bound,
        share_before,
        share_after,
    });
    let start = Moved {
        bound: low.first().copied().unwrap_or(0),
        share_before: 1.0,
        share_after: 1.0,
    };
    points.fold(start, |most, point| {
        // Of bounds with equal differences, the highest is used: the rows between them have equal shares in
        // both histograms.
        if point.change().abs() >= most.change().abs() {
            point
        } else {
            most
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: [u64; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

    /// The upper tail for an even number of degrees: e^(-x/2) times the first terms of the
    /// exponential series.
    fn upper_tail(x: f64, degrees: usize) -> f64 {
        let mut term = 1.0;
        let mut sum = 1.0;
        for i in 1..degrees / 2 {
            term *= x / 2.0 / i as f64;
            sum += term;
        }
        (-x / 2.0).exp() * sum
    }

    fn test_of(before: &[u64], after: &[u64]) -> Option<Test> {
        compare(&LOW[..before.len()], before, after).unwrap().test
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1e-9), "{a} {b}");
    }

    #[test]
    fn a_table_worked_out_by_hand() {
        // Expected 15, 20 and 25 in both: 25/15 + 0 + 25/25, twice.
        let test = test_of(&[10, 20, 30], &[20, 20, 20]).unwrap();
        near(test.chi_squared, 16.0 / 3.0);
        assert_eq!(test.degrees, 2);
        near(test.p, (-8.0f64 / 3.0).exp());
    }

    #[test]
    fn unequal_samples_worked_out_by_hand() {
        // 100 and 300 operations. With equal distributions, the rows of 80, 120 and 200 operations
        // have 20 and 60, 30 and 90, 50 and 150.
        let alike = test_of(&[20, 30, 50], &[60, 90, 150]).unwrap();
        near(alike.chi_squared, 0.0);
        near(alike.p, 1.0);
        let test = test_of(&[30, 30, 40], &[50, 90, 160]).unwrap();
        near(
            test.chi_squared,
            100.0 / 20.0 + 100.0 / 60.0 + 100.0 / 50.0 + 100.0 / 150.0,
        );
        near(test.p, upper_tail(test.chi_squared, 2));
    }

    #[test]
    fn five_rows_agree_with_the_closed_form() {
        let test = test_of(&[12, 30, 45, 22, 9], &[20, 25, 31, 40, 12]).unwrap();
        assert_eq!(test.degrees, 4);
        near(test.p, upper_tail(test.chi_squared, 4));
    }

    #[test]
    fn quantiles_of_printed_tables_are_met() {
        // The 5 % points of 1, 3 and 5 degrees of freedom, as in any statistics book.
        for (degrees, x) in [(1.0, 3.841), (3.0, 7.815), (5.0, 11.070)] {
            let p = ChiSquared::new(degrees).unwrap().sf(x);
            assert!((p - 0.05).abs() < 1e-4, "{degrees}: {p}");
        }
    }

    #[test]
    fn rows_are_merged_until_each_expects_five() {
        let (before, after) = ([1, 2, 50, 3, 40, 1, 1, 2], [0, 3, 40, 1, 60, 0, 2, 4]);
        let merged = merge(&before, &after);
        // 1+0, 2+3, 50+40 | 3+1, 40+60, 1+0, 1+2, 2+4.
        assert_eq!(merged, [[53.0, 43.0], [47.0, 67.0]]);
        for row in merge(&before, &after) {
            let all = row[0] + row[1];
            assert!(all * 100.0 / 210.0 >= LEAST && all * 110.0 / 210.0 >= LEAST);
        }
        let all: f64 = merged.iter().flatten().sum();
        assert_eq!(all, 210.0);
    }

    #[test]
    fn too_few_operations_are_not_tested() {
        assert_eq!(test_of(&[0; 8], &[0; 8]), None);
        assert_eq!(test_of(&[0; 8], &[9; 8]), None);
        assert_eq!(test_of(&[1, 1, 1], &[1, 1, 1]), None);
        // All operations are in one row.
        assert_eq!(test_of(&[0, 100, 0], &[0, 100, 0]), None);
        // In each row, 4 of the 8 operations of either side are expected.
        assert_eq!(test_of(&[8, 0], &[0, 8]), None);
        assert!(test_of(&[10, 0], &[0, 10]).is_some());
    }

    #[test]
    fn what_moved_is_where_the_shares_differ_most() {
        let before = [0, 98, 0, 0, 2, 0, 0, 0];
        let after = [0, 138, 0, 0, 2, 50, 10, 0];
        let moved = compare(&LOW, &before, &after).unwrap().moved.unwrap();
        assert_eq!(moved.bound, 32);
        near(moved.share_before, 0.0);
        near(moved.share_after, 0.3);
        assert!(moved.change() > 0.0);
        // The reverse comparison.
        let back = compare(&LOW, &after, &before).unwrap().moved.unwrap();
        near(back.change(), -0.3);
        assert_eq!(compare(&LOW, &[0; 8], &after).unwrap().moved, None);
    }

    #[test]
    fn samples_of_one_distribution_seldom_differ() {
        // 2000 pairs of samples, of 200 operations each, from one distribution: about one in a hundred has p < 0.01.
        let mut random = 1u64;
        let mut sample = || {
            let mut counts = [0u64; 8];
            for _ in 0..200 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                counts[((random % 255 + 1) as f64).log2() as usize] += 1;
            }
            counts
        };
        let small = (0..2000).filter(|_| test_of(&sample(), &sample()).unwrap().p < 0.01);
        let small = small.count();
        assert!((5..=40).contains(&small), "{small} of 2000");
    }

    #[test]
    fn profiles_with_other_rows_are_refused() {
        assert!(compare(&LOW, &[1; 8], &[1; 7]).is_err());
    }
}
