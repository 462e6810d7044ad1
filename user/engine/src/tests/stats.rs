// SPDX-License-Identifier: GPL-2.0

//! Sum and mean of the delays, up to their limits.

use super::{on, Numa};
use crate::engine::stats::{Stats, Summary};

/// Returns the summary of these delays, each with its count.
fn summary(delays: &[(u64, u64)]) -> Summary {
    let stats = Stats::new::<Numa>().unwrap();
    on::<Numa, _>(0, |guard| {
        for &(delay, times) in delays {
            for _ in 0..times {
                stats.here::<Numa>(guard).record(delay);
            }
        }
    });
    stats.summary()
}

/// Returns the exact sum of these delays.
fn sum(delays: &[(u64, u64)]) -> u128 {
    delays
        .iter()
        .map(|&(delay, times)| u128::from(delay) * u128::from(times))
        .sum()
}

/// Returns the exact mean of these delays.
fn mean(delays: &[(u64, u64)]) -> u64 {
    let sum = sum(delays);
    let count: u64 = delays.iter().map(|(_, times)| times).sum();
    (sum / u128::from(count)) as u64
}

#[test]
fn the_mean_does_not_wrap_with_the_sum() {
    // Delays of a year and of one to three centuries, with short ones; the sums have up to 67 bits.
    const YEAR: u64 = 365 * 24 * 3600 * 1_000_000_000;
    for delays in [
        &[(YEAR, 583)][..],
        &[(YEAR, 586)],
        &[(YEAR - 1, 4_000), (1, 1_000)],
        &[(1 << 62, 3)],
        &[(1 << 62, 4)],
        &[(1 << 62, 5), (7, 1)],
        &[((1 << 62) + 12_345_678_901, 20), (3, 3)],
        &[(i64::MAX as u64, 2)],
        &[(i64::MAX as u64, 13)],
        &[(0, 1)],
        &[(0, 1), (1, 1), (2, 1)],
        &[(8, 1_000_000)],
    ] {
        let summary = summary(delays);
        assert_eq!(summary.mean, mean(delays), "{delays:?}");
        assert_eq!(u128::from(summary.sum_us), sum(delays) / 1000, "{delays:?}");
        assert_eq!(
            summary.max,
            delays.iter().map(|(delay, _)| *delay).max().unwrap()
        );
    }
}

#[test]
fn the_mean_of_a_sum_of_more_than_67_bits_is_at_most_an_eighth_off() {
    let mut is_off = false;
    for times in [100, 1_000, 100_000] {
        for delay in [1 << 62, (1 << 62) + 12_345_678_901, (9 << 59) - 1, 1 << 60] {
            let delays = [(delay, times)];
            let (said, exact) = (summary(&delays).mean, mean(&delays));
            assert!(said.abs_diff(exact) <= exact / 8, "{said} for {exact}");
            is_off |= said != exact;
        }
    }
    assert!(is_off, "exact means prove little");
}
