// SPDX-License-Identifier: GPL-2.0

//! An event that is built in its cell, before it is known whether it will start.
//!
//! ```text
//!   draft: a free cell --> words are set --> begin: findable by its key
//!                                       \--> dropped: the cell is free again
//! ```
//!
//! Any other start copies all the data that it is passed. Building the data in place is cheaper if
//! its length varies, or if the data decides whether the event is wanted.
//!
//! The cell belongs to the draft until the event is published (event.rs): until then, no reader
//! takes its content for the data of an event. Words that the draft does not set keep the values of
//! an earlier event of this engine, so the data must show which words are valid. Any context,
//! including NMI.

use super::{Begin, Engine, Open};
use crate::engine::{event::Event, freelist::Index, platform::Platform, stats::Counter};
use core::mem::ManuallyDrop;

/// An event that is being built in a cell of its own.
pub(crate) struct Draft<'a, const K: usize, const D: usize, P: Platform> {
    engine: &'a Engine<K, D, P>,
    guard: &'a P::Guard,
    index: Index,
    event: &'a Event<K, D>,
}

impl<const K: usize, const D: usize, P: Platform> Engine<K, D, P> {
    /// Returns a cell for an event that may start. `None` if this CPU has no hot cell: the caller
    /// then uses [`Engine::event_in`], which searches for a cell, and counts the failure if there
    /// is none.
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
    /// Gives access to the event, to set the words of its data.
    #[inline(always)]
    pub(crate) fn open(&mut self) -> Open<'_, K, D> {
        Open { event: self.event }
    }

    /// Starts the operation at `start`, as [`Engine::event_in`] does.
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
