// SPDX-License-Identifier: GPL-2.0

//! Several steps appended in one go: room is made once, and the words of a chain other than its
//! steps are stored once, at the end.

use super::{tag_of, Counts, Step, Words, FIRST_STEP, LAST, LONGEST, MORE};

/// The places of steps, filled one after another. The chain does not count them until [`Row::end`].
pub(crate) struct Row<'a, W> {
    pub(super) chain: &'a mut W,
    /// The first place, and the next one, which is free.
    pub(super) from: usize,
    pub(super) at: usize,
    pub(super) last: u64,
    /// The sum of the excesses of times over [`LONGEST`].
    pub(super) more: u64,
    /// The counts of the chain, without the steps of this row.
    pub(super) counts: Counts,
}

impl<W: Words> Row<'_, W> {
    /// Appends a step, taken at `now`. If `now` is before the last step, the time of the new step
    /// is 0.
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

    /// Appends the words of a place: a step of another chain, or a [`super::place_of_name`].
    #[inline(always)]
    pub(crate) fn place(&mut self, words: [u64; 2]) {
        for (word, value) in words.into_iter().enumerate() {
            self.chain.set(FIRST_STEP + 2 * self.at + word, value);
        }
        self.at += 1;
    }

    /// Adds the steps of the row to the chain.
    #[inline(always)]
    pub(crate) fn end(mut self) {
        self.counts.add_places(self.at - self.from);
        let Self {
            chain,
            last,
            more,
            counts,
            ..
        } = self;
        chain.set(LAST, last);
        if more != 0 {
            chain.set(MORE, chain.get(MORE).wrapping_add(more));
        }
        chain.set_counts(counts);
    }

    /// Ends the row, whose steps are all the steps of a new chain.
    #[inline(always)]
    pub(super) fn begin(mut self) {
        self.counts.add_places(self.at - self.from);
        self.chain.begin_counted(self.last, self.more, self.counts);
    }
}

/// Returns the time to store for a step that takes longer than [`LONGEST`]. A cold call: inlined,
/// it would make each step compute both times.
#[cold]
#[inline(never)]
fn cut() -> u64 {
    LONGEST
}
