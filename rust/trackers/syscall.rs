// SPDX-License-Identifier: GPL-2.0

//! `syscall`: how long system calls take, and where tasks wait in them.
//!
//! ```text
//!   sys_enter                    threshold                         sys_exit
//!   ---->|-- runs, waits, runs --->|--- waits ---|  ... waits ---|-->|
//!        |                                       switched in:   switched in:
//!        |                                       reason=stack   reason=stack
//!        |<--------------------------- delay ----------------------->|  reason=threshold
//! ```
//!
//! The key is the task, which makes one call at a time. A call ends with `sys_exit`, except that:
//!
//! - The task exits, in the call or because it was killed: the event is dropped (`gone`).
//! - A thread that is not the first one of its process executes another program: it gets the thread
//!   id of the first one, which was killed. The event continues with the new id (`renamed`).
//! - A new task returns from the call that its parent has entered: this end has no begin and is not
//!   counted.
//! - A task that sleeps in a call when the instance starts gets an event then (stock.rs). One that
//!   runs or is runnable in its call does not: whether it is still in it cannot be seen. Its end has
//!   no begin and is not counted.
//!
//! With `stacks=switch` the stack of a task whose call is above the threshold is walked whenever it
//! is switched in, where it is still unchanged since the task waited. Each is an alert with a
//! reason of its own, which is not the end: that one still comes when the call ends, once.
//!
//! # Contexts
//!
//! A task; the runqueue lock is held when one is switched in.

use self::call::{Shown, SyscallEvent, WORDS};
use super::{
    stock,
    tasks::{self, Guard}, //
};
use crate::{
    alert::record::{Owner, Reason},
    control::{names::is_listed, Kind as ParamKind, Param},
    engine::{
        event::EventCopy,
        platform::Platform,
        tracker::{Late, Verdict, Why},
    },
    instance::{
        common,
        kind::{all_right, Kind},
        params,
        probed::{self, Live, Probed},
        Core,
        Details, //
    },
    sys::{
        platform::Kernel,
        stack::Stack,
        symbol::Limit,
        syscall::{
            self,
            names::{Call, CALLS},
            Observer,
            Registers, //
        },
        task::TaskRef,
        tracepoint::Attachment, //
    }, //
};
use kernel::{prelude::*, seq_file::SeqFile, seq_print, sync::Arc};

mod call;

const ONLY: usize = common::COUNT + tasks::FILTER;
const WAITS: usize = ONLY + 1;
const ABI: usize = WAITS + 1;
const STACKS: usize = ABI + 1;

/// The value of `stacks` for all switches.
const SWITCH: u64 = 1;

static PARAMS: [Param; STACKS + 1] = {
    const fn param(name: &'static str, kind: ParamKind, default: u64, help: &'static str) -> Param {
        Param {
            name,
            kind,
            default,
            fixed: false,
            help,
        }
    }
    let [a, b, c, d, e, f, g] = tasks::filter(true);
    let calls = param(
        "calls",
        ParamKind::Names(&CALLS),
        0,
        "only these calls, such as read,write; with ! first, all but these",
    );
    let waits = param(
        "waits",
        ParamKind::Switch,
        1,
        "calls whose purpose is to wait as well: poll, futex, nanosleep and others",
    );
    let abi = param(
        "abi",
        ParamKind::Word(&["all", "native", "compat", "x32"]),
        0,
        "only calls of this ABI; compat is that of 32-bit programs",
    );
    let mut stacks = param(
        "stacks",
        ParamKind::Word(&["timeout", "switch"]),
        0,
        "when to record the task's stack: on timeout, or also at each late switch-in",
    );
    stacks.fixed = true;
    params(
        100_000_000,
        [a, b, c, d, e, f, g, calls, waits, abi, stacks],
    )
};

/// The entry in the list of trackers.
pub(crate) static KIND: Kind = Kind {
    name: "syscall",
    c_name: c"syscall",
    help: "system calls, from entry to exit (key: the task)",
    params: &PARAMS,
    counters: &[tasks::READERS, "renamed", "stacks"],
    detail_words: SyscallEvent::DETAIL_WORDS,
    tail: None,
    detail: |alert, f| {
        let (syscall, limit) = (
            SyscallEvent::from_detail(&alert.detail),
            Limit::whole(alert.is_trusted),
        );
        f.write_fmt(fmt!(" {}", Shown(syscall, limit)))
    },
    check: all_right,
    missing: syscall::missing::<Probes>,
    create: Some(Probed::<Syscall, _, _>::create),
};

/// Our own counters, after the common one.
#[derive(Clone, Copy)]
enum Extra {
    /// Events that continued with another thread id.
    Renamed = 1,
    /// Alerts about stacks.
    Stacks = 2,
}

struct Syscall;

type Probes = Live<Syscall, 1, WORDS>;

impl Probes {
    /// Whether such calls are followed.
    #[inline(always)]
    fn is_asked_for(&self, call: Call) -> bool {
        let core = &self.core;
        let code = call.code();
        let (only, abi) = (core.halves(ONLY), core.value(ABI));
        (only == [0; 2] || is_listed(only, code))
            && (core.value(WAITS) != 0 || !call::waits(code))
            && (abi == 0 || abi == call.abi as u64 + 1)
    }

    /// Not inlined: the registers that this needs should not be saved on every call.
    #[inline(never)]
    fn begin_if_wanted(
        &self,
        guard: &Guard,
        task: &TaskRef<'_>,
        call: Call,
        registers: &Registers<'_>,
    ) {
        let tracker = self.core.tracker();
        if !tasks::is_wanted(&self.core, task, Kernel::cpu(guard) as u32) {
            tracker.filtered(guard);
            return;
        }
        let syscall = SyscallEvent {
            owner: tasks::owner(task),
            call,
            arguments: registers.arguments(),
            ret: None,
        };
        tracker.event_in_unique(guard, &tasks::key(task), Kernel::now(), &syscall.to_words());
    }
}

