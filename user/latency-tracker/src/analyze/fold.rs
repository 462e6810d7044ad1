// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Chooses the steps of a path to show, and folds each run of other steps into one line.
//!
//! ```text
//! steps  9ms  2us 5us 1us  30ms  3us  7ms
//! rows   9ms  [3 steps]    30ms  3us  7ms
//! ```

use lt_model::why::Piece;

/// The steps of a path to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The longest steps, at most this number.
    Longest(usize),
    /// Steps of this length or more, ns.
    From(u64),
    /// All steps.
    All,
}

/// A line of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Row<'p> {
    Step(&'p Piece),
    /// Consecutive steps; never empty.
    Folded(&'p [Piece]),
}

/// The lines of a path. Steps of threads deeper than `depth` in a chain of waiting threads are folded, whatever their
/// length.
pub(crate) fn rows(pieces: &[Piece], part: Part, depth: usize) -> Vec<Row<'_>> {
    let is_near = |piece: &Piece| piece.depth <= depth;
    // If several steps are exactly as long as the shortest step shown, the earliest are shown.
    let (least, mut of_least) = match part {
        Part::All => (0, usize::MAX),
        Part::From(least) => (least, usize::MAX),
        Part::Longest(most) => {
            let near = pieces.iter().filter(|piece| is_near(piece)).map(took);
            let mut times: Vec<u64> = near.collect();
            times.sort_unstable_by_key(|time| std::cmp::Reverse(*time));
            times.truncate(most);
            match times.last() {
                Some(least) => (*least, times.iter().filter(|time| *time == least).count()),
                None => (u64::MAX, 0),
            }
        }
    };
    let mut is_shown = |piece: &Piece| {
        let time = took(piece);
        let room = time != least || of_least > 0;
        let shown = is_near(piece) && time >= least && room;
        if shown && time == least {
            of_least -= 1;
        }
        shown
    };
    let mut rows = Vec::new();
    let mut begin = 0;
    for (i, piece) in pieces.iter().enumerate() {
        if is_shown(piece) {
            folded(&pieces[begin..i], is_near, &mut rows);
            rows.push(Row::Step(piece));
            begin = i + 1;
        }
    }
    folded(&pieces[begin..], is_near, &mut rows);
    rows
}

fn took(piece: &Piece) -> u64 {
    piece.end - piece.begin
}

/// Adds a line for these steps. A single step is shown, unless it is too deep: folding it would save no line.
fn folded<'p>(steps: &'p [Piece], is_near: impl Fn(&Piece) -> bool, rows: &mut Vec<Row<'p>>) {
    match steps {
        [] => {}
        [one] if is_near(one) => rows.push(Row::Step(one)),
        _ => rows.push(Row::Folded(steps)),
    }
}

