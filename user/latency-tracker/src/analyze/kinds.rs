// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Which events of LTTng's kernel tracer the model wants, and in which fields they say it. Names and fields are looked
//! up once for each class, not for each event.

use lt_ctf::{Class, FieldIndex};
use lt_model::{Disk, Release, What};

/// A kind of event that says something, and where.
pub(super) enum Kind {
    Switch {
        prev: Thread,
        state: FieldIndex,
        next: Thread,
    },
    Waking(Thread, Option<FieldIndex>),
    Wakeup(Thread, Option<FieldIndex>),
    Fork(Thread),
    There(Thread),
    Call(String),
    Return,
    Exit,
    Irq(FieldIndex, Option<FieldIndex>),
    IrqEnd(FieldIndex),
    Raise(FieldIndex),
    Softirq(FieldIndex),
    SoftirqEnd(FieldIndex),
    Timer,
    TimerEnd,
    Ipi(String),
    IpiEnd,
    Completed(FieldIndex),
}

/// The fields of a thread.
pub(super) struct Thread {
    tid: FieldIndex,
    name: Option<FieldIndex>,
}

/// What an event class is, if it says something of threads or interrupts.
pub(super) fn kind(class: &Class) -> Option<Kind> {
    let field = |name| class.field(name);
    let thread = |tid, name| {
        Some(Thread {
            tid: class.field(tid)?,
            name: class.field(name),
        })
    };
    Some(match class.name.as_str() {
        "sched_switch" => Kind::Switch {
            prev: thread("prev_tid", "prev_comm")?,
            state: field("prev_state")?,
            next: thread("next_tid", "next_comm")?,
        },
        "sched_waking" => Kind::Waking(thread("tid", "comm")?, field("target_cpu")),
        "sched_wakeup" | "sched_wakeup_new" => {
            Kind::Wakeup(thread("tid", "comm")?, field("target_cpu"))
        }
        "sched_process_fork" => Kind::Fork(thread("child_tid", "child_comm")?),
        "sched_process_exit" => Kind::Exit,
        "lttng_statedump_process_state" => Kind::There(thread("tid", "name")?),
        "irq_handler_entry" => Kind::Irq(field("irq")?, field("name")),
        "irq_handler_exit" => Kind::IrqEnd(field("irq")?),
        "irq_softirq_raise" | "softirq_raise" => Kind::Raise(field("vec")?),
        "irq_softirq_entry" | "softirq_entry" => Kind::Softirq(field("vec")?),
        "irq_softirq_exit" | "softirq_exit" => Kind::SoftirqEnd(field("vec")?),
        "timer_hrtimer_expire_entry"
        | "hrtimer_expire_entry"
        | "x86_irq_vectors_local_timer_entry" => Kind::Timer,
        "timer_hrtimer_expire_exit"
        | "hrtimer_expire_exit"
        | "x86_irq_vectors_local_timer_exit" => Kind::TimerEnd,
        "block_rq_complete" => Kind::Completed(field("dev")?),
        // As LTTng called all ends of system calls before 2.3.
        "exit_syscall" => Kind::Return,
        name => {
            let call = |begins: [&str; 3]| begins.iter().find_map(|b| name.strip_prefix(b));
            if let Some(call) = call(["syscall_entry_", "compat_syscall_entry_", "sys_"]) {
                Kind::Call(call.to_string())
            } else if call(["syscall_exit_", "compat_syscall_exit_", "\0"]).is_some() {
                Kind::Return
            } else {
                let ipi = name.strip_prefix("x86_irq_vectors_")?;
                match ipi.strip_suffix("_entry") {
                    Some(ipi) => Kind::Ipi(ipi.to_string()),
                    None => ipi.strip_suffix("_exit").map(|_| Kind::IpiEnd)?,
                }
            }
        }
    })
}

impl Kind {
    /// What the event says; `None` if a field has no such value.
    pub(super) fn what<'a>(
        &'a self,
        event: &lt_ctf::Event<'a>,
        release: Release,
    ) -> Option<What<'a>> {
        let name =
            |field: Option<FieldIndex>| field.and_then(|f| event.bytes(f)).unwrap_or_default();
        let number = |field| i32::try_from(event.signed(field)?).ok();
        let unsigned = |field| u32::try_from(event.unsigned(field)?).ok();
        let target =
            |field: &Option<FieldIndex>| field.and_then(unsigned).or(event.cpu()).unwrap_or(0);
        Some(match self {
            Self::Switch { prev, state, next } => What::Switch {
                prev: number(prev.tid)?,
                prev_name: name(prev.name),
                out: release.switched_out(event.signed(*state)?),
                next: number(next.tid)?,
                next_name: name(next.name),
            },
            Self::Waking(thread, cpu) => What::Waking {
                tid: number(thread.tid)?,
                name: name(thread.name),
                target: target(cpu),
            },
            Self::Wakeup(thread, cpu) => What::Wakeup {
                tid: number(thread.tid)?,
                name: name(thread.name),
                target: target(cpu),
            },
            Self::Fork(child) => What::Fork {
                child: number(child.tid)?,
                name: name(child.name),
            },
            Self::There(thread) => What::There {
                tid: number(thread.tid)?,
                name: name(thread.name),
            },
            Self::Call(call) => What::Call {
                name: call.as_bytes(),
            },
            Self::Return => What::Return,
            Self::Exit => What::Exit,
            Self::Irq(irq, of) => What::Irq {
                number: number(*irq)?,
                name: name(*of),
            },
            Self::IrqEnd(irq) => What::IrqEnd {
                number: number(*irq)?,
            },
            Self::Raise(vec) => What::Raise {
                vector: unsigned(*vec)?,
            },
            Self::Softirq(vec) => What::Softirq {
                vector: unsigned(*vec)?,
            },
            Self::SoftirqEnd(vec) => What::SoftirqEnd {
                vector: unsigned(*vec)?,
            },
            Self::Timer => What::Timer,
            Self::TimerEnd => What::TimerEnd,
            Self::Ipi(ipi) => What::Ipi {
                name: ipi.as_bytes(),
            },
            Self::IpiEnd => What::IpiEnd,
            Self::Completed(dev) => What::Completed {
                disk: Disk(unsigned(*dev)?),
            },
        })
    }
}
