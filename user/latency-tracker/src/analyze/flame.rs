// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Folded stacks, for flame graphs: a line `frame;frame;frame NANOSECONDS` for each chain of causes.
//!
//! ```text
//! late/7  |runs|waits in fsync        |runs|   late/7;runs 8
//! hog/8        |runs|waits for a disk |        late/7;waits in fsync;hog/8;runs 5
//!                                              late/7;waits in fsync;hog/8;waits for a disk 17
//! ```

use std::collections::BTreeMap;

use lt_model::why::{Piece, Wait, Waited, waits};

use super::show::Shown;

/// Times by stack.
#[derive(Debug, Default)]
pub(super) struct Stacks(BTreeMap<String, u64>);

impl Stacks {
    /// Adds a time to the stack of these frames, the outermost first.
    pub(super) fn add(&mut self, frames: &[String], ns: u64) {
        // Semicolons separate frames.
        let frames: Vec<_> = frames.iter().map(|f| f.replace(';', ",")).collect();
        let sum = self.0.entry(frames.join(";")).or_default();
        *sum = sum.saturating_add(ns);
    }

    pub(super) fn lines(self) -> Vec<String> {
        let some = self.0.into_iter().filter(|(_, ns)| *ns > 0);
        some.map(|(stack, ns)| format!("{stack} {ns}")).collect()
    }
}

impl Shown<'_> {
    /// The time of the path by chain of causes.
    pub(super) fn folded(&self) -> Vec<String> {
        let (from, to) = self.range;
        let waits = waits(self.model, self.thread, from, to);
        let mut stacks = Stacks::default();
        chains(self, self.pieces, &waits, |piece, frames| {
            stacks.add(&frames, piece.end - piece.begin);
        });
        stacks.lines()
    }
}

/// Calls `see` with each step of a path, and its frames: each thread that waits and its wait, then the thread and the
/// cause of the step.
pub(super) fn chains(
    words: &Shown<'_>,
    pieces: &[Piece],
    waits: &[Wait],
    mut see: impl FnMut(&Piece, Vec<String>),
) {
    let mut waits = waits.iter().peekable();
    // The last wait at each depth.
    let mut last: Vec<&Wait> = Vec::new();
    for piece in pieces {
        while let Some(wait) = waits.next_if(|wait| wait.begin <= piece.begin) {
            last.truncate(wait.depth);
            last.push(wait);
        }
        let outer = last.iter().take(piece.depth);
        let mut frames: Vec<_> = outer
            .flat_map(|wait| [words.name(wait.thread), wait_of(words, wait)])
            .collect();
        frames.extend([words.name(piece.thread), words.what(piece.cause)]);
        see(piece, frames);
    }
}

fn wait_of(words: &Shown<'_>, wait: &Wait) -> String {
    match (wait.kind, wait.cause) {
        (_, Some(cause)) => words.what(cause),
        (Waited::Blocked(Some(call)), None) => format!("waits in {}", words.text(call)),
        (Waited::Blocked(None), None) => "waits in no recorded system call".into(),
        (Waited::Spun, None) => "spins for a lock".into(),
        (Waited::Unborn, None) => "not created yet".into(),
    }
}

#[cfg(test)]
mod tests {
    use lt_model::{Model, ThreadId, why};
    use proptest::prelude::*;

    use super::super::made::{chain, model};
    use super::super::picture::tests::events;
    use super::super::words::Facts;
    use super::*;

    /// The stacks of the path of a thread in that time.
    fn stacks(model: &Model, thread: ThreadId, range: (u64, u64)) -> Vec<String> {
        let pieces = why::path(model, thread, range.0, range.1);
        let shown = Shown {
            model,
            thread,
            range,
            pieces: &pieces,
            facts: &Facts::NONE,
        };
        shown.folded()
    }

    #[test]
    fn a_chain_of_waits_is_a_stack_and_unknown_time_has_a_frame() {
        let model = model(&chain(10));
        let thread = model.by_tid(7).next().unwrap();
        assert_eq!(
            stacks(&model, thread, (0, 30)),
            [
                "late/7;not recorded: no earlier event names the thread 10",
                "late/7;runs 1",
                "late/7;runs in fsync 4",
                "late/7;waits in fsync;hog/8;runs 5",
                "late/7;waits in fsync;hog/8;waits for disk (interrupt 24) 5",
                "late/7;waits in fsync;hog/8;woken, waits for a CPU 2",
                "late/7;woken, waits for a CPU 3",
            ]
        );
    }

    #[test]
    fn equal_stacks_are_one_line_and_semicolons_in_names_separate_no_frames() {
        let mut stacks = Stacks::default();
        let frames = ["a;b".to_string(), "c".to_string()];
        stacks.add(&frames, 2);
        stacks.add(&frames, 3);
        stacks.add(&frames[1..], 0);
        assert_eq!(stacks.lines(), ["a,b;c 5"]);
    }

    proptest! {
        #[test]
        fn stacks_add_up_to_the_path_and_have_two_frames_for_each_thread(events in events()) {
            let model = model(&events);
            for (id, thread) in (0..).map(ThreadId).zip(&model.threads) {
                let Some((from, to)) = thread.span() else {
                    continue;
                };
                let lines = stacks(&model, id, (from, to));
                let time = |line: &String| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
                prop_assert_eq!(lines.iter().map(time).sum::<u64>(), to - from);
                let pieces = why::path(&model, id, from, to);
                let depth = |line: &String| line.matches(';').count() / 2;
                prop_assert!(lines.iter().all(|line| line.matches(';').count() % 2 == 1));
                prop_assert_eq!(
                    lines.iter().map(depth).max(),
                    pieces.iter().map(|piece| piece.depth).max()
                );
            }
        }
    }
}