/// Formats times since the start, with enough digits to distinguish each from the next.
pub(crate) fn offsets(times: &[u64]) -> Vec<String> {
    let longest = times.last().copied().unwrap_or(0);
    let (unit, scale) = match longest {
        1_000_000_000.. => ("s", 9),
        1_000_000.. => ("ms", 6),
        1_000.. => ("us", 3),
        _ => ("ns", 0),
    };
    let write = |time: u64, digits: u32| {
        // The times are truncated, not rounded, to keep the order.
        let units = time / 10u64.pow(scale - digits);
        let one = 10u64.pow(digits);
        match digits {
            0 => format!("+{units}{unit}"),
            _ => format!(
                "+{}.{:0width$}{unit}",
                units / one,
                units % one,
                width = digits as usize
            ),
        }
    };
    let mut all = Vec::new();
    for digits in (0..=scale).step_by(3).filter(|d| *d > 0 || scale == 0) {
        all = times.iter().map(|time| write(*time, digits)).collect();
        if all.windows(2).all(|pair| pair[0] != pair[1]) {
            break;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use lt_model::ThreadId;
    use lt_model::why::Cause;
    use proptest::prelude::*;

    /// Consecutive steps with these lengths and depths.
    fn steps(of: &[(u64, usize)]) -> Vec<Piece> {
        let mut at = 0;
        let step = |(time, depth): &(u64, usize)| {
            let begin = at;
            at += time;
            Piece {
                begin,
                end: at,
                thread: ThreadId(0),
                cause: Cause::Preempted,
                cpu: None,
                depth: *depth,
                inside: (0, u64::MAX),
            }
        };
        of.iter().map(step).collect()
    }

    /// The lengths of the steps shown; for folded steps, their number, negated.
    fn shown(of: &[(u64, usize)], part: Part, depth: usize) -> Vec<i64> {
        let steps = steps(of);
        let number = |row: &Row<'_>| match row {
            Row::Step(step) => took(step) as i64,
            Row::Folded(steps) => -(steps.len() as i64),
        };
        rows(&steps, part, depth).iter().map(number).collect()
    }

    #[test]
    fn the_longest_steps_are_shown_and_the_others_are_folded_in_place() {
        let path = [9, 2, 5, 1, 30, 3, 7].map(|time| (time, 0));
        assert_eq!(shown(&path, Part::Longest(3), 9), [9, -3, 30, 3, 7]);
        assert_eq!(shown(&path, Part::Longest(1), 9), [-4, 30, -2]);
        assert_eq!(shown(&path, Part::Longest(7), 9), [9, 2, 5, 1, 30, 3, 7]);
        assert_eq!(shown(&path, Part::From(5), 9), [9, 2, 5, 1, 30, 3, 7]);
        assert_eq!(shown(&path, Part::From(6), 9), [9, -3, 30, 3, 7]);
        assert_eq!(shown(&path, Part::All, 9).len(), 7);
        assert!(shown(&[], Part::Longest(3), 9).is_empty());
    }

    #[test]
    fn the_first_of_equally_long_steps_are_shown() {
        assert_eq!(shown(&[(4, 0); 9], Part::Longest(3), 9), [4, 4, 4, -6]);
    }

    #[test]
    fn deeper_steps_are_folded_however_long_they_took() {
        let path = [(5, 0), (100, 1), (200, 2), (50, 1), (6, 0)];
        assert_eq!(shown(&path, Part::All, 1), [5, 100, -1, 50, 6]);
        assert_eq!(shown(&path, Part::Longest(2), 0), [5, -3, 6]);
    }

    #[test]
    fn times_have_the_digits_that_tell_neighbours_apart() {
        assert_eq!(offsets(&[0, 6_012_345_678]), ["+0.000s", "+6.012s"]);
        assert_eq!(
            offsets(&[6_012_345_678, 6_012_999_999]),
            ["+6.012345s", "+6.012999s"]
        );
        assert_eq!(
            offsets(&[1_000_000_000, 1_000_000_001]),
            ["+1.000000000s", "+1.000000001s"]
        );
        assert_eq!(offsets(&[5, 1_500]), ["+0.005us", "+1.500us"]);
        assert_eq!(offsets(&[0, 999]), ["+0ns", "+999ns"]);
        assert!(offsets(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn rows_contain_the_whole_path_in_order(
            of in prop::collection::vec((1..20u64, 0..4usize), 0..60), most in 0..30usize, depth in 0..4usize
        ) {
            let steps = steps(&of);
            let mut all = Vec::new();
            let mut long = 0;
            for row in rows(&steps, Part::Longest(most), depth) {
                match row {
                    Row::Step(step) => {
                        prop_assert!(step.depth <= depth);
                        long += 1;
                        all.push(*step);
                    }
                    Row::Folded(some) => {
                        prop_assert!(!some.is_empty());
                        all.extend(some);
                    }
                }
            }
            prop_assert_eq!(&all, &steps);
            // A single step between two shown steps is also shown.
            prop_assert!(long <= 2 * most + 1);
        }

        #[test]
        fn successive_times_have_different_texts(mut times in prop::collection::vec(0..u64::MAX / 4, 1..20)) {
            times.sort_unstable();
            times.dedup();
            let texts = offsets(&times);
            prop_assert_eq!(texts.len(), times.len());
            prop_assert!(texts.windows(2).all(|pair| pair[0] != pair[1]), "{:?}", texts);
        }
    }
}
