// SPDX-License-Identifier: GPL-2.0

//! `block`: how long block I/O requests take.
//!
//! ```text
//!   created ------> inserted ------> issued ------> completed        the life of a request
//!   (submitter)     (scheduler)      (driver)       (interrupt)
//!                   |---- queue -----|--- device ---|
//!                                    |<- delay ---->|                from=issue
//!                   |<----------- delay ----------->|                from=insert
//! ```
//!
//! An event starts when a task submits the request (`block_io_start`): `current` is then the
//! submitter, which for buffered writes is a writeback worker. `dev` selects requests at this
//! point. The events of the block layer's own flushes start when the flushes are issued, and `dev`
//! selects them then. Later steps add their times to the event; a request that goes directly to
//! the driver is never inserted. The key is the address of the request; only one request has this
//! key at a time:
//!
//! - *requeued* requests keep the start that they had before the driver returned them: the
//!   submitter has been waiting since then. A request that was not inserted, and is returned before
//!   the driver has started it, is inserted at that moment: it waits in a queue then, though
//!   `block_rq_insert` is not hit;
//! - *merged* requests cease to exist (`gone`, `merged`);
//! - *partial* completions are counted; the last completion ends the event;
//! - requests that complete without ever having been issued, such as the empty flush of an fsync,
//!   have no delay to measure (`gone`, `unissued`). If the disk has a cache, the block layer issues
//!   a flush of its own for such a request; that flush is measured, and has no submitter (pid 0);
//! - a write that is part of a flush sequence completes twice: the completion of its data is
//!   measured; the completion of the whole sequence, which has no bytes, is ignored;
//! - requests that leave without completing (`block_io_done` alone) are `gone`, `aborted`;
//! - a request that is inserted or issued a second time without having been requeued is a new
//!   request at the same address; the end of its predecessor was missed (`replaced`).
//!
//! With `ustack=1`, the submitter's stack in user space is walked at `block_io_start`, for each
//! request: when the request turns out to be late, an interrupt or another task raises the alert,
//! and the submitter may be elsewhere by then. The event has room for that stack ([`WithStack`]),
//! so the stack of one request is never shown for another. Plugged requests are issued later,
//! perhaps by a kernel worker, but they were created by their submitter. There is no stack if the
//! submitter is a kernel thread, as for buffered writes, or an io_uring worker, or if there is no
//! submitter.
//!
//! # Contexts
//!
//! Probes run in tasks, softirqs and hard interrupts, usually preemptible, so each takes the
//! engine's guard.

pub(crate) mod probes;

use self::probes::{is_disk, Requests, COUNTERS};
use super::declare::*;
use crate::{
    control::{Device, ALL_DEVICES},
    engine::event::EventCopy,
    instance::{
        kind::{Kind, New},
        probed::Probed,
        user_stack::KEPT,
        Instance, //
    },
    record::{self, fields, How, InQuotes, Name32, Shown, U31},
    sys::block::{self, Operation, Request, Rwbs},
};
use kernel::{prelude::*, seq_file::SeqFile, seq_print, sync::Arc};

const FROM_INSERT: u64 = 1;

tracker! {
    block: "block I/O requests, from issue or insertion to completion (key: the request)";
    key: 1;
    threshold: 10_000_000;
    counters: COUNTERS;
    create: create;
    params {
        from: ParamKind::Word(&["issue", "insert"]) => 0,
            "start of the delay: issue to the driver, or insertion before it", fixed;
        dev: ParamKind::Disk => ALL_DEVICES, "only this disk: its name under /dev, or MAJOR:MINOR";
        ustack: ParamKind::Switch => 0,
            "the submitter's stack in user space, by frame pointers", fixed;
    }
    keeps: detail;
    alert {
        /// The whole disk, MAJOR:MINOR; 0:0 without a disk.
        dev: Device at 0:32,
        /// The name of the disk.
        disk: Name32 at 5 if alert,
        /// The operation and its flags, as in the events of block/.
        cmd_flags: Rwbs at 0 as op = |it, _| InQuotes(it.cmd_flags),
        /// The first sector, in units of 512 bytes.
        sector: u64 at 1,
        /// The length in bytes when the request was issued; if it has not been, at its last step.
        bytes: u32 at 2,
        /// Time from the insertion to the issue, or to `time` if the request has not been issued,
        /// in nanoseconds; 0 if it was not inserted.
        // In an event, the time of the insertion.
        queue: u64 at 3 if alert,
        /// Time from the first issue to the completion, or to `time` if the request has not
        /// completed, in nanoseconds; 0 if it was not issued.
        // In an event, the time of the issue.
        device: u64 at 4 if alert,
        /// The last step: created, inserted or issued.
        state if pending = |it, _| it.state(),
        /// Number of times that the driver has returned the request to be issued again.
        requeues: U31 at 2:32,
        /// Whether the driver has returned the request, which will be issued again.
        waiting: bool at 2:63 if kept,
    }
    attach: Attachment<Probes> = |live| Attachment::new(live, block::probes::<Probes>()),
        || tracepoint::missing(block::probes::<Probes>());
    impl {
        const KEEPS_USER_STACK: bool = true;

        // An event has the times of these steps; the durations are known only at its end.
        const LABELS: labels::Rules = labels::Rules::ALL.without(&["queue", "device"]);

        fn settle(detail: &mut Detail, _: u64, now: u64) {
            detail.settle(now);
        }

        fn show(core: &Core<1, WORDS>, event: &EventCopy<1, WORDS>, how: How, out: &SeqFile) {
            show_request(core, event, how, out);
        }
    }
}

