// SPDX-License-Identifier: GPL-2.0

//! How an instance raises an alert for a late event.
//!
//! ```text
//!   a probe: an end beyond the threshold --+
//!                                          v
//!   a worker: a timeout (expire.rs) -----> raise --> raise_kept --> raise_as --> record
//!                                            |           ^             |           |
//!                                  worst=1:  +-> raise_worst           |     own and all readers,
//!                                                the worst so far?     |     the tracepoint
//!                                                                  max_alerts
//! ```
//!
//! # Contexts
//!
//! Any, including under the runqueue lock.

use super::{common, user_stack, Core};
use crate::{
    alert::{
        record::{
            user::Mark,
            Alert,
            Reason,
            DETAIL,
            OWN_TAIL, //
        },
        stream::TAIL_MAX,
    },
    engine::{platform::Platform, stats::Counter, Late, Why},
    record::Details,
    sys::{
        atomic::{Atomic, Relaxed},
        platform::Kernel,
        stack::Stack,
        trace, //
    }, //
};

/// A late event, and the other content of its alert.
pub(crate) struct Report<'a, const K: usize, const D: usize> {
    pub(crate) late: &'a Late<K, D>,
    pub(crate) details: &'a Details,
    /// The stack of its task, if there is one: return addresses, innermost first.
    pub(crate) stack: &'a [u64],
    /// See [`Permit::is_counted`].
    pub(crate) is_counted: bool,
}

/// Permission to report a late event, see [`Core::raise_threshold`].
pub(crate) struct Permit {
    /// The threshold to report it with.
    pub(crate) threshold: u64,
    /// Whether its alert has been counted for `max_alerts`.
    pub(crate) is_counted: bool,
}

/// Maximum value of `max_alerts`.
pub(super) const MAX_ALERTS: u64 = 1_000_000;

/// Number of bits of [`Rate`] for the count.
const COUNT_BITS: u32 = 24;
const _: () = assert!(MAX_ALERTS < 1 << COUNT_BITS);

/// The number of alerts in the current second of the clock: the second and the count, in one word.
pub(super) struct Rate(Atomic<u64>);

impl Rate {
    pub(super) fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Returns the word after one more alert at `now`; `None` if that would exceed `max`.
    fn after(old: u64, now: u64, max: u64) -> Option<u64> {
        let second = now / 1_000_000_000;
        if second > old >> COUNT_BITS {
            return Some(second << COUNT_BITS | 1);
        }
        // The word is of this second, or of the next if another CPU's clock read was a little
        // ahead.
        (old & ((1 << COUNT_BITS) - 1) < max).then_some(old + 1)
    }

    /// Whether one more alert is allowed.
    fn has_room(&self, now: u64, max: u64) -> bool {
        // Relaxed: a number that orders nothing.
        Self::after(self.0.load(Relaxed), now, max).is_some()
    }

    /// Counts one more alert, if allowed. If not, as in a storm of alerts, writes nothing.
    fn take(&self, now: u64, max: u64) -> bool {
        // Relaxed: as in `has_room`.
        let mut old = self.0.load(Relaxed);
        while let Some(new) = Self::after(old, now, max) {
            match self.0.cmpxchg(old, new, Relaxed) {
                Ok(_) => return true,
                Err(now) => old = now,
            }
        }
        false
    }
}

/// Calls `see` with the two slices joined; copies only if `first` is not empty.
fn with_both<R>(first: Option<&[u64]>, second: &[u64], see: impl FnOnce(&[u64]) -> R) -> R {
    if first.is_none_or(<[u64]>::is_empty) {
        return see(second);
    }
    see(join(&mut [0; TAIL_MAX], first, second))
}

/// Joins two slices; cuts the result if it does not fit.
fn join<'a>(room: &'a mut [u64], first: Option<&[u64]>, second: &'a [u64]) -> &'a [u64] {
    let Some(first) = first else { return second };
    let words = first.iter().chain(second).copied();
    let len = (first.len() + second.len()).min(room.len());
    for (to, word) in room.iter_mut().zip(words) {
        *to = word;
    }
    room.get(..len).unwrap_or_default()
}

