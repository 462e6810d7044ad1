// SPDX-License-Identifier: GPL-2.0

//! `runqueue`: how long runnable tasks wait while other tasks run.
//!
//! ```text
//!   running      switched out, runnable               switched in
//!   ------------------->|------- on a runqueue -------->|---------> running
//!                       |<------------ delay ---------->|
//! ```
//!
//! An event starts when a task that has not gone to sleep is switched out (`sched_switch`, the
//! states `R` and `R+`): the task was preempted, yielded, or was throttled. The event ends when
//! that task is switched in. The key is the task; the filter applies to the task and to the CPU
//! that it is switched out of.
//!
//! An alert has the task's stack at the switch-out, which shows where it was preempted. The stack
//! is walked for an alert, and with `by=stack` at each end.
//!
//! Tasks that slept and were woken are the subject of `wakeup`.
//!
//! # Contexts
//!
//! The probe runs with the lock of the runqueue held, see sys/sched.rs.

use super::declare::*;
use crate::{
    alert::record::actor::{Actor, Place},
    record::{self, Policy},
    sys::{
        sched::{self, Switch},
        stack::Stack,
    },
};

const STATES: [&str; 2] = ["R", "R+"];

tracker! {
    runqueue: "runnable tasks, from switch-out to switch-in (key: the task)";
    key: 1;
    threshold: 10_000_000;
    tasks: true;
    params {}
    keeps: 7;
    stored: prio policy from preempted migrated by prev throttled;
    alert {
        /// The priority of the task, as in the kernel: below 100 real-time, 120 for nice 0.
        prio: i16 at 0:32,
        /// The scheduling policy: other, fifo, rr, batch, idle, deadline, ext.
        policy: Policy at 0:48,
        /// `R+` if the task was preempted in the kernel; `R` if it called the scheduler itself: it
        /// yielded, or was preempted on its way to user space.
        preempted: bool at 1:44 in STATES as state,
        /// The CPU that the task was switched out of.
        from: u32 at 0,
        /// Whether the task was switched in on another CPU.
        migrated: bool at 4:44 if alert,
        /// The task that ran next; 0, 0 and "idle" for none.
        by: Actor at 1,
        /// The task that was switched out for it; 0 for an idle task, and with a timeout.
        prev: Actor at 4 if alert,
        /// Whether it was throttled when it was switched out: the quota of its cgroup was used up,
        /// or its runtime of SCHED_DEADLINE was used up or yielded.
        throttled: bool at 1:45,
    }
    attach: Attachment<Probes> = |live| Attachment::new(live, sched::probes::<Probes, false>()),
        || tracepoint::missing(sched::probes::<Probes, false>());
    impl {
        // Both are known only at the end.
        const LABELS: labels::Rules = labels::Rules::WITH_STACK.without(&["migrated", "prev"]);
    }
}

impl sched::Observer for Probes {
    const WAKINGS: bool = false;
    const NEW: bool = false;

    fn waking(&self, _: &Guard, _: TaskRef<'_>) {}

    #[inline(always)]
    fn switched<const TIMED: bool>(&self, guard: &Guard, switch: Switch<'_>) {
        let Switch { prev, next, state } = switch;
        if state.is_runnable() && !prev.is_idle() {
            if tasks::may_be_wanted(&self.core, &prev) {
                self.begin_if_wanted(guard, switch);
            } else {
                self.core.engine().filtered(guard);
            }
        }
        // `next` stays off the CPU until the probe returns.
        let stack = move |depth| Stack::of_task(&next, depth);
        self.end_with(guard, &tasks::key(&next), stack, move |alert| {
            alert.prev = tasks::actor(&prev);
            // `prev` is on this CPU until the switch is done.
            alert.migrated = alert.from != prev.cpu();
        });
    }
}

impl Probes {
    /// Starts an event if the filter accepts the task. Not inlined: the registers that this needs
    /// should not be saved on every switch.
    #[inline(never)]
    fn begin_if_wanted(&self, guard: &Guard, switch: Switch<'_>) {
        let Switch { prev, next, state } = switch;
        let engine = self.core.engine();
        let cpu = Kernel::cpu(guard) as u32;
        if !tasks::is_wanted(&self.core, &prev, cpu) {
            engine.filtered(guard);
            return;
        }
        let Place { cpu, prio, policy } = tasks::place(&prev, cpu);
        let known = Detail {
            prio,
            policy: Policy(policy),
            preempted: state.is_preempted(),
            throttled: prev.is_throttled(),
            from: cpu,
            by: tasks::actor_or_idle(&next),
            ..Detail::default()
        };
        let data = record::data::<WORDS>(tasks::owner(&prev), &known);
        engine.event_in_unique(guard, &tasks::key(&prev), Kernel::now(), &data);
    }
}
