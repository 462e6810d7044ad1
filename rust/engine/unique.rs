// SPDX-License-Identifier: GPL-2.0

//! Keys that can be live only once: a start drops any earlier event of the key.
//!
//! ```text
//!     CPU 0                          CPU 1                 two concurrent starts of one key
//!       publish A                      publish B
//!       full barrier                   full barrier
//!       look for others                look for others
//! ```
//!
//! With the barriers, at least one of the two sees the other's event. Events are ordered by their
//! start, then by their cell. Of two events, the earlier one is dropped, either by the caller that
//! started the later event or by the caller that started the earlier one. All callers follow one
//! order, so there is no cycle, and the last event always stays. If there is no room for an event,
//! an earlier event of its key is dropped first, but never a later one. Any context, including NMI.

use super::{became, held::Reference, Begin, Engine, Won};
use crate::{
    engine::{
        event::{Event, Life},
        freelist::Index,
        platform::Platform,
        rcu_ht::Candidate,
        stats::Counter,
    }, //
};
use kernel::prelude::*;

impl<const K: usize, const D: usize, P: Platform> Engine<K, D, P> {
    /// Tracks an operation that begins at `start`, with a key that can be live only once.
    ///
    /// Any other event that is live under this key began earlier, and its end was missed: it is
    /// dropped and counted as `replaced`. If two calls run concurrently, on two CPUs or because one
    /// interrupts the other, the event with the later start stays; if both events start in the same
    /// nanosecond, either may stay.
    ///
    /// `data` may be shorter than the event's data. The remaining words keep the values that an
    /// earlier event left in the cell, so the caller must know when they are valid.
    #[inline]
    pub(crate) fn event_in_unique<const W: usize>(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        start: u64,
        data: &[u64; W],
    ) -> Begin {
        self.in_unique(guard, key, start, data, Event::publish_and_order)
            .map_or_else(|lost| lost, |_| Begin::Started)
    }

    /// Starts an event, as [`Engine::event_in_unique`], and returns a reference to it. If the start
    /// fails, returns why.
    pub(crate) fn event_in_unique_held(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        start: u64,
        data: &[u64; D],
    ) -> Result<Reference, Begin> {
        self.in_unique(guard, key, start, data, Event::publish_held)
            .map(Reference::of)
    }

    /// Starts an event for an operation that was found in flight at `start`: it began then or
    /// earlier. See [`Engine::event_in_unique_held`] and [`Event::publish_found`].
    pub(crate) fn event_in_found(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        start: u64,
        data: &[u64; D],
    ) -> Result<Reference, Begin> {
        let index = self.in_unique(guard, key, start, data, Event::publish_found)?;
        self.stats.here::<P>(guard).count(Counter::BEFORE_START);
        Ok(Reference::of(index))
    }

    #[inline(always)]
    fn in_unique<const W: usize>(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        start: u64,
        data: &[u64; W],
        publish: impl Fn(&Event<K, D>) -> Life,
    ) -> Result<Index, Begin> {
        const { assert!(W <= D) };
        self.stats.here::<P>(guard).count(Counter::ATTEMPTS);
        let hash = self.seed.hash(key);
        let mut begun = self.insert(guard, hash, key, start, data, &publish);
        if begun.is_err() && self.drop_one(guard, hash, key, start) {
            begun = self.insert(guard, hash, key, start, data, &publish);
        }
        self.begun(guard, became(&begun));
        let (index, life) = begun?;
        let found = Candidate::anywhere(index);
        self.drop_others(guard, hash, key, start, self.won(found, life));
        Ok(index)
    }

    /// Makes room by dropping an event of this key that did not begin after `start`, if there is
    /// one.
    #[cold]
    fn drop_one(&self, guard: &P::Guard, hash: u64, key: &[u64; K], start: u64) -> bool {
        // The claim proves the start, as it proves the key.
        let claim = |event: &Event<K, D>, life: Life| {
            let is_stale = event.start() <= start;
            is_stale.then(|| event.claim(life)).flatten()
        };
        let take = |found| self.take_by(key, found, claim);
        let hits = self.table.look(guard, hash);
        let stale = hits.and_then(|hits| self.table.find_among(guard, hash, hits, take));
        let Some((stale, event)) = stale else {
            return false;
        };
        self.release(guard, hash, stale, event);
        self.stats.here::<P>(guard).count(Counter::REPLACED);
        true
    }

    /// Leaves one event of this key: drops the events that are earlier than `mine`, and drops
    /// `mine` if there is a later one.
    ///
    /// All callers have published their event before they look, with a full barrier in between, so
    /// of two callers at least one sees the other's event. Both agree on which event to drop, so
    /// exactly the earlier one is dropped.
    #[inline(always)]
    fn drop_others(&self, guard: &P::Guard, hash: u64, key: &[u64; K], start: u64, mine: Won<'_>) {
        let mut is_last = true;
        let place = (start, mine.found.cell);
        self.table.find(guard, hash, |found| {
            if found.cell == mine.found.cell {
                return None;
            }
            let event = self.pool.cell(found.cell);
            let life = event.life()?;
            if event.has_key(key) {
                is_last &= self.drop_earlier(guard, hash, key, place, found.cell, life);
            }
            None::<()>
        });
        if !is_last {
            let event = self.pool.cell(mine.found.cell);
            if let Some(life) = event.claim(mine.life) {
                self.release(guard, hash, Won { life, ..mine }, event);
                self.stats.here::<P>(guard).count(Counter::REPLACED);
            }
        }
    }

    /// Drops the event in a cell if it has this key and is earlier than `mine`. Returns `false` if
    /// it has this key and is later.
    #[cold]
    fn drop_earlier(
        &self,
        guard: &P::Guard,
        hash: u64,
        key: &[u64; K],
        mine: (u64, Index),
        index: Index,
        life: Life,
    ) -> bool {
        let event = self.pool.cell(index);
        // A copy proves key and start without a claim: a later event must not be claimed.
        let Some((life, copy)) = event.peek_at(life) else {
            return true;
        };
        if copy.key != *key {
            return true;
        }
        if (copy.start, index) > mine {
            return false;
        }
        if let Some(life) = event.claim(life) {
            let found = Candidate::anywhere(index);
            self.release(guard, hash, self.won(found, life), event);
            self.stats.here::<P>(guard).count(Counter::REPLACED);
        }
        true
    }
}