impl<const K: usize, const D: usize> Core<K, D> {
    /// Whether an alert raised now would be within the limit. For callers whose alert is expensive,
    /// for example because it walks a stack. Any context.
    pub(crate) fn may_raise(&self) -> bool {
        let max = self.value(common::MAX_ALERTS);
        max == 0 || self.rate.has_room(Kernel::now(), max)
    }

    /// Returns the stack that `walk` saves, given the maximum number of its entries; no stack if an
    /// alert raised now would exceed the limit. Any context.
    pub(crate) fn stack_to_raise(&self, walk: impl FnOnce(usize) -> Stack) -> Stack {
        if self.may_raise() {
            walk(self.depth())
        } else {
            Stack::EMPTY
        }
    }

    fn suppressed(&self, guard: &<Kernel as Platform>::Guard) {
        let stats = self.engine.stats();
        stats
            .here::<Kernel>(guard)
            .count(Counter::ALERTS_SUPPRESSED);
    }

    /// Returns the permission to report a late event, or `None` if it must not be reported. With
    /// `worst=1`, raises the threshold, as `Engine::raise_threshold`, unless `max_alerts` is
    /// reached: the end of an event that has not timed out is then counted as suppressed, and not
    /// reported. Must be called only once for each event. Any context.
    pub(crate) fn raise_threshold(&self, late: &Late<K, D>) -> Option<Permit> {
        let permit = |threshold, is_counted| Permit {
            threshold,
            is_counted,
        };
        if self.value(common::WORST) == 0 {
            return Some(permit(late.threshold, false));
        }
        let max = self.value(common::MAX_ALERTS);
        let may_rise = late.why != Why::Timeout && late.delay > self.engine.threshold();
        if max == 0 || !may_rise {
            return Some(permit(self.engine.raise_threshold(late)?, false));
        }
        // The alert is counted before the threshold rises: otherwise the worst event itself might
        // get no alert. If another CPU raises the threshold above this delay at this moment, an
        // alert is counted but not raised: this second may then have fewer than `max_alerts`.
        if self.rate.take(Kernel::now(), max) {
            return Some(permit(self.engine.raise_threshold(late)?, true));
        }
        if late.why == Why::LateEnd {
            // `raise_as` suppresses and counts its alert.
            return Some(permit(late.threshold, false));
        }
        self.suppressed(&Kernel::guard());
        None
    }

    /// Raises an alert; with `worst=1`, only if there has been no worse one, see
    /// [`Core::raise_threshold`]. Any context, including under the runqueue lock.
    #[cold]
    pub(crate) fn raise(
        &self,
        guard: &<Kernel as Platform>::Guard,
        late: &Late<K, D>,
        details: &Details,
        stack: &[u64],
    ) {
        let report = &Report {
            late,
            details,
            stack,
            is_counted: false,
        };
        if self.value(common::WORST) == 0 {
            // No copy: little of the kernel stack may be left.
            return self.raise_kept(guard, report);
        }
        self.raise_worst(guard, report);
    }

    /// Raises an alert, with `worst=1`, unless there has been a worse one.
    #[inline(never)]
    fn raise_worst(&self, guard: &<Kernel as Platform>::Guard, report: &Report<'_, K, D>) {
        if let Some(permit) = self.raise_threshold(report.late) {
            let late = &Late {
                threshold: permit.threshold,
                ..*report.late
            };
            let is_counted = permit.is_counted;
            self.raise_kept(
                guard,
                &Report {
                    late,
                    is_counted,
                    ..*report
                },
            );
        }
    }

    /// Raises an alert even if there has been a worse one. See [`Core::raise`].
    #[cold]
    pub(crate) fn raise_kept(
        &self,
        guard: &<Kernel as Platform>::Guard,
        report: &Report<'_, K, D>,
    ) {
        let reason = match report.late.why {
            Why::Threshold => Reason::Threshold,
            Why::Timeout => Reason::Timeout,
            Why::LateEnd => Reason::Late,
        };
        self.raise_as(reason, guard, report);
    }

