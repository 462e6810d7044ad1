// SPDX-License-Identifier: GPL-2.0

//! The engine: pairs the start and the end of operations by key.
//!
//! ```text
//!   Engine      event_in, event_out, update, expire
//!    |    |
//!    |   rcu_ht      finds an event by its key
//!    |    |
//!   freelist         cells, the memory of events
//!         |
//!       event        one cell: key, start, data, and the word that decides which end takes it
//!
//!   stats, histogram, delays, labels, profile      counters, for each CPU
//! ```
//!
//! An event that ends in time usually touches one cell, one bucket, and the counters of the CPUs on
//! which it starts and ends. There is no lock, no allocation and no wakeup; work is deferred only
//! when the pool runs short and must grow. An event is lost only if the pool is full or if the
//! table refuses it, usually because too many events of its key are live; each loss is counted. If
//! two CPUs end the only event of a key, one gets the event and the other finds nothing; the winner
//! is decided before anything is reported.
//!
//! An [`Engine`] is generic over the size of key and data in words, so that hashing and comparing
//! are inlined, and over the [`Platform`].
//!
//! # Calls
//!
//! ```text
//!   event_in -----> pool.get_hot --> fill --> table.insert_at_home --> publish
//!     |               no hot cell: event_in_colder     | full: event_in_beyond
//!     +-- event_in_unique, event_in_held, draft: other kinds of start
//!
//!   event_out ----> table.look --> event_out_hit --> take --> finish --> release
//!     |               nothing: unmatched   |           |         |          table.remove, pool.put
//!     |                                    |           |         +-- late, odd: finish_oddly
//!     |                                    |           |         |     --> release --> late()
//!     |                                    |           |         +-- by label: row_at_home
//!     |                                    |           +-- Event::claim: one winner
//!     |                                    +-- not at home: event_out_beyond
//!     +-- event_out_held, event_out_all: other kinds of end; end.rs, held.rs
//!
//!   update, rename --> table.look --> claim_to_change --> change() --> republish
//!   step, note     --> step.rs: for operations on which two CPUs work
//!   lookup         --> held.rs: a reference, which keeps the cell
//!
//!   expire         --> pool.chunks --> Event::quick_check --> old enough: peek_at, report()
//!   grow           --> table, then pool
//!   reap           --> table
//! ```
//!
//! # Contexts
//!
//! A function that takes a guard runs in any context, including NMI. [`Engine::growing`],
//! [`Engine::grow`] and [`Engine::reap`] may sleep. [`Engine::expire`] and [`Engine::clear`] visit
//! all cells and take guards themselves; they are for tasks.
//!
//! # One module
//!
//! The engine is part of several crates: the kernel module, its tests and benchmarks (tests/module,
//! tests/bench/module), and, on the host, user/engine and user/bench. Each includes the engine with
//! one line, which stays the same when the engine gets a new file. Directly from the kernel, the
//! engine uses only error codes and `fmt`. Each crate supplies an implementation of [`Platform`],
//! and `crate::sys::atomic` and `crate::sys::memory`.
//!
//! For a file included by path, the compiler looks for child modules next to that file. This is why
//! this file, freelist.rs and rcu_ht.rs name the paths of their child modules.
//!
//! Documentation/design/engine.md argues why the engine is correct.

use crate::{
    engine::{
        event::{Event, EventCopy, Life},
        freelist::{Cell, Freelist, Home, Index},
        hash::Seed,
        labels::Labels,
        platform::Platform,
        rcu_ht::{Candidate, Hits, Table},
        stats::{Counter, Stats},
    },
    sys::atomic::{Atomic, Relaxed},
};
use kernel::prelude::*;

#[path = "engine/delays.rs"]
pub(crate) mod delays;
#[path = "engine/draft.rs"]
pub(crate) mod draft;
#[path = "engine/end.rs"]
mod end;
#[path = "engine/event.rs"]
pub(crate) mod event;
#[path = "engine/expiry.rs"]
mod expiry;
#[expect(unsafe_code, reason = "denied on the host; inside the fence")]
#[path = "freelist.rs"]
pub(crate) mod freelist;
#[path = "engine/growth.rs"]
mod growth;
#[path = "engine/hash.rs"]
pub(crate) mod hash;
#[path = "engine/held.rs"]
pub(crate) mod held;
// The models have a histogram of one bucket: an array of loom's atomics does not fit on a thread's
// stack.
#[cfg_attr(loom, path = "../user/engine/tests/loom/histogram.rs")]
#[cfg_attr(not(loom), path = "engine/histogram.rs")]
pub(crate) mod histogram;
#[path = "engine/labels.rs"]
pub(crate) mod labels;
#[path = "engine/late.rs"]
mod late;
#[path = "engine/open.rs"]
mod open;
#[expect(unsafe_code, reason = "an unsafe trait")]
#[path = "engine/platform.rs"]
pub(crate) mod platform;
#[path = "engine/profile.rs"]
pub(crate) mod profile;
#[expect(unsafe_code, reason = "denied on the host; inside the fence")]
#[path = "rcu_ht.rs"]
pub(crate) mod rcu_ht;
#[path = "engine/rename.rs"]
mod rename;
#[path = "engine/schedule.rs"]
pub(crate) mod schedule;
#[path = "engine/stats.rs"]
pub(crate) mod stats;
#[path = "engine/step.rs"]
pub(crate) mod step;
#[path = "engine/unique.rs"]
mod unique;

