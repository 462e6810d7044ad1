// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What ends a sleep, or queues a work item: the thread that runs on the CPU, or an interrupt on top of it.
//!
//! The rules are those of the model, whose builder follows the current state of each CPU here, and keeps no history.

use super::ground::Ground;
use super::group::Trigger;
use super::step::{Block, BlockStage, Operation, Seen, Step, Work, WorkStage};
use crate::build::Builder;
use crate::context::{Context, Vector};
use crate::event::{Event, What};
use crate::missing::Events;
use crate::request;

/// The recorded events that show what woke a thread, or queued a work item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recorded {
    /// `sched_waking`; otherwise `sched_wakeup` ends a sleep.
    pub wakings: bool,
    /// Starts and ends of interrupt handlers.
    pub handlers: bool,
    /// Starts and ends of softirqs.
    pub softirqs: bool,
    /// Starts and ends of functions of hrtimers, or of the local timer's interrupt.
    pub timers: bool,
    /// Starts and ends of interrupts that CPUs send; also true if the architecture has no such events.
    pub ipis: bool,
    /// `timer_expire_entry`.
    pub wheel: bool,
    /// All system calls.
    pub calls: bool,
    /// All interrupts that come from no device.
    pub vectors: bool,
}

impl Recorded {
    /// Whether the events would show any interrupt on top of a thread.
    #[must_use]
    pub fn has_interrupts(&self) -> bool {
        self.handlers && self.softirqs && self.timers && self.ipis
    }
}

/// Whether this step ends a request, or a part of one. Without sectors, only a flush and a command without a position
/// are known to have ended. A write that waited for a flush ends directly after it, so the disk is the waker already.
fn has_ended(block: &Block) -> bool {
    let is_without_sectors = match block.operation {
        Operation::Flush => true,
        Operation::Other => block.sector == 0,
        Operation::Read | Operation::Write | Operation::Discard => false,
    };
    block.stage == BlockStage::Completed && (block.sectors > 0 || is_without_sectors)
}

/// The current state of each CPU.
#[derive(Debug)]
pub(super) struct Triggers {
    recorded: Recorded,
    model: Builder,
}

impl Triggers {
    pub(super) fn new(recorded: Recorded) -> Self {
        let mut model = Builder::new();
        model.forget_before(u64::MAX);
        for (is_recorded, events) in [
            (recorded.handlers, Events::Handlers),
            (recorded.softirqs, Events::Softirqs),
            (recorded.wheel, Events::Timers),
        ] {
            if !is_recorded {
                model.has_no(events);
            }
        }
        if recorded.calls {
            model.has_all_calls();
        }
        if recorded.vectors {
            model.has_all_vectors();
        }
        Self { recorded, model }
    }

    /// Passes an event on to the model, unless it shows nothing about triggers. Events that lack their counterparts are
    /// left out.
    pub(super) fn follow(&mut self, seen: &Seen<'_>) {
        let Recorded {
            handlers,
            softirqs,
            timers,
            ..
        } = self.recorded;
        let what = match seen.step {
            Step::Known(What::Irq { .. } | What::IrqEnd { .. }) if !handlers => return,
            Step::Known(What::Softirq { .. } | What::SoftirqEnd { .. }) if !softirqs => return,
            Step::Known(What::Timer { .. } | What::TimerEnd) if !timers => return,
            Step::Known(What::Request { .. } | What::Remap { .. }) => return,
            Step::Known(What::Flush { .. } | What::Requeued { .. }) => return,
            Step::Known(What::Dirty { .. }) => return,
            Step::Known(what) => what,
            Step::New { tid, name, target } => What::Wakeup { tid, name, target },
            Step::Return { .. } => What::Return,
            Step::Block(block) if has_ended(&block) => What::Completed {
                disk: block.disk,
                range: None,
                kind: request::Kind::Plain,
            },
            Step::Work(Work {
                stage: WorkStage::Started,
                function,
                ..
            }) => What::Work {
                function: function.unwrap_or(0),
            },
            Step::Work(Work {
                stage: WorkStage::Ended,
                ..
            }) => What::WorkEnd,
            Step::Block(_) | Step::Work(_) => return,
            Step::Reclaims(_) | Step::Reclaimed(_) | Step::Packet(_) => return,
            Step::Contended { .. } | Step::Acquired { .. } | Step::File => return,
        };
        self.model.feed(&Event {
            time: seen.time,
            cpu: seen.cpu,
            what,
        });
    }

    /// Handles a gap: events of this CPU are not recorded from `time` on.
    pub(super) fn lost(&mut self, time: u64, cpu: u32) {
        let what = What::Lost { until: time };
        self.model.feed(&Event { time, cpu, what });
    }

    /// What wakes the thread with this number and name now.
    pub(super) fn waker(
        &mut self,
        ground: &mut Ground,
        seen: &Seen<'_>,
        (tid, name): (i32, &[u8]),
    ) -> Trigger {
        let Some(waker) = self.model.current_waker(seen.time, seen.cpu, tid, name) else {
            return Trigger::Unrecorded;
        };
        if let Some(tid) = waker.by().and_then(|thread| self.model.tid(thread)) {
            let thread = Some(ground.find(tid));
            return match self.recorded.has_interrupts() {
                true => Trigger::Thread(thread),
                false => Trigger::Perhaps(thread),
            };
        }
        let mut number = |name| ground.names.number(self.model.text(name).as_bytes());
        match waker.context {
            Some(Context::Irq { number: line, name }) => Trigger::Irq(line, number(name)),
            Some(Context::Softirq { vector, .. }) => match vector {
                Vector::TIMER | Vector::HRTIMER => Trigger::Timer,
                Vector::UNRECORDED => Trigger::Unrecorded,
                vector => Trigger::Softirq(vector),
            },
            Some(Context::Timer) => Trigger::Timer,
            Some(Context::Ipi(name)) => Trigger::Ipi(number(name)),
            Some(Context::Disk(disk)) => Trigger::Disk(disk),
            Some(Context::Unseen) | None => Trigger::Unrecorded,
        }
    }

    /// What queues a work item now. If only the event itself names the thread, an interrupt may be on top of it: the
    /// interrupt may have started before the first event of the CPU.
    pub(super) fn queuer(&mut self, ground: &mut Ground, seen: &Seen<'_>) -> Trigger {
        let no_wakee: (i32, &[u8]) = (0, b"");
        match self.waker(ground, seen, no_wakee) {
            // The thread may have gone on since the completion.
            Trigger::Disk(_) if !self.recorded.handlers => Trigger::Unrecorded,
            Trigger::Unrecorded => match seen.tid {
                Some(tid @ 1..) => Trigger::Perhaps(Some(ground.find(tid))),
                _ => Trigger::Unrecorded,
            },
            trigger => trigger,
        }
    }
}
