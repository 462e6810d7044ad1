// SPDX-License-Identifier: GPL-2.0

//! `workqueue`: how long work items wait for a worker, and how long they run.
//!
//! ```text
//!   queued                 started                  ended          the life of a work item
//!   (any context)          (worker)                 (worker)
//!     |------- queued -------|------- running -------|
//!     |<------------------ delay ------------------->|             part=all
//!     |<------- delay ------>|                                     part=waiting
//!                            |<------- delay ------->|             part=running
//! ```
//!
//! A work is queued at most once at a time, but it may be queued again as soon as it runs, and its
//! memory may be freed, and used for another work, as soon as its function has been called. So an
//! event has two keys in its life, of two words: while the work waits, its address, which only one
//! waiting work has; while it runs, its address and the task that runs it, which is known at the
//! end without access to the work. The start gives the event its new key
//! ([`Tracker::rename`](crate::engine::tracker::Tracker::rename)).
//!
//! A work that is queued again *while* it waits, by mod_delayed_work(), has been waiting since it
//! was queued first. That function takes it off its list and queues it, all in one call: it is
//! marked when the call begins, and if a marked work is queued its event continues unchanged
//! ([`Requeued`]).
//!
//! The cancelling of a waiting work is not seen: there is no tracepoint. Its event is `replaced`
//! when a work at this address is queued again. Until then it does not time out, and is shown as
//! cancelled: for that the work's memory is read, to see whether a work with this function waits in
//! it, without relying on its being one.
//!
//! The owner of an event is the worker, once there is one: its stack shows why it takes long.
//!
//! # Contexts
//!
//! See sys/workqueue.rs.

mod item;

use self::item::{Item, WORDS};
use super::tasks::{self, Guard};
use crate::{
    alert::record::Owner,
    control::{Kind as ParamKind, Param},
    engine::{
        event::EventCopy,
        platform::Platform,
        tracker::{Late, Open, Verdict},
    },
    instance::{
        common,
        kind::{all_right, Kind},
        params,
        probed::{self, Live, Own, Probed},
        Core,
        Details,
        Values, //
    },
    sys::{
        atomic::{Atomic, Relaxed},
        platform::Kernel,
        task::{self, Context},
        workqueue::{self, Attachment, Queue, Work}, //
    }, //
};
use kernel::{prelude::*, seq_file::SeqFile, seq_print, sync::Arc};

const PART: usize = common::COUNT;

/// The values of `part`.
const WAITING: u64 = 1;
const RUNNING: u64 = 2;

static PARAMS: [Param; common::COUNT + 1] = params(
    10_000_000,
    [Param {
        name: "part",
        kind: ParamKind::Word(&["all", "waiting", "running"]),
        default: 0,
        fixed: true,
        help: "part to measure: all, the wait for a worker, or the execution",
    }],
);

/// The entry in the list of trackers.
pub(crate) static KIND: Kind = Kind {
    name: "workqueue",
    c_name: c"workqueue",
    help: "kernel work items, from queueing to completion (key: the work item)",
    params: &PARAMS,
    counters: &[tasks::READERS, "unqueued", "requeued"],
    detail_words: Item::DETAIL_WORDS,
    tail: None,
    detail: |alert, f| f.write_fmt(fmt!(" {}", Item::from_detail(alert))),
    check: all_right,
    missing: workqueue::missing::<Probes>,
    create: Some(Probed::<Works, _, _, _>::create),
};

/// Our own counters, after the common one.
#[derive(Clone, Copy)]
enum Extra {
    /// Works that were started, but not seen to be queued.
    Unqueued = 1,
    /// Works that were queued again while they waited.
    Requeued = 2,
}

struct Works;

type Probes = Live<Works, 2, WORDS, Requeued>;

/// The works that are being queued again while they wait: from the call of the function that does
/// so until it queues them, microseconds later.
///
/// Each has a place by its address. Of two that share one and are queued again at the same time,
/// the first one is forgotten, and is `replaced`.
struct Requeued([Atomic<u64>; Self::PLACES]);

impl Requeued {
    const PLACES: usize = 64;

    #[inline(always)]
    fn place(&self, work: u64) -> &Atomic<u64> {
        // Most works are in objects of 128 bytes or more.
        &self.0[(work >> 7) as usize % Self::PLACES]
    }

    /// A work is about to be queued again.
    fn mark(&self, work: u64) {
        // Relaxed: the task that marks it also queues it, in the same call; the mark orders nothing
        // else.
        self.place(work).store(work, Relaxed);
    }

    /// A work is queued; returns whether it was marked, once.
    #[inline(always)]
    fn take(&self, work: u64) -> bool {
        // Relaxed: as in `mark`.
        let is_marked = self.place(work).load(Relaxed) == work;
        if is_marked {
            self.place(work).store(0, Relaxed);
        }
        is_marked
    }
}

impl Own for Requeued {
    fn new(_: &Values) -> Result<Self> {
        Ok(Self(core::array::from_fn(|_| Atomic::new(0))))
    }
}

