// SPDX-License-Identifier: GPL-2.0

//! Log-linear histogram of delays: eight buckets for each power of two, from 1 ns on.
//!
//! Values below 8 ns have a bucket each; above, a bucket is at most one eighth of its lower bound
//! wide, so a percentile read from it is at most 12.5 % too high. There is one array for each CPU,
//! which only that CPU writes, and the reader sums up: no event is ever lost or waited for.

const SUB_BITS: u32 = 3;
const SUB: usize = 1 << SUB_BITS;
const TOP_BIT: u32 = 63;

/// The number of buckets.
pub(crate) const BUCKETS: usize = (TOP_BIT - SUB_BITS + 2) as usize * SUB;

/// The bucket of a delay in nanoseconds.
#[inline(always)]
pub(crate) const fn bucket_of(delay: u64) -> usize {
    // Without a branch: the leading bit of what is left after the shift counts as the first
    // bucket of its power of two. Below `SUB` nothing is shifted.
    let shift = ((delay | SUB as u64).ilog2() - SUB_BITS) as u64;
    (shift as usize * SUB).wrapping_add((delay >> shift) as usize)
}

/// The bounds of a bucket in nanoseconds: the lowest delay in it, and the lowest above it.
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
