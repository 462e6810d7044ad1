// SPDX-License-Identifier: GPL-2.0

//! Targets that may be stopped between the end of a system call and user space, with `end=user`.
//!
//! ```text
//!   sys_exit      sched_switch            sched_switch
//!   -----|-------------|--- throttled ---------|-----> user space
//!     noted                                   end
//!
//!   sys_exit                     sched_switch, sys_exit
//!   -----|-----> user space ... -----------|
//!     noted, end                     end detected
//! ```
//!
//! The kernel enforces the quota of a cgroup on the way back to user space, after `sys_exit`, by
//! task work (`throttle_cfs_rq_work`). The work is queued when the quota is used up, or when a task
//! of that cgroup gets a CPU. If it is queued at `sys_exit`, the chain has not ended yet. The tip
//! is then `Leaving`, and has the time as a note.
//!
//! - If the task is switched out, still runnable, and is throttled or still has that work, it has
//!   not been in user space: the note is dropped, and the chain continues. The chain ends where the
//!   task is switched in without that work.
//! - On any other event, the quota was replenished in time: the chain ended at the note. Until one
//!   of these events, the task may be in user space, and no timeout reports it.
//!
//! If the quota is replenished just between `sys_exit` and the work, and is used up again before
//! the next event of the task, its time in user space counts as delay.

use super::{
    chain::{self, note, Counts, Kind, State, Step, Words, COUNTS, MERGED, SLEPT},
    show::End,
    tasks,
    tips::{counts, is_running, is_settled, key, last, subject, InTip, Tip},
    Data, Guard, Probes, CHAIN_AT, DATA, NOTES_AT,
};
use crate::{
    engine::{platform::Platform, step::Next, Late},
    sys::{platform::Kernel, sched::State as Sleep, task::TaskRef},
};

/// Whether the task of a tip may be in user space. Then the chain has ended at the note, unless the
/// task is stopped on its way.
pub(super) fn may_be_in_user_space(data: &Data) -> bool {
    Counts(data[CHAIN_AT + COUNTS]).state() == State::Leaving && data[NOTES_AT + SLEPT] != 0
}

/// Returns the time at which the task of a tip left its system call, if the task may be in user
/// space.
fn left(tip: &Tip<'_>) -> Option<u64> {
    let is_leaving = counts(tip).state() == State::Leaving;
    let note = is_leaving.then(|| tip.word(NOTES_AT + SLEPT))?;
    chain::noted_at(note, last(tip))
}

impl Probes {
    /// Handles the return of the current task, which has a tip, from a system call.
    pub(super) fn has_returned(&self, guard: &Guard, current: &TaskRef<'_>) {
        let (now, on_cpu) = (Kernel::now(), self.own.cpu(guard));
        let may_leave = !on_cpu.is_leaving() && current.is_to_be_throttled();
        let mut leaves = false;
        self.core.engine().step(
            guard,
            &key(current),
            is_running,
            |tip| {
                if let Some(left) = left(tip) {
                    return self.ended(guard, tip, left);
                }
                leaves = may_leave && counts(tip).is_target() && is_settled(tip);
                if !leaves {
                    return self.ends(guard, tip, now);
                }
                self.leaves(guard, tip, now);
                Next::Keep
            },
            |late| self.report_user(guard, late, current),
        );
        if !leaves {
            on_cpu.set_leaving(false);
            on_cpu.set_running(0);
        }
    }

    /// Records on a tip, which has no notes yet, that its task is returning to user space on this
    /// CPU.
    #[cold]
    #[inline(never)]
    pub(super) fn leaves(&self, guard: &Guard, tip: &mut Tip<'_>, now: u64) {
        let cpu = tasks::this_cpu(guard);
        let mut counts = counts(tip);
        counts.set_state(State::Leaving);
        tip.set_word(CHAIN_AT + COUNTS, counts.0);
        let word = note(Kind::User, cpu, last(tip), now);
        tip.set_word(NOTES_AT + SLEPT, word);
        self.own.cpu(guard).set_leaving(true);
    }

    /// Handles the switch-out of a task whose tip is `Leaving`.
    #[cold]
    #[inline(never)]
    pub(super) fn leaving_switched_out(
        &self,
        guard: &Guard,
        prev: &TaskRef<'_>,
        next: &TaskRef<'_>,
        state: Sleep,
    ) {
        self.own.cpu(guard).set_leaving(false);
        let at = (tasks::this_cpu(guard), Kernel::now());
        let is_stopped = state.is_runnable()
            && !state.is_dead()
            && (prev.is_throttled() || prev.is_to_be_throttled());
        let change = |tip: &mut Tip<'_>| match left(tip) {
            Some(left) if !is_stopped => self.ended(guard, tip, left),
            _ => {
                tip.set_word(NOTES_AT + SLEPT, 0);
                self.takes_out(tip, at, prev, next);
                Next::Keep
            }
        };
        let report = |late: &Late<_, _>| self.report_user(guard, late, prev);
        let engine = self.core.engine();
        engine.step(guard, &key(prev), is_running, change, report);
    }

    /// Ends the chain of a tip at the time when its task left its system call; later notes are
    /// dropped.
    fn ended(&self, guard: &Guard, tip: &mut Tip<'_>, left: u64) -> Next {
        const _: () = assert!(SLEPT == 0);
        tip.set_words::<NOTES_AT, MERGED>(&[0; MERGED]);
        self.own.totals.count(guard, &InTip(tip.again()), left);
        Next::End(left)
    }

    /// Reports a chain that has ended late at the end of a system call.
    #[cold]
    fn report_user(&self, guard: &Guard, late: &Late<1, DATA>, task: &TaskRef<'_>) {
        let (kind, cpu, subject) = (Kind::User, tasks::this_cpu(guard), subject(task));
        let step = Step { kind, cpu, subject };
        self.report(guard, late, End::User, |chain, end| chain.push(end, step));
    }
}