pub(crate) use self::{
    end::{Ended, When},
    late::{Late, Why},
    open::{Open, Verdict},
};

/// Pairs events with keys of `K` words and data of `D` words. See the head of this file.
pub(crate) struct Engine<const K: usize, const D: usize, P: Platform> {
    pool: Freelist<Event<K, D>, P>,
    table: Table<P>,
    stats: Stats,
    seed: Seed,
    /// The threshold, at most [`NO_THRESHOLD`]. One word, so that the fast path and the reports
    /// compare with the same value, and one of two concurrent changes wins.
    threshold: Atomic<u64>,
}

/// The longest possible delay. Only a negative delay exceeds it, since delays are compared as
/// unsigned numbers.
const NO_THRESHOLD: u64 = i64::MAX as u64;

/// The result of a start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Begin {
    /// The event is tracked.
    Started,
    /// The event is lost: the pool was full.
    Full,
    /// The event is lost: too many events of its key are live.
    Crowded,
}

/// An event that the caller has claimed or just started: its cell, and its state at that moment.
#[derive(Clone, Copy)]
struct Won<'a> {
    found: Candidate<'a>,
    life: Life,
    /// The cell's home.
    home: Home,
}

impl<const K: usize, const D: usize, P: Platform> Engine<K, D, P> {
    /// Creates an engine that has room for `capacity` live events, may grow to `max`, and reports
    /// delays above `threshold` nanoseconds. With `is_labelled`, it counts delays by label once
    /// [`Engine::set_labels`] was called. May sleep; fails with `EINVAL` for an impossible
    /// capacity, or `ENOMEM`.
    pub(crate) fn growing(
        capacity: u32,
        max: u32,
        threshold: u64,
        seed: Seed,
        is_labelled: bool,
    ) -> Result<Self> {
        Ok(Self {
            pool: Freelist::with_mark(capacity, max, is_labelled)?,
            table: Table::new(capacity)?,
            stats: Stats::new::<P>()?,
            seed,
            threshold: Atomic::new(threshold.min(NO_THRESHOLD)),
        })
    }

    /// Gives the labels to an engine that was created for them. They are not a parameter of
    /// [`Engine::growing`], because the compiler would copy them several times on the stack.
    pub(crate) fn set_labels(&mut self, labels: Labels) {
        self.stats.set_labels(labels);
    }

    /// Tracks an operation that begins at `start`.
    ///
    /// A key may be live more than once; each end then takes one of its events. About 200 events of
    /// one key can be live at a time; more are refused ([`Begin::Crowded`]).
    #[inline(always)]
    pub(crate) fn event_in(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        start: u64,
        data: &[u64; D],
    ) -> Begin {
        self.stats.here::<P>(guard).count(Counter::ATTEMPTS);
        // Rare cases are handled completely out of line, so that no register must be saved across a
        // call here.
        let Some(index) = self.pool.get_hot(guard) else {
            return self.event_in_colder(guard, key, start, data);
        };
        let event = self.pool.cell(index);
        event.fill(key, start, data);
        self.event_in_cell(guard, key, index, event)
    }

    /// Inserts and publishes `event`, whose cell is filled, and counts the start.
    #[inline(always)]
    fn event_in_cell(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        index: Index,
        event: &Event<K, D>,
    ) -> Begin {
        let hash = self.seed.hash(key);
        if !self.table.insert_at_home(guard, hash, index, event.link()) {
            return self.event_in_beyond(guard, hash, index);
        }
        event.publish();
        self.begun(guard, Begin::Started)
    }

    /// Starts an event when this CPU has no hot cell.
    #[inline(never)]
    fn event_in_colder(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        start: u64,
        data: &[u64; D],
    ) -> Begin {
        let hash = self.seed.hash(key);
        let begun = self.insert(guard, hash, key, start, data, Event::publish);
        self.begun(guard, became(&begun))
    }

    /// Inserts and publishes a filled cell when its home bucket is full.
    #[cold]
    #[inline(never)]
    fn event_in_beyond(&self, guard: &P::Guard, hash: u64, index: Index) -> Begin {
        let begun = self.file(guard, hash, index, Event::publish);
        self.begun(guard, became(&begun))
    }

