// SPDX-License-Identifier: GPL-2.0

//! Handles a task with a tip that is switched out, moved to another CPU, or switched in, where its
//! chain may end.
//!
//! See "Two CPUs" in tips.rs.

use super::{
    chain::{note, Counts, Kind, Look, Spent, State, Step, Words, PLACE, SLEPT},
    percpu::Logs,
    show::End,
    tasks,
    tips::{
        counts, goes_on, is_in_doubt, is_of, is_of_running, is_running, is_settled, key, last,
        settled_chain, store, subject, InTip, Seen, Tip,
    },
    Extra, Guard, Probes, BLOCKED, DATA, NOTES_AT, PARAM_END, SWITCH, USER,
};
use crate::{
    engine::{
        platform::Platform,
        rcu_ht::Hits,
        step::Next,
        Late, //
    },
    sys::{causes, platform::Kernel, sched::State as Sleep, task::TaskRef},
};

/// Number of steps left out after which a thread that seems to sleep in the middle of its work is
/// assumed to begin each of its jobs with such a sleep.
const ENDLESS: u64 = 64;

/// A step of a task that has a tip.
#[derive(Clone, Copy)]
enum Taken<'a> {
    /// The task was preempted or throttled: the step, the task that runs instead, and the totals of
    /// the CPU, if kept.
    Out(Step, &'a TaskRef<'a>, Option<Spent>),
    /// The task was switched in on this CPU: the task, whether it is named, and, if kept, the CPU's
    /// totals and logs, with the minimum length of a wait for which the logs are read.
    Switch(u32, &'a TaskRef<'a>, bool, Option<(Spent, Logs<'a>, u64)>),
}

impl Taken<'_> {
    /// Appends the step to a chain, at `now`.
    #[inline(always)]
    fn append_to(self, chain: &mut impl Words, now: u64) {
        match self {
            Taken::Out(step, next, spent) => {
                let count = |counts: &mut Counts| {
                    if step.kind == Kind::Preempted {
                        counts.add_preempted();
                    }
                };
                if step.kind == Kind::Preempted && !next.is_idle() {
                    chain.push_named_and(now, step, next.comm(), count);
                } else {
                    chain.push_and(now, step, count);
                }
                if let Some(spent) = spent {
                    chain.push_wait(step.cpu, spent);
                }
            }
            Taken::Switch(cpu, next, is_named, spent) => {
                let (kind, subject) = (Kind::Switch, subject(next));
                let step = Step { kind, cpu, subject };
                let runs = |counts: &mut Counts| {
                    if counts.state() != State::Leaving {
                        counts.set_state(State::Running);
                    }
                };
                chain.set(PLACE, tasks::place(next, cpu).to_word());
                let Some((spent, logs, least)) = spent else {
                    return if is_named {
                        chain.push_named_and(now, step, next.comm(), runs)
                    } else {
                        chain.push_and(now, step, runs)
                    };
                };
                let name = is_named.then(|| next.comm());
                chain.push_waited(now, step, name, spent, |since, noted| {
                    logs.rivals(since, noted, least)
                });
                let mut counts = chain.counts();
                runs(&mut counts);
                chain.set_counts(counts);
            }
        }
    }

    /// Appends the step to a tip: in place, unless there are notes.
    #[inline(always)]
    fn append(self, tip: &mut Tip<'_>, now: u64) {
        if is_settled(tip) {
            self.append_to(&mut InTip(tip.again()), now);
        } else {
            self.append_unsettled(tip.again(), now);
        }
    }

    /// Appends the step to a tip with notes. Takes the step and the tip by value, so that the
    /// common case keeps both in registers.
    #[inline(never)]
    fn append_unsettled(self, mut tip: Tip<'_>, now: u64) {
        let mut chain = settled_chain(&tip);
        self.append_to(&mut chain, now);
        store(&mut tip, &chain);
    }
}

