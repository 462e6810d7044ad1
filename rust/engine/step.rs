// SPDX-License-Identifier: GPL-2.0

//! The steps of an operation in which two CPUs take part.
//!
//! ```text
//!   the owner    step: claim --> look, change --> publish again, or end, with a report
//!   the other    note: take a reference --> write words of the data --> give the reference back
//! ```
//!
//! [`Engine::update`] hides an event while it is being changed: a second caller finds nothing then,
//! and its information is lost. So only one CPU, the owner, claims the event. The other CPU makes
//! notes, in words that the owner leaves alone while the other CPU may write them. A note hides
//! nothing from the owner.
//!
//! A step may be the last one: one claim covers both reading the event and ending it, so another
//! event of the same key cannot be taken in between.
//!
//! Both CPUs may choose among the events of a key: the owner before its claim, the other CPU with a
//! reference. The choice is sound if it reads only words that are never noted, for the reason that
//! event.rs, step 3, gives for comparing keys. Any context, including NMI.
//!
//! For callers that usually miss, [`Engine::seek`] does only the lookup of a step, and is small
//! enough to be inlined; [`Engine::step_sought`] then makes the step.

use super::{Engine, Late, Open};
use crate::engine::{
    event::{Event, GetRef, Life},
    platform::Platform,
    rcu_ht::Hits,
    stats::Counter,
};

/// The next action of [`Engine::step`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// The operation continues.
    Keep,
    /// The operation ceased to exist; counted as `gone`.
    Gone,
    /// The operation ends at this time, in nanoseconds.
    End(u64),
}

impl<const K: usize, const D: usize> Open<'_, K, D> {
    /// Returns a word of the data; 0 if there is no such word.
    #[inline(always)]
    pub(crate) fn word(&self, at: usize) -> u64 {
        self.event.word(at)
    }

    /// Replaces a word of the data, if there is one.
    #[inline(always)]
    pub(crate) fn set_word(&mut self, at: usize, word: u64) {
        self.event.set_word(at, word);
    }
}

impl<const K: usize, const D: usize, P: Platform> Engine<K, D, P> {
    /// Makes a step of an event of this key that `is_meant` accepts: `change` reads it, changes it,
    /// and decides. Returns the decision, if there is such an event.
    ///
    /// `late` is called when [`Engine::event_out`] would call it. While `change` runs, only
    /// [`Engine::is_known`] still finds the event.
    #[inline]
    pub(crate) fn step(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        is_meant: impl Fn(&Open<'_, K, D>) -> bool,
        change: impl FnOnce(&mut Open<'_, K, D>) -> Next,
        late: impl FnOnce(&Late<K, D>),
    ) -> Option<Next> {
        let hash = self.seed.hash(key);
        let hits = self.table.look(guard, hash)?;
        self.step_hit(guard, hash, hits, key, is_meant, change, late)
    }

    /// Makes a step of an event that may be live.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "all that its caller has")]
    fn step_hit(
        &self,
        guard: &P::Guard,
        hash: u64,
        hits: Hits<'_>,
        key: &[u64; K],
        is_meant: impl Fn(&Open<'_, K, D>) -> bool,
        change: impl FnOnce(&mut Open<'_, K, D>) -> Next,
        late: impl FnOnce(&Late<K, D>),
    ) -> Option<Next> {
        self.step_sought(guard, hash, hits, key, is_meant, change, late)
    }

    /// Returns where an event of this key may be live, with the hash of the key, for
    /// [`Engine::step_sought`]; usually `None`, since there is no such event.
    #[inline(always)]
    pub(crate) fn seek<'a>(
        &'a self,
        guard: &'a P::Guard,
        key: &[u64; K],
    ) -> Option<(u64, Hits<'a>)> {
        let hash = self.seed.hash(key);
        let hits = self.table.look_in_vain(guard, hash)?;
        Some((hash, hits))
    }

    /// Makes a step, as [`Engine::step`] does, for the key that [`Engine::seek`] was called with.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "they stay in registers")]
    pub(crate) fn step_sought(
        &self,
        guard: &P::Guard,
        hash: u64,
        hits: Hits<'_>,
        key: &[u64; K],
        is_meant: impl Fn(&Open<'_, K, D>) -> bool,
        change: impl FnOnce(&mut Open<'_, K, D>) -> Next,
        late: impl FnOnce(&Late<K, D>),
    ) -> Option<Next> {
        let claim = |event: &Event<K, D>, life: Life| {
            let claims = is_meant(&Open { event });
            claims.then(|| event.claim_to_change(life)).flatten()
        };
        let take = |found| self.take_by(key, found, claim);
        let (won, event) = self.table.find_among(guard, hash, hits, take)?;
        let next = change(&mut Open { event });
        match next {
            Next::Keep => event.republish(won.life, false),
            Next::Gone => {
                event.has_ended(won.life);
                self.release(guard, hash, won, event);
                self.stats.here::<P>(guard).count(Counter::GONE);
            }
            Next::End(end) => {
                event.has_ended(won.life);
                self.finish(guard, hash, won, event, end, |_| true, late);
            }
        }
        Some(next)
    }

    /// Writes one word of the data of an event of this key that `is_meant` accepts, without ending
    /// the life (event.rs) that the event is in. Returns whether such an event was found. An event
    /// is not found while its owner changes it, or if it already has the maximum number of
    /// references.
    ///
    /// No other caller may write the word meanwhile. A copy of the event has either the old or the
    /// new value of the word.
    #[inline]
    pub(crate) fn note(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        is_meant: impl Fn(&Open<'_, K, D>) -> bool,
        at: usize,
        word: impl FnOnce(&Open<'_, K, D>) -> u64,
    ) -> bool {
        self.note_words(guard, key, is_meant, at, |event| [word(event)])
    }

    /// Writes several words from word `at` on, in ascending order; see [`Engine::note`]. A copy
    /// made meanwhile may have only some of the new words.
    #[inline]
    pub(crate) fn note_words<const N: usize>(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        is_meant: impl Fn(&Open<'_, K, D>) -> bool,
        at: usize,
        words: impl FnOnce(&Open<'_, K, D>) -> [u64; N],
    ) -> bool {
        let hash = self.seed.hash(key);
        match self.table.look(guard, hash) {
            Some(hits) => self.note_hit(guard, hash, hits, key, is_meant, at, words),
            None => false,
        }
    }

    /// Writes a note on an event that may be live.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "all that its caller has")]
    fn note_hit<const N: usize>(
        &self,
        guard: &P::Guard,
        hash: u64,
        hits: Hits<'_>,
        key: &[u64; K],
        is_meant: impl Fn(&Open<'_, K, D>) -> bool,
        at: usize,
        words: impl FnOnce(&Open<'_, K, D>) -> [u64; N],
    ) -> bool {
        let found = self.table.find_among(guard, hash, hits, |found| {
            let event = self.pool.cell(found.cell);
            let life = event.life()?;
            if !event.has_key(key) || event.get_ref(life) != GetRef::Taken {
                return None;
            }
            // From here on the cell holds this event, live or ended.
            if is_meant(&Open { event }) {
                return Some(found.cell);
            }
            self.let_go(guard, found.cell);
            None
        });
        let Some(index) = found else { return false };
        let event = self.pool.cell(index);
        event.set_words(at, &words(&Open { event }));
        self.let_go(guard, index);
        true
    }
}
