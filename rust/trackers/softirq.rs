// SPDX-License-Identifier: GPL-2.0

//! `softirq`: how long softirqs run, for each vector.
//!
//! ```text
//!               softirq_entry            softirq_exit
//!   ------------------>|---- h->action() ---->|---> next vector that is pending, or back
//!                      |<------- delay ------>|
//! ```
//!
//! The key is the CPU, the vector and the task that the softirq runs in: the interrupted one,
//! ksoftirqd, or a task that has enabled softirqs again. A softirq changes neither its task nor its
//! CPU. The task is part of the key because of PREEMPT_RT, where a softirq can be preempted: unless
//! a lock serialises all softirqs of a CPU (PREEMPT_RT_NEEDS_BH_LOCK), another task on the same CPU
//! may run the same vector before the first one continues. The delay includes this pause.
//!
//! The task that the softirq runs in is the owner. The softirq is usually not work of this task, so
//! there is no task filter, and a reader of alerts is reported like any other task.
//!
//! # Contexts
//!
//! Softirq; on PREEMPT_RT a task.

use super::declare::*;

/// `all`, and the vectors in the order of their numbers; helpers.c checks this order.
const VECTORS: [&str; 11] = [
    "all", "hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer",
    "rcu",
];

tracker! {
    softirq: "softirqs, from entry to return (key: CPU, vector and task)";
    key: 1;
    threshold: 5_000_000;
    params {
        vec: ParamKind::Word(&VECTORS) => 0, "only this vector";
        cpu: ParamKind::Id { max: 1 << 16 } => ALL, "only softirqs that run on this CPU";
    }
    keeps: owner;
    alert {
        /// The number of the vector.
        vec: u32 at 0,
        /// The name of the vector.
        name = |alert, _| VECTORS.get(alert.vec as usize + 1).copied().unwrap_or("?"),
        /// The CPU that the softirq ran on.
        on: u32 at 0:32,
    }
    probes irq {
        softirq_exit(vector: [unsigned int]) => left(vector);
        softirq_entry(vector: [unsigned int]) => entered(vector);
    }
}

/// Position of the CPU in a key: above the vector and the task.
const CPU_SHIFT: u32 = 40;
const VEC_BITS: u32 = 8;

/// Returns the key of a softirq, which has the task's address in units of 64 bytes, without the
/// upper bits: these are the same for all tasks within 256 GiB.
///
/// The thread id would not do: while a softirq runs on top of an exiting leader, another thread's
/// execve() may change the leader's id.
#[inline(always)]
fn key(guard: &Guard, vector: u64, task: &TaskRef<'_>) -> [u64; 1] {
    const TASK_BITS: u32 = CPU_SHIFT - VEC_BITS;
    let task = task.address() >> 6 & ((1 << TASK_BITS) - 1);
    let cpu = Kernel::cpu(guard) as u64;
    [cpu << CPU_SHIFT | task << VEC_BITS | vector]
}

impl Detail {
    fn of([key]: &[u64; 1]) -> Self {
        Self {
            vec: (key & ((1 << VEC_BITS) - 1)) as u32,
            on: (key >> CPU_SHIFT) as u32,
        }
    }
}

impl Probes {
    #[inline(always)]
    fn entered(&self, guard: &Guard, vector: u64) {
        let (core, engine) = (&self.core, self.core.engine());
        let (vec, cpu) = (core.value(PARAM_VEC), core.value(PARAM_CPU));
        let is_wanted =
            (vec == 0 || vec == vector + 1) && (cpu == ALL || cpu == Kernel::cpu(guard) as u64);
        if !is_wanted {
            engine.filtered(guard);
            return;
        }
        TaskRef::with_current(|task| {
            let data = tasks::owner(&task).to_words();
            engine.event_in(guard, &key(guard, vector, &task), Kernel::now(), &data);
        });
    }

    #[inline(always)]
    fn left(&self, guard: &Guard, vector: u64) {
        let key = TaskRef::with_current(|task| key(guard, vector, &task));
        self.end(guard, &key, |_| ());
    }
}
