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
//!       event        one cell: key, start, data, and the word that decides who ends it
//!
//!   stats, histogram, profile      counters, for each CPU
//! ```
//!
//! An event that ends in time touches one cell, one bucket and the counters of this CPU. There is
//! no lock, no allocation, no wake-up and no deferred work; an event is lost only when the pool is
//! full, and then it is counted. If two CPUs end the same key, one gets the event, the other finds
//! nothing, and the winner is decided before anything is reported.
//!
//! An [`Engine`] is generic over the size of key and data in words, so that hashing and comparing
//! are inlined, and over the [`Platform`].
//!
//! # Calls
//!
//! ```text
//!   event_in -----> pool.get_hot --> fill --> table.insert_at_home --> publish
//!     |               no hot cell: event_in_colder     | full: event_in_beyond
//!     +-- event_in_unique, event_in_held, draft: begins of other kinds
//!
//!   event_out ----> table.look --> event_out_hit --> take --> finish --> release
//!     |               nothing: unmatched   |           |         |          table.remove, pool.put
//!     |                                    |           |         +-- late, odd: finish_oddly
//!     |                                    |           |               --> release --> late()
//!     |                                    |           +-- Event::claim: one winner
//!     |                                    +-- not at home: event_out_beyond
//!     +-- event_out_held, event_out_all: ends of other kinds
//!
//!   update, rename --> table.look --> claim_to_change --> change() --> republish
//!   step, note     --> step.rs: for operations on which two CPUs work
//!   lookup         --> held.rs: a reference, which keeps the cell
//!
//!   expire         --> pool.cells --> Event::peek --> old enough: report()
//!   grow, reap     --> table, then pool
//! ```
//!
//! # Contexts
//!
//! A function that takes a guard runs in any context, including NMI. [`Engine::growing`],
//! [`Engine::clear`], [`Engine::grow`] and [`Engine::reap`] sleep.
//!
//! # One module
//!
//! Each crate includes the engine with one line, and a new file changes none of them: the kernel
//! module, its tests and benchmarks (tests/module, tests/bench/module), and user/engine and
//! user/bench on the host. Of the kernel it uses only error codes and allocation flags directly;
//! all else is behind [`platform`], `crate::sys::atomic` and `crate::sys::memory`, which each crate
//! supplies.
//!
//! The compiler looks for the children of a file that is included by path next to that file: hence
//! the paths here, and in the files of rust/engine that have children.
//!
//! Documentation/design/engine.md argues why it is correct.

use crate::{
    engine::{
        event::{Event, EventCopy, Life},
        freelist::{Cell, Freelist, Home, Index},
        hash::Seed,
        platform::Platform,
        rcu_ht::{Candidate, Hits, Table},
        stats::{Counter, Stats},
    },
    sys::atomic::{Atomic, Relaxed},
};
use kernel::prelude::*;

#[path = "engine/event.rs"]
pub(crate) mod event;
#[expect(unsafe_code, reason = "denied on the host; inside the fence")]
#[path = "freelist.rs"]
pub(crate) mod freelist;
#[path = "engine/hash.rs"]
pub(crate) mod hash;
// Left out of the models: they do not use it, and an array of loom's atomics does not fit on a
// thread's stack.
#[path = "engine/draft.rs"]
pub(crate) mod draft;
#[path = "engine/expiry.rs"]
mod expiry;
#[path = "engine/growth.rs"]
mod growth;
#[path = "engine/held.rs"]
pub(crate) mod held;
#[cfg_attr(loom, path = "../user/engine/tests/loom/histogram.rs")]
#[cfg_attr(not(loom), path = "engine/histogram.rs")]
pub(crate) mod histogram;
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

/// Pairs events with keys of `K` words and data of `D` words. See the head of this file.
pub(crate) struct Engine<const K: usize, const D: usize, P: Platform> {
    pool: Freelist<Event<K, D>, P>,
    table: Table<P>,
    stats: Stats,
    seed: Seed,
    /// The threshold, at most [`NO_THRESHOLD`]. One word, so that the path and the reports compare
    /// with the same value, and one of two concurrent changes wins.
    threshold: Atomic<u64>,
}

