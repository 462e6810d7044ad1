// SPDX-License-Identifier: GPL-2.0

//! A new key for an event that continues: an operation is renamed while it is in flight.
//!
//! ```text
//!   claim (changing) --> new data --> out of the table --> new key --> into the table --> publish
//! ```
//!
//! A rename is an [`Engine::update`] with a move in the table in between: the event stays in its
//! cell, and keeps its start and its `timed_out`, unless the caller changes the start or renews the
//! event. During the move no other caller can use the event, or find it by either key. The move
//! itself is not counted.
//!
//! For the readers of the table the event ends under one key and starts under another one. The life
//! that they may have seen ends with the claim, and the next life is published after the key and
//! the place were written, as for any new event (event.rs, "Why no grace period is needed"). Any
//! context, including NMI.

use super::{Engine, Open, Verdict};
use crate::{
    engine::{event::Event, freelist::Cell, platform::Platform, stats::Counter}, //
};

impl<const K: usize, const D: usize, P: Platform> Engine<K, D, P> {
    /// Calls `change`, which may change or drop a live event, and gives the event another key
    /// unless it was dropped. Returns the decision of `change`, if `key` was live.
    ///
    /// The caller is responsible for the new key: if keys are unique, nothing else is live under
    /// it. If the table has no room for the event, because about 200 events of the new key are
    /// live, the event is dropped and counted as `gone`, and the result is [`Verdict::Gone`].
    pub(crate) fn rename(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        new: &[u64; K],
        change: impl FnOnce(&mut Open<'_, K, D>) -> Verdict,
    ) -> Option<Verdict> {
        let hash = self.seed.hash(key);
        let hits = self.table.look(guard, hash)?;
        let take = |found| self.take_by(key, found, Event::claim_to_change);
        let (won, event) = self.table.find_among(guard, hash, hits, take)?;
        let verdict = change(&mut Open { event });
        self.table.remove(guard, hash, event.link(), won.found);
        if verdict != Verdict::Gone {
            event.set_key(new);
            let hash = self.seed.hash(new);
            let link = event.link();
            if self.table.insert(guard, hash, won.found.cell, link) {
                self.again(guard, won, event, verdict);
                return Some(verdict);
            }
        }
        event.has_ended(won.life);
        self.recycle(guard, won, event);
        self.stats.here::<P>(guard).count(Counter::GONE);
        Some(Verdict::Gone)
    }
}
