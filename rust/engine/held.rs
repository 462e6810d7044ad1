// SPDX-License-Identifier: GPL-2.0

//! References to events, and several events of one key.
//!
//! A [`Reference`] keeps the cell of one event from being recycled, before and after its end. It
//! does not prevent other callers from ending the event. Its holder can read the event at any time,
//! and can end exactly this event and no other of the same key. Any context, including NMI.

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

/// Keeps the memory of an event, live or ended. The holder of the reference gives it back with
/// [`Engine::put_ref`].
///
/// A reference does not implement `Drop`: giving it back requires the engine and a guard.
#[derive(Debug)]
pub(crate) struct Reference(Index);

impl Reference {
    /// Returns the reference that was taken to the event in a cell.
    ///
    /// If no reference was taken to this index, the result is one reference too many: an error in
    /// counting, which does no harm to memory.
    pub(crate) fn of(index: Index) -> Self {
        Self(index)
    }

    /// Returns the cell that the reference keeps, for callers that cannot store a `Reference`, or
    /// only lend it.
    pub(crate) fn index(&self) -> Index {
        self.0
    }
}

/// The result of taking a reference.
#[derive(Debug)]
pub(crate) enum Lookup {
    Found(Reference),
    /// No event of this key is live.
    NotFound,
    /// The event is live, but has [`crate::engine::event::HOLDERS_MAX`] references already.
    TooMany,
}

impl<const K: usize, const D: usize, P: Platform> Engine<K, D, P> {
    /// Starts an event, as [`Engine::event_in`], and returns a reference to it. Fails with the
    /// result of the start.
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

    /// Ends exactly this event at `end`. Returns `None`, and counts nothing, if the event had ended
    /// before, or is inside [`Engine::update`].
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
        // The cell is not recycled, so a live event in it is this one. An event that is inside
        // `update` is not live.
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

    /// Takes a reference to a live event of this key.
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

    /// Copies a live event of this key that `is_meant` accepts, if there is one.
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

    /// Passes each live event of this key to `see`, until `see` returns `false`, and returns how
    /// many were passed. `see` may use the reference only during the call.
    ///
    /// Every event that stays live meanwhile is passed exactly once. An event that already has too
    /// many references is left out.
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
            // Each event has one slot. Its cell may also be found through a second slot, whose new
            // index is not written yet.
            if found.is_place_of(event.link()) {
                seen += 1;
                go_on = see(&reference);
            }
            self.put_ref(guard, reference);
            (!go_on).then_some(())
        });
        seen
    }

    /// Whether an event of this key is live, or being changed.
    pub(crate) fn is_known(&self, guard: &P::Guard, key: &[u64; K]) -> bool {
        let hash = self.seed.hash(key);
        let found = self.table.find(guard, hash, |found| {
            let event = self.pool.cell(found.cell);
            // The key of a cell changes only while the cell is not in the table (rename.rs).
            (event.is_live_or_changing() && event.has_key(key)).then_some(())
        });
        found.is_some()
    }

    /// Drops an event that stands for no operation, if it has not ended, and counts it as `gone`.
    /// Consumes the reference. Must not be called inside an [`Engine::update`] of this event.
    pub(crate) fn drop_held(&self, event: Reference) {
        let Reference(index) = event;
        let cell = self.pool.cell(index);
        // The cell is not recycled, so a live event in it is this one.
        while cell.is_live_or_changing() {
            let guard = P::guard();
            // `None` while another CPU changes the event. That CPU has preemption off, so this is
            // brief.
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

    /// Takes one more reference to an event; `None` if there are too many.
    pub(crate) fn get_ref_again(&self, event: &Reference) -> Option<Reference> {
        match self.pool.cell(event.0).get_ref_again() {
            GetRef::Taken => Some(Reference(event.0)),
            GetRef::Over | GetRef::TooMany => None,
        }
    }

    /// Returns the reference with this number, see [`Reference::index`], if any caller holds a
    /// reference to the event in this cell; it need not be this caller.
    pub(crate) fn reference(&self, number: u32) -> Option<Reference> {
        let index = self.pool.index_of(number)?;
        let is_held = self.pool.cell(index).holders() != 0;
        is_held.then(|| Reference::of(index))
    }

    /// Gives back a reference.
    pub(crate) fn put_ref(&self, guard: &P::Guard, event: Reference) {
        self.let_go(guard, event.0);
    }

    /// Drops one reference to the event in a cell.
    pub(super) fn let_go(&self, guard: &P::Guard, index: Index) {
        if self.pool.cell(index).put_ref() {
            self.pool.put(guard, index);
        }
    }

    /// Returns the start, key and data of a referenced event, live or ended.
    pub(crate) fn view(&self, event: &Reference) -> EventCopy<K, D> {
        let event = self.pool.cell(event.0);
        EventCopy {
            start: event.start(),
            found: event.was_found(),
            key: event.key(),
            data: event.data(),
        }
    }

    /// Whether a referenced event is live; false also while it is being changed.
    pub(crate) fn is_live(&self, event: &Reference) -> bool {
        self.pool.cell(event.0).is_live()
    }

    /// Returns the number of references to all events.
    pub(crate) fn holders(&self) -> u64 {
        self.pool.cells().map(|(_, event)| event.holders()).sum()
    }
}
