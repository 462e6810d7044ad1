// SPDX-License-Identifier: GPL-2.0

//! Handlers of the tracepoints in the life of a request; the head of block.rs explains them.
//!
//! `block` and `io` share these handlers; each decides which requests are tracked ([`Requests`]).

use super::{Detail, WORDS};
use crate::{
    alert::record::{user::End, Owner},
    control::ALL_DEVICES,
    engine::{platform::Platform, Open, Verdict},
    instance::{
        probed::{Live, Own},
        user_stack::{self, Kept},
        Core, //
    },
    record,
    sys::{
        block::{Observer, Request},
        platform::Kernel,
        task, //
    },
    trackers::declare::{report, Declared}, //
};
use core::cell::Cell;

/// The counters of trackers of requests.
#[derive(Clone, Copy)]
enum Extra {
    /// Completions of a part of a request.
    Partial,
    /// Requests returned by the driver.
    Requeued,
    /// Requests issued again after the driver returned them.
    Reissued,
    /// Requests that became part of another one; also in `gone`.
    Merged,
    /// Requests that completed without having been issued; also in `gone`.
    Unissued,
    /// Requests that left without completing; also in `gone`.
    Aborted,
}

/// The names of the counters in `stats`.
pub(crate) const COUNTERS: [&str; 6] = [
    "partial", "requeued", "reissued", "merged", "unissued", "aborted",
];

/// A tracker of requests. An event has [`WORDS`] words; if `D` is more, they are followed by the
/// submitter's stack in user space.
pub(crate) trait Requests<O: Own, const D: usize>: Declared<1, D, O> {
    /// The position of the first of [`COUNTERS`] among the tracker's counters.
    const COUNTERS_AT: usize;

    /// Whether a delay starts at the insertion.
    fn is_from_insert(core: &Core<1, D>) -> bool;

    /// Whether a request is of a tracked kind, regardless of its submitter.
    fn is_wanted(core: &Core<1, D>, rq: &Request<'_>) -> bool;

    /// Whether requests that the current task submits are tracked.
    fn is_submitter_wanted(_: &Core<1, D>, _: &Guard) -> bool {
        true
    }

    /// Whether all wanted requests are tracked. If so, an end without an event is counted as
    /// unmatched.
    fn follows_all(_: &Core<1, D>) -> bool {
        true
    }

    /// Handles the completion of a request, `delay` ns after its start. Called from the probe.
    fn ended(_: &Live<Self, 1, D, O>, _: &Guard, _: &Detail, _delay: u64) {}
}

/// The state that the probes of a tracker of requests work on.
type Following<T, O, const D: usize> = Live<T, 1, D, O>;

/// A step of a request between its submission and its completion.
trait Step {
    /// Notes the time of the step, in nanoseconds.
    fn note(&self, known: &mut Detail, now: u64);
    /// Whether this step, or a later one, has already been noted.
    fn is_noted(&self, known: &Detail) -> bool;
    /// Whether the delay is measured from this step.
    fn is_begin(&self, known: &Detail) -> bool;
    /// Notes that the step is repeated because the driver returned the request. Returns whether
    /// the driver has the request again.
    fn resume(&self, known: &mut Detail) -> bool;
}

/// The insertion of a request, see [`Observer::inserted`].
struct Insertion {
    /// Whether the delay starts at the insertion.
    is_begin: bool,
}

impl Step for Insertion {
    fn note(&self, known: &mut Detail, now: u64) {
        known.queue = now;
    }

    fn is_noted(&self, known: &Detail) -> bool {
        known.queue != 0 || known.device != 0
    }

    fn is_begin(&self, _: &Detail) -> bool {
        self.is_begin
    }

    fn resume(&self, _: &mut Detail) -> bool {
        false
    }
}

/// The issue of a request, see [`Observer::issued`].
struct Issue {
    /// Whether the delay starts at the insertion, if there was one.
    from_insert: bool,
}

impl Step for Issue {
    fn note(&self, known: &mut Detail, now: u64) {
        known.device = now;
        known.waiting = false;
    }

