// SPDX-License-Identifier: GPL-2.0

//! What happens at each tracepoint of a request's life; the head of block.rs says why.
//!
//! The tracker decides which requests are followed, and what happens to them ([`Requests`]).

use super::{
    steps::{Steps, STEPS},
    DEV, FROM, FROM_INSERT, KIND,
};
use crate::{
    alert::record::Owner,
    control::ALL_DEVICES,
    engine::{
        event::EventCopy,
        platform::Platform,
        tracker::{Late, Open, Verdict},
    },
    instance::{
        probed::{self, Live, Own},
        Core,
        Details, //
    },
    sys::{
        block::{self, Observer, Request},
        platform::Kernel,
        task,
        tracepoint::Attachment, //
    },
    trackers::Kind, //
};
use core::cell::Cell;
use kernel::{prelude::*, seq_file::SeqFile, seq_print, sync::Arc};

/// Our own counters.
#[derive(Clone, Copy)]
enum Extra {
    /// Completions of a part of a request.
    Partial,
    /// Requests returned by the driver.
    Requeued,
    /// Requests issued again after that.
    Reissued,
    /// Requests that became part of another one; also in `gone`.
    Merged,
    /// Requests that completed without having been issued; also in `gone`.
    Unissued,
    /// Requests that left without completing; also in `gone`.
    Aborted,
}

/// Their names in `stats`.
pub(crate) const COUNTERS: [&str; 6] = [
    "partial", "requeued", "reissued", "merged", "unissued", "aborted",
];

/// A tracker that follows requests.
pub(crate) trait Requests<O: Own>: probed::Probes<1, STEPS, O> {
    /// The position of the first of [`COUNTERS`].
    const COUNTERS_AT: usize;

    /// Whether a delay begins at the insertion.
    fn is_from_insert(core: &Core<1, STEPS>) -> bool;

    /// Whether requests like this one are followed, from any submitter.
    fn is_wanted(core: &Core<1, STEPS>, rq: &Request<'_>) -> bool;

    /// Whether requests that the current task submits are followed.
    fn is_submitter_wanted(_: &Core<1, STEPS>, _: &Guard) -> bool {
        true
    }

    /// Whether each end of a wanted request has had a begin that was followed.
    fn follows_all(_: &Core<1, STEPS>) -> bool {
        true
    }

    /// A request has completed, `delay` ns after its begin. In the probe.
    fn ended(_: &Live<Self, 1, STEPS, O>, _: &Guard, _: &Steps, _delay: u64) {}

    /// A request took too long.
    fn raise(core: &Core<1, STEPS>, guard: &Guard, late: &Late<1, STEPS>) {
        let now = late.start.wrapping_add(late.delay);
        let details = Steps::from_words(late.data).details(now);
        core.raise(guard, now, late, &details, &[]);
    }
}

/// What the probes of a tracker of requests work on.
type Following<T, O> = Live<T, 1, STEPS, O>;

/// A step of a request, other than the first and the last.
trait Step {
    /// Notes when it happened, in nanoseconds.
    fn note(&self, steps: &mut Steps, now: u64);
    /// Whether it, or a later one, was noted before.
    fn is_noted(&self, steps: &Steps) -> bool;
    /// Whether the delay is measured from here.
    fn is_begin(&self, steps: &Steps) -> bool;
    /// It comes again, because the driver had returned the request. Returns whether the request is
    /// with the driver again.
    fn resume(&self, steps: &mut Steps) -> bool;
}

/// See [`Observer::inserted`].
struct Insertion {
    /// Whether the delay begins here.
    is_begin: bool,
}

impl Step for Insertion {
    fn note(&self, steps: &mut Steps, now: u64) {
        steps.inserted = now;
    }

    fn is_noted(&self, steps: &Steps) -> bool {
        steps.inserted != 0 || steps.issued != 0
    }

    fn is_begin(&self, _: &Steps) -> bool {
        self.is_begin
    }

    fn resume(&self, _: &mut Steps) -> bool {
        false
    }
}

/// See [`Observer::issued`].
struct Issue {
    /// Whether the delay begins at the insertion, if there was one.
    from_insert: bool,
}

impl Step for Issue {
    fn note(&self, steps: &mut Steps, now: u64) {
        steps.issued = now;
        steps.waiting = false;
    }

    fn is_noted(&self, steps: &Steps) -> bool {
        steps.issued != 0
    }

    fn is_begin(&self, steps: &Steps) -> bool {
        !self.from_insert || steps.inserted == 0
    }

    fn resume(&self, steps: &mut Steps) -> bool {
        steps.waiting = false;
        true
    }
}

type Guard = <Kernel as Platform>::Guard;

/// Whether a disk is the wanted one.
pub(crate) fn is_disk(wanted: u64, rq: &Request<'_>) -> bool {
    wanted == ALL_DEVICES || wanted == u64::from(rq.dev())
}

impl<T: Requests<O>, O: Own> Following<T, O> {
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

    /// The request, if it is followed, no longer exists.
    fn drop_event(&self, rq: &Request<'_>, why: Extra) {
        let guard = Kernel::guard();
        let tracker = self.core.tracker();
        if tracker
            .update(&guard, &[rq.id()], |_| Verdict::Gone)
            .is_some()
        {
            self.count(&guard, why);
        }
    }

