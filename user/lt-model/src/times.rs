// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Times that never go back, packed: the lower 32 bits of each, and the upper ones where they change, every 4.3 s.
//!
//! ```text
//! lows    4000000000  4200000000  100000000      4 bytes each
//! highs   from the first on 7, from the third on 8
//! ```

use crate::list::Long;

/// Times in order, ns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times {
    lows: Long<u32>,
    /// The upper 32 bits of the times from this index on.
    highs: Vec<(usize, u32)>,
}

impl Times {
    /// Size of a time, in bytes, except for the upper bits.
    pub(crate) const BYTES: usize = size_of::<u32>();
    /// Upper bound of the size of upper bits, in bytes: the vector may have room for twice as many elements.
    pub(crate) const HIGH: usize = 2 * size_of::<(usize, u32)>();

    /// Adds a time, which must not be earlier than the last one.
    pub(crate) fn push(&mut self, time: u64) {
        let high = high_of(time);
        if self.highs.last().is_none_or(|(_, last)| *last != high) {
            self.highs.push((self.lows.len(), high));
        }
        self.lows.push(time as u32);
    }

    pub(crate) fn len(&self) -> usize {
        self.lows.len()
    }

    /// The time at an index.
    pub(crate) fn get(&self, index: usize) -> Option<u64> {
        let low = *self.lows.get(index)?;
        let place = self.highs.partition_point(|(first, _)| *first <= index);
        let (_, high) = self.highs.get(place.checked_sub(1)?)?;
        Some(u64::from(*high) << 32 | u64::from(low))
    }

    pub(crate) fn last(&self) -> Option<u64> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Number of times before `time`.
    pub(crate) fn before(&self, time: u64) -> usize {
        let high = high_of(time);
        let place = self.highs.partition_point(|(_, of)| *of < high);
        let Some((first, of)) = self.highs.get(place) else {
            return self.len();
        };
        if *of != high {
            return *first;
        }
        let end = self
            .highs
            .get(place + 1)
            .map_or(self.len(), |(end, _)| *end);
        self.lows
            .partition_point(*first..end, |low| *low < time as u32)
    }

    /// Number of times before or at `time`.
    pub(crate) fn until(&self, time: u64) -> usize {
        time.checked_add(1)
            .map_or(self.len(), |next| self.before(next))
    }
}

fn high_of(time: u64) -> u32 {
    (time >> 32) as u32
}

/// Whether the upper bits of two times differ.
pub(crate) fn differ(time: u64, other: u64) -> bool {
    high_of(time) != high_of(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn times_are_found_as_in_a_plain_list(
            steps in prop::collection::vec(prop_oneof![0..3u64, (1u64 << 31)..(1 << 34)], 0..30), next in 0..3u64
        ) {
            let mut all = Vec::new();
            let mut times = Times::default();
            for step in steps {
                all.push(all.last().copied().unwrap_or((1 << 32) - 2) + step);
                times.push(*all.last().unwrap());
            }
            prop_assert_eq!(times.len(), all.len());
            prop_assert_eq!(times.last(), all.last().copied());
            prop_assert_eq!(times.get(all.len()), None);
            for (index, time) in all.iter().enumerate() {
                prop_assert_eq!(times.get(index), Some(*time));
                let other = time + next - 1;
                prop_assert_eq!(times.before(other), all.partition_point(|time| *time < other));
                prop_assert_eq!(times.until(other), all.partition_point(|time| *time <= other));
            }
            prop_assert_eq!((times.before(0), times.until(u64::MAX)), (0, all.len()));
        }
    }
}
