// SPDX-License-Identifier: GPL-2.0

//! `io`: a profile of all input and output: how long operations of each class took.
//!
//! ```text
//!   sys_enter ---------------------> sys_exit       six classes of system calls
//!   issue to the driver -----------> completion     two of block requests
//!                     \            /
//!                      delay, class ---> profile.rs: a table of the classes and powers of two
//! ```
//!
//! Both kinds of events are in one engine. The key of a system call is its thread; that of a
//! request is its address, which is not the number of a thread. The code that follows requests is
//! that of the `block` tracker; here it counts ends, too. The classes of system calls are in
//! io/calls.rs.
//!
//! A read from a terminal may take a day, which is normal. So the default threshold is never
//! reached: set another one for alerts.
//!
//! # Contexts
//!
//! Those of `block`; and tasks, at entry to and exit from the kernel.

mod calls;
mod what;

use self::what::{Detail, What};
use super::{
    block::{
        probes::{is_disk, Requests, COUNTERS},
        steps::{Steps, STEPS},
    },
    tasks::{self, Guard},
};
use crate::{
    alert::record::Owner,
    control::{Kind as ParamKind, Param, ALL_DEVICES, DURATION_MAX},
    engine::{event::EventCopy, profile::Class, tracker::Late},
    instance::{
        common,
        kind::{all_right, Kind},
        params,
        probed::{self, Live, Own, Probed},
        profile::InstanceProfile,
        Core,
        Details,
        Values, //
    },
    sys::{
        block::{self, Request, Transfer},
        syscall,
        task::{Context, TaskRef},
        tracepoint::Attachment, //
    },
};
use core::ffi::CStr;
use kernel::{prelude::*, seq_file::SeqFile, seq_print, sync::Arc};

const DEV: usize = common::COUNT + tasks::FILTER;

static PARAMS: [Param; DEV + 1] = {
    let [a, b, c, d, e, f, g] = tasks::filter(true);
    let dev = Param {
        name: "dev",
        kind: ParamKind::Disk,
        default: ALL_DEVICES,
        fixed: false,
        help: "only requests of this disk: its name under /dev, or MAJOR:MINOR",
    };
    params(DURATION_MAX, [a, b, c, d, e, f, g, dev])
};

/// The entry in the list of trackers.
pub(crate) static KIND: Kind = Kind {
    name: "io",
    c_name: c"io",
    help: "system calls and block requests that read, write, sync, open or close (key: either)",
    params: &PARAMS,
    counters: &{
        let [a, b, c, d, e, f] = COUNTERS;
        [tasks::READERS, a, b, c, d, e, f]
    },
    detail_words: Detail::WORDS,
    tail: None,
    detail: |alert, f| f.write_fmt(fmt!(" {}", Detail(&alert.detail))),
    check: all_right,
    missing,
    create: Some(Probed::<Io, _, _, _>::create),
};

fn missing() -> Option<&'static CStr> {
    block::missing::<Probes>().or_else(syscall::missing::<Probes>)
}

struct Io;

/// The state of an instance: the profile.
type Profile = Arc<InstanceProfile>;

type Probes = Live<Io, 1, STEPS, Profile>;

impl Own for Profile {
    fn new(_: &Values) -> Result<Self> {
        InstanceProfile::new()
    }

    fn run(&self) -> Option<u64> {
        Some((**self).take_due())
    }

    fn profile(&self) -> Option<Arc<InstanceProfile>> {
        Some(self.clone())
    }
}

/// Whether a task is among the followed ones. Any context.
fn is_owner(core: &Core<1, STEPS>, guard: &Guard, task: &TaskRef<'_>) -> bool {
    tasks::may_be_wanted(core, task) && tasks::is_wanted(core, task, tasks::this_cpu(guard))
}

/// The class of a request.
fn class_of(transfer: Transfer) -> Class {
    match transfer {
        Transfer::Read => Class::BlockRead,
        Transfer::Write => Class::BlockWrite,
    }
}

impl Requests<Profile> for Io {
    const COUNTERS_AT: usize = 1;

    fn is_from_insert(_: &Core<1, STEPS>) -> bool {
        false
    }

    fn is_wanted(core: &Core<1, STEPS>, rq: &Request<'_>) -> bool {
        rq.transfer().is_some() && is_disk(core.value(DEV), rq)
    }

    fn is_submitter_wanted(core: &Core<1, STEPS>, guard: &Guard) -> bool {
        let is_task = || Context::current() == Context::Task;
        tasks::takes_all(core)
            || is_task() && TaskRef::with_current(|task| is_owner(core, guard, &task))
    }

    fn follows_all(core: &Core<1, STEPS>) -> bool {
        tasks::takes_all(core)
    }

    fn ended(live: &Probes, guard: &Guard, steps: &Steps, delay: u64) {
        if let Some(transfer) = Transfer::of(steps.flags) {
            live.own.count(guard, class_of(transfer), delay);
        }
    }

    fn raise(core: &Core<1, STEPS>, guard: &Guard, late: &Late<1, STEPS>) {
        let now = late.start.wrapping_add(late.delay);
        tasks::raise(core, guard, late, &What::of(late.data).details(now), &[]);
    }
}

impl probed::Probes<1, STEPS, Profile> for Io {
    type Attachment = [Attachment<Probes>; 2];

    fn kind() -> &'static Kind {
        &KIND
    }

    fn attach(live: Arc<Probes>) -> Result<Self::Attachment> {
        let requests = block::attach(live.clone())?;
        Ok([syscall::attach(live)?, requests])
    }

    fn owner(data: &[u64; STEPS]) -> Owner {
        What::of(*data).owner()
    }

    fn details(core: &Core<1, STEPS>, late: &Late<1, STEPS>, now: u64) -> Option<Details> {
        tasks::reported(core, What::of(late.data).details(now))
    }

    fn show_fields(core: &Core<1, STEPS>, event: &EventCopy<1, STEPS>, out: &SeqFile) {
        let what = What::of(event.data);
        // Not the address: it must not leak.
        let id = core.tracker().pseudonym(&event.key);
        seq_print!(out, "id={id:#x} {} {what}", what.owner());
    }
}
