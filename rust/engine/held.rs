// SPDX-License-Identifier: GPL-2.0

//! References to events, and several events of one key.
//!
//! A [`Reference`] keeps the cell of one event from being recycled, before and after its end. It
//! does not prevent others from ending it. Its holder can read the event at any time, and end this
//! event and no other of the same key. Any context, including NMI.

use super::{became, Begin, Ended, Engine, Late, When};
use crate::{
    engine::{
        event::{Event, EventCopy, GetRef},
        freelist::{Cell, Index},
        platform::Platform,
        rcu_ht::{Candidate, Hits},
        stats::Counter,
    }, //
};
use kernel::prelude::*;

/// Keeps an event's memory, live or ended. Returned by [`Engine::put_ref`].
///
/// Not `Drop`: like a cell it outlives the call that took it.
#[derive(Debug)]
pub(crate) struct Reference(Index);

impl Reference {
    /// The reference that was taken to the event in a cell.
    ///
    /// For an index to which no reference was taken it is one reference too many, which is an error
    /// in counting, but does no harm to memory.
    pub(crate) fn of(index: Index) -> Self {
        Self(index)
    }

    /// The cell that it keeps, for callers that cannot store a `Reference`, or only lend it.
    pub(crate) fn index(&self) -> Index {
        self.0
    }
}

/// The result of taking a reference.
#[derive(Debug)]
pub(crate) enum Lookup {
    Found(Reference),
    /// No such key is live.
    NotFound,
    /// It is live, but has [`crate::engine::event::HOLDERS_MAX`] references already.
    TooMany,
}

impl<const K: usize, const D: usize, P: Platform> Engine<K, D, P> {
    /// Begins an event, as [`Engine::event_in`], and returns a reference to it. Fails with the
    /// result of the begin.
    pub(crate) fn event_in_held(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        start: u64,
        data: &[u64; D],
    ) -> Result<Reference, Begin> {
        self.stats.here::<P>(guard).count(Counter::ATTEMPTS);
        let hash = self.seed.hash(key);
        let begun = self.insert(guard, hash, key, start, data, Event::publish_held);
        self.begun(guard, became(&begun));
        begun.map(|(index, _)| Reference(index))
    }

    /// The operation of this very event ends at `end`. Returns `None` if it had ended before, which
    /// counts nothing.
    ///
    /// The reference stays with the caller.
    pub(crate) fn event_out_held(
        &self,
        guard: &P::Guard,
        event: &Reference,
        end: impl When,
        late: impl FnOnce(&Late<K, D>),
    ) -> Option<Ended> {
        let Reference(index) = *event;
        let event = self.pool.cell(index);
        // The cell is not recycled, so a live event in it is this one. It is not found while it is
        // inside `update`.
        let life = event.life().and_then(|life| event.claim(life))?;
        let hash = self.seed.hash(&event.key());
        let found = Candidate::anywhere(index);
        Some(self.finish(
            guard,
            hash,
            self.won(found, life),
            event,
            end,
            |_| true,
            late,
        ))
    }

    /// A reference to a live event of this key.
    #[inline]
    pub(crate) fn lookup(&self, guard: &P::Guard, key: &[u64; K]) -> Lookup {
        let hash = self.seed.hash(key);
        match self.table.look(guard, hash) {
            Some(hits) => self.lookup_hit(guard, hash, hits, key),
            None => Lookup::NotFound,
        }
    }

