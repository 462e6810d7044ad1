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
//! with interrupts off, and handlers that share a line run one after the other, so no two events
//! with one key overlap. A handler that calls the handlers of other lines (a demultiplexer) has a
//! key of its own: the lines have different numbers.
//!
//! The owner is the interrupted task, which the handler has delayed. The task did not cause the
//! interrupt, so there is no task filter, and an interrupted reader of alerts is reported like any
//! other task.
//!
//! Where interrupts are threaded (PREEMPT_RT, `threadirqs`), the handler called here is the part
//! that wakes the thread. That thread is a task: `wakeup` measures how long it waits.
//!
//! # Contexts
//!
//! See sys/irq.rs: usually a hard interrupt.

use super::declare::*;
use crate::{
    record::Name32,
    sys::irq::{self, Action, Observer, NAME_WORDS},
};

/// The meanings of `irqreturn_t`, and two of our own. `pending`: the handler has not returned.
/// `other`: any other value, such as `IRQ_HANDLED | IRQ_WAKE_THREAD`, for which the kernel wakes no
/// thread.
const RETURNS: [&str; 5] = ["none", "handled", "wake_thread", "pending", "other"];
const PENDING: u16 = 3;
const OTHER: u16 = 4;

tracker! {
    irq: "interrupt handlers, from entry to return (key: CPU and line)";
    key: 1;
    threshold: 1_000_000;
    params {
        irq: ParamKind::Id { max: i32::MAX as u64 } => ALL,
            "only this line, by its number in /proc/interrupts";
        cpu: ParamKind::Id { max: 1 << 16 } => ALL, "only handlers that run on this CPU";
    }
    keeps: [7];
    stored: irq on ret action;
    printed: irq action on ret;
    alert {
        /// The number of the line.
        irq: u32 at 0,
        /// The CPU that the handler ran on.
        on: u16 at 0:32,
        /// The name of the action, as in /proc/interrupts: at most 31 bytes.
        action: Name32 at 1,
        /// What the handler has returned: none, handled, wake_thread, other; pending if it has not.
        ret: u16 at 0:48 in RETURNS,
    }
    attach: Attachment<Probes> = |live| Attachment::new(live, irq::probes::<Probes, false>()),
        || tracepoint::missing(irq::probes::<Probes, false>());
    impl {
        // `ret` is known only at the end.
        const LABELS: labels::Rules = labels::Rules::ALL.without(&["ret"]);

        fn stack_owner(_: &[u64; WORDS]) -> Owner {
            // The stack of the interrupted task does not explain the handler.
            Owner::default()
        }
    }
}

fn key(guard: &Guard, irq: u32) -> [u64; 1] {
    [(Kernel::cpu(guard) as u64) << 32 | u64::from(irq)]
}

impl Detail {
    /// Returns the fields of an event, which keeps the interrupted task and the name of the action.
    fn of([key]: &[u64; 1], data: &[u64; WORDS]) -> Self {
        Self {
            irq: *key as u32,
            on: (key >> 32) as u16,
            action: *data.last_chunk::<NAME_WORDS>().unwrap_or(&[0; NAME_WORDS]),
            ret: PENDING,
        }
    }
}

impl Observer for Probes {
    #[inline(always)]
    fn entered<const TIMED: bool>(&self, guard: &Guard, irq: u32, action: &Action<'_>) {
        let (core, engine) = (&self.core, self.core.engine());
        let is_one = |param, number: u64| {
            let wanted = core.value(param);
            wanted == ALL || wanted == number
        };
        if !is_one(PARAM_IRQ, irq.into()) || !is_one(PARAM_CPU, Kernel::cpu(guard) as u64) {
            engine.filtered(guard);
            return;
        }
        let [o0, o1, o2] = TaskRef::with_current(|task| tasks::owner(&task).to_words());
        let [n0, n1, n2, n3] = action.name();
        let data = [o0, o1, o2, n0, n1, n2, n3];
        engine.event_in(guard, &key(guard, irq), Kernel::now(), &data);
    }

    #[inline(always)]
    fn left<const TIMED: bool>(&self, guard: &Guard, irq: u32, _: &Action<'_>, ret: u32) {
        self.end(guard, &key(guard, irq), |alert| {
            alert.ret = match ret {
                0..=irq::WAKE_THREAD => ret as u16,
                _ => OTHER,
            };
        });
    }
}