/// The tracker with `ustack=1`: an event keeps the stack of its submitter in user space as well.
pub(crate) struct WithStack;

/// Number of words that an event with a stack keeps.
const WIDE: usize = WORDS + KEPT;

impl Declared<1, WIDE> for WithStack {
    type Detail = Detail;
    type Attachment = Attachment<Live<Self, 1, WIDE>>;

    fn kind() -> &'static Kind {
        &KIND
    }

    fn attach(live: Arc<Live<Self, 1, WIDE>>) -> Result<Self::Attachment> {
        Attachment::new(live, block::probes())
    }

    fn detail(_: &[u64; 1], data: &[u64; WIDE]) -> Detail {
        record::known(data)
    }

    fn settle(detail: &mut Detail, _: u64, now: u64) {
        detail.settle(now);
    }

    fn show(core: &Core<1, WIDE>, event: &EventCopy<1, WIDE>, how: How, out: &SeqFile) {
        show_request(core, event, how, out);
    }
}

/// Creates an instance, see [`Kind::create`].
fn create(new: New<'_>) -> Result<Arc<dyn Instance>> {
    match new.values[PARAM_USTACK] {
        0 => Probed::<Tracked, 1, WORDS, ()>::create(new),
        _ => Probed::<WithStack, 1, WIDE, ()>::create(new),
    }
}

fn show_request<const D: usize>(
    core: &Core<1, D>,
    event: &EventCopy<1, D>,
    how: How,
    out: &SeqFile,
) {
    // A pseudonym, as the address must not leak.
    let rq = core.engine().pseudonym(&event.key);
    let (owner, known): (_, Detail) = (record::owner(&event.data), record::known(&event.data));
    seq_print!(out, "rq={rq:#x} {owner}{}", Shown(&known, how));
}

fields! {
    Device, u32::BITS, |it| it.0.into(), |bits| Device(bits as u32), it,
        "dev_t" "%u:%u" "" "MAJOR(X), MINOR(X)";
    Rwbs, u32::BITS, |it| it.0.into(), |bits| Rwbs(bits as u32), it, "u32" "%#x";
}

impl Detail {
    /// Returns the fields of a request before its first step.
    fn of(rq: &Request<'_>) -> Self {
        let mut known = Self {
            disk: rq.disk_name(),
            ..Self::default()
        };
        known.set_operation(&rq.operation());
        known
    }

    fn set_operation(&mut self, operation: &Operation) {
        self.dev = Device(operation.dev);
        self.cmd_flags = Rwbs(operation.flags);
        self.sector = operation.sector;
        self.bytes = operation.bytes;
    }

    /// Converts the times of the steps to durations.
    pub(super) fn settle(&mut self, now: u64) {
        let since = |begin: u64, end: u64| match begin {
            0 => 0,
            begin => end.saturating_sub(begin),
        };
        let left_queue = if self.device != 0 { self.device } else { now };
        self.queue = since(self.queue, left_queue);
        self.device = since(self.device, now);
        self.waiting = false;
    }

    fn state(&self) -> &'static str {
        match (self.queue, self.device) {
            (_, 1..) => "issued",
            (1.., 0) => "inserted",
            (0, 0) => "created",
        }
    }
}

macro_rules! requests {
    ($($tracked:ident: $words:ident;)*) => {
        $(impl Requests<(), $words> for $tracked {
            const COUNTERS_AT: usize = 0;

            fn is_from_insert(core: &Core<1, $words>) -> bool {
                core.value(PARAM_FROM) == FROM_INSERT
            }

            fn is_wanted(core: &Core<1, $words>, rq: &Request<'_>) -> bool {
                is_disk(core.value(PARAM_DEV), rq)
            }
        })*
    };
}

requests! {
    Tracked: WORDS;
    WithStack: WIDE;
}
