// SPDX-License-Identifier: GPL-2.0

//! Log-linear histogram of delays: eight buckets for each power of two, from 8 ns on.
//!
//! Values below 8 ns have a bucket each; from 8 ns on, a bucket is at most one eighth of its lower
//! bound wide, so a quantile read from it is at most 12.5 % too high. Each CPU writes only its own
//! array, and the reader adds the arrays up: no event is lost, and no CPU waits.
//!
//! [`group_of`] is coarser, for times that are counted in a few dozen groups.

const SUB_BITS: u32 = 3;
const SUB: usize = 1 << SUB_BITS;
const TOP_BIT: u32 = 63;

/// The number of buckets.
pub(crate) const BUCKETS: usize = (TOP_BIT - SUB_BITS + 2) as usize * SUB;

/// Returns the bucket of a delay in nanoseconds.
#[inline(always)]
pub(crate) const fn bucket_of(delay: u64) -> usize {
    // Without a branch: the leading bit that remains after the shift adds `SUB`, for the buckets of
    // the delays below `SUB`. Such a delay is not shifted, and has no bit there.
    let shift = ((delay | SUB as u64).ilog2() - SUB_BITS) as u64;
    (shift as usize * SUB).wrapping_add((delay >> shift) as usize)
}

/// Returns the bounds of a bucket in nanoseconds: the lowest delay in it, and the lowest above it.
///
/// The last bucket has no upper bound, which is returned as `u64::MAX`.
pub(crate) fn bounds(bucket: usize) -> (u64, u64) {
    let low = |bucket: usize| {
        if bucket < SUB {
            return bucket as u64;
        }
        let shift = (bucket / SUB - 1) as u32;
        ((SUB + bucket % SUB) as u64) << shift
    };
    let high = if bucket + 1 >= BUCKETS {
        u64::MAX
    } else {
        low(bucket + 1)
    };
    (low(bucket), high)
}

/// Number of groups for each power of two. [`group_of`] also adds it to the time that it is passed,
/// so that the smallest times have enough bits.
const GROUPED: u64 = 4;
/// Number of the first group. It is not 0, which would take a subtraction in [`group_of`].
pub(crate) const FIRST_GROUP: usize = group_of(0);

/// Returns the group of a time in nanoseconds below 146 years, in fewer instructions than
/// [`bucket_of`]. The width of a group is at most 1 ns plus a quarter of its lower bound.
#[inline(always)]
pub(crate) const fn group_of(time: u64) -> usize {
    let time = time.saturating_add(GROUPED);
    // The leading bit, and the two below it.
    let top = time.leading_zeros() ^ 63;
    let lead = time.wrapping_mul(GROUPED) >> top;
    (top as usize * GROUPED as usize).wrapping_add(lead as usize)
}

/// Returns the bounds of a group, from [`FIRST_GROUP`] on: the lowest time in it, and the lowest
/// above it.
pub(crate) fn group_bounds(group: usize) -> (u64, u64) {
    let low = |group: usize| {
        let (shift, lead) = (group / 4, group % 4);
        ((GROUPED + lead as u64) << shift) - GROUPED
    };
    (low(group - FIRST_GROUP), low(group + 1 - FIRST_GROUP))
}
