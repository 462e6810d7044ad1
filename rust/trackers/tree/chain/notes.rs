// SPDX-License-Identifier: GPL-2.0

//! Notes on a chain that have not become steps yet.
//!
//! ```text
//!   slept    when the task went to sleep in the middle of its work,   its own CPU
//!            or left its system call and ran on (State::Leaving)
//!   waker    by which task: thread id and name, or 0                  its waker's CPU
//!   woken    when it was woken from that sleep                        its waker's CPU
//!   merged   how often it was woken while it was awake,               its wakers' CPUs
//!            or, as an interrupt's thread, was requested again        the interrupt's CPU
//! ```
//!
//! The chain itself belongs to the CPU of the task. Wakers come from other CPUs, perhaps before the
//! task's CPU has finished the switch to another task. So neither side changes the chain: each has
//! words of its own. The task's CPU turns these words into steps when it switches to the task
//! again, and so does any reader of a copy. `slept` and `woken` each hold the kind, the CPU and the
//! time of a step, relative to the last step of the chain; the subject of both steps is the task.
//! The last column names the CPU that writes the word. The words of the waker are written before
//! `woken`. A copy made meanwhile may have `woken` and lack the waker, or a part of the waker's
//! name.

use super::{of_tag, step::woken_by, tag_of, Counts, Kind, State, Step, Words, LONGEST};

/// Number of words of the notes.
pub(crate) const NOTES: usize = 6;
/// Positions of the notes.
pub(crate) const SLEPT: usize = 0;
/// Three words: the waker's thread id and its name.
pub(crate) const WAKER: usize = 1;
pub(crate) const WOKEN: usize = 4;
pub(crate) const MERGED: usize = 5;

/// Returns the note of a step without a subject, at `now`, on a chain whose last step was taken at
/// `last`.
#[inline(always)]
pub(crate) fn note(kind: Kind, cpu: u32, last: u64, now: u64) -> u64 {
    tag_of(kind, cpu, now.saturating_sub(last).min(LONGEST))
}

/// Returns the time at which the step of a [`note`] was taken, on a chain whose last step was taken
/// at `last`.
pub(crate) fn noted_at(note: u64, last: u64) -> Option<u64> {
    let (_, _, time) = of_tag(note)?;
    Some(last.saturating_add(time))
}

/// Returns the state of the task, considering the notes.
pub(crate) fn state(counts: Counts, notes: &[u64; NOTES]) -> State {
    match (notes[SLEPT], notes[WOKEN]) {
        _ if counts.state() == State::Leaving => State::Leaving,
        (0, 0) => counts.state(),
        (_, 0) => State::Waiting,
        _ => State::Waking,
    }
}

/// Turns the notes into steps, for a chain whose task is `subject`. Also adds the noted number of
/// wakings to the chain's count, and clears the notes.
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
