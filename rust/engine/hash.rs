// SPDX-License-Identifier: GPL-2.0

//! Seeded hashing of keys, which are a few 64-bit words, and of longer lists of words.
//!
//! Keys such as request pointers, tids and sectors are regular: their low bits are equal or
//! consecutive. An attacker may even choose them so that all keys share a bucket. Each step
//! multiplies two words that are masked with a secret seed and folds the 128-bit product, so that
//! every bit of the key reaches every bit of the result (the multiply-fold of wyhash). A key of one
//! or two words takes two multiplications. Any context.
//!
//! The last multiplication, by a constant, is necessary. A single multiplication by the seed would
//! map equidistant keys to equidistant hashes. One seed in a hundred would then put most requests
//! of a full table outside their home buckets. user/engine/src/tests/hash.rs checks how 100 seeds
//! spread regular keys.

/// The golden ratio, as a fraction of 2^64: odd, and without regularity.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// An engine's secret, drawn at creation.
#[derive(Clone, Copy)]
pub(crate) struct Seed {
    a: u64,
    b: u64,
}

impl Seed {
    /// Creates a seed from random words.
    pub(crate) const fn new(a: u64, b: u64) -> Self {
        Self { a, b }
    }

    /// Hashes a key of `K` words.
    #[inline(always)]
    pub(crate) fn hash<const K: usize>(&self, key: &[u64; K]) -> u64 {
        self.hash_words(key)
    }

    /// Hashes a list of words. If lists differ in length, the length must be one of the words.
    #[inline(always)]
    pub(crate) fn hash_words(&self, words: &[u64]) -> u64 {
        let mut hash = self.a;
        let mut rest = words;
        while let [first, tail @ ..] = rest {
            let (second, tail) = match tail {
                [second, tail @ ..] => (*second, tail),
                [] => (MIX, tail),
            };
            hash = fold(hash ^ first, self.b ^ second);
            rest = tail;
        }
        fold(hash, MIX)
    }
}

/// Combines both halves of the 128-bit product.
#[inline(always)]
fn fold(x: u64, y: u64) -> u64 {
    let product = u128::from(x) * u128::from(y);
    (product >> 64) as u64 ^ product as u64
}
