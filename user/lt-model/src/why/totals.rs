// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The time of every thread by class, and its longest wait.
//!
//! The sums come from the intervals alone: to compute them takes time in proportion to the number of intervals.

use std::cmp::Reverse;

use crate::{Class, Model, State, Thread, ThreadId};

/// The time of a thread in a range. The times of the four classes add up to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Total {
    /// The thread.
    pub thread: ThreadId,
    /// Start of the range or, if later, of the thread, ns.
    pub begin: u64,
    /// End of the range or, if earlier, of the thread, ns; later than the start.
    pub end: u64,
    /// Time in which it made progress, ns.
    pub working: u64,
    /// Time in which it was runnable without a processor, ns.
    pub interrupted: u64,
    /// Time in which it was blocked, ns.
    pub blocked: u64,
    /// Time in which its activity is not recorded, ns.
    pub unknown: u64,
    /// Start and end of its longest wait, ns: it was blocked, or waited for one processor. Of a wait that is not
    /// completely in the range, only the part in the range counts. The first one, if several are equally long.
    pub longest: Option<(u64, u64)>,
}

impl Total {
    /// Length of the thread's time in the range, ns.
    #[must_use]
    pub fn took(&self) -> u64 {
        self.end - self.begin
    }

    /// Length of the longest wait, ns; 0 without a wait.
    #[must_use]
    pub fn wait(&self) -> u64 {
        self.longest.map_or(0, |(begin, end)| end - begin)
    }

    /// The sums of a thread; `None` if it is not in the range.
    fn of(id: ThreadId, thread: &Thread, from: u64, to: u64) -> Option<Self> {
        let (first, last) = thread.span()?;
        let (begin, end) = (first.max(from), last.min(to));
        if begin >= end {
            return None;
        }
        let mut total = Self {
            thread: id,
            begin,
            end,
            working: 0,
            interrupted: 0,
            blocked: 0,
            unknown: 0,
            longest: None,
        };
        for interval in thread.between(begin, end) {
            let part = (interval.begin.max(begin), interval.end.min(end));
            let took = part.1 - part.0;
            *match interval.state.class() {
                Class::Working => &mut total.working,
                Class::Interrupted => &mut total.interrupted,
                Class::Blocked => &mut total.blocked,
                Class::Unknown => &mut total.unknown,
            } += took;
            let is_wait = matches!(
                interval.state,
                State::Blocked(..) | State::Waiting | State::Preempted
            );
            if is_wait && took > total.wait() {
                total.longest = Some(part);
            }
        }
        Some(total)
    }
}

/// The sums of all threads that are in the trace between two times, those with the longest wait first.
#[must_use]
pub fn totals(model: &Model, from: u64, to: u64) -> Vec<Total> {
    let all = (0u32..).map(ThreadId).zip(&model.threads);
    let mut totals: Vec<_> = all
        .filter_map(|(id, thread)| Total::of(id, thread, from, to))
        .collect();
    totals.sort_by_key(|total| Reverse(total.wait()));
    totals
}