/// The longest possible delay: none exceeds it, except delays below 0, as unsigned numbers.
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

/// The state after an end whose start was known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// No report of the event's timeout is running, and none will start.
    Over,
    /// The report of the event's timeout is running or about to start: on another CPU, or in the
    /// code that this end interrupts or is called by.
    Reporting,
}

impl Ended {
    #[inline(always)]
    fn of(last: Life) -> Self {
        if last.is_reported_now() {
            Self::Reporting
        } else {
            Self::Over
        }
    }
}

/// An event that is to be reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Late<const K: usize, const D: usize> {
    /// Why the event is reported.
    pub(crate) why: Why,
    /// When the operation began, in nanoseconds.
    pub(crate) start: u64,
    /// Duration in nanoseconds; so far, if the operation has not ended.
    pub(crate) delay: u64,
    /// Whether the operation was found in flight: `start` is when it was first seen, and it took at
    /// least `delay`.
    pub(crate) found: bool,
    /// The threshold or timeout that it exceeded, in nanoseconds.
    pub(crate) threshold: u64,
    pub(crate) key: [u64; K],
    pub(crate) data: [u64; D],
}

impl<const K: usize, const D: usize> Late<K, D> {
    /// Returns a copy with another key.
    pub(crate) fn with_key<const L: usize>(&self, key: [u64; L]) -> Late<L, D> {
        Late {
            why: self.why,
            start: self.start,
            delay: self.delay,
            found: self.found,
            threshold: self.threshold,
            key,
            data: self.data,
        }
    }
}

/// A time in nanoseconds, or a closure that reads a clock if necessary.
pub(crate) trait When {
    /// Returns the time.
    fn when(self) -> u64;
}

impl When for u64 {
    #[inline(always)]
    fn when(self) -> u64 {
        self
    }
}

impl<F: FnOnce() -> u64> When for F {
    #[inline(always)]
    fn when(self) -> u64 {
        self()
    }
}

/// Why an event is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// The operation took longer than the threshold.
    Threshold,
    /// The operation did not end within the timeout.
    Timeout,
    /// The operation ended after its timeout.
    LateEnd,
}

/// An event that the caller has ended: the cell, and its last state.
#[derive(Clone, Copy)]
struct Won<'a> {
    found: Candidate<'a>,
    life: Life,
    /// The cell's home.
    home: Home,
}

/// A live event that [`Engine::update`] or [`Engine::event_out`] has access to.
pub(crate) struct Open<'a, const K: usize, const D: usize> {
    event: &'a Event<K, D>,
}

/// The next action of [`Engine::update`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// The operation continues.
    Keep,
    /// The operation ceased to exist; counted as `gone`.
    Gone,
    /// The event stood for an earlier operation, whose end was not seen, and now stands for a new
    /// one with the same key. The old one is counted as `replaced`, the new one as `started`.
    Renewed,
}

impl<const K: usize, const D: usize> Open<'_, K, D> {
    /// Returns this access by value, for callees that keep it in a register.
    #[inline(always)]
    pub(crate) fn again(&mut self) -> Open<'_, K, D> {
        Open { event: self.event }
    }

    /// Returns the data.
    pub(crate) fn data(&self) -> [u64; D] {
        self.event.data()
    }

    /// Replaces the data.
    pub(crate) fn set_data(&mut self, data: &[u64; D]) {
        self.event.set_data(data);
    }

    /// Replaces `W` words of the data, from the word `AT` on.
    #[inline(always)]
    pub(crate) fn set_words<const AT: usize, const W: usize>(&mut self, words: &[u64; W]) {
        const { assert!(AT + W <= D) };
        self.event.set_words(AT, words);
    }

    /// Returns when the operation began, in nanoseconds.
    pub(crate) fn start(&self) -> u64 {
        self.event.start()
    }

    /// Whether the operation was found in flight: it began at its start or before.
    pub(crate) fn was_found(&self) -> bool {
        self.event.was_found()
    }

    /// Moves the start, never to an earlier time: the search for timeouts may rely on the old one.
    pub(crate) fn set_start(&mut self, start: u64) {
        self.event.set_start(start);
    }
}

