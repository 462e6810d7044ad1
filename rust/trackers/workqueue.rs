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
//! A work item is queued at most once at a time, but it may be queued again as soon as it runs.
//! Once its function has been called, its memory may also be freed and used for another work item.
//! So there are two keys, of two words each. While the work waits, the key is its address, which
//! only one waiting work item has. While the work runs, the key is its address and the task that
//! runs it: both are known at the end without access to the work. With `part=all`, the event gets
//! its second key at the start of the work ([`Engine::rename`](crate::engine::Engine::rename)).
//!
//! A work item that is queued again *while* it waits, by mod_delayed_work(), has been waiting since
//! it was first queued. That function takes the work off its list and queues it again, all in one
//! call. The work is marked when the call starts; if a marked work item is queued, its event
//! continues unchanged ([`Requeued`]).
//!
//! The cancellation of a waiting work item has no tracepoint. Its event is `replaced` when a work
//! item at this address is queued again. Until then the event does not time out, and is shown as
//! cancelled. To detect a cancellation, we read the memory at the work's address and check whether
//! it looks like a waiting work item with this function; the memory may have been reused.
//!
//! The owner of an event is the worker, once there is one: its stack shows why the work takes
//! so long.
//!
//! # Contexts
//!
//! See sys/workqueue.rs.

use super::declare::*;
use crate::{
    alert::record::actor::Actor,
    engine::Late,
    instance::{probed, Values},
    record::{self, Func, Name32, U20},
    sys::{
        atomic::{Atomic, Relaxed},
        task,
        workqueue::{self, Queue, Work}, //
    },
};
use kernel::{prelude::*, sync::Arc};

const STATES: [&str; 2] = ["waiting", "running"];

/// The values of `part`.
const WAITING: u64 = 1;
const RUNNING: u64 = 2;

tracker! {
    workqueue: "kernel work items, from queueing to completion (key: the work item)";
    key: 2;
    threshold: 10_000_000;
    own: Requeued;
    counters {
        /// Items that started without a recorded queueing; not with part=running.
        unqueued,
        /// Items that were queued again while they waited: the wait counts from the first time.
        requeued,
    }
    params {
        part: ParamKind::Word(&["all", "waiting", "running"]) => 0,
            "part to measure: all, the wait for a worker, or the execution", fixed;
    }
    keeps: detail;
    alert {
        /// 16 hexadecimal digits that stand for the work item, as %p prints its address.
        work: Address at 0,
        /// Its function, and the module that contains it.
        func: Func at 1,
        /// The name of its workqueue; empty if the kernel has no BTF, or with part=running.
        workqueue: Name32 at 2,
        /// running; waiting if it was not started; in pending also cancelled, if it no longer waits
        /// although no start was seen.
        running_now: bool at 6:63 in STATES as state = |it, how| it.state(how),
        /// The CPU on which it was started; 0 if it was not.
        worker_cpu: u32 at 6,
        /// The task that queued it; 0 and empty if context is not task, or with part=running.
        by: Actor at 9,
        /// The context of the CPU that queued it: task, softirq, hardirq or nmi; task with
        /// part=running.
        context: Context at 6:32,
        /// In an event, the mark of that task's start; in an alert, the context.
        note: U20 at 9:44 if kept,
        /// How long it waited, in nanoseconds; 0 with part=running.
        // In an event, the time of the queueing, 0 if not seen.
        queued: u64 at 7 if alert,
        /// How long it has been running, in nanoseconds; 0 if it was not started.
        // In an event, the time of the start, 0 if the work has not started.
        running: u64 at 8 if alert,
    }
    attach: workqueue::Attachment<Probes> = |live: Arc<Probes>| {
        let waits = live.core.value(PARAM_PART) != RUNNING;
        workqueue::Attachment::new(live, waits)
    }, || tracepoint::missing(workqueue::probes::<Probes>());
    impl {
        const NO_USER_STACK: &str = "a worker of the kernel has no stack in user space";

        // Both are timestamps in an event, and durations only in an alert.
        const LABELS: labels::Rules = labels::Rules::ALL.without(&["queued", "running"]);

        // A reader that writes alerts to a terminal queues work items: each of its writes could
        // otherwise raise the next alert.
        const IS_OF_TASKS: bool = true;

        fn suspect(detail: &Detail, _: Owner) -> Owner {
            let Actor { pid, tid, comm } = detail.by;
            Owner {
                pid,
                tid,
                start_mark: detail.note.0,
                comm,
            }
        }

        fn can_time_out(data: &[u64; WORDS]) -> bool {
            !Detail::of(data).is_cancelled()
        }

        fn settle(detail: &mut Detail, _: u64, now: u64) {
            let since = |begin: u64, end: u64| match begin {
                0 => 0,
                begin => end.saturating_sub(begin),
            };
            let left = if detail.running_now { detail.running } else { now };
            detail.queued = since(detail.queued, left);
            detail.running = since(detail.running, now);
            detail.note = U20(detail.context as u32);
        }
    }
}

impl Detail {
    fn new(work: &Work<'_>) -> Self {
        Self {
            work: Address(work.id()),
            func: Func(work.function()),
            ..Self::default()
        }
    }

    fn of(data: &[u64; WORDS]) -> Self {
        record::known(data)
    }

    /// Notes that the current task starts to run the work. Returns that task, or no task in a
    /// softirq on top of it.
    fn start(&mut self, guard: &Guard, now: u64) -> Owner {
        self.running = now;
        self.running_now = true;
        self.worker_cpu = tasks::this_cpu(guard);
        task::current().map_or(Owner::default(), |task| Owner::from(&task))
    }

