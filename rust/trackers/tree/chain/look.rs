// SPDX-License-Identifier: GPL-2.0

//! Reads a chain where it is: in an event, in per-CPU memory, or on the stack.

use super::{
    read, step::is_attached, Counts, Kind, Origin, COUNTS, CPU_AT, CPU_BITS, FIRST_STEP, KIND_AT,
    LAST, LONGEST,
};

/// A chain that can be read.
pub(crate) trait Look {
    /// Returns the word at a position below [`WORDS`](super::WORDS).
    fn get(&self, at: usize) -> u64;

    /// Returns the time at which the last step was taken.
    #[inline(always)]
    fn last(&self) -> u64 {
        self.get(LAST)
    }

    #[inline(always)]
    fn counts(&self) -> Counts {
        Counts(self.get(COUNTS))
    }

    #[inline(always)]
    fn first_subject(&self) -> u64 {
        self.get(FIRST_STEP + 1)
    }

    /// Returns the subject of the last step, which must have no name.
    fn last_subject(&self) -> u64 {
        match self.counts().places() {
            0 => 0,
            places => self.get(FIRST_STEP + 2 * places - 1),
        }
    }

    /// Whether the last step has this kind and this subject.
    fn is_last(&self, kind: Kind, subject: u64) -> bool {
        let places = self.counts().places();
        places > 0 && {
            let at = FIRST_STEP + 2 * (places - 1);
            self.get(at) >> KIND_AT == kind as u64 && self.get(at + 1) == subject
        }
    }

    /// Returns the place of the last step of a kind; 0 if there is none.
    fn last_of(&self, kind: Kind) -> usize {
        let mut places = (0..self.counts().places()).rev();
        let is_it = |place: &usize| self.get(FIRST_STEP + 2 * place) >> KIND_AT == kind as u64;
        places.find(is_it).unwrap_or(0)
    }

    /// Returns the function of the work item that the task executes: the subject of the last step
    /// `work`. `None` if there is no such step, if a later one may have been left out, or if the
    /// step may belong to another worker, on whose chain the task was woken. A task that
    /// continues its own chain has a sleep on it just before each waking.
    fn executed(&self) -> Option<u64> {
        let (counts, at) = (self.counts(), self.last_of(Kind::Work));
        let used = counts.places();
        let kind = |place: usize| self.get(FIRST_STEP + 2 * place) >> KIND_AT;
        let sleeps = [Kind::Lock, Kind::Sleep, Kind::Reads].map(|sleep| sleep as u64);
        let is_own_waking = |place: usize| sleeps.contains(&kind(place - 1));
        let is_last = counts.more() == 0 || at >= self.boundary(used);
        let is_own = (at + 1..used)
            .filter(|&place| kind(place) == Kind::Waking as u64)
            .all(is_own_waking);
        (at > 0 && is_last && is_own).then(|| self.get(FIRST_STEP + 2 * at + 1))
    }

    #[inline(always)]
    fn first_cpu(&self) -> u32 {
        (self.get(FIRST_STEP) >> CPU_AT) as u32 & ((1 << CPU_BITS) - 1)
    }

    /// Calls `see` for each step, with the result of `of` for the number of its kind, and with the
    /// time until the next step, at most [`LONGEST`]; the last step has the time until `end`. Skips
    /// steps that are left out, and the step before them. `of` returns `None` for kinds that are
    /// not steps.
    #[inline(always)]
    fn each_time<T>(&self, end: u64, of: impl Fn(u64) -> Option<T>, mut see: impl FnMut(T, u64)) {
        let counts = self.counts();
        let used = counts.places();
        if counts.more() > 0 {
            return self.each_time_around(used, end, of, see);
        }
        if let Some(last) = self.each_time_of(0, used, &of, &mut see) {
            see(last, end.saturating_sub(self.last()).min(LONGEST));
        }
    }

    /// Calls `see` for each step of a chain that has left out steps, as [`Look::each_time`].
    #[cold]
    #[inline(never)]
    fn each_time_around<T>(
        &self,
        used: usize,
        end: u64,
        of: impl Fn(u64) -> Option<T>,
        mut see: impl FnMut(T, u64),
    ) {
        let boundary = self.boundary(used);
        self.each_time_of(0, boundary, &of, &mut see);
        if let Some(last) = self.each_time_of(boundary, used, &of, &mut see) {
            see(last, end.saturating_sub(self.last()).min(LONGEST));
        }
    }

    /// Calls `see` for the steps from one place to another, except the last. Returns the result of
    /// `of` for the last step, if there is one.
    #[inline(always)]
    fn each_time_of<T>(
        &self,
        from: usize,
        end: usize,
        of: &impl Fn(u64) -> Option<T>,
        see: &mut impl FnMut(T, u64),
    ) -> Option<T> {
        if from >= end {
            return None;
        }
        let mut step = of(self.get(FIRST_STEP + 2 * from) >> KIND_AT)?;
        for at in from + 1..end {
            let tag = self.get(FIRST_STEP + 2 * at);
            // The comparison that `of` must make anyway shows whether the place is a step.
            if let Some(next) = of(tag >> KIND_AT) {
                see(step, tag & LONGEST);
                step = next;
            }
        }
        Some(step)
    }

    /// Returns the time from the step before the steps left out to the first step left out. It is
    /// kept in the first step of the chain, whose own time is always 0.
    #[inline(always)]
    fn before_more(&self) -> u64 {
        self.get(FIRST_STEP) & LONGEST
    }

    /// Returns the place from which steps are left out.
    fn boundary(&self, used: usize) -> usize {
        read::boundary(used, |at| self.is_attached(at))
    }

    /// Whether a place belongs to the preceding step.
    fn is_attached(&self, place: usize) -> bool {
        is_attached(self.get(FIRST_STEP + 2 * place))
    }

    /// Returns the places of the rivals: the first, and the first place after them.
    fn rivals(&self) -> Option<(usize, usize)> {
        let (used, is) = (self.counts().places(), |place: usize, kind: Kind| {
            self.get(FIRST_STEP + 2 * place) >> KIND_AT == kind as u64
        });
        let from = (0..used).find(|&place| is(place, Kind::Rivals))?;
        let of_them = |&place: &usize| is(place, Kind::Rivals) || is(place, Kind::Name);
        Some((from, from + (from..used).take_while(of_them).count()))
    }

    /// Whether the chain ends with a wait for a CPU that is not over.
    #[inline(always)]
    fn is_waiting(&self) -> bool {
        let places = self.counts().places();
        places > 0 && self.get(FIRST_STEP + 2 * places - 2) >> KIND_AT == Kind::Wait as u64
    }

    /// Returns the end of the words that are in use.
    #[inline(always)]
    fn used(&self) -> usize {
        FIRST_STEP + 2 * self.counts().places()
    }

    /// Whether the chain has the name of an action.
    #[inline(always)]
    fn has_action(&self) -> bool {
        self.counts().origin() == Origin::Irq
    }
}
