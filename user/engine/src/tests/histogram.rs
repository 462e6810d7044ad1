// SPDX-License-Identifier: GPL-2.0

use crate::engine::histogram::{bounds, bucket_of, group_bounds, group_of, BUCKETS, FIRST_GROUP};
use proptest::prelude::*;

fn lies_in_its_bucket(delay: u64) {
    let bucket = bucket_of(delay);
    let (low, high) = bounds(bucket);
    assert!(bucket < BUCKETS);
    assert!(low <= delay, "{delay} in [{low}, {high})");
    assert!(
        delay < high || high == u64::MAX,
        "{delay} in [{low}, {high})"
    );
    if bucket < BUCKETS - 1 && low >= 8 {
        assert!(
            (high - low) * 8 <= low,
            "[{low}, {high}) is at most an eighth wide"
        );
    }
}

#[test]
fn powers_of_two_and_their_neighbours_lie_in_their_buckets() {
    for bit in 0..64 {
        let power = 1u64 << bit;
        for delay in [power - 1, power, power + 1] {
            lies_in_its_bucket(delay);
        }
    }
    lies_in_its_bucket(u64::MAX);
}

#[test]
fn buckets_join_without_gaps() {
    assert_eq!(bounds(0).0, 0);
    for bucket in 0..BUCKETS - 1 {
        let (low, high) = bounds(bucket);
        assert!(low < high);
        assert_eq!(high, bounds(bucket + 1).0);
        assert_eq!(bucket_of(low), bucket);
        assert_eq!(bucket_of(high - 1), bucket);
    }
    assert_eq!(bounds(BUCKETS - 1).1, u64::MAX);
}

#[test]
fn the_histogram_reaches_to_the_longest_delay() {
    assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    assert!(bucket_of(u64::MAX >> 1) < BUCKETS - 1);
}

fn lies_in_its_group(time: u64) {
    let (low, high) = group_bounds(group_of(time));
    assert!((low..high).contains(&time), "{time} in [{low}, {high})");
    assert!(high - low <= 1 + low / 4, "[{low}, {high}) is wide");
}

#[test]
fn groups_join_without_gaps() {
    assert_eq!(group_bounds(FIRST_GROUP).0, 0);
    for group in FIRST_GROUP..group_of((1 << 62) - 5) {
        let (low, high) = group_bounds(group);
        assert!(low < high);
        assert_eq!((group_of(low), group_of(high - 1)), (group, group));
        assert_eq!(group_bounds(group + 1).0, high);
    }
    // The first buckets are exact.
    for time in 0..4 {
        assert_eq!(group_bounds(group_of(time)), (time, time + 1));
    }
}

proptest! {
    #[test]
    fn any_time_lies_in_its_group(time in 0u64..(1 << 62) - 4, shift in 0u32..62) {
        lies_in_its_group(time);
        lies_in_its_group(time >> shift);
    }

    #[test]
    fn any_delay_lies_in_its_bucket(delay: u64, shift in 0u32..64) {
        lies_in_its_bucket(delay);
        lies_in_its_bucket(delay >> shift);
    }

    #[test]
    fn a_longer_delay_is_in_no_lower_bucket(a: u64, b: u64, shift in 0u32..64) {
        let (a, b) = (a >> shift, b >> shift);
        prop_assert_eq!(a.min(b), if bucket_of(a) <= bucket_of(b) { a.min(b) } else { b });
    }
}
