// SPDX-License-Identifier: GPL-2.0

//! Handles the waking of a task: a chain continues to the task, or the waking is noted on its
//! existing tip.
//!
//! See "Two CPUs" in tips.rs. "Trap N" is a row of the table of kernel traps in
//! Documentation/design/testing.md.

use super::{
    chain::{note, Kind, State, Step, Words, MERGED, NOTES, PLACE, WAKER, WOKEN},
    tasks,
    tips::{goes_on, is_running, key, last, subject, InTip, Tip},
    Extra, Guard, InData, Probes, DATA, NOTES_AT, PARAM_PRIO,
};
use crate::{
    alert::record::Owner,
    control::ALL,
    engine::platform::Platform,
    sys::{
        platform::Kernel,
        sched::State as Sleep,
        task::{Context, TaskRef},
        waker::{is_waking, may_be_waking}, //
    },
};

/// Kinds of kernel threads, by the start of their name, as a word of 8 bytes.
const KSOFTIRQD: u64 = u64::from_le_bytes(*b"ksoftirq");
const KTIMERS: u64 = u64::from_le_bytes(*b"ktimers/");
const IRQ_WORK: u64 = u64::from_le_bytes(*b"irq_work");
const IRQ: u64 = u32::from_le_bytes(*b"irq/") as u64;
const IRQ_MASK: u64 = u32::MAX as u64;

/// Whether a task is a thread that runs softirqs.
#[inline(always)]
pub(super) fn is_softirq_thread(task: &TaskRef<'_>) -> bool {
    task.is_kthread() && [KSOFTIRQD, KTIMERS].contains(&task.comm()[0])
}

/// The parameters that select targets, a bit each.
const TARGETS: u64 = tasks::TASKS | 1 << tasks::KTHREADS | 1 << PARAM_PRIO;

/// The waking of another task.
struct Waking<'a> {
    wakee: TaskRef<'a>,
    now: u64,
    step: Step,
    /// Number of times that the wakee had left its CPU voluntarily, if it seems to be awake.
    doubt: Option<u64>,
}

impl<'a> Waking<'a> {
    #[inline(always)]
    fn new(wakee: TaskRef<'a>, cpu: u32, now: u64, doubt: Option<u64>) -> Self {
        let (kind, subject) = (Kind::Waking, subject(&wakee));
        Self {
            wakee,
            now,
            step: Step { kind, cpu, subject },
            doubt,
        }
    }

    /// Whether the wakee is the thread of an interrupt, which is woken after its handler.
    #[inline(always)]
    fn is_of_thread(&self) -> bool {
        self.wakee.is_kthread() && self.wakee.comm()[0] & IRQ_MASK == IRQ
    }
}

impl Probes {
    /// Handles a waking.
    #[inline(never)]
    pub(super) fn woken(&self, guard: &Guard, current: TaskRef<'_>, wakee: TaskRef<'_>) {
        // All calls are tail calls, so this needs no frame.
        if may_be_waking(guard) {
            return self.woken_meanwhile(guard, current, wakee);
        }
        self.woken_by_another(guard, current, wakee);
    }

    /// Handles a waking while our readers may be woken.
    #[cold]
    #[inline(never)]
    fn woken_meanwhile(&self, guard: &Guard, current: TaskRef<'_>, wakee: TaskRef<'_>) {
        // Wakings of our own readers are ignored (trap 9).
        if !is_waking(guard) {
            self.woken_by_another(guard, current, wakee);
        }
    }

    /// Handles a waking that does not wake one of our readers.
    #[inline(always)]
    fn woken_by_another(&self, guard: &Guard, current: TaskRef<'_>, wakee: TaskRef<'_>) {
        // A task that wakes itself keeps running, in spite of its state.
        if current.is(&wakee) {
            return;
        }
        if is_softirq_thread(&wakee) {
            return self.softirq_thread_woken(guard, wakee);
        }
        self.task_woken(guard, current, wakee);
    }

