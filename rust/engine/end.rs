// SPDX-License-Identifier: GPL-2.0

//! The ends of events: an event that is found is claimed, counted, released, and reported if it is
//! late.

use super::{Engine, Late, Open, Why, Won};
use crate::{
    engine::{
        event::{Event, Life},
        platform::Platform,
        rcu_ht::{Candidate, Hits},
        stats::Counter,
    },
    sys::atomic::Relaxed,
};

/// Whether a report of an event's timeout may still run after the event has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// No report of the event's timeout is running, and none will start.
    Over,
    /// The report of the event's timeout may be running or about to start: on another CPU, or in
    /// the code that this end interrupts or is called by.
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

impl<const K: usize, const D: usize, P: Platform> Engine<K, D, P> {
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
        let ended = self.event_out_if_known(guard, key, end, is_end, late);
        if ended.is_none() {
            self.unmatched(guard);
        }
        ended.is_some()
    }

    /// Counts an end without a start.
    #[inline]
    pub(crate) fn unmatched(&self, guard: &P::Guard) {
        self.stats.here::<P>(guard).count(Counter::UNMATCHED);
    }

    /// Ends an operation. Returns `None`, and counts nothing, if the operation is not known.
    ///
    /// `end` returns the time; a closure that reads the clock is called only if the event is known.
    /// `is_end` checks the event first, and may decide that the operation did not end but ceased to
    /// exist; the event is then counted as `gone`. `late` is called for a delay above the
    /// threshold, and for any delay of an event that had timed out, after the event has ended and
    /// has released its cell. A negative delay is counted; `late` gets it, as 0, only if the event
    /// had timed out.
    #[inline(always)]
    pub(crate) fn event_out_if_known(
        &self,
        guard: &P::Guard,
        key: &[u64; K],
        end: impl When,
        is_end: impl FnOnce(&Open<'_, K, D>) -> bool,
        late: impl FnOnce(&Late<K, D>),
    ) -> Option<Ended> {
        let hash = self.seed.hash(key);
        // Out of line: an end without a start should not pay the costs of a matched end.
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

    /// Ends all operations of this key at `end`, and reports each as [`Engine::event_out`] does.
    /// Returns their number; 0 is counted as `unmatched`.
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
    pub(super) fn finish(
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
        // This closure wraps the caller's, so that its captures are stored on the cold path only.
        let late = move |report: &Late<K, D>| late(report);
        // A negative delay is a very large one here. Relaxed: a threshold that changes now
        // applies from about now.
        if delay > self.threshold.load(Relaxed) {
            return self.finish_oddly(guard, hash, won.found, won.life, delay, late);
        }
        let stats = self.stats.here::<P>(guard);
        if won.life.is_odd() {
            if won.life.has_timed_out() || won.life.was_found() {
                return self.finish_oddly(guard, hash, won.found, won.life, delay, late);
            }
            stats.count(Counter::ENDED);
            // The check of the home slot is in line: a call would double its cost.
            let labels = self.stats.labels();
            match labels.and_then(|labels| labels.row_at_home(event)) {
                Some(row) => row.record::<P>(guard, delay),
                None => self.record_labelled(guard, event, delay),
            }
        } else {
            stats.count(Counter::ENDED);
            stats.record(delay);
        }
        self.release(guard, hash, won, event);
        // The event had not timed out.
        Ended::Over
    }

    /// Adds a delay to the row of an event that the caller owns, or to `other`.
    #[cold]
    #[inline(never)]
    fn record_labelled(&self, guard: &P::Guard, event: &Event<K, D>, delay: u64) {
        let labels = self.stats.labels();
        match labels.and_then(|labels| labels.row::<P, K, D>(guard, event)) {
            Some(row) => row.record::<P>(guard, delay),
            None => self.stats.here::<P>(guard).record(delay),
        }
    }

    /// Handles the end of an event that took too long, had timed out, was found in flight, or has a
    /// negative delay.
    ///
    /// The threshold may have been raised since the comparison. So the delay is compared again,
    /// unless the event had timed out. The delay of any other reported event thus exceeds the
    /// threshold in its report.
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
        let stats = self.stats.here::<P>(guard);
        let is_counted = (delay as i64) >= 0 && !life.was_found();
        if is_counted {
            // The label is the event's, so it is read before the release.
            match self.stats.labels() {
                None => stats.record(delay),
                Some(_) => self.record_labelled(guard, event, delay),
            }
        }
        self.release(guard, hash, self.won(found, life), event);
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
        }
        if timed_out || report.delay > report.threshold {
            late(&report);
        }
        Ended::of(life)
    }
}
