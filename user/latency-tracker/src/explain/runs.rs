// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Joins steps that a reader regards as one: a thread that computes is interrupted at each tick, and continues.
//!
//! ```text
//! steps  ran 4ms  tick 9us  ran 4ms  tick 8us  ran 3ms  slept 20ms
//! runs   ran 11ms (3 times)  tick 9us  tick 8us         slept 20ms
//! ```

use lt_model::why::Piece;

/// One interruption takes at most 1/`PART` of the time of a run.
const PART: u64 = 20;

/// Number of latest runs that a step may continue. Up to `BETWEEN` - 1 other runs may thus interrupt a run: an
/// interrupt, its softirq, and a thread that the interrupt or the softirq wakes.
const BETWEEN: usize = 4;

/// A step that repeats, interrupted by other, short steps.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Run<'p> {
    first: &'p Piece,
    end: u64,
    /// Total time of the steps, without the interruptions.
    pub(super) took: u64,
    pub(super) times: u64,
}

impl Run<'_> {
    /// The run as one step, from its start to its end.
    pub(super) fn whole(&self) -> Piece {
        Piece {
            end: self.end,
            ..*self.first
        }
    }

    fn goes_on_with(&self, piece: &Piece) -> bool {
        let of = |p: &Piece| (p.thread, p.cause, p.cpu, p.depth);
        let both = self.took + (piece.end - piece.begin);
        of(self.first) == of(piece) && piece.begin.saturating_sub(self.end) <= both / PART
    }
}

/// The runs of a path, by start. Each step is in exactly one run.
pub(super) fn runs(pieces: &[Piece]) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    for piece in pieces {
        let took = piece.end - piece.begin;
        let mut last = runs.iter_mut().rev().take(BETWEEN);
        if let Some(run) = last.find(|run| run.goes_on_with(piece)) {
            run.end = piece.end;
            run.took += took;
            run.times += 1;
            continue;
        }
        runs.push(Run {
            first: piece,
            end: piece.end,
            took,
            times: 1,
        });
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use lt_model::ThreadId;
    use lt_model::why::Cause;

    /// Steps of these lengths, of one thread on one CPU.
    fn path(of: &[(Cause, u64)]) -> Vec<Piece> {
        let mut at = 0;
        let step = |&(cause, took): &(Cause, u64)| {
            let begin = at;
            at += took;
            Piece {
                begin,
                end: at,
                thread: ThreadId(0),
                cause,
                cpu: Some(0),
                depth: 0,
                inside: (0, u64::MAX),
            }
        };
        of.iter().map(step).collect()
    }

    fn lengths(pieces: &[Piece]) -> Vec<(Cause, u64, u64)> {
        let runs = runs(pieces);
        runs.iter()
            .map(|run| (run.first.cause, run.took, run.times))
            .collect()
    }

    #[test]
    fn what_continues_after_ticks_is_one_run() {
        let (ran, tick) = (Cause::Running(None), Cause::Transit);
        let path = path(&[
            (ran, 4_000),
            (tick, 9),
            (ran, 4_000),
            (tick, 8),
            (ran, 3_000),
        ]);
        assert_eq!(
            lengths(&path),
            [(ran, 11_000, 3), (tick, 9, 1), (tick, 8, 1)]
        );
    }

    #[test]
    fn what_continues_after_a_longer_pause_is_another_run() {
        let (ran, other) = (Cause::Running(None), Cause::Transit);
        let path = path(&[(ran, 1_000), (other, 101), (ran, 1_000)]);
        assert_eq!(
            lengths(&path),
            [(ran, 1_000, 1), (other, 101, 1), (ran, 1_000, 1)]
        );
    }

    #[test]
    fn another_cpu_or_thread_is_another_run() {
        let mut path = path(&[
            (Cause::Running(None), 1_000),
            (Cause::Running(None), 1_000),
            (Cause::Running(None), 1_000),
        ]);
        path[1].cpu = Some(1);
        path[2].thread = ThreadId(1);
        assert_eq!(runs(&path).len(), 3);
    }
}
