// SPDX-License-Identifier: GPL-2.0

//! Several steps that are appended in one go: room is made once, and what a path has besides its
//! steps is stored once, at the end.

use super::{place_of_name, tag_of, Step, Words, FIRST_STEP, LAST, LONGEST, MORE};

/// The places of steps, filled one after another. A path in memory is as before until [`Row::end`].
pub(crate) struct Row<'a, W> {
    pub(super) path: &'a mut W,
    /// The next place, which is free.
    pub(super) at: usize,
    pub(super) last: u64,
    /// The time that does not fit in its step.
    pub(super) more: u64,
}

impl<W: Words> Row<'_, W> {
    /// Appends a step, taken at `now`. A clock that is behind that of the last step stands still.
    #[inline(always)]
    pub(crate) fn step(&mut self, now: u64, step: Step) {
        let now = now.max(self.last);
        let mut time = now - self.last;
        if time > LONGEST {
            self.more = self.more.wrapping_add(time - LONGEST);
            time = cut();
        }
        self.last = now;
        self.place([tag_of(step.kind, step.cpu, time), step.subject]);
    }

    /// The name of the task of the step before.
    #[inline(always)]
    pub(crate) fn name(&mut self, name: [u64; 2]) {
        self.place(place_of_name(name));
    }

    /// Appends the words of a place.
    #[inline(always)]
    pub(super) fn place(&mut self, words: [u64; 2]) {
        for (word, value) in words.into_iter().enumerate() {
            self.path.set(FIRST_STEP + 2 * self.at + word, value);
        }
        self.at += 1;
    }

    /// The path has these steps from now on.
    #[inline(always)]
    pub(crate) fn end(self) {
        let (path, more) = (self.path, self.more);
        path.set(LAST, self.last);
        if more != 0 {
            path.set(MORE, path.get(MORE).wrapping_add(more));
        }
        let mut counts = path.counts();
        counts.set_places(self.at);
        path.set_counts(counts);
    }
}

/// The time of a step that takes longer. A call, which the compiler takes for rare: else each step would
/// calculate both.
#[cold]
#[inline(never)]
fn cut() -> u64 {
    LONGEST
}