impl<const K: usize, const D: usize, P: Platform> Engine<K, D, P> {
    /// Creates an engine for `capacity` live events, which may grow to `max`, that reports delays
    /// above `threshold` nanoseconds. Sleeps; fails with `EINVAL` for an impossible capacity, or
    /// `ENOMEM`.
    pub(crate) fn growing(capacity: u32, max: u32, threshold: u64, seed: Seed) -> Result<Self> {
        Ok(Self {
            pool: Freelist::new(capacity, max)?,
            table: Table::new(capacity)?,
            stats: Stats::new::<P>()?,
            seed,
            threshold: Atomic::new(threshold.min(NO_THRESHOLD)),
        })
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
        // Rare cases are handled completely out of line, so that nothing must be kept in registers
        // across a call here.
        let Some(index) = self.pool.get_hot(guard) else {
            return self.event_in_colder(guard, key, start, data);
        };
        let event = self.pool.cell(index);
        event.fill(key, start, data);
        self.event_in_cell(guard, key, index, event)
    }

    /// Inserts and publishes `event`, in a filled cell.
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

    /// Creates a new event and makes it findable by `publish`. Counts nothing; fails with the
    /// result of the start.
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

    /// Inserts a new event into the table and makes it findable by `publish`, or returns its cell.
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