    /// Raises an alert with this reason, which need not be the event's own. Returns `false` if
    /// `max_alerts` was already reached in this second. Any context, including under the runqueue
    /// lock.
    #[cold]
    pub(crate) fn raise_as(
        &self,
        reason: Reason,
        guard: &<Kernel as Platform>::Guard,
        report: &Report<'_, K, D>,
    ) -> bool {
        let max = self.value(common::MAX_ALERTS);
        if max != 0 && !report.is_counted && !self.rate.take(Kernel::now(), max) {
            self.suppressed(guard);
            return false;
        }
        if self.has_user_stack {
            self.raise_with_user_stack(reason, guard, report);
            return true;
        }
        let own = self
            .kind
            .tail
            .as_ref()
            .map(|tail| (tail.of)(&report.late.data));
        with_both(own, report.stack, |tail| {
            let tail = (tail, Mark::default());
            self.record(reason, guard, report, tail, |alert| {
                self.trace(alert, own.unwrap_or_default(), report.stack);
            });
        });
        true
    }

    /// Raises an alert with the stack of its task in user space, see user_stack.rs. Not inlined:
    /// the stack should take no room in the frame of other alerts.
    #[inline(never)]
    fn raise_with_user_stack(
        &self,
        reason: Reason,
        guard: &<Kernel as Platform>::Guard,
        report: &Report<'_, K, D>,
    ) {
        let walked;
        let stack = match report.late.data.last_chunk() {
            Some(kept) if self.kind.keeps_user_stack => kept,
            _ => {
                walked = user_stack::of_owner(guard, &report.details.owner);
                &walked
            }
        };
        let (mark, entries) = user_stack::parts(stack);
        let mut room = [0; TAIL_MAX];
        let tail = join(&mut room, Some(report.stack), entries);
        self.record(reason, guard, report, (tail, mark), |alert| {
            self.trace(alert, &[], report.stack);
        });
    }

    /// Records an alert with its tail, whose last words `user` describes; emits its trace event,
    /// and announces it.
    fn record(
        &self,
        reason: Reason,
        guard: &<Kernel as Platform>::Guard,
        report: &Report<'_, K, D>,
        (tail, user): (&[u64], Mark),
        trace: impl FnOnce(&Alert),
    ) {
        let Report { late, details, .. } = *report;
        let mut alert = Alert {
            seq: 0,
            time: late.start.wrapping_add(late.delay),
            instance: self.name,
            tracker: self.number,
            reason,
            delay: late.delay,
            before_start: late.found,
            threshold: late.threshold,
            cpu: Kernel::cpu(guard) as u32,
            owner: details.owner,
            detail: details.words,
            tail: tail.len() as u8,
            user,
            is_trusted: false,
        };
        let stats = self.engine.stats();
        stats.here::<Kernel>(guard).count(Counter::ALERTS);
        let numbered = |seq| {
            alert.seq = seq;
            alert.to_words()
        };
        let recorded = self.alerts.record(numbered, tail);
        if let Err(seq) = recorded {
            alert.seq = seq;
            stats.here::<Kernel>(guard).count(Counter::ALERTS_LOST);
        }
        // If this record is lost, the readers of the shared ring get a line `lost=N`.
        let _ = self.all.record(|_| alert.to_words(), tail);
        trace(&alert);
        self.alerts.announce();
        self.all.announce();
    }

    fn trace(&self, alert: &Alert, own: &[u64], stack: &[u64]) {
        if !trace::alert_enabled(self.traced) {
            return;
        }
        let mut room = [0; DETAIL + OWN_TAIL];
        let args = &alert.detail[..self.kind.detail_words];
        let args = join(&mut room, Some(args), own);
        trace::alert(&trace::AlertEvent {
            traced: self.traced,
            seq: alert.seq,
            time: alert.time,
            delay: alert.delay,
            threshold: alert.threshold,
            instance: &alert.instance,
            tracker: self.kind.c_name,
            reason: alert.reason.name(),
            pid: alert.owner.pid,
            tid: alert.owner.tid,
            comm: &alert.owner.comm,
            args,
            stack,
            before_start: alert.before_start,
        });
    }
}
