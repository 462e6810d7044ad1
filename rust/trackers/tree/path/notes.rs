// SPDX-License-Identifier: GPL-2.0

//! What is known of a path, and has not become steps of it yet.
//!
//! ```text
//!   slept    the task has gone to sleep in the middle of its work     its own CPU
//!   woken    it was woken from that                                   its waker's CPU
//!   merged   how often it was woken while it was awake                its wakers' CPUs, an interrupt's
//! ```
//!
//! The path itself belongs to the CPU of the task. Wakers come from other CPUs, perhaps before this
//! one is done with the switch to another task. So neither changes the path: each has a word of its
//! own, from which the task's CPU makes steps when it switches to the task again, and readers of a
//! copy whenever they like. A word says what a step does, relative to the last step; the subject of
//! both is the task.

use super::{of_tag, tag_of, Counts, Kind, State, Step, Words, LONGEST};

/// The words of notes.
pub(crate) const NOTES: usize = 3;
/// Their positions.
pub(crate) const SLEPT: usize = 0;
pub(crate) const WOKEN: usize = 1;
pub(crate) const MERGED: usize = 2;

/// The note of a step without a subject, at `now`, on a path whose last step was taken at `last`.
#[inline(always)]
pub(crate) fn note(kind: Kind, cpu: u32, last: u64, now: u64) -> u64 {
    tag_of(kind, cpu, now.saturating_sub(last).min(LONGEST))
}

/// What the task is doing, in consideration of the notes.
pub(crate) fn state(counts: Counts, notes: &[u64; NOTES]) -> State {
    match (notes[SLEPT], notes[WOKEN]) {
        (0, 0) => counts.state(),
        (_, 0) => State::Waiting,
        _ => State::Waking,
    }
}

/// Makes steps of the notes, for a path whose task is `subject`. Those that count the steps of one
/// task are taken over; the notes are used up.
pub(crate) fn settle(path: &mut impl Words, notes: &mut [u64; NOTES], subject: u64) {
    let (last, state) = (path.last(), state(path.counts(), notes));
    for note in [notes[SLEPT], notes[WOKEN]] {
        if let Some((kind, cpu, time)) = of_tag(note) {
            path.push(last.saturating_add(time), Step { kind, cpu, subject });
        }
    }
    let mut counts = path.counts();
    counts.set_state(state);
    counts.add_merged(notes[MERGED]);
    path.set_counts(counts);
    *notes = [0; NOTES];
}