    /// Ends an operation. Returns whether it was known; if not, it is counted as `unmatched`. See
    /// [`Engine::event_out_if_known`].
    #[inline]
    pub(crate) fn event_out(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        end: impl When,
        is_end: impl FnOnce(&Open<'_, K, D>) -> bool,
        late: impl FnOnce(&Late<K, D>),
    ) -> bool {
        let ended = self.event_out_and_tell(guard, key, end, is_end, late);
        ended.is_some()
    }

    /// Ends an event, as [`Engine::event_out`], and returns its state after the end.
    #[inline]
    pub(crate) fn event_out_and_tell(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        end: impl When,
        is_end: impl FnOnce(&Open<'_, K, D>) -> bool,
        late: impl FnOnce(&Late<K, D>),
    ) -> Option<Ended> {
        let ended = self.try_event_out(guard, key, end, is_end, late);
        if ended.is_none() {
            self.unmatched(guard);
        }
        ended
    }

    /// Counts an end without a start.
    #[inline]
    pub(crate) fn unmatched(&self, guard: &P::Guard) {
        self.stats.here::<P>(guard).count(Counter::UNMATCHED);
    }

    /// Ends an operation. Returns whether it was known; if not, nothing is counted.
    ///
    /// `end` returns the time; a closure that reads the clock is called only if the event is known.
    /// `is_end` checks the event first, and may decide that the operation did not end but ceased to
    /// exist; the event is then counted as `gone`. `late` is called for a delay above the
    /// threshold, and for any delay of an event that had timed out, after the event has ended and
    /// its memory is free again. A negative delay is counted, and passed to `late` as 0.
    #[inline]
    pub(crate) fn event_out_if_known(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        end: impl When,
        is_end: impl FnOnce(&Open<'_, K, D>) -> bool,
        late: impl FnOnce(&Late<K, D>),
    ) -> bool {
        let ended = self.try_event_out(guard, key, end, is_end, late);
        ended.is_some()
    }

    #[inline(always)]
    fn try_event_out(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        end: impl When,
        is_end: impl FnOnce(&Open<'_, K, D>) -> bool,
        late: impl FnOnce(&Late<K, D>),
    ) -> Option<Ended> {
        let hash = self.seed.hash(key);
        // Out of line: an end without a start should not pay for what a matched end needs.
        let hits = self.table.look(guard, hash)?;
        self.event_out_hit(guard, hash, hits, key, end, is_end, late)
    }

    /// Ends an event that may be live.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "they stay in registers")]
    fn event_out_hit(
        &self,
        guard: &P::Guard,
        hash: u64,
        hits: Hits<'_>,
        key: &[u64; K],
        end: impl When,
        is_end: impl FnOnce(&Open<'_, K, D>) -> bool,
        late: impl FnOnce(&Late<K, D>),
    ) -> Option<Ended> {
        let mut take = |found| self.take(key, found);
        if let Some((won, event)) = self.table.find_at_home(hits, &mut take) {
            return Some(self.finish(guard, hash, won, event, end, is_end, late));
        }
        if self.table.is_perhaps_beyond(hits) {
            self.event_out_beyond(guard, hash, key, end, is_end, late)
        } else {
            None
        }
    }

    /// Ends an event that may be outside its home bucket.
    #[cold]
    #[inline(never)]
    fn event_out_beyond(
        &self,
        guard: &P::Guard,
        hash: u64,
        key: &[u64; K],
        end: impl When,
        is_end: impl FnOnce(&Open<'_, K, D>) -> bool,
        late: impl FnOnce(&Late<K, D>),
    ) -> Option<Ended> {
        let mut take = |found| self.take(key, found);
        let (won, event) = self.table.find_beyond(guard, hash, &mut take)?;
        Some(self.finish(guard, hash, won, event, end, is_end, late))
    }

    /// Ends all operations of this key at `end`, each reported as by [`Engine::event_out`]. Returns
    /// their number; 0 is counted as `unmatched`.
    ///
    /// Events that start meanwhile may be included.
    pub(crate) fn event_out_all(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        end: u64,
        mut late: impl FnMut(&Late<K, D>),
    ) -> u64 {
        let hash = self.seed.hash(key);
        let mut ended = 0;
        self.table.find(guard, hash, |found| {
            let (won, event) = self.take(key, found)?;
            self.finish(guard, hash, won, event, end, |_| true, &mut late);
            ended += 1;
            None::<()>
        });
        if ended == 0 {
            self.unmatched(guard);
        }
        ended
    }

    /// Counts and reports the end of an event, for the caller that won it.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "it is in line")]
    fn finish(
        &self,
        guard: &P::Guard,
        hash: u64,
        won: Won<'_>,
        event: &Event<K, D>,
        end: impl When,
        is_end: impl FnOnce(&Open<'_, K, D>) -> bool,
        late: impl FnOnce(&Late<K, D>),
    ) -> Ended {
        let end = end.when();
        if !is_end(&Open { event }) {
            self.release(guard, hash, won, event);
            self.stats.here::<P>(guard).count(Counter::GONE);
            return Ended::of(won.life);
        }
        let delay = end.wrapping_sub(event.start());
        // A closure around the caller's, so that the captures are stored on the cold path only.
        let late = move |report: &Late<K, D>| late(report);
        if won.life.is_odd() {
            return self.finish_oddly(guard, hash, won.found, won.life, delay, late);
        }
        // A negative delay is a very large one here. Relaxed: a threshold that changes now
        // applies from about now.
        if delay > self.threshold.load(Relaxed) {
            return self.finish_oddly(guard, hash, won.found, won.life, delay, late);
        }
        let stats = self.stats.here::<P>(guard);
        stats.count(Counter::ENDED);
        stats.record(delay);
        self.release(guard, hash, won, event);
        // The event had not timed out.
        Ended::Over
    }

    /// Handles the end of an event that took too long, had timed out, had a negative delay, or was
    /// found in flight.
    ///
    /// The threshold may have been raised since the comparison: a reported delay exceeds the
    /// threshold that it is reported with.
    #[cold]
    #[inline(never)]
    fn finish_oddly(
        &self,
        guard: &P::Guard,
        hash: u64,
        found: Candidate<'_>,
        life: Life,
        delay: u64,
        late: impl FnOnce(&Late<K, D>),
    ) -> Ended {
        let event = self.pool.cell(found.cell);
        let timed_out = life.has_timed_out();
        // The copies are made in place: several frames of this function may be on one stack.
        let mut report = Late {
            why: if timed_out {
                Why::LateEnd
            } else {
                Why::Threshold
            },
            start: event.start(),
            delay,
            found: life.was_found(),
            threshold: self.threshold(),
            key: [0; K],
            data: [0; D],
        };
        event.copy_to(&mut report.key, &mut report.data);
        self.release(guard, hash, self.won(found, life), event);
        let stats = self.stats.here::<P>(guard);
        stats.count(Counter::ENDED);
        if timed_out {
            stats.count(Counter::LATE);
        }
        if (delay as i64) < 0 {
            stats.count(Counter::NEGATIVE);
            // No threshold is below 0. If the timeout was reported, so is the end.
            report.delay = 0;
        } else if life.was_found() {
            // A lower bound, which is not counted among exact delays.
            stats.count(Counter::BEFORE_START_ENDED);
        } else {
            stats.record(delay);
        }
        if timed_out || report.delay > report.threshold {
            late(&report);
        }
        Ended::of(life)
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

    /// Publishes an event that was changed; a renewed one is counted as `replaced` and as
    /// `started`.
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

    /// Drops all live events and returns their number. Safe against running probes: events that
    /// start meanwhile may stay.
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

    /// Passes copies of the live events to `see`, in no order, until it fails.
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

    /// Raises the threshold to the delay of an end, so that only a longer one is late afterwards.
    /// Returns whether the event must still be reported; if so, `late` has the threshold that this
    /// call raised, if any.
    ///
    /// Of several concurrent ends, each either raises the threshold above all earlier delays or is
    /// not reported: the reported ends form a chain, in which the threshold of each is the delay of
    /// its predecessor. Events that have timed out are reported in any case; only an end raises the
    /// threshold.
    pub(crate) fn keep_worst(&self, late: &mut Late<K, D>) -> bool {
        let threshold = self.raise_threshold(late);
        late.threshold = threshold.unwrap_or(late.threshold);
        threshold.is_some()
    }

    /// Raises the threshold, as [`Engine::keep_worst`], and returns the threshold to report the
    /// event with, or `None` if it must not be reported.
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
        // Relaxed: for ends from about now.
        self.threshold.store(threshold.min(NO_THRESHOLD), Relaxed);
    }

    /// Returns a number that stands for a key while this engine lives, and reveals nothing about
    /// it.
    pub(crate) fn pseudonym(&self, key: &[u64; K]) -> u32 {
        (self.seed.hash(key) >> 32) as u32
    }

    /// Finds a live event and claims it.
    #[inline(always)]
    fn claim<'a>(
        &'a self,
        guard: &'a P::Guard,
        hash: u64,
        hits: Hits<'a>,
        key: &[u64; K],
    ) -> Option<(Won<'a>, &'a Event<K, D>)> {
        let take = |found| self.take(key, found);
        self.table.find_among(guard, hash, hits, take)
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

    /// Describes the event in a cell that was claimed by other means.
    fn won<'a>(&self, found: Candidate<'a>, life: Life) -> Won<'a> {
        let home = self.pool.home(found.cell);
        Won { found, life, home }
    }

    /// Removes a claimed event from the table and returns its cell, or leaves the cell to the
    /// holders of references.
    #[inline(always)]
    fn release(&self, guard: &P::Guard, hash: u64, won: Won<'_>, event: &Event<K, D>) {
        self.table.remove(guard, hash, event.link(), won.found);
        self.recycle(guard, won, event);
    }

    /// Returns the cell of an event that is no longer in the table, or leaves the cell to the
    /// holders of references.
    #[inline(always)]
    fn recycle(&self, guard: &P::Guard, won: Won<'_>, event: &Event<K, D>) {
        if !won.life.is_held() || event.abandon() {
            self.pool.put_home(guard, won.found.cell, won.home);
        }
    }
}

/// Returns the result of a start, from the new event or the lack of it.
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