    /// Whether the work no longer waits, though its start was not seen: it was cancelled, or is
    /// about to start.
    fn is_cancelled(&self) -> bool {
        !self.running_now && !workqueue::is_queued(self.work.0, self.func.0)
    }

    fn state(&self, how: &record::How) -> &'static str {
        if how.pending() && self.is_cancelled() {
            "cancelled"
        } else {
            STATES[usize::from(self.running_now)]
        }
    }
}

/// Work items that are being queued again while they wait. An item is marked from the call of
/// mod_delayed_work() until that call queues it, microseconds later.
///
/// The address of a work item selects its slot. If two items that share a slot are queued again at
/// the same time, the mark of the first is lost, and its event is `replaced`.
pub(crate) struct Requeued([Atomic<u64>; Self::PLACES]);

impl Requeued {
    const PLACES: usize = 64;

    #[inline(always)]
    fn place(&self, work: u64) -> &Atomic<u64> {
        // Most work items are in objects of 128 bytes or more.
        &self.0[(work >> 7) as usize % Self::PLACES]
    }

    /// Marks a work item that is about to be queued again.
    fn mark(&self, work: u64) {
        // Relaxed: the task that marks the item also queues it, in the same call. The mark orders
        // nothing else.
        self.place(work).store(work, Relaxed);
    }

    /// Clears the mark of a work item that is queued; returns whether it was marked.
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

impl probed::Own for Requeued {
    fn new(_: &Values) -> Result<Self> {
        Ok(Self(core::array::from_fn(|_| Atomic::new(0))))
    }
}

/// Returns the key of a waiting work item.
fn waiting(work: u64) -> [u64; 2] {
    [work, 0]
}

/// Returns the key of a work item that the current task runs.
fn running(work: u64) -> [u64; 2] {
    [work, task::current_address()]
}

impl workqueue::Observer for Probes {
    fn queued(&self, guard: &Guard, work: &Work<'_>, queue: &Queue<'_>) {
        // The wait is not measured.
        if self.core.value(PARAM_PART) == RUNNING {
            return;
        }
        if self.own.take(work.id()) && self.goes_on(guard, work) {
            return;
        }
        let engine = self.core.engine();
        let by = task::current().map_or(Owner::default(), |task| Owner::from(&task));
        let now = Kernel::now();
        let known = Detail {
            workqueue: queue.name(),
            context: Context::current(),
            by: Actor {
                pid: by.pid,
                tid: by.tid,
                comm: by.comm,
            },
            note: U20(by.start_mark),
            queued: now,
            ..Detail::new(work)
        };
        let data = record::data::<WORDS>(Owner::default(), &known);
        engine.event_in_unique(guard, &waiting(work.id()), now, &data);
    }

    fn started(&self, work: &Work<'_>) {
        let guard = Kernel::guard();
        let (now, id) = (Kernel::now(), work.id());
        let engine = self.core.engine();
        match self.core.value(PARAM_PART) {
            RUNNING => {
                let mut known = Detail::new(work);
                let data = record::data::<WORDS>(known.start(&guard, now), &known);
                engine.event_in_unique(&guard, &running(id), now, &data);
            }
            WAITING => {
                let started = |late: &Late<2, WORDS>| {
                    let mut detail = Detail::of(&late.data);
                    let worker = detail.start(&guard, late.start.wrapping_add(late.delay));
                    report::<_, _, _, Tracked>(&self.core, &guard, late, worker, detail);
                };
                let mut is_it = false;
                let check = |event: &Open<'_, 2, WORDS>| {
                    is_it = Detail::of(&event.data()).func.0 == work.function();
                    is_it
                };
                engine.event_out_if_known(&guard, &waiting(id), Kernel::now, check, started);
                if !is_it {
                    self.core.count_extra(&guard, COUNT_UNQUEUED);
                }
            }
            _ => {
                let found = engine.rename(&guard, &waiting(id), &running(id), |event| {
                    let mut known = Detail::of(&event.data());
                    if known.func.0 != work.function() {
                        return Verdict::Gone;
                    }
                    let worker = known.start(&guard, now);
                    event.set_data(&record::data(worker, &known));
                    Verdict::Keep
                });
                if found != Some(Verdict::Keep) {
                    self.core.count_extra(&guard, COUNT_UNQUEUED);
                }
            }
        }
    }

    fn ended(&self, work: u64) {
        if self.core.value(PARAM_PART) == WAITING {
            return;
        }
        let guard = Kernel::guard();
        let known = self.end(&guard, &running(work), |_| ());
        // With `part=all`, a work item without an event was already counted as `unqueued` when it
        // started.
        if !known && self.core.value(PARAM_PART) == RUNNING {
            self.core.engine().unmatched(&guard);
        }
    }

    fn requeueing(&self, work: u64) {
        self.own.mark(work);
    }
}

impl Probes {
    /// Continues the event of a work item that is queued again while it waits. Returns whether
    /// there is such an event.
    #[cold]
    fn goes_on(&self, guard: &Guard, work: &Work<'_>) -> bool {
        let engine = self.core.engine();
        let found = engine.update(guard, &waiting(work.id()), |_| Verdict::Keep);
        if found.is_some() {
            self.core.count_extra(guard, COUNT_REQUEUED);
        }
        found.is_some()
    }
}
