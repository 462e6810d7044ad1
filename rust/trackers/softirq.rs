// SPDX-License-Identifier: GPL-2.0

//! `softirq`: how long softirqs run, each vector by itself.
//!
//! ```text
//!               softirq_entry            softirq_exit
//!   ------------------>|---- h->action() ---->|---> next vector that is pending, or back
//!                      |<------- delay ------>|
//! ```
//!
//! The key is the CPU, the vector and the task that the softirq runs in: whoever was interrupted,
//! ksoftirqd, or who has enabled softirqs again. A softirq does not change its task, nor its CPU.
//! The task is part of the key because of PREEMPT_RT, where a softirq can be preempted: unless the
//! kernel has one lock for all of them (PREEMPT_RT_NEEDS_BH_LOCK), another task on the same CPU
//! may run the same vector before the first one goes on. The delay includes such a pause.
//!
//! That task is the owner. It mostly has no part in it, so there is no filter by it, and a reader
//! of alerts is reported like any other.
//!
//! # Contexts
//!
//! Softirq; on PREEMPT_RT a task.

use super::tasks::{self, Guard};
use crate::{
    control::{Kind as ParamKind, Param, ALL},
    event::Snapshot,
    instance::{
        kind::{all_right, Kind},
        common,
        params,
        probed::{self, Live, Probed},
        Core,
        Details, //
    },
    platform::Platform,
    record::{Owner, DETAIL, ID_BITS},
    sys::{
        irq::{self, Softirqs},
        platform::Kernel,
        task::TaskRef,
        tracepoint::Attachment, //
    },
    tracker::Late, //
};
use kernel::{fmt, prelude::*, seq_file::SeqFile, seq_print, sync::Arc};

const VEC: usize = common::COUNT;
const CPU: usize = VEC + 1;

/// `all`, and the vectors in the order of their numbers; helpers.c checks that.
const VECTORS: [&str; 11] = [
    "all", "hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer",
    "rcu",
];

static PARAMS: [Param; CPU + 1] = {
    let vec = Param {
        name: "vec",
        kind: ParamKind::Word(&VECTORS),
        default: 0,
        fixed: false,
        help: "only this vector",
    };
    params(5_000_000, [vec, tasks::cpu_only()])
};

/// The tracker.
pub(crate) static KIND: Kind = Kind {
    name: "softirq",
    c_name: c"softirq",
    help: "softirqs, from being called to returning (key: CPU, vector and task)",
    params: &PARAMS,
    counters: &[],
    detail_words: 1,
    detail: |alert, f| f.write_fmt(fmt!(" {}", Detail(alert.detail[0]))),
    check: all_right,
    missing: irq::missing_softirqs::<Probes>,
    create: Some(Probed::<Softirq, _, _>::create),
};

struct Softirq;

type Probes = Live<Softirq, 1, WORDS>;

/// Of an event: the task that it runs in.
const WORDS: usize = Owner::WORDS;

/// How far the CPU is shifted in a key: above the vector and the thread id.
const CPU_SHIFT: u32 = 40;
const VEC_BITS: u32 = 8;

fn key(guard: &Guard, vector: u32, task: &TaskRef<'_>) -> [u64; 1] {
    const { assert!(VEC_BITS + ID_BITS <= CPU_SHIFT) };
    let cpu = Kernel::cpu(guard) as u64;
    [cpu << CPU_SHIFT | u64::from(task.tid()) << VEC_BITS | u64::from(vector)]
}

fn details(key: u64, data: &[u64; WORDS]) -> Details {
    let mut words = [0; DETAIL];
    words[0] = (key >> CPU_SHIFT) << 32 | key & ((1 << VEC_BITS) - 1);
    Details {
        owner: Owner::from_words(*data),
        words,
    }
}

/// Our fields of an alert.
struct Detail(u64);

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vector = self.0 as u32;
        let name = VECTORS.get(vector as usize + 1).unwrap_or(&"?");
        f.write_fmt(fmt!("vec={vector} name={name} on={}", self.0 >> 32))
    }
}

impl Softirqs for Probes {
    #[inline(always)]
    fn entered(&self, guard: &Guard, vector: u32) {
        let (core, tracker) = (&self.core, self.core.tracker());
        let (vec, cpu) = (core.value(VEC), core.value(CPU));
        let is_wanted = (vec == 0 || vec == u64::from(vector) + 1)
            && (cpu == ALL || cpu == Kernel::cpu(guard) as u64);
        if !is_wanted {
            tracker.filtered(guard);
            return;
        }
        TaskRef::with_current(|task| {
            let data = tasks::owner(&task).to_words();
            tracker.event_in(guard, &key(guard, vector, &task), Kernel::now(), &data);
        });
    }

    #[inline(always)]
    fn left(&self, guard: &Guard, vector: u32) {
        let core = &self.core;
        let key = TaskRef::with_current(|task| key(guard, vector, &task));
        core.tracker().event_out_if_known(
            guard,
            &key,
            Kernel::now,
            |_| true,
            |late| {
                let [key] = late.key;
                let now = late.start.wrapping_add(late.delay);
                core.raise(guard, now, late, &details(key, &late.data), &[]);
            },
        );
    }
}

impl probed::Probes<1, WORDS> for Softirq {
    type Attachment = Attachment<Probes>;

    fn kind() -> &'static Kind {
        &KIND
    }

    fn attach(live: Arc<Probes>) -> Result<Self::Attachment> {
        irq::attach_to_softirqs(live)
    }

    fn owner(data: &[u64; WORDS]) -> Owner {
        Owner::from_words(*data)
    }

    fn details(_: &Core<1, WORDS>, late: &Late<1, WORDS>, _: u64) -> Option<Details> {
        let [key] = late.key;
        Some(details(key, &late.data))
    }

    fn show_fields(_: &Core<1, WORDS>, event: &Snapshot<1, WORDS>, out: &SeqFile) {
        let [key] = event.key;
        let Details { owner, words } = details(key, &event.data);
        seq_print!(out, "{owner} {}", Detail(words[0]));
    }
}
