// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Selects the next stream: the stream with the earliest next item. Of several streams with the same
//! time, the stream with the lowest number is next.

/// A heap of the streams that have a next item: the time of the item, and the number of the stream.
/// Both are packed into one integer, so that a comparison takes two instructions and no branch,
/// however many streams have the same time.
#[derive(Default)]
pub(super) struct Merge {
    heap: Vec<u128>,
}

fn key(time: i64, stream: u32) -> u128 {
    // With the sign bit inverted, unsigned numbers have the order of the signed ones.
    u128::from((time as u64) ^ 1 << 63) << 32 | u128::from(stream)
}

impl Merge {
    pub(super) fn clear(&mut self) {
        self.heap.clear();
    }

    /// Returns the time and the number of the first stream.
    #[inline]
    pub(super) fn first(&self) -> Option<(i64, u32)> {
        let key = self.heap.first()?;
        Some(((key >> 32) as u64 as i64 ^ i64::MIN, *key as u32))
    }

    pub(super) fn push(&mut self, time: i64, stream: u32) {
        self.heap.push(key(time, stream));
        let mut at = self.heap.len() - 1;
        while at > 0 && self.heap[at] < self.heap[(at - 1) / 2] {
            self.heap.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    /// Moves the first stream on to `time`, or removes it if it has no more items.
    #[inline]
    pub(super) fn replace_first(&mut self, time: Option<i64>) {
        let moved = match (time, self.heap.first()) {
            (Some(time), Some(first)) => key(time, *first as u32),
            (None, Some(_)) => match self.heap.pop() {
                Some(last) if !self.heap.is_empty() => last,
                _ => return,
            },
            (_, None) => return,
        };
        sink(&mut self.heap, moved);
    }
}

/// Replaces the first entry with `moved`.
#[inline]
fn sink(heap: &mut [u128], moved: u128) {
    let mut at = 0;
    loop {
        let left = 2 * at + 1;
        let child = match heap.get(left..left + 2) {
            Some([l, r]) => left + usize::from(r < l),
            _ => left,
        };
        let Some(least) = heap.get(child).copied().filter(|least| *least < moved) else {
            break;
        };
        heap[at] = least;
        at = child;
    }
    heap[at] = moved;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn streams_come_by_time_and_then_by_number(
            mut streams in prop::collection::vec(prop::collection::vec(-3i64..3, 0..8), 0..20)
        ) {
            streams.iter_mut().for_each(|s| s.sort_unstable());
            let mut all: Vec<_> = (0u32..)
                .zip(&streams)
                .flat_map(|(i, times)| times.iter().map(move |t| (*t, i)))
                .collect();
            all.sort_unstable();
            let mut rest: Vec<_> = streams.into_iter().map(Vec::into_iter).collect();
            let mut merge = Merge::default();
            for (i, times) in rest.iter_mut().enumerate() {
                if let Some(time) = times.next() {
                    merge.push(time, i as u32);
                }
            }
            let mut merged = Vec::new();
            while let Some(first) = merge.first() {
                merged.push(first);
                merge.replace_first(rest[first.1 as usize].next());
            }
            prop_assert_eq!(merged, all);
        }
    }

    #[test]
    fn all_times_have_their_place() {
        let mut merge = Merge::default();
        let times = [0, i64::MAX, -1, i64::MIN, 1];
        for (i, time) in times.into_iter().enumerate() {
            merge.push(time, i as u32);
        }
        for expected in [(i64::MIN, 3), (-1, 2), (0, 0), (1, 4), (i64::MAX, 1)] {
            assert_eq!(merge.first(), Some(expected));
            merge.replace_first(None);
        }
        assert_eq!(merge.first(), None);
    }
}