    fn is_noted(&self, known: &Detail) -> bool {
        known.device != 0
    }

    fn is_begin(&self, known: &Detail) -> bool {
        !self.from_insert || known.queue == 0
    }

    fn resume(&self, known: &mut Detail) -> bool {
        known.waiting = false;
        true
    }
}

type Guard = <Kernel as Platform>::Guard;

pub(crate) fn is_disk(wanted: u64, rq: &Request<'_>) -> bool {
    wanted == ALL_DEVICES || wanted == u64::from(rq.dev())
}

/// Returns the data of a new event. `stack` returns the stack in user space, and is called only if
/// events have room for one.
fn new_data<const D: usize>(
    owner: Owner,
    known: &Detail,
    stack: impl FnOnce() -> Kept,
) -> [u64; D] {
    let mut data: [u64; D] = record::data(owner, known);
    if D > WORDS {
        if let Some(kept) = data.last_chunk_mut() {
            *kept = stack();
        }
    }
    data
}

/// Returns the data of a new event without a submitter.
fn unsubmitted<const D: usize>(known: &Detail) -> [u64; D] {
    new_data(Owner::default(), known, || user_stack::missing(End::None))
}

impl<T: Requests<O, D>, O: Own, const D: usize> Following<T, O, D> {
    fn is_wanted(&self, rq: &Request<'_>) -> bool {
        T::is_wanted(&self.core, rq)
    }

    fn is_from_insert(&self) -> bool {
        T::is_from_insert(&self.core)
    }

    fn count(&self, guard: &Guard, counter: Extra) {
        self.core
            .count_extra(guard, T::COUNTERS_AT + counter as usize);
    }

    /// Drops the event of a request that no longer exists.
    fn drop_event(&self, rq: &Request<'_>, why: Extra) {
        let guard = Kernel::guard();
        let engine = self.core.engine();
        if engine
            .update(&guard, &[rq.id()], |_| Verdict::Gone)
            .is_some()
        {
            self.count(&guard, why);
        }
    }

    /// Starts an event, unless the instance is off.
    fn begin(&self, guard: &Guard, rq: &Request<'_>, now: u64, data: &[u64; D]) {
        let engine = self.core.engine();
        if !self.core.is_enabled() {
            engine.off(guard);
            return;
        }
        engine.event_in_unique(guard, &[rq.id()], now, data);
    }

    /// Applies a step to the event of a request. Returns whether the request is tracked.
    fn step(&self, guard: &Guard, rq: &Request<'_>, step: &impl Step) -> bool {
        let found = self.core.engine().update(guard, &[rq.id()], |event| {
            // The clock is read only for tracked requests: they may be a small minority.
            let now = Kernel::now();
            let data = event.data();
            let (owner, mut known) = (record::owner(&data), record::known(&data));
            if !step.is_noted(&known) {
                known.set_operation(&rq.operation());
                step.note(&mut known, now);
                if step.is_begin(&known) {
                    event.set_start(now);
                }
            } else if known.waiting {
                if step.resume(&mut known) {
                    self.count(guard, Extra::Reissued);
                }
            } else {
                known = Detail::of(rq);
                step.note(&mut known, now);
                event.set_start(now);
                event.set_data(&unsubmitted(&known));
                return Verdict::Renewed;
            }
            event.set_words::<0, WORDS>(&record::data(owner, &known));
            Verdict::Keep
        });
        found.is_some()
    }
}

impl<T: Requests<O, D>, O: Own, const D: usize> Observer for Following<T, O, D> {
    fn created(&self, rq: &Request<'_>) {
        let guard = Kernel::guard();
        if !self.is_wanted(rq) || !T::is_submitter_wanted(&self.core, &guard) {
            self.core.engine().filtered(&guard);
            return;
        }
        let mut owner = Owner::default();
        if let Some(task) = task::current() {
            owner = Owner::from(&task);
        }
        let stack = || user_stack::of_current(&guard);
        let data = new_data(owner, &Detail::of(rq), stack);
        self.begin(&guard, rq, Kernel::now(), &data);
    }

