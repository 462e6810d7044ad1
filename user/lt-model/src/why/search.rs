// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Finds what a model must contain for a path or for delays: in a whole model, or in one part of a trace after another,
//! the last part first.
//!
//! ```text
//! parts       |    1    |    2    |    3    |
//! thread 7    |runs|blocked ..........|runs     part 3: 8 ended the wait, so 8 is followed from the start of the wait
//! thread 8    |runs |blocked|runs ..........    part 2: 9 ended the wait, so 9 is followed from the start of that wait
//! thread 9    |blocked|runs ................    part 1: a timer ended the wait
//! ```
//!
//! A part is a model of the events between two times. It also has the whole length of the states that began before the
//! part and ended in it; earlier activity is [`Unrecorded::Unseen`]. A thread runs when it wakes another, so its own
//! waits that explain this wait have ended by then. They have ended in the same part or in an earlier one. Each part is
//! therefore searched only once.
//!
//! If the start of a part separates a wakeup from the sleep that it ends, or a lock's handover from the waiter's spin,
//! the waker is not found. So the caller must search the final model again, and add what is missing.

use foldhash::HashMap;

use crate::wanted::Spans;
use crate::{Model, State, ThreadId, Unrecorded, Wanted};

use super::cause::Cause;
use super::delays::{STATES, ancestry, decides_outside};
use super::path::want;

/// A search for what a model must contain.
#[derive(Debug, Default)]
pub struct Search {
    wanted: Wanted,
    /// The times in which each thread must still be followed.
    open: HashMap<ThreadId, Spans>,
    /// The threads of which it is not known yet whether they were outside of all system calls at some time.
    outside: Vec<Outside>,
    /// Whether the states of each waker during the wait that it ended are wanted, too.
    wakers: bool,
}

/// A thread that may be outside of all system calls at a time.
#[derive(Debug)]
struct Outside {
    thread: ThreadId,
    time: u64,
    /// Maximum number of states to examine.
    most: usize,
}

/// For each thread, the time before which its activity is not in a part.
struct Before<'a>(&'a [u64]);

impl Before<'_> {
    fn of(&self, thread: ThreadId) -> u64 {
        self.0.get(thread.0 as usize).copied().unwrap_or(0)
    }
}

impl Search {
    /// A search for the critical path of a thread between two times.
    #[must_use]
    pub fn path(thread: ThreadId, from: u64, to: u64) -> Self {
        let mut search = Self::default();
        search.open(thread, from, to);
        search
    }

    /// A search for the segments of [`super::delays()`], and, with `wakers`, for the [`super::states`] of each waker
    /// during the wait that it ended. The model must show when each thread was created, and by which thread.
    #[must_use]
    pub fn delays(model: &Model, thread: ThreadId, from: u64, to: u64, wakers: bool) -> Self {
        let mut search = Self {
            wakers,
            ..Self::default()
        };
        for (id, begin, end) in ancestry(model, thread, from, to) {
            search.open(id, begin, end);
            search.outside(id, begin);
        }
        search
    }

    /// Searches a model of the whole trace, or one that has only the waits ([`crate::Kept::Waits`]). Returns what was
    /// found.
    #[must_use]
    pub fn all(mut self, model: &Model) -> Wanted {
        self.look(model, &[]);
        self.wanted
    }

    /// Whether the search must look at the part of the trace that starts in this state; see [`Search::look`].
    #[must_use]
    pub fn needs(&self, before: &[u64]) -> bool {
        let before = Before(before);
        let is_open = |(id, spans): (&ThreadId, &Spans)| spans.end() > Some(before.of(*id));
        let is_undecided = |of: &Outside| of.time > before.of(of.thread);
        self.open.iter().any(is_open) || self.outside.iter().any(is_undecided)
    }

    /// Searches a part of the trace. All later parts that [`Search::needs`] selects must have been searched before.
    /// `before` is the state at the start of the part, as [`crate::Builder::since`] returns it.
    pub fn look(&mut self, model: &Model, before: &[u64]) {
        let before = &Before(before);
        // What is found here is added in time order, which is fast, and then as a whole.
        let later = std::mem::take(&mut self.wanted);
        let mut ready = Vec::new();
        for (id, spans) in &mut self.open {
            let spans = spans.take_after(before.of(*id)).into_iter();
            ready.extend(spans.map(|span| (*id, span)));
        }
        self.open.retain(|_, spans| !spans.is_empty());
        for (id, span) in ready {
            self.follow(model, before, id, span, self.wakers);
        }
        for of in std::mem::take(&mut self.outside) {
            self.decide(model, before, of);
        }
        let found = std::mem::replace(&mut self.wanted, later);
        self.wanted.add_all(&found);
    }

    /// What was found, once all parts have been searched.
    #[must_use]
    pub fn into_wanted(self) -> Wanted {
        self.wanted
    }

    fn open(&mut self, thread: ThreadId, from: u64, to: u64) {
        if from < to {
            self.open.entry(thread).or_default().add(from, to);
        }
    }

    fn outside(&mut self, thread: ThreadId, time: u64) {
        self.outside.push(Outside {
            thread,
            time,
            most: STATES,
        });
    }

    /// Follows a thread as far as the part shows; the rest stays open.
    fn follow(
        &mut self,
        model: &Model,
        before: &Before<'_>,
        thread: ThreadId,
        span: (u64, u64),
        wakers: bool,
    ) {
        let (pieces, waits) = want(&mut self.wanted, model, thread, span);
        for piece in pieces {
            if piece.cause == Cause::Unknown(Unrecorded::Unseen) {
                let end = piece.end.min(before.of(piece.thread));
                self.open(piece.thread, piece.begin, end);
            }
        }
        let ended_by_threads = waits.iter().filter(|wait| wait.cause.is_none());
        for wait in ended_by_threads.filter(|_| wakers) {
            if let Some(by) = wait.by {
                self.follow(model, before, by, (wait.begin, wait.end), false);
                self.outside(by, wait.begin);
            }
        }
    }

    /// Adds the states that show whether a thread was outside of all system calls; those before the part stay open.
    fn decide(&mut self, model: &Model, before: &Before<'_>, of: Outside) {
        let Outside {
            thread,
            time,
            mut most,
        } = of;
        let start = before.of(thread);
        if time <= start {
            self.outside.push(of);
            return;
        }
        let mut since = time;
        for state in decides_outside(model, thread, time, most) {
            if state.state == State::Unknown(Unrecorded::Unseen) && state.begin < start {
                since = start;
                self.outside.push(Outside {
                    thread,
                    time: start,
                    most,
                });
                break;
            }
            since = state.begin;
            most -= 1;
        }
        if since < time {
            self.wanted.thread(thread, since, time);
        }
    }
}