    /// Looks up an event that may be live.
    #[inline(never)]
    fn lookup_hit(&self, guard: &P::Guard, hash: u64, hits: Hits<'_>, key: &[u64; K]) -> Lookup {
        let get_ref = |found: Candidate<'_>| {
            let event = self.pool.cell(found.cell);
            let life = event.life()?;
            if !event.has_key(key) {
                return None;
            }
            match event.get_ref(life) {
                GetRef::Taken => Some(Lookup::Found(Reference(found.cell))),
                GetRef::TooMany => Some(Lookup::TooMany),
                GetRef::Over => None,
            }
        };
        let found = self.table.find_among(guard, hash, hits, get_ref);
        found.unwrap_or(Lookup::NotFound)
    }

    /// A copy of a live event of this key, if there is one.
    pub(crate) fn copy_of(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        is_meant: impl Fn(&EventCopy<K, D>) -> bool,
    ) -> Option<EventCopy<K, D>> {
        let hash = self.seed.hash(key);
        self.table.find(guard, hash, |found| {
            let (_, copy) = self.pool.cell(found.cell).peek()?;
            (copy.key == *key && is_meant(&copy)).then_some(copy)
        })
    }

    /// Passes each live event of this key to `see`, until it returns `false`, and returns how many
    /// were passed. The reference belongs to `see` for the call only.
    ///
    /// All that are live all the time are passed, each once. An event with too many references
    /// already is left out.
    pub(crate) fn each_of(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        mut see: impl FnMut(&Reference) -> bool,
    ) -> u64 {
        let mut seen = 0;
        let hash = self.seed.hash(key);
        self.table.visit(guard, hash, |found| {
            let event = self.pool.cell(found.cell);
            let life = event.life()?;
            if !event.has_key(key) || event.get_ref(life) != GetRef::Taken {
                return None;
            }
            let reference = Reference(found.cell);
            let mut go_on = true;
            // Each event has one slot. Its cell may be met in another one, too, that has not got
            // its new index yet.
            if found.is_place_of(event.link()) {
                seen += 1;
                go_on = see(&reference);
            }
            self.put_ref(guard, reference);
            (!go_on).then_some(())
        });
        seen
    }

    /// Whether an event of this key is live, be it inside a change.
    pub(crate) fn is_known(&self, guard: &P::Guard, key: &[u64; K]) -> bool {
        let hash = self.seed.hash(key);
        let found = self.table.find(guard, hash, |found| {
            let event = self.pool.cell(found.cell);
            // The key of a cell in the table does not change under a change of the event.
            (event.is_live_or_changing() && event.has_key(key)).then_some(())
        });
        found.is_some()
    }

    /// This very event was none: drops it, if it has not ended, and counts it as `gone`. Takes the
    /// reference. Not inside [`Engine::update`] of this event.
    pub(crate) fn drop_held(&self, event: Reference) {
        let Reference(index) = event;
        let cell = self.pool.cell(index);
        // The cell is not recycled, so a live event in it is this one.
        while cell.is_live_or_changing() {
            let guard = P::guard();
            // `None` while another CPU changes it, with its preemption off: soon over.
            let Some(life) = cell.life().and_then(|life| cell.claim(life)) else {
                continue;
            };
            let hash = self.seed.hash(&cell.key());
            let found = Candidate::anywhere(index);
            self.release(&guard, hash, self.won(found, life), cell);
            self.stats.here::<P>(&guard).count(Counter::GONE);
        }
        self.put_ref(&P::guard(), event);
    }

    /// One more reference to the same event; `None` if there are too many.
    pub(crate) fn get_ref_again(&self, event: &Reference) -> Option<Reference> {
        match self.pool.cell(event.0).get_ref_again() {
            GetRef::Taken => Some(Reference(event.0)),
            GetRef::Over | GetRef::TooMany => None,
        }
    }

    /// The reference with this number, see [`Reference::index`], if there is one: if the event in
    /// this cell has a holder. Whether that is the caller is not known.
    pub(crate) fn reference(&self, number: u32) -> Option<Reference> {
        let index = self.pool.index_of(number)?;
        let is_held = self.pool.cell(index).holders() != 0;
        is_held.then(|| Reference::of(index))
    }

    /// Returns a reference.
    pub(crate) fn put_ref(&self, guard: &P::Guard, event: Reference) {
        self.let_go(guard, event.0);
    }

    /// Returns the reference to the event in a cell.
    pub(super) fn let_go(&self, guard: &P::Guard, index: Index) {
        if self.pool.cell(index).put_ref() {
            self.pool.put(guard, index);
        }
    }

    /// Begin, key and data of a referenced event, live or ended.
    pub(crate) fn view(&self, event: &Reference) -> EventCopy<K, D> {
        let event = self.pool.cell(event.0);
        EventCopy {
            start: event.start(),
            found: event.was_found(),
            key: event.key(),
            data: event.data(),
        }
    }

    /// Whether a referenced event has not ended.
    pub(crate) fn is_live(&self, event: &Reference) -> bool {
        self.pool.cell(event.0).is_live()
    }

    /// Number of references, counted one by one.
    pub(crate) fn holders(&self) -> u64 {
        self.pool.cells().map(|(_, event)| event.holders()).sum()
    }
}
