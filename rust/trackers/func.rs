// SPDX-License-Identifier: GPL-2.0

//! `func`: how long functions of the kernel take, from entry to return.
//!
//! ```text
//!   f(x)   entered                              returned
//!   depth 1   |----------------------------------->|
//!   f(y)         entered            returned
//!   depth 2         |------------------>|
//! ```
//!
//! An event begins when the function that the instance names is called, and ends when that call
//! returns. The key is the task with the depth: how many of its calls have not returned, including
//! this one. A task has one stack of calls, including interrupts on top of it, so the last one that
//! begins is the first that ends, and the depth tells them apart. It is found by trying the depths
//! from 1 on, since mostly there is none; and it is kept with the return address, so the end needs
//! no search.
//!
//! A call whose end was missed would be taken for an outer one forever. So an event has the frame
//! of its call, see sys/fprobe.rs: a call whose frame is not below the new one is not an outer
//! call. It is `replaced`.
//!
//! The owner is the task that calls; a call from an interrupt has no owner, and is followed if the
//! filter is for no task in particular.
//!
//! A task that exits inside the function never returns: its events are dropped at
//! `sched_process_exit`, which comes before the last functions that it calls, and at
//! `sched_process_free`, which comes after.
//!
//! # Contexts
//!
//! Those of the function: any, including NMI, see sys/fprobe.rs.

use self::call::{Called, WORDS};
use super::tasks::{self, Guard};
use crate::{
    alert::record::Owner,
    control::{Kind as ParamKind, Param},
    engine::{event::EventCopy, platform::Platform, tracker::Late},
    instance::{
        common,
        kind::{all_right, Kind},
        params,
        probed::{self, Live, Probed},
        Core,
        Details, //
    },
    sys::{
        fprobe::{self, Call, Frame, Functions, What},
        platform::Kernel,
        sched,
        symbol::Limit,
        task::{Context, TaskRef},
        tracepoint, //
    }, //
};
use kernel::{prelude::*, seq_file::SeqFile, seq_print, sync::Arc};

mod call;

const FUNCTION: usize = common::COUNT + tasks::FILTER;

static PARAMS: [Param; FUNCTION + 1] = {
    let [a, b, c, d, e, f, g] = tasks::filter(true);
    let function = Param {
        name: "function",
        kind: ParamKind::Function,
        default: 0,
        fixed: true,
        help: "function of the kernel or of a module; required",
    };
    params(10_000_000, [a, b, c, d, e, f, g, function])
};

/// The entry in the list of trackers.
pub(crate) static KIND: Kind = Kind {
    name: "func",
    c_name: c"func",
    help: "a kernel function, from entry to return (key: the task and its recursion depth)",
    params: &PARAMS,
    counters: &[tasks::READERS, "missed", "own"],
    detail_words: Called::DETAIL_WORDS,
    tail: None,
    detail: |alert, f| {
        let called = Called::from_detail(&alert.detail);
        let limit = Limit::whole(alert.is_trusted);
        f.write_fmt(fmt!(" {}", called.named(alert.reason.is_end(), limit)))
    },
    check: all_right,
    missing: || fprobe::missing().or_else(sched::missing_exits::<Probes>),
    create: Some(Probed::<Func, _, _>::create),
};

/// Our own counters, after the common one.
#[derive(Clone, Copy)]
enum Extra {
    /// Calls that the kernel could not let us follow.
    Missed = 1,
    /// Calls by our own probes, which are not followed.
    Own = 2,
}

struct Func;

type Probes = Live<Func, 2, WORDS>;

/// The key of the call at a depth of the current task.
#[inline(always)]
fn key(task: &TaskRef<'_>, depth: u64) -> [u64; 2] {
    [task.address(), depth]
}

impl Probes {
    /// How deep a new call is, by the calls of this task that have not returned.
    #[inline(always)]
    fn depth(&self, guard: &Guard, task: &TaskRef<'_>, frame: Frame) -> u64 {
        let is_outer = |depth: &u64| {
            let outer = self
                .core
                .tracker()
                .copy_of(guard, &key(task, *depth), |_| true);
            outer.is_some_and(|outer| Called::frame_of(&outer.data) < frame)
        };
        (1..).find(|depth| !is_outer(depth)).unwrap_or(u64::MAX)
    }
}

