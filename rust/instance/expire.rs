// SPDX-License-Identifier: GPL-2.0

//! How an instance finds timed-out events, in its worker, and reports them.
//!
//! ```text
//!   its worker: expire --> Engine::expire --> details --> raise (raise.rs)
//!                             |
//!                             +--> stack_of, before the event is marked as timed out
//! ```
//!
//! # Contexts
//!
//! A task that may sleep.

use super::{common, Core};
use crate::{
    alert::record::Owner,
    engine::{event::EventCopy, platform::Platform, Engine, Late},
    record::Details,
    sys::{periodic, platform::Kernel, stack::Stack},
};

/// Minimum pause between two searches for timed-out events, in nanoseconds.
const MIN_PAUSE_NS: u64 = 500_000;

/// Returns the nanoseconds until the next search for timed-out events. The last search began at
/// `began` and returned `first`, the time at which the first of the remaining events may time out.
/// No timeout is less than `shortest` nanoseconds.
///
/// An alert should be late by at most max(1 ms, timeout / 16). Half of that time is for the pause,
/// the other half for the timer, the worker and the search. If searches are long, alerts may be
/// later: each pause is at least as long as the search before it, so that searches take at most
/// half of a CPU.
pub(crate) fn until_next_search(began: u64, shortest: u64, first: Option<u64>) -> u64 {
    let done = Kernel::now();
    // An event that starts after `began` cannot time out before this.
    let unseen = began.saturating_add(shortest);
    let due = first.map_or(unseen, |first| first.min(unseen));
    let pause = (shortest / 32)
        .max(MIN_PAUSE_NS)
        .max(done.saturating_sub(began));
    due.saturating_sub(done).max(pause)
}

impl<const K: usize, const D: usize> Core<K, D> {
    /// Reports timed-out events. Returns the nanoseconds until the next search for such events;
    /// `None` if there is no timeout. May sleep.
    ///
    /// `owner` returns the task that an event belongs to, whose current stack goes into the alert.
    /// An event that `can_time_out` refuses is skipped; `settle` completes the copy of an event
    /// that has timed out; if `details` returns `None`, the event is counted but not reported.
    pub(crate) fn expire(
        &self,
        owner: fn(&[u64; D]) -> Owner,
        can_time_out: fn(&[u64; D]) -> bool,
        settle: fn(&mut Late<K, D>),
        details: impl FnMut(&Late<K, D>, u64) -> Option<Details>,
    ) -> Option<u64> {
        self.expire_in(
            &self.engine,
            |late| *late,
            owner,
            can_time_out,
            settle,
            details,
        )
    }

    /// Reports timed-out events of `engine`, see [`Core::expire`]. If that is a second engine,
    /// `as_own` converts its timed-out events to events of the first.
    pub(crate) fn expire_in<const L: usize>(
        &self,
        engine: &Engine<L, D, Kernel>,
        as_own: fn(&Late<L, D>) -> Late<K, D>,
        owner: fn(&[u64; D]) -> Owner,
        can_time_out: fn(&[u64; D]) -> bool,
        settle: fn(&mut Late<K, D>),
        mut details: impl FnMut(&Late<K, D>, u64) -> Option<Details>,
    ) -> Option<u64> {
        let timeout = self.value(common::TIMEOUT);
        if timeout == 0 {
            return None;
        }
        let now = Kernel::now();
        let look = |event: &EventCopy<L, D>| {
            self.stack_to_raise(|_| self.stack_of(owner(&event.data), event.start))
        };
        let report = |guard: &<Kernel as Platform>::Guard, late: &Late<L, D>, stack: &Stack| {
            let mut late = as_own(late);
            settle(&mut late);
            let now = late.start.wrapping_add(late.delay);
            if let Some(details) = details(&late, now) {
                self.raise(guard, &late, &details, stack.entries());
            }
        };
        let timeout_of = |event: &EventCopy<L, D>| {
            if can_time_out(&event.data) {
                timeout
            } else {
                u64::MAX
            }
        };
        let first = engine.expire(
            now,
            timeout,
            timeout_of,
            periodic::cond_resched,
            look,
            report,
        );
        Some(until_next_search(now, timeout, first))
    }

    /// Returns the current stack of the owner of an event that began at `start`, at most as deep as
    /// the parameter `stack`. The stack is empty if the parameter is 0, if the event has no owner,
    /// or if the owner has ended or is the caller. For an owner that is running, see sys/stack.rs.
    /// May sleep.
    pub(crate) fn stack_of(&self, owner: Owner, start: u64) -> Stack {
        let depth = self.depth();
        if depth == 0 || owner.tid == 0 {
            return Stack::EMPTY;
        }
        Stack::of(owner.tid, depth, |start_time| {
            owner.is_task_started_at(start_time, start)
        })
    }
}