impl Probes {
    /// Handles the switch-out of a task with a tip.
    #[inline(always)]
    pub(super) fn switched_out(
        &self,
        guard: &Guard,
        prev: TaskRef<'_>,
        next: TaskRef<'_>,
        state: Sleep,
    ) {
        if self.own.cpu(guard).is_leaving() {
            return self.leaving_switched_out(guard, &prev, &next, state);
        }
        let (now, cpu) = (Kernel::now(), tasks::this_cpu(guard));
        let (engine, key) = (self.core.engine(), key(&prev));
        if !state.is_dead() && !state.is_runnable() && goes_on(state) {
            let is_lock = state.is_lock_wait();
            let on_cpu = self.own.cpu(guard);
            let mut is_endless = false;
            let sleeps = |tip: &Tip<'_>| {
                let counts = counts(tip);
                is_endless = !is_lock && !counts.is_target() && counts.more() >= ENDLESS;
                let kind = if is_lock {
                    Kind::Lock
                } else if counts.is_target() && on_cpu.has_read(prev.bytes_read()) {
                    // What the target waits for may be unrelated to the origin.
                    Kind::Reads
                } else {
                    Kind::Sleep
                };
                note(kind, cpu, last(tip), now)
            };
            engine.note(guard, &key, is_running, NOTES_AT + SLEPT, sleeps);
            if is_endless {
                self.give_up(guard, &prev);
            }
            return;
        }
        let change = |tip: &mut Tip<'_>| {
            if state.is_runnable() && !state.is_dead() {
                self.takes_out(tip, (cpu, now), &prev, &next);
                Next::Keep
            } else if !state.is_dead()
                && counts(tip).is_target()
                && self.core.value(PARAM_END) == BLOCKED
            {
                self.ends(guard, tip, now)
            } else {
                Next::Gone
            }
        };
        let report = move |late: &Late<1, DATA>| {
            let (kind, subject) = (Kind::Block, subject(&prev));
            let step = Step { kind, cpu, subject };
            self.report(guard, late, End::Blocked, |chain, end| {
                chain.push(end, step)
            });
        };
        // Inlined, since the task is known to have a tip.
        if let Some((hash, hits)) = engine.seek(guard, &key) {
            engine.step_sought(guard, hash, hits, &key, is_running, change, report);
        }
    }

    /// Appends the switch-out of a runnable task to its tip.
    #[inline(always)]
    pub(super) fn takes_out(
        &self,
        tip: &mut Tip<'_>,
        (cpu, now): (u32, u64),
        prev: &TaskRef<'_>,
        next: &TaskRef<'_>,
    ) {
        // If the task is throttled, that is the reason, whatever runs instead.
        let (kind, subject) = if prev.is_throttled() {
            (Kind::Throttled, subject(prev))
        } else {
            (Kind::Preempted, subject(next))
        };
        let spent = self.own.begin_wait(cpu, now);
        Taken::Out(Step { kind, cpu, subject }, next, spent).append(tip, now);
    }

    /// Handles the switch-in of a task other than the idle task, when the CPU has no record of a
    /// running task with a tip.
    #[inline(always)]
    pub(super) fn switched_in(&self, guard: &Guard, next: TaskRef<'_>) {
        if let Some((hash, hits)) = self.core.engine().seek(guard, &key(&next)) {
            self.switched_in_on_chain(guard, next, hash, hits);
        }
    }

    /// Drops the chain of a thread that only seems to be in the middle of its work. A concurrent
    /// waking has been noted, or begins the thread's next chain.
    #[cold]
    #[inline(never)]
    fn give_up(&self, guard: &Guard, prev: &TaskRef<'_>) {
        let engine = self.core.engine();
        let drop = |_: &mut Tip<'_>| Next::Gone;
        if engine.step(guard, &key(prev), is_running, drop, |_| ()) == Some(Next::Gone) {
            self.core.count_extra(guard, Extra::Endless as usize);
        }
    }

    /// Handles the switch-in of a task that may have a tip.
    #[inline(never)]
    fn switched_in_on_chain(&self, guard: &Guard, next: TaskRef<'_>, hash: u64, hits: Hits<'_>) {
        let found = self.core.engine().step_sought(
            guard,
            hash,
            hits,
            &key(&next),
            |tip| !is_in_doubt(tip),
            |tip| self.switch_in(guard, tip, &next),
            move |late| {
                self.report(guard, late, End::Switch, |chain, end| {
                    let cpu = tasks::this_cpu(guard);
                    let spent = self.spent_here(guard, end);
                    Taken::Switch(cpu, &next, true, spent).append_to(chain, end);
                });
            },
        );
        if found == Some(Next::Keep) {
            let on_cpu = self.own.cpu(guard);
            on_cpu.set_running(next.address());
            on_cpu.set_read(next.bytes_read());
        }
    }

    /// Handles the switch-in of a task with a tip.
    #[inline(always)]
    fn switch_in(&self, guard: &Guard, tip: &mut Tip<'_>, next: &TaskRef<'_>) -> Next {
        if !is_of(tip, next) {
            return Next::Gone;
        }
        let now = Kernel::now();
        let counts = counts(tip);
        let (mut is_end, mut leaves) = (false, false);
        match self.core.value(PARAM_END) {
            SWITCH => is_end = true,
            USER => {
                leaves = counts.is_target()
                    && (counts.state() == State::Leaving || !causes::is_in_syscall(next));
                is_end = leaves && !next.is_to_be_throttled();
            }
            _ => {}
        }
        if counts.is_target() && is_end {
            return self.ends(guard, tip, now);
        }
        // The step has the task's name if this is the task's first switch-in on the chain, or
        // follows a noted sleep.
        let is_named =
            !is_of_running(counts) || !is_settled(tip) && counts.state() != State::Leaving;
        let cpu = tasks::this_cpu(guard);
        let spent = self.spent_here(guard, now);
        Taken::Switch(cpu, next, is_named, spent).append(tip, now);
        if leaves {
            self.leaves(guard, tip, now);
        }
        Next::Keep
    }

    /// Handles the move to another CPU of a task that may have a tip. While the task is moved, it
    /// is not switched in, and no other CPU claims its waiting tip: see "Two CPUs" in tips.rs. A
    /// tip in doubt is left alone, since the next waker must find it: if the task is moved, its
    /// wait remains unknown.
    pub(super) fn moved(&self, guard: &Guard, task: &TaskRef<'_>, to: u32) {
        let waits = |tip: &Tip<'_>| !is_in_doubt(tip) && Seen(tip).is_waiting();
        let change = |tip: &mut Tip<'_>| {
            let now = Kernel::now();
            // The kernel has not queued the task yet if it is just being woken.
            let was_queued = task.is_awake();
            InTip(tip.again()).move_wait(to, was_queued, |cpu| self.own.begin_wait(cpu, now));
            Next::Keep
        };
        let engine = self.core.engine();
        engine.step(guard, &key(task), waits, change, |_| ());
    }

    /// Returns the totals of this CPU at `now`, its logs until this switch, and the minimum length
    /// of a wait for which they are reported: a sixteenth of the threshold. A late chain with only
    /// shorter steps would need more steps than there is room for.
    #[inline(always)]
    fn spent_here(&self, guard: &Guard, now: u64) -> Option<(Spent, Logs<'_>, u64)> {
        let logs = self.own.logs(guard)?;
        let spent = self.own.cpu(guard).spent(now);
        Some((spent, logs, self.core.engine().threshold() / 16))
    }
}