    fn inserted(&self, rq: &Request<'_>) {
        let guard = Kernel::guard();
        let is_begin = self.is_from_insert();
        self.step(&guard, rq, &Insertion { is_begin });
    }

    fn issued(&self, rq: &Request<'_>) {
        let guard = Kernel::guard();
        let from_insert = self.is_from_insert();
        let issue = Issue { from_insert };
        let known = self.step(&guard, rq, &issue);
        // Only the block layer's own flushes start here, as no task submits them. Any other
        // request without an event was filtered at its submission, was submitted before this
        // instance was on, or found the pool full.
        if known || !rq.is_flush() {
            return;
        }
        if !self.is_wanted(rq) {
            self.core.engine().filtered(&guard);
            return;
        }
        let mut known = Detail::of(rq);
        let now = Kernel::now();
        issue.note(&mut known, now);
        self.begin(&guard, rq, now, &unsubmitted(&known));
    }

    fn requeued(&self, rq: &Request<'_>) {
        let guard = Kernel::guard();
        let insertion = Insertion {
            is_begin: self.is_from_insert(),
        };
        let found = self.core.engine().update(&guard, &[rq.id()], |event| {
            let data = event.data();
            let mut known: Detail = record::known(&data);
            // The driver has not started the request, and the block layer keeps it in a queue now.
            if !insertion.is_noted(&known) {
                let now = Kernel::now();
                known.set_operation(&rq.operation());
                insertion.note(&mut known, now);
                if insertion.is_begin(&known) {
                    event.set_start(now);
                }
            }
            known.requeues.0 = known.requeues.0.saturating_add(1);
            known.waiting = true;
            event.set_words::<0, WORDS>(&record::data(record::owner(&data), &known));
            Verdict::Keep
        });
        if found.is_some() {
            self.count(&guard, Extra::Requeued);
        }
    }

    fn merged(&self, rq: &Request<'_>) {
        self.drop_event(rq, Extra::Merged);
    }

    fn completed(&self, rq: &Request<'_>, bytes: u32) {
        let guard = Kernel::guard();
        if !rq.is_last(bytes) {
            // A completion of 0 bytes only reports an error: the driver completes the request
            // later.
            if bytes != 0 && self.is_wanted(rq) {
                self.count(&guard, Extra::Partial);
            }
            return;
        }
        let engine = self.core.engine();
        let mut unissued = false;
        let end = Cell::new(0);
        let ended = engine.event_out_if_known(
            &guard,
            &[rq.id()],
            || {
                end.set(Kernel::now());
                end.get()
            },
            |event: &Open<'_, 1, D>| {
                let known: Detail = record::known(&event.data());
                unissued = known.device == 0;
                // A negative delay is not passed on.
                match end.get().checked_sub(event.start()) {
                    Some(delay) if !unissued => T::ended(self, &guard, &known, delay),
                    _ => {}
                }
                !unissued
            },
            |late| {
                let (owner, detail) = (T::owner(&late.data), T::detail(&late.key, &late.data));
                report::<_, _, _, T>(&self.core, &guard, late, owner, detail);
            },
        );
        if unissued {
            self.count(&guard, Extra::Unissued);
        }
        // The end of a flush sequence has no bytes and is not the end of a request.
        let is_end = bytes != 0 || rq.is_flush();
        if ended.is_none() && is_end && T::follows_all(&self.core) && self.is_wanted(rq) {
            engine.unmatched(&guard);
        }
    }

    fn done(&self, rq: &Request<'_>) {
        self.drop_event(rq, Extra::Aborted);
    }
}
