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
//! The key is the address of the task, which makes one call at a time. A call starts with
//! `sys_enter` and ends with `sys_exit`. If the task exits instead, in the call or because it was
//! killed, the event is dropped (`gone`). Special cases:
//!
//! - A thread other than the group leader calls execve(): it takes over the thread id of the
//!   leader, which is killed. From `sched_process_exec` on, the event has the new id (`renamed`).
//!   If the call fails between the takeover and that tracepoint, which kills the process, the event
//!   ends with the old id.
//! - A new task returns from the call that its parent entered: this end has no start and is not
//!   counted.
//! - A task sleeps in a call when the instance starts: it gets an event then (stock.rs). A running
//!   or runnable task does not, as there is no way to tell whether it is still in its call. If it
//!   is, the end of that call has no start and is not counted. A task that is exiting gets no event
//!   either: it may sleep after `sched_process_exit`, and the event would stay until another task
//!   gets its address.
//!
//! With `stacks=switch`, the stack of a task whose call has exceeded the threshold is walked at
//! each switch-in, while it is still the stack of the wait. Each of these stacks is an alert with
//! `reason=stack`; the alert of the end (`reason=threshold`, or `late` after a timeout) still comes
//! once.
//!
//! # Contexts
//!
//! A task; the runqueue lock is held when a task is switched in.

use super::{declare::*, stock};
use crate::{
    alert::record::Reason,
    control::names::is_listed,
    engine::{Late, Why},
    instance::Report,
    record::{self, Registers},
    sys::{
        stack::Stack,
        syscall::{
            self,
            names::{Call, CALLS},
            Observer, //
        },
        waiting, //
    },
};

mod call;

// instance/kind.rs looks this parameter up by name when an instance is created.
const _: usize = PARAM_USTACK;

/// The value of `stacks` that reports every late switch-in.
const SWITCH: u64 = 1;

tracker! {
    syscall: "system calls, from entry to exit (key: the task)";
    key: 1;
    threshold: 100_000_000;
    tasks: true;
    stock: Probes::take_stock;
    lacks: if waiting::FINDS_CALLS {
        None
    } else {
        Some("calls in flight at the start, which can be found on x86-64 only")
    };
    counters {
        /// Calls that continued under another thread id (execve of a thread).
        renamed,
        /// Alerts with reason=stack; included in `alerts`.
        stacks,
    }
    params {
        calls: ParamKind::Names(&CALLS) => 0,
            "only these calls, such as read,write; with ! first, all but these";
        waits: ParamKind::Switch => 1,
            "also calls whose purpose is to wait: poll, futex, nanosleep and others";
        abi: ParamKind::Word(syscall::names::ABIS) => 0,
            "only calls of this ABI; compat is that of 32-bit programs";
        stacks: ParamKind::Word(&["timeout", "switch"]) => 0,
            "when to record the task's stack: on timeout, or also at each late switch-in",
            fixed;
        ustack: ParamKind::Switch => 0,
            "the task's stack in user space in the alert of an end, by frame pointers",
            fixed;
    }
    keeps: 7;
    stored: number abi returned arg ret;
    printed: number abi arg returned ret;
    alert {
        /// `call`, `number`, `abi`: the name of the call, `?` if it has none; its number; and the
        /// ABI of that number: native, compat, or x32, which only x86 has.
        number: i32 at 0 => call::show_call,
        abi: u8 at 0:32 in ABIS if traced,
        /// Whether the call has returned.
        returned: bool at 0:48 if traced,
        /// `arg0`, `arg1`, `arg2`: the first three arguments, 0x and hexadecimal; arbitrary beyond
        /// those that the call takes.
        arg: Registers at 1 => call::show_arguments,
        /// The result; missing if the call has not returned: in pending, with a timeout, and with
        /// reason=stack.
        ret: i64 at 4 => call::show_result,
    }
    attach: Attachment<Probes> = syscall::attach,
        || tracepoint::missing(syscall::probes::<Probes>()).or_else(stock::missing);
    impl {
        const LABELS: labels::Rules = labels::Rules {
            // `ret` is known only at the end.
            excluded: &["ret"],
            wider: Some(("number", "call", 40)),
            ..labels::Rules::ALL
        };
    }
}

const ABIS: [&str; 3] = ["native", "compat", "x32"];

impl Detail {
    #[inline(always)]
    fn new(call: Call, arg: Registers) -> Self {
        Self {
            number: call.number,
            abi: call.abi as u8,
            arg,
            ..Self::default()
        }
    }

    #[inline(always)]
    fn data(&self, owner: Owner) -> [u64; WORDS] {
        record::data(owner, self)
    }
}

