// SPDX-License-Identifier: GPL-2.0

//! Eight tags in a word, compared together by a few instructions.
//!
//! Pure functions, for any context.

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Returns seven bits of the hash that do not choose the bucket, and a bit that marks the slot as
/// used.
#[inline(always)]
pub(super) fn tag(hash: u64) -> u64 {
    hash >> 57 | 0x80
}

/// Returns the high bit of every byte of `tags` that equals `tag`, which has its own high bit set.
///
/// A byte that differs only in its lowest bit may be included, too: the bytes are only candidates.
#[inline(always)]
pub(super) fn equal_bytes(tags: u64, tag: u64) -> u64 {
    // The byte of a used slot in `differ` has its high bit set, and the difference between the
    // tags in the low seven bits. If the tags are equal, the byte is 0x80, and subtracting one
    // clears its high bit.
    let differ = tags ^ (tag & 0x7f).wrapping_mul(LOW_BITS);
    differ & !differ.wrapping_sub(LOW_BITS) & HIGH_BITS
}

/// Returns the high bit of every byte that is free. A used byte has its high bit set.
#[inline(always)]
pub(super) fn free_bytes(tags: u64) -> u64 {
    !tags & HIGH_BITS
}
