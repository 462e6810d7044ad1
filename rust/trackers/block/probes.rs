// SPDX-License-Identifier: GPL-2.0

//! What happens at each tracepoint of a request's life; the head of block.rs says why.

use super::{
    steps::{Steps, STEPS},
    DEV, FROM, FROM_INSERT, KIND,
};
use crate::{
    control::ALL_DEVICES,
    event::Snapshot,
    instance::{
        probed::{self, Live},
        Core,
        Details, //
    },
    platform::Platform,
    record::Owner,
    sys::{
        block::{Attachment, Follower, Request},
        platform::Kernel,
        task,
    },
    tracker::{Late, Open, Verdict},
    trackers::Kind, //
};
use kernel::{prelude::*, seq_file::SeqFile, seq_print, sync::Arc};

/// Counters of our own.
#[derive(Clone, Copy)]
enum Extra {
    /// Completions of a part of a request.
    Partial,
    /// Requests given back by the driver.
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
pub(super) const COUNTERS: [&str; 6] = [
    "partial", "requeued", "reissued", "merged", "unissued", "aborted",
];

/// A step of a request, other than the first and the last.
trait Step {
    /// Notes when it happened, in nanoseconds.
    fn note(&self, steps: &mut Steps, now: u64);
    /// Whether it, or a later one, was noted before.
    fn is_noted(&self, steps: &Steps) -> bool;
    /// Whether the delay is measured from here.
    fn is_begin(&self, steps: &Steps) -> bool;
    /// It comes again, because the driver had given the request back. Returns whether the
    /// request is with the driver again.
    fn resume(&self, steps: &mut Steps) -> bool;
}

/// See [`Follower::inserted`].
struct Insertion<'a>(&'a Probes);

impl Step for Insertion<'_> {
    fn note(&self, steps: &mut Steps, now: u64) {
        steps.inserted = now;
    }

    fn is_noted(&self, steps: &Steps) -> bool {
        steps.inserted != 0 || steps.issued != 0
    }

    fn is_begin(&self, _: &Steps) -> bool {
        self.0.is_from_insert()
    }

    fn resume(&self, _: &mut Steps) -> bool {
        false
    }
}

/// See [`Follower::issued`].
struct Issue<'a>(&'a Probes);

impl Step for Issue<'_> {
    fn note(&self, steps: &mut Steps, now: u64) {
        steps.issued = now;
        steps.waiting = false;
    }

    fn is_noted(&self, steps: &Steps) -> bool {
        steps.issued != 0
    }

    fn is_begin(&self, steps: &Steps) -> bool {
        !self.0.is_from_insert() || steps.inserted == 0
    }

    fn resume(&self, steps: &mut Steps) -> bool {
        steps.waiting = false;
        true
    }
}

/// The tracker.
pub(super) struct Block;

/// What the probes work on.
type Probes = Live<Block, 1, STEPS>;

type Guard = <Kernel as Platform>::Guard;

impl Probes {
    fn is_wanted(&self, rq: &Request<'_>) -> bool {
        let wanted = self.core.value(DEV);
        wanted == ALL_DEVICES || wanted == u64::from(rq.dev())
    }

    fn is_from_insert(&self) -> bool {
        self.core.value(FROM) == FROM_INSERT
    }

    fn count(&self, guard: &Guard, counter: Extra) {
        self.core.count_extra(guard, counter as usize);
    }

    /// The request, if it is followed, has ceased to exist.
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
            // Here, not before: most requests that pass may be nobody's.
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

impl Follower for Probes {
    fn created(&self, rq: &Request<'_>) {
        let guard = Kernel::guard();
        if !self.is_wanted(rq) {
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
        self.step(&guard, rq, &Insertion(self));
    }

    fn issued(&self, rq: &Request<'_>) {
        let guard = Kernel::guard();
        let issue = Issue(self);
        let known = self.step(&guard, rq, &issue);
        // Of what was not submitted, only the block layer's own flushes begin here; anything
        // else was submitted before this instance was on, or found the pool full.
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
        let known = tracker.event_out_if_known(
            &guard,
            &[rq.id()],
            Kernel::now,
            |event: &Open<'_, 1, STEPS>| {
                unissued = Steps::from_words(event.data()).issued == 0;
                !unissued
            },
            |late| {
                let now = late.start.wrapping_add(late.delay);
                let details = Steps::from_words(late.data).details(now);
                self.core.raise(&guard, now, late, &details, &[]);
            },
        );
        if unissued {
            self.count(&guard, Extra::Unissued);
        }
        // The end of a flush sequence has no bytes and is no request's end.
        if !known && (bytes != 0 || rq.is_flush()) && self.is_wanted(rq) {
            tracker.unmatched(&guard);
        }
    }

    fn done(&self, rq: &Request<'_>) {
        self.drop_event(rq, Extra::Aborted);
    }
}

impl probed::Probes<1, STEPS> for Block {
    type Attachment = Attachment<Probes>;

    fn kind() -> &'static Kind {
        &KIND
    }

    fn attach(live: Arc<Probes>) -> Result<Self::Attachment> {
        Attachment::new(live)
    }

    fn owner(data: &[u64; STEPS]) -> Owner {
        Steps::from_words(*data).owner
    }

    fn details(_: &Core<1, STEPS>, late: &Late<1, STEPS>, now: u64) -> Option<Details> {
        Some(Steps::from_words(late.data).details(now))
    }

    fn show_fields(core: &Core<1, STEPS>, event: &Snapshot<1, STEPS>, out: &SeqFile) {
        let steps = Steps::from_words(event.data);
        let state = match (steps.inserted, steps.issued) {
            (_, 1..) => "issued",
            (1.., 0) => "inserted",
            (0, 0) => "created",
        };
        seq_print!(
            out,
            "rq={:#x} {} {} state={state} requeues={}",
            // Not the address: that is nobody's business.
            core.tracker().pseudonym(&event.key),
            steps.owner,
            steps.operation(),
            steps.requeues
        );
    }
}