    /// Counts the result of a start.
    #[inline(always)]
    fn begun(&self, guard: &P::Guard, begun: Begin) -> Begin {
        let stats = self.stats.here::<P>(guard);
        match begun {
            Begin::Started => stats.count(Counter::STARTED),
            Begin::Full => stats.count(Counter::FULL),
            Begin::Crowded => stats.count(Counter::CROWDED),
        }
        begun
    }

    /// Creates a new event, which `publish` makes findable. Counts nothing; fails with the result
    /// of the start.
    #[inline(always)]
    fn insert<R, const W: usize>(
        &self,
        guard: &P::Guard,
        hash: u64,
        key: &[u64; K],
        start: u64,
        data: &[u64; W],
        publish: impl FnOnce(&Event<K, D>) -> R,
    ) -> Result<(Index, R), Begin> {
        let index = self.pool.get(guard).ok_or(Begin::Full)?;
        self.pool.cell(index).fill(key, start, data);
        self.file(guard, hash, index, publish)
    }

    /// Inserts a new event into the table, where `publish` makes it findable, or gives its cell
    /// back.
    #[inline(always)]
    fn file<R>(
        &self,
        guard: &P::Guard,
        hash: u64,
        index: Index,
        publish: impl FnOnce(&Event<K, D>) -> R,
    ) -> Result<(Index, R), Begin> {
        let event = self.pool.cell(index);
        if self.table.insert(guard, hash, index, event.link()) {
            Ok((index, publish(event)))
        } else {
            self.pool.put(guard, index);
            Err(Begin::Crowded)
        }
    }

