// SPDX-License-Identifier: GPL-2.0

//! What is known of a chain, and has not become steps of it yet.
//!
//! ```text
//!   slept    the task has gone to sleep in the middle of its work,    its own CPU
//!            or has left its system call and runs on (State::Leaving)
//!   waker    by which task: its thread id and its name, or 0          its waker's CPU
//!   woken    it was woken from that                                   its waker's CPU
//!   merged   how often it was woken while it was awake                its wakers' CPUs, an interrupt's
//! ```
//!
//! The chain itself belongs to the CPU of the task. Wakers come from other CPUs, perhaps before this
//! one is done with the switch to another task. So neither changes the chain: each has a word of its
//! own, from which the task's CPU makes steps when it switches to the task again, and readers of a
//! copy whenever they like. A word says what a step does, relative to the last step; the subject of
//! both is the task. The words of the waker are written before `woken`. A copy made meanwhile may have
//! `woken` and lack the waker, or a part of its name.

use super::{of_tag, step::woken_by, tag_of, Counts, Kind, State, Step, Words, LONGEST};

/// The words of notes.
pub(crate) const NOTES: usize = 6;
/// Their positions.
pub(crate) const SLEPT: usize = 0;
/// Three words.
pub(crate) const WAKER: usize = 1;
pub(crate) const WOKEN: usize = 4;
pub(crate) const MERGED: usize = 5;

/// The note of a step without a subject, at `now`, on a chain whose last step was taken at `last`.
#[inline(always)]
pub(crate) fn note(kind: Kind, cpu: u32, last: u64, now: u64) -> u64 {
    tag_of(kind, cpu, now.saturating_sub(last).min(LONGEST))
}

/// When the step was taken that a [`note`] says, of a chain whose last step was taken at `last`.
pub(crate) fn noted_at(note: u64, last: u64) -> Option<u64> {
    let (_, _, time) = of_tag(note)?;
    Some(last.saturating_add(time))
}

/// What the task is doing, in consideration of the notes.
pub(crate) fn state(counts: Counts, notes: &[u64; NOTES]) -> State {
    match (notes[SLEPT], notes[WOKEN]) {
        _ if counts.state() == State::Leaving => State::Leaving,
        (0, 0) => counts.state(),
        (_, 0) => State::Waiting,
        _ => State::Waking,
    }
}

/// Makes steps of the notes, for a chain whose task is `subject`. Those that count the steps of one
/// task are taken over; the notes are used up.
pub(crate) fn settle(chain: &mut impl Words, notes: &mut [u64; NOTES], subject: u64) {
    let (last, state) = (chain.last(), state(chain.counts(), notes));
    let [_, waker, low, high, ..] = *notes;
    for note in [notes[SLEPT], notes[WOKEN]] {
        let Some((kind, cpu, time)) = of_tag(note) else {
            continue;
        };
        let now = last.saturating_add(time);
        if kind == Kind::Waking && waker != 0 && low != 0 {
            let subject = woken_by(subject, waker as u32);
            chain.push_named(now, Step { kind, cpu, subject }, [low, high]);
        } else {
            chain.push(now, Step { kind, cpu, subject });
        }
    }
    let mut counts = chain.counts();
    counts.set_state(state);
    counts.add_merged(notes[MERGED]);
    chain.set_counts(counts);
    *notes = [0; NOTES];
}
