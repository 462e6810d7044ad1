// SPDX-License-Identifier: GPL-2.0

//! `wakeup`: how long woken tasks wait for a CPU.
//!
//! ```text
//!   asleep          waking                            switched in
//!   ---------------->|--------- on a runqueue -------->|---------> running
//!                    |<------------ delay ------------>|
//! ```
//!
//! An event starts when a task is woken (`sched_waking`), or a new task becomes runnable for the
//! first time (`sched_wakeup_new`), and ends when that task is switched in. The key is the task,
//! the *wakee*; the filter applies to it, not to the waker.
//!
//! Not every `sched_waking` starts a wait. A task that is about to sleep, but still runs, may be
//! woken too, and continues without having waited:
//!
//! - a task that wakes itself, or is woken by an interrupt on top of it, is known to be awake: no
//!   event starts;
//! - a task that runs on another CPU may be about to be switched out there, and must then be woken
//!   by this waker. So the event starts, and is dropped (`gone`, `awake`) if the task turns out to
//!   have continued: it is switched out while runnable, that is, without having gone to sleep, or
//!   it exits. If the task does go to sleep and is woken again, that waking starts a new event
//!   (`replaced`). An event of a task that was awake at its waking never times out.
//!
//! # Contexts
//!
//! The probes run with the lock of the wakee or of the runqueue held, except when a task wakes
//! itself, see sys/sched.rs.

use super::declare::*;
use crate::{
    alert::record::actor::{Actor, Place},
    record::{self, Policy},
    sys::{
        assumptions,
        sched::{self, Switch}, //
    },
};

tracker! {
    wakeup: "woken tasks, from wakeup to switch-in (key: the woken task)";
    key: 1;
    threshold: 5_000_000;
    tasks: true;
    counters {
        /// Wakings of tasks that turned out to be awake; included in `gone`.
        awake,
    }
    params {}
    keeps: 7;
    alert {
        /// The priority of the woken task, as in the kernel: below 100 real-time, 120 for nice 0.
        prio: i16 at 0:32,
        /// The scheduling policy: other, fifo, rr, batch, idle, deadline, ext.
        policy: Policy at 0:48,
        /// The CPU that the task ran on last, as in the event sched_waking; for a new task, the CPU
        /// that was chosen for it.
        target: u32 at 0,
        /// Whether the task was switched in on another CPU.
        migrated: bool at 4:44 if alert,
        /// The waker, or the task that the waking interrupt had interrupted.
        waker: Actor at 1,
        /// The context of the waker's CPU: task, softirq, hardirq or nmi.
        context: Context at 1:44,
        /// Whether the task seemed to be awake when it was woken.
        awake: bool at 1:46 if pending,
        /// The task that was switched out for it; 0 for an idle task, and with a timeout.
        prev: Actor at 4 if alert,
    }
    attach: Attachment<Probes> = |live| Attachment::new(live, sched::probes::<Probes, false>()),
        || tracepoint::missing(sched::probes::<Probes, false>())
            .or_else(|| assumptions::missing(&[&assumptions::QUEUED]));
    impl {
        // Both are known only at the end.
        const LABELS: labels::Rules = labels::Rules::ALL.without(&["migrated", "prev"]);

        fn can_time_out(data: &[u64; WORDS]) -> bool {
            !record::known::<_, Detail>(data).awake
        }
    }
}

impl sched::Observer for Probes {
    const WAKINGS: bool = true;
    const NEW: bool = true;

    #[inline(always)]
    fn waking(&self, guard: &Guard, wakee: TaskRef<'_>) {
        self.begin_wait(guard, wakee, || wakee.is_awake());
    }

    #[inline(always)]
    fn waking_new(&self, guard: &Guard, wakee: TaskRef<'_>) {
        // The task is on a runqueue already, as if it were awake.
        self.begin_wait(guard, wakee, || false);
    }

    #[inline(always)]
    fn switched<const TIMED: bool>(&self, guard: &Guard, switch: Switch<'_>) {
        let Switch { prev, next, state } = switch;
        if state.is_runnable() || state.is_dead() {
            self.drop_awake(guard, prev);
        }
        self.end(guard, &tasks::key(&next), move |alert| {
            alert.prev = tasks::actor(&prev);
            // `prev` is on this CPU until the switch is done.
            alert.migrated = alert.target != prev.cpu();
        });
    }
}

impl Probes {
    /// Starts the event of a woken or new task, unless the filter rejects the task.
    #[inline(always)]
    fn begin_wait(&self, guard: &Guard, wakee: TaskRef<'_>, is_awake: impl FnOnce() -> bool) {
        let engine = self.core.engine();
        TaskRef::with_current(|current| {
            if current.is(&wakee) {
                // The task keeps running, in spite of its state. No wait starts, so this is not
                // counted as an attempt.
                return;
            }
            let cpu = wakee.cpu();
            let may_be = tasks::may_be_wanted(&self.core, &wakee);
            if !may_be || !tasks::is_wanted(&self.core, &wakee, cpu) {
                engine.filtered(guard);
                return;
            }
            let Place { cpu, prio, policy } = tasks::place(&wakee, cpu);
            let known = Detail {
                prio,
                policy: Policy(policy),
                target: cpu,
                waker: tasks::actor(&current),
                context: Context::current(),
                awake: is_awake(),
                ..Detail::default()
            };
            let data = record::data::<WORDS>(tasks::owner(&wakee), &known);
            engine.event_in_unique(guard, &tasks::key(&wakee), Kernel::now(), &data);
        });
    }

    /// Drops the event of a woken task that keeps running without having slept: it has not waited.
    ///
    /// Not inlined: the registers that this needs should not be saved on every switch.
    #[inline(never)]
    fn drop_awake(&self, guard: &Guard, task: TaskRef<'_>) {
        let key = tasks::key(&task);
        let gone = self.core.engine().update(guard, &key, |_| Verdict::Gone);
        if gone.is_some() {
            self.core.count_extra(guard, COUNT_AWAKE);
        }
    }
}
