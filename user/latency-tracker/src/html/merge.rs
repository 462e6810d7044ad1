// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Limits the number of bars: consecutive short bars become one.
//!
//! ```text
//! bars   | runs 9ms | 2us | 5us | 1us | waits 30ms | 3us | runs 7ms |
//! drawn  | runs 9ms | 3 short ones    | waits 30ms | 3us | runs 7ms |
//! ```

use std::sync::atomic::{AtomicBool, Ordering};

/// A lane before it is drawn: start, end and contents of each bar, in time order, computed when needed.
pub(crate) struct Source<'a, W> {
    pub(crate) name: String,
    pub(crate) bars: Box<dyn Fn() -> Bars<'a, W> + 'a>,
}

/// Start, end and contents of bars.
pub(crate) type Bars<'a, W> = Box<dyn Iterator<Item = (u64, u64, W)> + 'a>;

/// A bar, or several short bars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drawn<W> {
    One(u64, u64, W),
    /// Start, end and number.
    Many(u64, u64, u64),
}

/// At first, bars shorter than 1/2^`FINEST` of the time are merged.
const FINEST: u32 = 16;

/// The minimum length of a bar that is drawn separately, such that at most `most` bars remain, if possible; 0 if all
/// are drawn. Returns early once `interrupted` is set.
pub(crate) fn least<W>(
    lanes: &[&Source<'_, W>],
    length: u64,
    most: usize,
    interrupted: &AtomicBool,
) -> u64 {
    let count = |least: u64| -> usize {
        let lanes = lanes.iter();
        let lanes = lanes.take_while(|_| !interrupted.load(Ordering::Relaxed));
        lanes.map(|lane| merged((lane.bars)(), least).count()).sum()
    };
    if count(0) <= most {
        return 0;
    }
    let steps = (0..=FINEST).rev().map(|shift| (length >> shift).max(1));
    let mut fit = steps.filter(|least| count(*least) <= most);
    fit.next().unwrap_or(length)
}

/// Merges consecutive bars shorter than `least`, unless the gap between them is `least` or longer. A short bar
/// without a neighbour to merge with remains.
pub(crate) fn merged<W>(
    bars: impl Iterator<Item = (u64, u64, W)>,
    least: u64,
) -> impl Iterator<Item = Drawn<W>> {
    let mut bars = bars.peekable();
    std::iter::from_fn(move || {
        let (begin, mut end, what) = bars.next()?;
        let mut count = 1;
        if end - begin < least {
            let is_short = |end: u64, next: &(u64, u64, W)| {
                next.1 - next.0 < least && next.0.saturating_sub(end) < least
            };
            while let Some(next) = bars.next_if(|next| is_short(end, next)) {
                end = next.1;
                count += 1;
            }
        }
        Some(match count {
            1 => Drawn::One(begin, end, what),
            _ => Drawn::Many(begin, end, count),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bars of these lengths, without gaps.
    fn bars(lengths: &[u64]) -> Vec<(u64, u64, usize)> {
        let mut at = 0;
        let bar = |(i, length): (usize, &u64)| {
            at += length;
            (at - length, at, i)
        };
        lengths.iter().enumerate().map(bar).collect()
    }

    #[test]
    fn short_bars_in_a_row_are_one() {
        let drawn: Vec<_> = merged(bars(&[90, 2, 5, 1, 300, 3, 70]).into_iter(), 10).collect();
        assert_eq!(
            drawn,
            [
                Drawn::One(0, 90, 0),
                Drawn::Many(90, 98, 3),
                Drawn::One(98, 398, 4),
                Drawn::One(398, 401, 5),
                Drawn::One(401, 471, 6),
            ]
        );
    }

    #[test]
    fn no_bar_reaches_across_a_long_gap() {
        let apart = [(0, 1, 0), (9, 10, 1), (20, 21, 2)];
        let drawn: Vec<_> = merged(apart.into_iter(), 10).collect();
        assert_eq!(drawn, [Drawn::Many(0, 10, 2), Drawn::One(20, 21, 2)]);
    }

    proptest! {
        #[test]
        fn no_bar_is_lost_and_the_number_is_limited(
            lengths in prop::collection::vec(1..1000u64, 1..2000), few in 3..50usize
        ) {
            let (all, never) = (bars(&lengths), AtomicBool::new(false));
            let length = all[all.len() - 1].1;
            let source = || Source { name: String::new(), bars: Box::new(|| Box::new(all.iter().copied()) as Bars<'_, usize>) };
            prop_assert_eq!(least(&[&source()], length, all.len(), &never), 0);
            let least = least(&[&source()], length, few, &never);
            let drawn: Vec<_> = merged(all.iter().copied(), least).collect();
            prop_assert!(drawn.len() <= few, "{} bars", drawn.len());
            let (mut at, mut count) = (0, 0);
            for bar in drawn {
                let (begin, end, of) = match bar {
                    Drawn::One(begin, end, what) => {
                        prop_assert_eq!((begin, end, what), all[count]);
                        (begin, end, 1)
                    }
                    Drawn::Many(begin, end, of) => (begin, end, of as usize),
                };
                prop_assert_eq!(begin, at);
                (at, count) = (end, count + of);
            }
            prop_assert_eq!((at, count), (length, all.len()));
        }
    }
}
