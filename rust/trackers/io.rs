// SPDX-License-Identifier: GPL-2.0

//! `io`: a profile of input and output: how long the system calls and block requests of each class
//! took.
//!
//! ```text
//!   sys_enter ---------------------> sys_exit       six classes of system calls
//!   issue to the driver -----------> completion     two of block requests
//!                     \            /
//!                      delay, class ---> profile.rs: a table of the classes and powers of two
//! ```
//!
//! One engine has both kinds of events. The key of a system call is the thread id; the key of a
//! request is its address, which is never a thread id. The code that tracks requests is shared with
//! the `block` tracker; for `io`, the end of each request is also counted in the profile. The
//! classes of system calls are in io/calls.rs.
//!
//! A read from a terminal may take a day, so the default threshold is the maximum, a year. Set a
//! lower threshold for alerts.
//!
//! # Contexts
//!
//! The contexts of `block`, and tasks at entry to and exit from a system call.

mod calls;
mod what;

use self::what::Detail;
use super::{
    block::{
        self,
        probes::{is_disk, Requests, COUNTERS}, //
    },
    declare::*,
};
use crate::{
    control::{ALL_DEVICES, DURATION_MAX},
    engine::{event::EventCopy, profile::Class},
    instance::{probed, profile::InstanceProfile, Values},
    record::{How, Shown},
    sys::{
        block::{probes as request_probes, Request, Transfer},
        syscall, //
    },
};
use kernel::{prelude::*, seq_file::SeqFile, seq_print, sync::Arc};

tracker! {
    io: "I/O system calls and block requests, from start to end (key: the thread or the request)";
    key: 1;
    threshold: DURATION_MAX;
    tasks: true;
    own: Profile;
    counters: {
        let [a, b, c, d, e, f] = COUNTERS;
        [tasks::READERS, a, b, c, d, e, f]
    };
    params {
        dev: ParamKind::Disk => ALL_DEVICES,
            "only requests of this disk: its name under /dev, or MAJOR:MINOR";
    }
    keeps: detail;
    attach: [Attachment<Probes>; 2] = |live: Arc<Probes>| {
        let requests = Attachment::new(live.clone(), request_probes::<Probes>())?;
        Ok([syscall::attach(live)?, requests])
    }, || tracepoint::missing(request_probes::<Probes>())
        .or_else(|| tracepoint::missing(syscall::probes::<Probes>()));
    impl {
        const NO_USER_STACK: &str = NOT_RECORDED;

        fn settle(detail: &mut Detail, _: u64, now: u64) {
            if let Detail::Request(request) = detail {
                request.settle(now);
            }
        }

        fn show(core: &Core<1, WORDS>, event: &EventCopy<1, WORDS>, how: How, out: &SeqFile) {
            // A pseudonym, as the address must not leak.
            let id = core.engine().pseudonym(&event.key);
            let (owner, known) = (Self::owner(&event.data), Self::detail(&event.key, &event.data));
            seq_print!(out, "id={id:#x} {owner}{}", Shown(&known, how));
        }
    }
}

/// The state of an instance: the profile.
type Profile = Arc<InstanceProfile>;

impl probed::Own for Profile {
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

/// Whether a task is tracked. Any context.
fn is_owner(core: &Core<1, WORDS>, guard: &Guard, task: &TaskRef<'_>) -> bool {
    tasks::may_be_wanted(core, task) && tasks::is_wanted(core, task, tasks::this_cpu(guard))
}

fn class_of(transfer: Transfer) -> Class {
    match transfer {
        Transfer::Read => Class::BlockRead,
        Transfer::Write => Class::BlockWrite,
    }
}

impl Requests<Profile, WORDS> for Tracked {
    const COUNTERS_AT: usize = 1;

    fn is_from_insert(_: &Core<1, WORDS>) -> bool {
        false
    }

    fn is_wanted(core: &Core<1, WORDS>, rq: &Request<'_>) -> bool {
        rq.transfer().is_some() && is_disk(core.value(PARAM_DEV), rq)
    }

    fn is_submitter_wanted(core: &Core<1, WORDS>, guard: &Guard) -> bool {
        let is_task = || Context::current() == Context::Task;
        tasks::takes_all(core)
            || is_task() && TaskRef::with_current(|task| is_owner(core, guard, &task))
    }

    fn follows_all(core: &Core<1, WORDS>) -> bool {
        tasks::takes_all(core)
    }

    fn ended(live: &Probes, guard: &Guard, request: &block::Detail, delay: u64) {
        if let Some(transfer) = Transfer::of(request.cmd_flags.0) {
            live.own.count(guard, class_of(transfer), delay);
        }
    }
}