    /// Changes a live event, or drops it. Returns what `change` decided, if the key is live.
    ///
    /// While `change` runs, no other caller can use or find the event: use this only where the
    /// instrumented subsystem itself orders the steps of one operation.
    #[inline]
    pub(crate) fn update(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        change: impl FnOnce(&mut Open<'_, K, D>) -> Verdict,
    ) -> Option<Verdict> {
        let hash = self.seed.hash(key);
        let hits = self.table.look(guard, hash)?;
        self.update_hit(guard, hash, hits, key, change)
    }

    /// Changes an event that may be live. See [`Engine::update`].
    #[inline(never)]
    fn update_hit(
        &self,
        guard: &P::Guard,
        hash: u64,
        hits: Hits<'_>,
        key: &[u64; K],
        change: impl FnOnce(&mut Open<'_, K, D>) -> Verdict,
    ) -> Option<Verdict> {
        let take = |found| self.take_by(key, found, Event::claim_to_change);
        let (won, event) = self.table.find_among(guard, hash, hits, take)?;
        let verdict = change(&mut Open { event });
        if verdict == Verdict::Gone {
            event.has_ended(won.life);
            self.release(guard, hash, won, event);
            self.stats.here::<P>(guard).count(Counter::GONE);
        } else {
            self.again(guard, won, event, verdict);
        }
        Some(verdict)
    }

    /// Publishes an event that was changed. A renewed event is counted in `replaced`, `attempts`
    /// and `started`.
    #[inline(always)]
    fn again(&self, guard: &P::Guard, won: Won<'_>, event: &Event<K, D>, verdict: Verdict) {
        let renewed = verdict == Verdict::Renewed;
        event.republish(won.life, renewed);
        if renewed {
            self.stats.here::<P>(guard).count(Counter::REPLACED);
            self.stats.here::<P>(guard).count(Counter::ATTEMPTS);
            self.stats.here::<P>(guard).count(Counter::STARTED);
        }
    }

    /// Counts a start that the instance's filter refused.
    #[inline]
    pub(crate) fn filtered(&self, guard: &P::Guard) {
        self.stats.here::<P>(guard).count(Counter::ATTEMPTS);
        self.stats.here::<P>(guard).count(Counter::FILTERED);
    }

    /// Counts a start that came while the instance was off.
    #[inline]
    pub(crate) fn off(&self, guard: &P::Guard) {
        self.stats.here::<P>(guard).count(Counter::ATTEMPTS);
        self.stats.here::<P>(guard).count(Counter::OFF);
    }

    /// Drops all live events and returns their number. Probes may be running: events that start or
    /// are changed meanwhile may stay.
    pub(crate) fn clear(&self) -> u64 {
        let mut cleared = 0;
        for (index, event) in self.pool.cells() {
            let Some(life) = event.life() else { continue };
            let guard = P::guard();
            if let Some(life) = event.claim(life) {
                let hash = self.seed.hash(&event.key());
                let found = Candidate::anywhere(index);
                self.release(&guard, hash, self.won(found, life), event);
                self.stats.here::<P>(&guard).count(Counter::CLEARED);
                cleared += 1;
            }
        }
        cleared
    }

    /// Passes copies of the live events to `see`, in no particular order, until `see` fails.
    pub(crate) fn each_pending(&self, mut see: impl FnMut(EventCopy<K, D>) -> Result) -> Result {
        for (_, event) in self.pool.cells() {
            if let Some((_, copy)) = event.peek() {
                see(copy)?;
            }
        }
        Ok(())
    }

    /// Counts the live events, one by one.
    pub(crate) fn pending_count(&self) -> u64 {
        let live = |(_, event): &(Index, &Event<K, D>)| event.life().is_some();
        self.pool.cells().filter(live).count() as u64
    }

    /// Returns the counters.
    pub(crate) fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the threshold in nanoseconds; `u64::MAX` if no delay exceeds it.
    #[inline(always)]
    pub(crate) fn threshold(&self) -> u64 {
        // Relaxed: a threshold that changes now applies from about now.
        as_set(self.threshold.load(Relaxed))
    }

    /// Raises the threshold to the delay of an end, so that only a longer delay is late afterwards.
    /// Returns the threshold to report the event with, or `None` if it must not be reported. A call
    /// that has raised the threshold returns the previous threshold.
    ///
    /// Of several concurrent ends of events that had not timed out, each either raises the
    /// threshold above all earlier delays or is not reported. The ends that raise the threshold
    /// form a chain, in which the threshold of each is the delay of its predecessor. A timeout, and
    /// the end of an event that had timed out, are reported in any case; a timeout does not raise
    /// the threshold.
    pub(crate) fn raise_threshold(&self, late: &Late<K, D>) -> Option<u64> {
        if late.why == Why::Timeout {
            return Some(late.threshold);
        }
        // Relaxed: a maximum in one word, which orders nothing.
        let mut threshold = self.threshold.load(Relaxed);
        while late.delay > threshold {
            match self.threshold.cmpxchg(threshold, late.delay, Relaxed) {
                Ok(_) => return Some(threshold),
                Err(now) => threshold = now,
            }
        }
        (late.why == Why::LateEnd).then_some(late.threshold)
    }

    /// Changes the threshold, for ends from now on.
    pub(crate) fn set_threshold(&self, threshold: u64) {
        // Relaxed: the new threshold applies to ends from about now.
        self.threshold.store(threshold.min(NO_THRESHOLD), Relaxed);
    }

    /// Returns a number that stands for a key while this engine lives, and reveals nothing about
    /// the key.
    pub(crate) fn pseudonym(&self, key: &[u64; K]) -> u32 {
        (self.seed.hash(key) >> 32) as u32
    }

    /// Claims the event in a cell that was found, if it is live and has this key.
    #[inline(always)]
    fn take<'a>(
        &'a self,
        key: &[u64; K],
        found: Candidate<'a>,
    ) -> Option<(Won<'a>, &'a Event<K, D>)> {
        self.take_by(key, found, Event::claim)
    }

    #[inline(always)]
    fn take_by<'a>(
        &'a self,
        key: &[u64; K],
        found: Candidate<'a>,
        claim: impl FnOnce(&Event<K, D>, Life) -> Option<Life>,
    ) -> Option<(Won<'a>, &'a Event<K, D>)> {
        let (event, home) = self.pool.cell_and_home(found.cell);
        let life = event.life()?;
        if !event.has_key(key) {
            return None;
        }
        let life = claim(event, life)?;
        Some((Won { found, life, home }, event))
    }

    /// Describes an event that was claimed or started without [`Engine::take_by`].
    fn won<'a>(&self, found: Candidate<'a>, life: Life) -> Won<'a> {
        let home = self.pool.home(found.cell);
        Won { found, life, home }
    }

    /// Removes a claimed event from the table and gives its cell back, or leaves the cell to the
    /// holders of references.
    #[inline(always)]
    fn release(&self, guard: &P::Guard, hash: u64, won: Won<'_>, event: &Event<K, D>) {
        self.table.remove(guard, hash, event.link(), won.found);
        self.recycle(guard, won, event);
    }

    /// Gives back the cell of an event that is no longer in the table, or leaves the cell to the
    /// holders of references.
    #[inline(always)]
    fn recycle(&self, guard: &P::Guard, won: Won<'_>, event: &Event<K, D>) {
        if !won.life.is_held() || event.abandon() {
            self.pool.put_home(guard, won.found.cell, won.home);
        }
    }
}

/// Converts the outcome of [`Engine::insert`] to the result of a start.
#[inline(always)]
fn became<T>(begun: &Result<T, Begin>) -> Begin {
    begun
        .as_ref()
        .map_or_else(|begun| *begun, |_| Begin::Started)
}

/// Converts the stored `word` to the threshold as it was set.
#[inline(always)]
fn as_set(word: u64) -> u64 {
    match word {
        NO_THRESHOLD => u64::MAX,
        threshold => threshold,
    }
}