impl fprobe::Observer<Func> for Probes {
    #[inline(always)]
    fn entered(&self, guard: &Guard, call: &Call<'_>, frame: Frame) -> Option<u64> {
        TaskRef::with_current(|task| {
            let tracker = self.core.tracker();
            let context = Context::current();
            let cpu = Kernel::cpu(guard) as u32;
            let Some(owner) = tasks::caller(&self.core, &task, context, cpu) else {
                tracker.filtered(guard);
                return None;
            };
            let depth = self.depth(guard, &task, frame);
            let called = Called {
                owner,
                frame,
                depth,
                function: call.function,
                caller: call.caller,
                context,
                arguments: core::array::from_fn(|nth| call.argument(nth as u32)),
                result: 0,
            };
            let (key, data) = (key(&task, depth), called.to_words());
            // A return that is not waited for costs as much as one that is; so it is waited for
            // even if there was no room, and is `unmatched`.
            tracker.event_in_unique(guard, &key, Kernel::now(), &data);
            Some(depth)
        })
    }

    #[inline(always)]
    fn returned(&self, guard: &Guard, call: &Call<'_>, frame: Frame, depth: u64) {
        TaskRef::with_current(|task| {
            self.core.tracker().event_out(
                guard,
                &key(&task, depth),
                Kernel::now,
                |event| Called::frame_of(&event.data()) == frame,
                |late| self.report(guard, late, call.result()),
            );
        });
    }

    #[cold]
    fn within_ourselves(&self, guard: &Guard) {
        self.core.count_extra(guard, Extra::Own as usize);
    }
}

impl sched::ExitObserver for Probes {
    fn exits(&self, guard: &Guard, task: TaskRef<'_>) {
        let tracker = self.core.tracker();
        let is_dropped =
            |depth| tracker.event_out_if_known(guard, &key(&task, depth), 0, |_| false, |_| ());
        let _ = (1..).find(|&depth| !is_dropped(depth));
    }
}

impl Probes {
    #[cold]
    fn report(&self, guard: &Guard, late: &Late<2, WORDS>, result: u64) {
        let called = Called {
            result,
            ..Called::from_words(&late.data, late.key[1])
        };
        tasks::raise(&self.core, guard, late, &called.details(), &[]);
    }
}

/// The functions are dropped first: after that, nothing begins.
pub(crate) struct Attachment {
    functions: Functions<Func, Probes>,
    _exits: tracepoint::Attachment<Probes>,
}

impl probed::Probes<2, WORDS> for Func {
    type Attachment = Attachment;

    fn kind() -> &'static Kind {
        &KIND
    }

    fn attach(live: Arc<Probes>) -> Result<Attachment> {
        let exits = sched::attach_to_exits(live.clone())?;
        let name = live.core.text(FUNCTION).ok_or(EINVAL)?;
        Ok(Attachment {
            functions: Functions::new(name, What::Both, live.clone())?,
            _exits: exits,
        })
    }

    fn collect_missed(core: &Core<2, WORDS>, attachment: &mut Attachment) {
        let missed = attachment.functions.take_missed();
        core.add_extra(&Kernel::guard(), Extra::Missed as usize, missed);
    }

    fn owner(data: &[u64; WORDS]) -> Owner {
        Called::from_words(data, 0).owner
    }

    fn details(core: &Core<2, WORDS>, late: &Late<2, WORDS>, _: u64) -> Option<Details> {
        tasks::reported(core, Called::from_words(&late.data, late.key[1]).details())
    }

    fn show_fields(core: &Core<2, WORDS>, event: &EventCopy<2, WORDS>, out: &SeqFile) {
        Self::show_fields_to(core, event, false, out);
    }

    fn show_fields_to(
        _: &Core<2, WORDS>,
        event: &EventCopy<2, WORDS>,
        is_trusted: bool,
        out: &SeqFile,
    ) {
        let called = Called::from_words(&event.data, event.key[1]);
        let named = called.named(false, Limit::whole(is_trusted));
        seq_print!(out, "{} {named}", called.owner);
    }
}
