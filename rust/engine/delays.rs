// SPDX-License-Identifier: GPL-2.0

//! A set of delays: their sum, the smallest, the largest, and a histogram.
//!
//! ```text
//!   one CPU's words    | sum | min | max | bucket 0 | bucket 1 | ...
//!                         recorded by that CPU only, added up by the reader
//! ```
//!
//! The words of one CPU are a *part*, and a set has a part for each CPU. Several sets can be read
//! as one set, which has all their parts. The number of delays is the sum of the buckets, so the
//! two cannot disagree. Any context.

use crate::{
    engine::{
        histogram::{self, BUCKETS},
        platform::Platform,
    },
    sys::atomic::{Atomic, Relaxed},
};

// The positions of the words.
const SUM: usize = 0;
const MIN: usize = 1;
const MAX: usize = 2;

/// The position of the first bucket.
pub(crate) const BUCKETS_AT: usize = 3;

/// The number of words of a part.
pub(crate) const WORDS: usize = BUCKETS_AT + BUCKETS;

/// Prepares the words of a part, which are all 0 and not shared yet.
pub(crate) fn clear(part: &[Atomic<u64>]) {
    if let Some(min) = part.get(MIN) {
        // Relaxed: no other party has access to them yet.
        min.store(u64::MAX, Relaxed);
    }
}

/// Adds a delay to the part of the CPU that the guard holds. The part is at the end of the `N`
/// words: its sum is at `AT`, and its first bucket is at `FIRST`, which is `AT` + [`BUCKETS_AT`].
#[inline(always)]
pub(crate) fn record<P: Platform, const AT: usize, const FIRST: usize, const N: usize>(
    guard: &P::Guard,
    words: &[Atomic<u64>; N],
    delay: u64,
) {
    const { assert!(FIRST == AT + BUCKETS_AT && N == AT + WORDS) };
    P::count_nth::<FIRST, N>(guard, words, histogram::bucket_of(delay));
    P::add_word::<AT, N>(guard, words, delay);
    let (min, max) = (&words[AT + MIN], &words[AT + MAX]);
    // Relaxed: only this CPU writes them.
    if delay < min.load(Relaxed) {
        improve(min, delay, |new, old| new < old);
    }
    if delay > max.load(Relaxed) {
        improve(max, delay, |new, old| new > old);
    }
}

/// Smallest, mean and largest delay in nanoseconds, and the sum of all delays in microseconds; all
/// 0 if there are no delays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Summary {
    pub(crate) min: u64,
    pub(crate) mean: u64,
    pub(crate) max: u64,
    pub(crate) sum_us: u64,
}

/// A set of delays, as its reader sees it.
pub(crate) trait Delays {
    /// Returns the words of each part.
    fn parts(&self) -> impl Iterator<Item = &[Atomic<u64>]>;

    /// Returns the number of delays in a histogram bucket.
    fn bucket(&self, bucket: usize) -> u64 {
        self.sum_of(BUCKETS_AT + bucket)
    }

    /// Returns the buckets that are not empty, with the number of delays in each, part by part:
    /// there may be thousands of parts, and each is read once, in the order of its memory.
    fn counts(&self) -> impl Iterator<Item = (usize, u64)> {
        self.parts().flat_map(|part| {
            let words = part.get(BUCKETS_AT..).unwrap_or_default();
            let words = (0..BUCKETS).zip(words);
            // Relaxed: as in `sum_of`.
            let counts = words.map(|(bucket, word)| (bucket, word.load(Relaxed)));
            counts.filter(|&(_, count)| count != 0)
        })
    }

    /// Returns the number of delays.
    fn count(&self) -> u64 {
        self.counts().map(|(_, count)| count).sum()
    }

    /// Copies the numbers of delays in the buckets, and returns their sum.
    fn copy(&self, buckets: &mut [u64]) -> u64 {
        buckets.fill(0);
        for (bucket, count) in self.counts() {
            if let Some(to) = buckets.get_mut(bucket) {
                *to = to.wrapping_add(count);
            }
        }
        buckets.iter().sum()
    }

    /// Returns the smallest and the largest delay; `None` if there is none.
    fn extremes(&self) -> Option<(u64, u64)> {
        let (mut min, mut max) = (u64::MAX, 0);
        for part in self.parts() {
            if let [_, low, high, ..] = part {
                // Relaxed: each is exact.
                min = min.min(low.load(Relaxed));
                max = max.max(high.load(Relaxed));
            }
        }
        (min <= max).then_some((min, max))
    }

    /// Returns the smallest, mean and largest delay so far, and the sum of all delays.
    fn summary(&self) -> Summary {
        let count = self.count();
        if count == 0 {
            return Summary::default();
        }
        let (min, max) = self.extremes().unwrap_or_default();
        let sum = self.sum();
        Summary {
            min,
            mean: quotient(sum, count),
            max,
            sum_us: quotient(sum, 1000),
        }
    }

    /// Returns the sum of all delays.
    ///
    /// Each CPU's word wraps: 65,536 sleepers add 65,536 s in a second, and thus 2^64 ns in three
    /// days. The words give the lower half of the sum. The upper half follows from the
    /// histogram, whose bounds for the sum are at most an eighth apart. So the result is exact up
    /// to 2^67 ns. Above that, it is the number with this lower half that is closest to the middle
    /// of the bounds; it differs from the sum by at most a sixteenth, plus half of 2^64.
    fn sum(&self) -> u128 {
        let (mut least, mut most) = (0, 0);
        for (bucket, count) in self.counts() {
            let count = u128::from(count);
            let (low, above) = histogram::bounds(bucket);
            least += count * u128::from(low);
            most += count * u128::from(above - 1);
        }
        with_lower_half(self.sum_of(SUM), least + (most - least) / 2)
    }

    /// Returns the sum of the words at a position.
    fn sum_of(&self, at: usize) -> u64 {
        // Relaxed: each is exact; together they are a snapshot of about now.
        let values = self
            .parts()
            .map(|part| part.get(at).map_or(0, |word| word.load(Relaxed)));
        values.fold(0, u64::wrapping_add)
    }
}

/// Returns the number closest to `near` with this lower half.
fn with_lower_half(half: u64, near: u128) -> u128 {
    let difference = half.wrapping_sub(near as u64) as i64;
    let found = near.checked_add_signed(difference.into());
    found.unwrap_or(half.into())
}

/// Returns the quotient, or `u64::MAX` if it does not fit in 64 bits. Kernels have no 128-bit
/// division.
pub(crate) fn quotient(sum: u128, by: u64) -> u64 {
    let (mut rest, low) = ((sum >> 64) as u64, sum as u64);
    if rest >= by {
        return u64::MAX;
    }
    let mut quotient = 0;
    for bit in (0..u64::BITS).rev() {
        let carry = rest >> 63;
        rest = rest << 1 | (low >> bit & 1);
        if carry != 0 || rest >= by {
            rest = rest.wrapping_sub(by);
            quotient |= 1 << bit;
        }
    }
    quotient
}

/// Replaces an extreme. An interrupt on this CPU may replace it, too, between the load and the
/// exchange.
#[cold]
#[inline(never)]
fn improve(extreme: &Atomic<u64>, value: u64, better: impl Fn(u64, u64) -> bool) {
    // Relaxed: nothing else depends on it.
    let mut old = extreme.load(Relaxed);
    while better(value, old) {
        match extreme.cmpxchg(old, value, Relaxed) {
            Ok(_) => return,
            Err(now) => old = now,
        }
    }
}