impl Observer for Probes {
    const TASKS: bool = true;

    #[inline(always)]
    fn entered(&self, registers: &Registers<'_>, number: i64) {
        let call = Call::new(number, registers.is_compat());
        let guard = &Kernel::guard();
        TaskRef::with_current(|task| {
            if self.is_asked_for(call) && tasks::may_be_wanted(&self.core, &task) {
                self.begin_if_wanted(guard, &task, call, registers);
            } else {
                self.core.tracker().filtered(guard);
            }
        });
    }

    #[inline(always)]
    fn left(&self, _: &Registers<'_>, ret: i64) {
        let (core, guard) = (&self.core, &Kernel::guard());
        let key = TaskRef::with_current(|task| tasks::key(&task));
        core.tracker().event_out_if_known(
            guard,
            &key,
            Kernel::now,
            |_| true,
            |late| {
                let mut syscall = SyscallEvent::from_words(&late.data);
                syscall.ret = Some(ret);
                tasks::raise(core, guard, late, &syscall.details(), &[]);
            },
        );
    }

    fn renamed(&self, guard: &Guard, old: u32) {
        let tracker = self.core.tracker();
        let mut found = None;
        tracker.update(guard, &[u64::from(old)], |event| {
            let syscall = SyscallEvent::from_words(&event.data());
            found = Some((event.start(), event.was_found(), syscall));
            Verdict::Gone
        });
        let Some((start, was_found, mut syscall)) = found else {
            return;
        };
        TaskRef::with_current(|task| {
            // The name is the one that it had when it made the call.
            let comm = syscall.owner.comm;
            syscall.owner = Owner {
                comm,
                ..tasks::owner(&task)
            };
            let (key, words) = (tasks::key(&task), syscall.to_words());
            if !was_found {
                tracker.event_in_unique(guard, &key, start, &words);
            } else if let Ok(event) = tracker.event_in_found(guard, &key, start, &words) {
                tracker.put_ref(guard, event);
            }
        });
        self.core.count_extra(guard, Extra::Renamed as usize);
    }

    fn exited(&self, guard: &Guard) {
        let key = TaskRef::with_current(|task| tasks::key(&task));
        self.core.tracker().update(guard, &key, |_| Verdict::Gone);
    }

    fn wants_switches(&self) -> bool {
        self.core.value(STACKS) == SWITCH
    }

    #[inline(always)]
    fn switched_in(&self, guard: &Guard, task: TaskRef<'_>) {
        let tracker = self.core.tracker();
        let mut late = None;
        // It is not on the CPU yet, so it cannot leave the call now.
        tracker.update(guard, &tasks::key(&task), |event| {
            let (now, start) = (Kernel::now(), event.start());
            let (delay, threshold) = (now.saturating_sub(start), tracker.threshold());
            if delay > threshold {
                late = Some(Late {
                    why: Why::Threshold,
                    start,
                    delay,
                    found: event.was_found(),
                    threshold,
                    key: tasks::key(&task),
                    data: event.data(),
                });
            }
            Verdict::Keep
        });
        if let Some(late) = late {
            self.tell_stack(guard, &late, &task);
        }
    }
}

impl Probes {
    #[cold]
    #[inline(never)]
    fn tell_stack(&self, guard: &Guard, late: &Late<1, WORDS>, task: &TaskRef<'_>) {
        let core = &self.core;
        let details = SyscallEvent::from_words(&late.data).details();
        if !tasks::is_reported(core, guard, &details.owner) {
            return;
        }
        let stack = if core.may_raise() {
            Stack::of_task(task, core.depth())
        } else {
            Stack::EMPTY
        };
        let now = late.start.wrapping_add(late.delay);
        if core.raise_as(Reason::Stack, guard, now, late, &details, stack.entries()) {
            core.count_extra(guard, Extra::Stacks as usize);
        }
    }
}

impl probed::Probes<1, WORDS> for Syscall {
    type Attachment = Attachment<Probes>;

    fn kind() -> &'static Kind {
        &KIND
    }

    fn attach(live: Arc<Probes>) -> Result<Self::Attachment> {
        syscall::attach(live)
    }

    const TAKES_STOCK: bool = true;

    fn take_stock(live: &Probes) {
        stock::take(&live.core, |waiting| {
            let (task, called) = (waiting.task(), waiting.system_call()?);
            let call = Call::new(called.number, called.is_compat);
            if !live.is_asked_for(call) {
                return None;
            }
            let syscall = SyscallEvent {
                owner: tasks::owner(&task),
                call,
                arguments: called.arguments,
                ret: None,
            };
            Some((tasks::key(&task), syscall.to_words()))
        });
    }

    fn owner(data: &[u64; WORDS]) -> Owner {
        SyscallEvent::from_words(data).owner
    }

    fn details(core: &Core<1, WORDS>, late: &Late<1, WORDS>, _: u64) -> Option<Details> {
        tasks::reported(core, SyscallEvent::from_words(&late.data).details())
    }

    fn show_fields(core: &Core<1, WORDS>, event: &EventCopy<1, WORDS>, out: &SeqFile) {
        Self::show_fields_to(core, event, false, out);
    }

    fn show_fields_to(
        _: &Core<1, WORDS>,
        event: &EventCopy<1, WORDS>,
        is_trusted: bool,
        out: &SeqFile,
    ) {
        let syscall = SyscallEvent::from_words(&event.data);
        let shown = Shown(syscall, Limit::whole(is_trusted));
        seq_print!(out, "{} {shown}", syscall.owner);
    }
}
