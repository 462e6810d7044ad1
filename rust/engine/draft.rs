// SPDX-License-Identifier: GPL-2.0

//! An event that is made in its cell, before it is known whether it will begin.
//!
//! ```text
//!   draft: a free cell --> words are set --> begin: findable by its key
//!                                       \--> dropped: the cell is free again
//! ```
//!
//! A begin that is given its data copies them, all of them. Data that have a variable length, or that
//! show whether the event is wanted at all, are cheaper made where they will be.
//!
//! The cell belongs to the draft, as it belongs to a begin between getting and publishing it
//! (event.rs): no other party looks at its data as those of an event. What the draft does not set is
//! what an earlier event of this engine left there, so the data themselves must say what is of
//! theirs. Any context, including NMI.

use super::{Begin, Engine, Open};
use crate::engine::{event::Event, freelist::Index, platform::Platform, stats::Counter};
use core::mem::ManuallyDrop;

/// See the head of this file.
pub(crate) struct Draft<'a, const K: usize, const D: usize, P: Platform> {
    engine: &'a Engine<K, D, P>,
    guard: &'a P::Guard,
    index: Index,
    event: &'a Event<K, D>,
}

impl<const K: usize, const D: usize, P: Platform> Engine<K, D, P> {
    /// A cell for an event that may begin. `None` if this CPU has none at hand; then
    /// [`Engine::event_in`] searches for one, and counts if there is none.
    #[inline(always)]
    pub(crate) fn draft<'a>(&'a self, guard: &'a P::Guard) -> Option<Draft<'a, K, D, P>> {
        let index = self.pool.get_hot(guard)?;
        let event = self.pool.cell(index);
        Some(Draft {
            engine: self,
            guard,
            index,
            event,
        })
    }
}

impl<const K: usize, const D: usize, P: Platform> Draft<'_, K, D, P> {
    /// The event, to set the words of its data.
    #[inline(always)]
    pub(crate) fn open(&mut self) -> Open<'_, K, D> {
        Open { event: self.event }
    }

    /// The operation begins at `start`; as [`Engine::event_in`].
    #[inline(always)]
    pub(crate) fn begin(self, key: &[u64; K], start: u64) -> Begin {
        let Draft {
            engine,
            guard,
            index,
            event,
        } = *ManuallyDrop::new(self);
        engine.stats.here::<P>(guard).count(Counter::ATTEMPTS);
        event.fill(key, start, &[]);
        engine.event_in_cell(guard, key, index, event)
    }
}

impl<const K: usize, const D: usize, P: Platform> Drop for Draft<'_, K, D, P> {
    #[inline(always)]
    fn drop(&mut self) {
        self.engine.pool.put(self.guard, self.index);
    }
}
