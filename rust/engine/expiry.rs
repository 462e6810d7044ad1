// SPDX-License-Identifier: GPL-2.0

//! The search for events that have timed out.
//!
//! ```text
//!     cells of the pool that were ever in use
//!       state: free, or has timed out?   --> next one          most cells: one word is read
//!              being changed?            --> look again soon
//!       start: too young?                --> next one          most events: two words
//!       copy: key, start, data; old enough, by its own timeout?
//!       look, mark, report, unmark                             what is due
//! ```
//!
//! An end between mark and unmark notices the report ([`super::Ended`]). An event that ends
//! before its mark is not reported.
//!
//! The fast path takes no part in the search. A worker searches about once per timeout if most
//! events end in time, and at most 32 times per timeout (instance/expire.rs). The search runs in a
//! context that may sleep, and holds the guard for one event at a time.

use super::{Engine, Late, Why};
use crate::{
    engine::{
        event::{Event, EventCopy, QuickCheck},
        platform::Platform,
        stats::Counter,
    }, //
};
use core::slice::Iter;

/// Number of cells that are checked before other tasks may run.
const SLICE: usize = 256;

/// The result of a search so far.
struct Search {
    now: u64,
    /// Events that started at this time or later are too young, whatever their timeout.
    young: u64,
    /// The start of the oldest event that is too young.
    oldest: u64,
    /// The earliest time at which a remaining event may time out.
    first: u64,
}

impl Search {
    /// Records that an event times out, or may time out, at `time`.
    fn is_due_at(&mut self, time: u64) {
        self.first = self.first.min(time);
    }
}

/// Skips the cells without an event that may be due, and returns the next one with such an event.
///
/// Not inlined: this loop takes most of the time, and has all registers to itself.
#[inline(never)]
fn pass_over<'a, const K: usize, const D: usize>(
    search: &mut Search,
    cells: &mut Iter<'a, Event<K, D>>,
) -> Option<&'a Event<K, D>> {
    let young = search.young;
    let mut oldest = search.oldest;
    let mut left = cells.as_slice().iter();
    let mut found = None;
    for event in left.by_ref() {
        match event.quick_check() {
            QuickCheck::Live(_, start) if start >= young => oldest = oldest.min(start),
            QuickCheck::Nothing => (),
            QuickCheck::Live(..) | QuickCheck::Changing => {
                found = Some(event);
                break;
            }
        }
    }
    search.oldest = oldest;
    *cells = left;
    found
}

impl<const K: usize, const D: usize, P: Platform> Engine<K, D, P> {
    /// Reports the events that have been live for their timeout at `now`, each once. `timeout`
    /// returns the timeout of each, in nanoseconds; `u64::MAX` means never. No timeout is less than
    /// `shortest`.
    ///
    /// `look` is called before an event is marked as timed out. Only a pending event can be marked,
    /// so an event that is reported was pending during that call. `report` is called immediately
    /// after the mark, with the result of `look`.
    ///
    /// Returns the time at which the first of the remaining events may time out, or `None` if no
    /// event can; no checked event can time out before that time. A result of `now` means that the
    /// next search must follow soon: an event was inside [`Engine::update`], or was changed or
    /// ended while the search looked at it. Calls `cond_resched`, which may sleep, from time to
    /// time and after each call of `look`; holds the guard for one event at a time.
    pub(crate) fn expire<T>(
        &self,
        now: u64,
        shortest: u64,
        timeout: impl Fn(&EventCopy<K, D>) -> u64,
        mut cond_resched: impl FnMut(),
        mut look: impl FnMut(&EventCopy<K, D>) -> T,
        mut report: impl FnMut(&P::Guard, &Late<K, D>, &T),
    ) -> Option<u64> {
        let mut search = Search {
            now,
            young: match shortest {
                0 => u64::MAX,
                _ => now.saturating_add(1).saturating_sub(shortest),
            },
            oldest: u64::MAX,
            first: u64::MAX,
        };
        for (_, chunk) in self.pool.chunks() {
            for cells in chunk.chunks(SLICE) {
                let mut cells = cells.iter();
                while let Some(event) = pass_over(&mut search, &mut cells) {
                    if self.expire_one(&mut search, event, &timeout, &mut look, &mut report) {
                        cond_resched();
                    }
                }
                cond_resched();
            }
        }
        search.is_due_at(search.oldest.saturating_add(shortest));
        (search.first != u64::MAX).then_some(search.first)
    }

    /// Reports an event if it has timed out. Returns whether `look` was called, which may be slow.
    #[inline(never)]
    fn expire_one<T>(
        &self,
        search: &mut Search,
        event: &Event<K, D>,
        timeout: impl Fn(&EventCopy<K, D>) -> u64,
        look: impl FnOnce(&EventCopy<K, D>) -> T,
        report: impl FnOnce(&P::Guard, &Late<K, D>, &T),
    ) -> bool {
        let seen = match event.quick_check() {
            QuickCheck::Live(life, _) => event.peek_at(life),
            QuickCheck::Changing => None,
            QuickCheck::Nothing => return false,
        };
        let Some((life, copy)) = seen else {
            // The event is being changed, was changed while it was copied, or has ended.
            search.is_due_at(search.now);
            return false;
        };
        let timeout = timeout(&copy);
        if life.has_timed_out() || timeout == u64::MAX {
            return false;
        }
        let delay = search.now.saturating_sub(copy.start);
        if delay < timeout {
            search.is_due_at(copy.start.saturating_add(timeout));
            return false;
        }
        let seen = look(&copy);
        let guard = P::guard();
        if !event.time_out(life) {
            // The event was changed, or has ended.
            search.is_due_at(search.now);
            return true;
        }
        self.stats.here::<P>(&guard).count(Counter::TIMED_OUT);
        let late = Late {
            why: Why::Timeout,
            start: copy.start,
            delay,
            found: copy.found,
            threshold: timeout,
            key: copy.key,
            data: copy.data,
        };
        report(&guard, &late, &seen);
        event.has_reported(life);
        true
    }
}