/// Returns the key of a task's call. It is not the thread id, which may change during an execve().
#[inline(always)]
fn key(task: &TaskRef<'_>) -> [u64; 1] {
    [task.address()]
}

impl Probes {
    fn take_stock(&self) {
        stock::take(&self.core, |waiting| {
            let (task, called) = (waiting.task(), waiting.system_call()?);
            let call = Call::new(called.number, called.compat);
            if !self.is_asked_for(call) {
                return None;
            }
            let known = Detail::new(call, called.arguments);
            Some((key(&task), known.data(tasks::owner(&task))))
        });
    }

    /// Whether the parameters select this call.
    #[inline(always)]
    fn is_asked_for(&self, call: Call) -> bool {
        let core = &self.core;
        let code = call.code();
        let (only, abi) = (core.halves(PARAM_CALLS), core.value(PARAM_ABI));
        (only == [0; 2] || is_listed(only, code))
            && (core.value(PARAM_WAITS) != 0 || !call::waits(code))
            && (abi == 0 || abi == call.abi as u64 + 1)
    }

    /// Starts an event if the filter accepts the task. Not inlined: the registers that this needs
    /// should not be saved on every call.
    #[inline(never)]
    fn begin_if_wanted(
        &self,
        guard: &Guard,
        task: &TaskRef<'_>,
        call: Call,
        registers: &syscall::Registers<'_>,
    ) {
        let engine = self.core.engine();
        if !tasks::is_wanted(&self.core, task, Kernel::cpu(guard) as u32) {
            engine.filtered(guard);
            return;
        }
        let data = Detail::new(call, registers.arguments()).data(tasks::owner(task));
        engine.event_in_unique(guard, &key(task), Kernel::now(), &data);
    }
}

impl Observer for Probes {
    const TASKS: bool = true;

    #[inline(always)]
    fn entered(&self, registers: &syscall::Registers<'_>, number: i64) {
        let call = Call::new(number, registers.is_compat());
        let guard = &Kernel::guard();
        TaskRef::with_current(|task| {
            if self.is_asked_for(call) && tasks::may_be_wanted(&self.core, &task) {
                self.begin_if_wanted(guard, &task, call, registers);
            } else {
                self.core.engine().filtered(guard);
            }
        });
    }

    #[inline(always)]
    fn left(&self, _: &syscall::Registers<'_>, ret: i64) {
        let guard = &Kernel::guard();
        let key = TaskRef::with_current(|task| key(&task));
        self.end(guard, &key, |alert| {
            (alert.returned, alert.ret) = (true, ret);
        });
    }

    fn renamed(&self, guard: &Guard) {
        TaskRef::with_current(|task| {
            let found = self.core.engine().update(guard, &key(&task), |event| {
                let data = event.data();
                // The name that the task had when it made the call.
                let comm = record::owner(&data).comm;
                let owner = Owner {
                    comm,
                    ..tasks::owner(&task)
                };
                let known: Detail = record::known(&data);
                event.set_data(&known.data(owner));
                Verdict::Keep
            });
            if found.is_some() {
                self.core.count_extra(guard, COUNT_RENAMED);
            }
        });
    }

    fn exited(&self, guard: &Guard) {
        let key = TaskRef::with_current(|task| key(&task));
        self.core.engine().update(guard, &key, |_| Verdict::Gone);
    }

    fn wants_switches(&self) -> bool {
        self.core.value(PARAM_STACKS) == SWITCH
    }

    #[inline(always)]
    fn switched_in(&self, guard: &Guard, task: TaskRef<'_>) {
        let engine = self.core.engine();
        let mut late = None;
        // The task is not on the CPU yet, so it cannot leave the call now.
        engine.update(guard, &key(&task), |event| {
            let (now, start) = (Kernel::now(), event.start());
            let (delay, threshold) = (now.saturating_sub(start), engine.threshold());
            if delay > threshold {
                late = Some(Late {
                    why: Why::Threshold,
                    start,
                    delay,
                    found: event.was_found(),
                    threshold,
                    key: key(&task),
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
        let (owner, detail) = (
            record::owner(&late.data),
            record::known::<_, Detail>(&late.data),
        );
        if !tasks::is_reported(core, guard, &owner) {
            return;
        }
        let details = detail.details(owner);
        let stack = core.stack_to_raise(|depth| Stack::of_task(task, depth));
        let report = Report {
            late,
            details: &details,
            stack: stack.entries(),
            is_counted: false,
        };
        if core.raise_as(Reason::Stack, guard, &report) {
            core.count_extra(guard, COUNT_STACKS);
        }
    }
}
