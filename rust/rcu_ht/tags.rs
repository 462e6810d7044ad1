// SPDX-License-Identifier: GPL-2.0

//! Eight tags in a word: all of them are looked at by a few instructions.
//!
//! Pure functions, for any context.

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Seven bits of the hash that do not choose the bucket, and a bit that says that the slot is
/// used.
#[inline(always)]
pub(super) fn tag(hash: u64) -> u64 {
    hash >> 57 | 0x80
}

/// The high bit of every byte of `tags` that is `tag`, which has its own high bit set.
///
/// A byte that differs in its lowest bit may be reported, too: these are candidates.
#[inline(always)]
pub(super) fn equal_bytes(tags: u64, tag: u64) -> u64 {
    // Of a used slot what differs is in the low bits of the byte. It is 0x80 if nothing does, and
    // one less has no high bit.
    let differ = tags ^ (tag & 0x7f).wrapping_mul(LOW_BITS);
    differ & !differ.wrapping_sub(LOW_BITS) & HIGH_BITS
}

/// The high bit of every byte that is free. A used one has its high bit set.
#[inline(always)]
pub(super) fn free_bytes(tags: u64) -> u64 {
    !tags & HIGH_BITS
}