    /// Handles the waking of a softirq thread after an interrupt, on top of an unrelated task (trap
    /// 2). The thread continues the chain of the softirq.
    #[inline(never)]
    fn softirq_thread_woken(&self, guard: &Guard, wakee: TaskRef<'_>) {
        // A thread that waits for a lock has run since its waking.
        if wakee.is_awake() || Sleep::of_sleeper(&wakee).is_lock_wait() {
            return;
        }
        let (on_cpu, task, subject) = (self.own.cpu(guard), wakee.address(), subject(&wakee));
        if !on_cpu.wake_known_thread(task, subject) && wakee.cpu() == tasks::this_cpu(guard) {
            on_cpu.wake_thread(task, subject, wakee.comm());
        }
    }

    /// Handles the waking of a task that runs no softirqs.
    #[inline(never)]
    fn task_woken(&self, guard: &Guard, current: TaskRef<'_>, wakee: TaskRef<'_>) {
        let cpu = tasks::this_cpu(guard);
        if self.has_doubts() {
            self.forget_doubt(guard, wakee);
        }
        // `leaves` is read between two checks: if the task is still awake at the second one, it had
        // not left its CPU to sleep before that read.
        let seen = wakee.is_awake().then(|| wakee.leaves());
        let doubt = seen.filter(|_| wakee.is_awake());
        let sleep = Sleep::of_sleeper(&wakee);
        if doubt.is_some() {
            // If the task just continues, this waking has not made it run (trap 8).
            if self.merge(guard, wakee.address()) {
                self.core.count_extra(guard, Extra::Merged as usize);
            } else if Sleep::of_sleeper(&wakee).is_lock_wait() {
                // The release of a lock is not a cause, see below. The state is read again: keeping
                // the first result would cost a register.
                return;
            }
        } else if goes_on(sleep) || sleep.is_frozen() {
            // The task slept in the middle of its work, and continues it. (A frozen task that had
            // not slept in the middle of its work has no tip.)
            let engine = self.core.engine();
            // The waker may be the owner of a lock. An interrupt has no task to record.
            let [w0, w1, w2] = match Context::current() {
                Context::Task if !current.is_idle() => {
                    let [low, high] = current.comm();
                    [u64::from(current.tid()), low, high]
                }
                _ => [0; 3],
            };
            let waking = |tip: &Tip<'_>| {
                let waking = note(Kind::Waking, cpu, last(tip), Kernel::now());
                [w0, w1, w2, waking]
            };
            const _: () = assert!(WAKER + 3 == WOKEN);
            if engine.note_words(guard, &key(&wakee), is_running, NOTES_AT + WAKER, waking) {
                return;
            }
            // The release of a lock is not the cause of what its next owner does. (A sleep in the
            // state D may have been for the event that wakes the task.)
            if sleep.is_lock_wait() {
                return;
            }
        }
        if Context::current() == Context::Task && !self.may_be_on_chain(guard, &current) {
            return;
        }
        let now = Kernel::now();
        if doubt.is_some() {
            return self.woken_colder(guard, current, wakee, now, doubt);
        }
        let Some(mut draft) = self.core.engine().draft(guard) else {
            return self.woken_colder(guard, current, wakee, now, None);
        };
        let waking = Waking::new(wakee, cpu, now, None);
        let mut chain = InTip(draft.open());
        let is_of_thread = || waking.is_of_thread();
        // The context is read again: keeping the first result would cost a register.
        let context = Context::current();
        let start = self.chain(guard, context, &current, &mut chain, cpu, is_of_thread);
        let Some(start) = start else { return };
        if !self.branch(&mut chain, &waking) {
            return self.core.engine().filtered(guard);
        }
        let InTip(mut tip) = chain;
        tip.set_words::<0, { Owner::WORDS }>(&tasks::owner(&wakee).to_words());
        tip.set_words::<NOTES_AT, NOTES>(&[0; NOTES]);
        draft.begin(&key(&wakee), start);
    }

    /// Whether the activity of a task, or an activity on top of the idle task with interrupts off,
    /// may be on a chain.
    #[inline(always)]
    pub(super) fn may_be_on_chain(&self, guard: &Guard, current: &TaskRef<'_>) -> bool {
        let on_cpu = self.own.cpu(guard);
        on_cpu.is_running(current.address()) || on_cpu.is_calling()
    }

    /// Notes a waking when this CPU has no hot cell, or the task seems to be awake.
    #[cold]
    #[inline(never)]
    fn woken_colder(
        &self,
        guard: &Guard,
        current: TaskRef<'_>,
        wakee: TaskRef<'_>,
        now: u64,
        doubt: Option<u64>,
    ) {
        let cpu = tasks::this_cpu(guard);
        let waking = Waking::new(wakee, cpu, now, doubt);
        let mut data = [0; DATA];
        let mut chain = InData(&mut data);
        let (context, is_of_thread) = (Context::current(), || waking.is_of_thread());
        let start = self.chain(guard, context, &current, &mut chain, cpu, is_of_thread);
        let Some(start) = start else { return };
        let engine = self.core.engine();
        if !self.branch(&mut chain, &waking) {
            return engine.filtered(guard);
        }
        data[..Owner::WORDS].copy_from_slice(&tasks::owner(&wakee).to_words());
        let begin = || engine.event_in(guard, &key(&wakee), start, &data);
        match waking.doubt {
            None => _ = begin(),
            Some(leaves) => self.begin_in_doubt(guard, wakee, leaves, begin),
        }
    }

    /// Notes another cause for the tip of the task at this address. Returns whether there is such a
    /// tip. Two concurrent causes may count as one: a waker, and the interrupt of a thread.
    pub(super) fn merge(&self, guard: &Guard, task: u64) -> bool {
        const AT: usize = NOTES_AT + MERGED;
        let more = |tip: &Tip<'_>| tip.word(AT).wrapping_add(1);
        let engine = self.core.engine();
        engine.note(guard, &[task], |_| true, AT, more)
    }

    /// Continues this chain to the woken task, for a new tip. Returns whether that is wanted.
    #[inline(always)]
    fn branch(&self, chain: &mut impl Words, waking: &Waking<'_>) -> bool {
        let wakee = waking.wakee;
        let is_hop = wakee.is_of_kernel();
        let mut is_target = !is_hop;
        // Usually there is no filter.
        let is_wanted = if self.core.are_default(Self::ORIGINS | TARGETS) {
            !chain.counts().is_refused()
        } else {
            is_target = self.is_target(wakee, chain.first_cpu());
            self.is_origin_wanted(chain) && (is_target || is_hop)
        };
        if !is_wanted {
            return false;
        }
        chain.set(PLACE, tasks::place(&wakee, waking.step.cpu).to_word());
        chain.push_and(waking.now, waking.step, |counts| {
            counts.set_target(is_target);
            match waking.doubt {
                None => counts.set_state(State::Waking),
                Some(leaves) => counts.set_doubt(leaves),
            }
        });
        if self.own.keeps_times() {
            // The CPU where the wakee ran last; if the wakee is moved, `moved` is called next.
            let waits_for = wakee.cpu();
            if let Some(spent) = self.own.begin_wait(waits_for, waking.now) {
                chain.push_wait(waits_for, spent);
            }
        }
        true
    }

    /// Whether the filter accepts a woken task as a target, on a chain that began on CPU
    /// `first_cpu`.
    #[inline(never)]
    fn is_target(&self, wakee: TaskRef<'_>, first_cpu: u32) -> bool {
        let core = &self.core;
        // By default, all threads of programs are targets.
        if core.are_default(TARGETS) {
            return !wakee.is_of_kernel();
        }
        // The irq_work thread also wakes our readers.
        !(wakee.is_kthread() && wakee.comm()[0] == IRQ_WORK)
            && (!wakee.is_user_worker() || core.value(tasks::KTHREADS) != 0)
            && tasks::may_be_wanted(core, &wakee)
            && tasks::is_wanted(core, &wakee, first_cpu)
            && self.is_urgent(&wakee)
    }

    /// Whether a task has the priority required of a target.
    pub(super) fn is_urgent(&self, task: &TaskRef<'_>) -> bool {
        let most = self.core.value(PARAM_PRIO);
        most == ALL || i64::from(task.prio()) <= most as i64
    }
}
