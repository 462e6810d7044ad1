// SPDX-License-Identifier: GPL-2.0

//! `irq`: how long the handlers of interrupts run.
//!
//! ```text
//!   interrupt   irq_handler_entry         irq_handler_exit
//!   ---------------->|---- action->handler() ---->|---> next action of the line, or back
//!                    |<--------- delay ---------->|
//! ```
//!
//! An event is one call of one handler. The key is the CPU and the number of the line: handlers run
//! with interrupts off, and those that share a line run one after the other, so no two of them are
//! open at once. A handler that calls handlers of other lines (a demultiplexer) is not confused
//! with them: they have other numbers.
//!
//! The owner is the interrupted task, which the handler has delayed. It has no part in it, so there
//! is no filter by it, and a reader of alerts that is interrupted is reported like any other.
//!
//! Where interrupts are threads (PREEMPT_RT, `threadirqs`), the handler called here is the part
//! that wakes the thread. That thread is a task: `wakeup` measures how long it waits.
//!
//! # Contexts
//!
//! Hard interrupt.

use super::tasks::{self, Guard};
use crate::{
    alert::record::{Owner, DETAIL},
    control::{Kind as ParamKind, Param, ALL},
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
        irq::{self, Action, Observer, NAME_WORDS},
        platform::Kernel,
        task::TaskRef,
        tracepoint::Attachment, //
    },
    text::Quoted, //
};
use kernel::{fmt, prelude::*, seq_file::SeqFile, seq_print, sync::Arc};

const IRQ: usize = common::COUNT;
const CPU: usize = IRQ + 1;

static PARAMS: [Param; CPU + 1] = {
    let irq = Param {
        name: "irq",
        kind: ParamKind::Id {
            max: i32::MAX as u64,
        },
        default: ALL,
        fixed: false,
        help: "only this line, by its number in /proc/interrupts",
    };
    params(1_000_000, [irq, tasks::cpu_only()])
};

/// The entry in the list of trackers.
pub(crate) static KIND: Kind = Kind {
    name: "irq",
    c_name: c"irq",
    help: "interrupt handlers, from entry to return (key: CPU and line)",
    params: &PARAMS,
    counters: &[],
    detail_words: DETAIL_WORDS,
    tail: None,
    detail: |alert, f| f.write_fmt(fmt!(" {}", Detail(&alert.detail))),
    check: all_right,
    missing: irq::missing::<Probes>,
    create: Some(Probed::<Irq, _, _>::create),
};

struct Irq;

type Probes = Live<Irq, 1, WORDS>;

/// The data of an event: the interrupted task, and the name of the action.
const WORDS: usize = Owner::WORDS + NAME_WORDS;

/// The details of an alert: line, CPU and result in one word, and the name of the action.
const DETAIL_WORDS: usize = 1 + NAME_WORDS;

/// The meaning of `irqreturn_t`; the last one is ours, for a handler that has not returned.
const RETURNS: [&str; 4] = ["none", "handled", "wake_thread", "pending"];
const PENDING: u32 = 3;

fn key(guard: &Guard, irq: u32) -> [u64; 1] {
    [(Kernel::cpu(guard) as u64) << 32 | u64::from(irq)]
}

fn details(key: u64, data: &[u64; WORDS], ret: u32) -> Details {
    let [o0, o1, o2, name @ ..] = *data;
    let mut words = [0; DETAIL];
    words[0] = u64::from(ret) << 48 | key;
    words[1..DETAIL_WORDS].copy_from_slice(&name);
    Details {
        owner: Owner::from_words([o0, o1, o2]),
        words,
    }
}

/// Our fields of an alert.
struct Detail<'a>(&'a [u64; DETAIL]);

impl fmt::Display for Detail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [place, name @ ..] = self.0;
        let ret = RETURNS.get((place >> 48) as usize).unwrap_or(&"?");
        f.write_fmt(fmt!(
            "irq={} on={} action={} ret={ret}",
            *place as u32,
            (place >> 32) as u16,
            Quoted::words(&name[..NAME_WORDS])
        ))
    }
}

impl Observer for Probes {
    #[inline(always)]
    fn entered<const TIMED: bool>(&self, guard: &Guard, irq: u32, action: &Action<'_>) {
        let (core, tracker) = (&self.core, self.core.tracker());
        let is_one = |param, number: u64| {
            let wanted = core.value(param);
            wanted == ALL || wanted == number
        };
        if !is_one(IRQ, irq.into()) || !is_one(CPU, Kernel::cpu(guard) as u64) {
            tracker.filtered(guard);
            return;
        }
        let [o0, o1, o2] = TaskRef::with_current(|task| tasks::owner(&task).to_words());
        let [n0, n1, n2, n3] = action.name();
        let data = [o0, o1, o2, n0, n1, n2, n3];
        tracker.event_in(guard, &key(guard, irq), Kernel::now(), &data);
    }

    #[inline(always)]
    fn left<const TIMED: bool>(&self, guard: &Guard, irq: u32, _: &Action<'_>, ret: u32) {
        let core = &self.core;
        core.tracker().event_out_if_known(
            guard,
            &key(guard, irq),
            Kernel::now,
            |_| true,
            |late| {
                let [key] = late.key;
                let now = late.start.wrapping_add(late.delay);
                core.raise(guard, now, late, &details(key, &late.data, ret), &[]);
            },
        );
    }
}

impl probed::Probes<1, WORDS> for Irq {
    type Attachment = Attachment<Probes>;

    fn kind() -> &'static Kind {
        &KIND
    }

    fn attach(live: Arc<Probes>) -> Result<Self::Attachment> {
        irq::attach(live)
    }

    fn owner(_: &[u64; WORDS]) -> Owner {
        // The stack of the interrupted task says nothing about the handler.
        Owner::default()
    }

    fn details(_: &Core<1, WORDS>, late: &Late<1, WORDS>, _: u64) -> Option<Details> {
        let [key] = late.key;
        Some(details(key, &late.data, PENDING))
    }

    fn show_fields(_: &Core<1, WORDS>, event: &EventCopy<1, WORDS>, out: &SeqFile) {
        let [key] = event.key;
        let Details { owner, words } = details(key, &event.data, PENDING);
        seq_print!(out, "{owner} {}", Detail(&words));
    }
}