    /// A begin, unless the instance is off.
    fn begin(&self, guard: &Guard, rq: &Request<'_>, now: u64, steps: Steps) {
        let tracker = self.core.tracker();
        if !self.core.is_enabled() {
            tracker.off(guard);
            return;
        }
        tracker.event_in_unique(guard, &[rq.id()], now, &steps.to_words());
    }

    /// The step of a request that has begun. Returns whether there is such a request.
    fn step(&self, guard: &Guard, rq: &Request<'_>, step: &impl Step) -> bool {
        let found = self.core.tracker().update(guard, &[rq.id()], |event| {
            // Here, not before: most requests that pass may not be followed.
            let now = Kernel::now();
            let mut steps = Steps::from_words(event.data());
            let verdict = if !step.is_noted(&steps) {
                steps.set_operation(&rq.operation());
                step.note(&mut steps, now);
                if step.is_begin(&steps) {
                    event.set_start(now);
                }
                Verdict::Keep
            } else if steps.waiting {
                if step.resume(&mut steps) {
                    self.count(guard, Extra::Reissued);
                }
                Verdict::Keep
            } else {
                steps = Steps::of(rq);
                step.note(&mut steps, now);
                event.set_start(now);
                Verdict::Renewed
            };
            event.set_data(&steps.to_words());
            verdict
        });
        found.is_some()
    }
}

impl<T: Requests<O>, O: Own> Observer for Following<T, O> {
    fn created(&self, rq: &Request<'_>) {
        let guard = Kernel::guard();
        if !self.is_wanted(rq) || !T::is_submitter_wanted(&self.core, &guard) {
            self.core.tracker().filtered(&guard);
            return;
        }
        let mut steps = Steps::of(rq);
        if let Some(task) = task::current() {
            steps.owner = Owner::from(&task);
        }
        self.begin(&guard, rq, Kernel::now(), steps);
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
        // Of requests that were not submitted, only the block layer's own flushes begin here; any
        // other was submitted before this instance was on, or found the pool full.
        if known || !rq.is_flush() {
            return;
        }
        if !self.is_wanted(rq) {
            self.core.tracker().filtered(&guard);
            return;
        }
        let mut steps = Steps::of(rq);
        let now = Kernel::now();
        issue.note(&mut steps, now);
        self.begin(&guard, rq, now, steps);
    }

    fn requeued(&self, rq: &Request<'_>) {
        let guard = Kernel::guard();
        let found = self.core.tracker().update(&guard, &[rq.id()], |event| {
            let mut steps = Steps::from_words(event.data());
            steps.requeues = steps.requeues.saturating_add(1);
            steps.waiting = true;
            event.set_data(&steps.to_words());
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
            // No bytes at all: the driver reports an error first, and completes afterwards.
            if bytes != 0 && self.is_wanted(rq) {
                self.count(&guard, Extra::Partial);
            }
            return;
        }
        let tracker = self.core.tracker();
        let mut unissued = false;
        let end = Cell::new(0);
        let known = tracker.event_out_if_known(
            &guard,
            &[rq.id()],
            || {
                end.set(Kernel::now());
                end.get()
            },
            |event: &Open<'_, 1, STEPS>| {
                let steps = Steps::from_words(event.data());
                unissued = steps.issued == 0;
                // A negative delay does not count.
                match end.get().checked_sub(event.start()) {
                    Some(delay) if !unissued => T::ended(self, &guard, &steps, delay),
                    _ => {}
                }
                !unissued
            },
            |late| T::raise(&self.core, &guard, late),
        );
        if unissued {
            self.count(&guard, Extra::Unissued);
        }
        // The end of a flush sequence has no bytes and is not the end of a request.
        let is_end = bytes != 0 || rq.is_flush();
        if !known && is_end && T::follows_all(&self.core) && self.is_wanted(rq) {
            tracker.unmatched(&guard);
        }
    }

    fn done(&self, rq: &Request<'_>) {
        self.drop_event(rq, Extra::Aborted);
    }
}

/// The `block` tracker.
pub(super) struct Block;

/// The state that its probes work on.
pub(super) type Probes = Following<Block, ()>;

impl Requests<()> for Block {
    const COUNTERS_AT: usize = 0;

    fn is_from_insert(core: &Core<1, STEPS>) -> bool {
        core.value(FROM) == FROM_INSERT
    }

    fn is_wanted(core: &Core<1, STEPS>, rq: &Request<'_>) -> bool {
        is_disk(core.value(DEV), rq)
    }
}

impl probed::Probes<1, STEPS> for Block {
    type Attachment = Attachment<Probes>;

    fn kind() -> &'static Kind {
        &KIND
    }

    fn attach(live: Arc<Probes>) -> Result<Self::Attachment> {
        block::attach(live)
    }

    fn owner(data: &[u64; STEPS]) -> Owner {
        Steps::from_words(*data).owner
    }

    fn details(_: &Core<1, STEPS>, late: &Late<1, STEPS>, now: u64) -> Option<Details> {
        Some(Steps::from_words(late.data).details(now))
    }

    fn show_fields(core: &Core<1, STEPS>, event: &EventCopy<1, STEPS>, out: &SeqFile) {
        let steps = Steps::from_words(event.data);
        let state = match (steps.inserted, steps.issued) {
            (_, 1..) => "issued",
            (1.., 0) => "inserted",
            (0, 0) => "created",
        };
        seq_print!(
            out,
            "rq={:#x} {} {} state={state} requeues={}",
            // Not the address: it must not leak.
            core.tracker().pseudonym(&event.key),
            steps.owner,
            steps.operation(),
            steps.requeues
        );
    }
}