/// The key of a waiting work.
fn waiting(work: u64) -> [u64; 2] {
    [work, 0]
}

/// The key of a running one, in the current task.
fn running(work: u64) -> [u64; 2] {
    [work, task::current_address()]
}

impl workqueue::Observer for Probes {
    fn queued(&self, guard: &Guard, work: &Work<'_>, queue: &Queue<'_>) {
        // It belongs to another part.
        if self.core.value(PART) == RUNNING {
            return;
        }
        if self.own.take(work.id()) && self.goes_on(guard, work) {
            return;
        }
        let tracker = self.core.tracker();
        let by = task::current().map_or(Owner::default(), |task| Owner::from(&task));
        let now = Kernel::now();
        let item = Item {
            work: work.id(),
            function: work.function(),
            queue: queue.name(),
            by,
            context: Context::current() as u32,
            queued: now,
            ..Item::default()
        };
        tracker.event_in_unique(guard, &waiting(work.id()), now, &item.to_words());
    }

    fn started(&self, work: &Work<'_>) {
        let guard = Kernel::guard();
        let (now, id) = (Kernel::now(), work.id());
        let tracker = self.core.tracker();
        match self.core.value(PART) {
            RUNNING => {
                let mut item = Item {
                    work: id,
                    function: work.function(),
                    ..Item::default()
                };
                item.start(&guard, now);
                tracker.event_in_unique(&guard, &running(id), now, &item.to_words());
            }
            WAITING => {
                let started = |late: &Late<2, WORDS>| {
                    let mut item = Item::from_words(&late.data);
                    item.start(&guard, late.start.wrapping_add(late.delay));
                    self.report(&guard, late, &item);
                };
                let is_it = |event: &Open<'_, 2, WORDS>| {
                    Item::from_words(&event.data()).function == work.function()
                };
                if !tracker.event_out_if_known(&guard, &waiting(id), Kernel::now, is_it, started) {
                    self.core.count_extra(&guard, Extra::Unqueued as usize);
                }
            }
            _ => {
                let found = tracker.rename(&guard, &waiting(id), &running(id), |event| {
                    let mut item = Item::from_words(&event.data());
                    if item.function != work.function() {
                        return Verdict::Gone;
                    }
                    item.start(&guard, now);
                    event.set_data(&item.to_words());
                    Verdict::Keep
                });
                if found.is_none() {
                    self.core.count_extra(&guard, Extra::Unqueued as usize);
                }
            }
        }
    }

    fn ended(&self, work: u64) {
        if self.core.value(PART) == WAITING {
            return;
        }
        let guard = Kernel::guard();
        let tracker = self.core.tracker();
        let known = tracker.event_out_if_known(
            &guard,
            &running(work),
            Kernel::now,
            |_| true,
            |late| self.report(&guard, late, &Item::from_words(&late.data)),
        );
        // For the others the start has counted that they are unknown.
        if !known && self.core.value(PART) == RUNNING {
            tracker.unmatched(&guard);
        }
    }

    fn requeueing(&self, work: u64) {
        self.own.mark(work);
    }
}

impl Probes {
    /// A work is queued again while it waits: its event continues, if there is one.
    #[cold]
    fn goes_on(&self, guard: &Guard, work: &Work<'_>) -> bool {
        let tracker = self.core.tracker();
        let found = tracker.update(guard, &waiting(work.id()), |_| Verdict::Keep);
        if found.is_some() {
            self.core.count_extra(guard, Extra::Requeued as usize);
        }
        found.is_some()
    }

    /// Raises the alert of an end, unless a reader of alerts queued the work: where works write to
    /// a terminal, each alert would raise the next.
    #[cold]
    fn report(&self, guard: &Guard, late: &Late<2, WORDS>, item: &Item) {
        if tasks::is_reported(&self.core, guard, &item.by) {
            let now = late.start.wrapping_add(late.delay);
            let details = item.details(now);
            self.core.raise(guard, now, late, &details, &[]);
        }
    }
}

impl probed::Probes<2, WORDS, Requeued> for Works {
    type Attachment = Attachment<Probes>;

    fn kind() -> &'static Kind {
        &KIND
    }

    fn attach(live: Arc<Probes>) -> Result<Self::Attachment> {
        let waits = live.core.value(PART) != RUNNING;
        Attachment::new(live, waits)
    }

    fn owner(data: &[u64; WORDS]) -> Owner {
        Item::from_words(data).worker
    }

    fn can_time_out(data: &[u64; WORDS]) -> bool {
        !Item::from_words(data).is_cancelled()
    }

    fn details(core: &Core<2, WORDS>, late: &Late<2, WORDS>, now: u64) -> Option<Details> {
        let item = Item::from_words(&late.data);
        tasks::is_reported(core, &Kernel::guard(), &item.by).then(|| item.details(now))
    }

    fn show_fields(_: &Core<2, WORDS>, event: &EventCopy<2, WORDS>, out: &SeqFile) {
        let item = Item::from_words(&event.data);
        seq_print!(out, "{} {}", item.worker, item.pending());
    }
}
