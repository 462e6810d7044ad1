// SPDX-License-Identifier: GPL-2.0

//! Tips: tasks on a chain, from being woken to its end.
//!
//! ```text
//!                   woken              switched in                   target, and at its end
//!   asleep, or no tip ---> Waking ----------------> Running ------------------------------> alert
//!                                                   |   ^  |
//!                             waits for a lock: note|   |  | a thread that has done its work
//!                                        woken: note+---+  +------------------------------> gone
//!                                        (or preempted) switched in
//! ```
//!
//! # Two CPUs
//!
//! A task is switched in and out on its CPU, and woken on another one, under its own lock, so its
//! wakers come one after another. Nothing orders a waker and the CPU of the task but this: what a
//! waker does that finds the task asleep comes before the task is switched in again, and after it
//! has left the runqueue, though perhaps before `sched_switch` tells of that. So each has its part:
//!
//! - The CPU of the task changes and ends the tip, as its owner. Only a tip that is `Running` is
//!   switched out: one that is not is already the next one, from a waker that was faster.
//! - A waker that finds the task asleep makes a new tip. If the task sleeps in the middle of its
//!   work, by its state, it only notes the waking on the tip that there is.
//! - A waker that finds it awake only notes that on the tip that there is. The task may go to sleep
//!   all the same in the next moment, so the waker makes a new tip, too, which is in doubt
//!   (doubts.rs).
//!
//! - While the task waits for a CPU, it may be moved to another one. Either its waker does that,
//!   before the task is on a runqueue, or a CPU that holds the locks of both runqueues, so the task is
//!   not switched in meanwhile. What is noted of the wait moves along.
//!
//! So no two claim a tip, and what is noted hides nothing from the owner (engine/tracker/step.rs).
//! The new tip is not a begin that drops others of its key: the one that it would find is about to
//! end in `sched_switch`, with an alert perhaps. A task that ends takes its tip with it; should an
//! address be used again all the same, the start time of the task differs.

use super::{
    chain::{
        self, note, task, Chain, Counts, Kind, Look, Spent, State, Step, Words, COUNTS, LAST,
        MERGED, NOTES, PLACE, SLEPT, WAKER, WOKEN,
    },
    owner,
    percpu::Logs,
    settled,
    show::{self, End},
    tasks, with_chain, Extra, Guard, InData, Probes, BLOCKED, CHAIN_AT, DATA, END, NOTES_AT, PRIO,
    SWITCH, USER,
};
use crate::{
    alert::record::Owner,
    control::ALL,
    engine::{
        platform::Platform,
        rcu_ht::Hits,
        tracker::{step::Next, Late, Open}, //
    },
    sys::{
        causes,
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

/// A thread whose chain has left out this many steps when it sleeps in the middle of its work has jobs
/// of which each begins so.
const ENDLESS: u64 = 64;

pub(super) type Tip<'a> = Open<'a, 1, DATA>;

/// The key of the tip of a task.
#[inline(always)]
pub(super) fn key(task: &TaskRef<'_>) -> [u64; 1] {
    [task.address()]
}

#[inline(always)]
pub(super) fn subject(of: &TaskRef<'_>) -> u64 {
    task(of.tid(), of.prio())
}

#[inline(always)]
pub(super) fn counts(tip: &Tip<'_>) -> Counts {
    Counts(tip.word(CHAIN_AT + COUNTS))
}

/// The chain of a tip, without what is noted; or of an event that may begin.
pub(super) struct InTip<'a>(pub(super) Tip<'a>);

impl Look for InTip<'_> {
    #[inline(always)]
    fn get(&self, at: usize) -> u64 {
        self.0.word(CHAIN_AT + at)
    }
}

impl Words for InTip<'_> {
    #[inline(always)]
    fn set(&mut self, at: usize, word: u64) {
        self.0.set_word(CHAIN_AT + at, word);
    }
}

/// The chain of a tip, read-only, without what is noted.
struct Seen<'a, 'b>(&'a Tip<'b>);

impl Look for Seen<'_, '_> {
    #[inline(always)]
    fn get(&self, at: usize) -> u64 {
        self.0.word(CHAIN_AT + at)
    }
}

/// Whether a tip's chain is all that is known of it, but for the number of wakings.
#[inline(always)]
pub(super) fn is_settled(tip: &Tip<'_>) -> bool {
    tip.word(NOTES_AT + SLEPT) | tip.word(NOTES_AT + WOKEN) == 0
}

/// The parameters that say which tasks are targets.
const TARGETS: u64 = tasks::TASKS | 1 << tasks::KTHREADS | 1 << PRIO;

/// Another task is woken.
struct Waking<'a> {
    wakee: TaskRef<'a>,
    now: u64,
    step: Step,
    /// How often it had left its CPU of itself, if it seems to be awake.
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

    /// Whether it is the thread of an interrupt, which is woken after its handler.
    #[inline(always)]
    fn is_of_thread(&self) -> bool {
        self.wakee.is_kthread() && self.wakee.comm()[0] & IRQ_MASK == IRQ
    }
}

/// A step of a task that has a tip.
#[derive(Clone, Copy)]
enum Taken<'a> {
    /// It was preempted or throttled, on a CPU that has spent so much, if that is known; the task that
    /// runs instead.
    Out(Step, &'a TaskRef<'a>, Option<Spent>),
    /// It was switched in on this CPU; whether it is named; the same, and who had the CPU if the wait
    /// was at least so long.
    Switch(u32, &'a TaskRef<'a>, bool, Option<(Spent, Logs<'a>, u64)>),
}

impl Taken<'_> {
    /// Appends it to a chain, at `now`.
    #[inline(always)]
    fn append_to(self, chain: &mut impl Words, now: u64) {
        match self {
            Taken::Out(step, next, spent) => {
                if step.kind == Kind::Preempted && !next.is_idle() {
                    chain.push_named(now, step, next.comm());
                } else {
                    chain.push(now, step);
                }
                if step.kind == Kind::Preempted {
                    let mut counts = chain.counts();
                    counts.add_preempted();
                    chain.set_counts(counts);
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
                if spent.is_none() && !is_named {
                    return chain.push_and(now, step, runs);
                }
                if let Some((spent, logs, least)) = spent {
                    let name = is_named.then(|| next.comm());
                    chain.push_waited(now, step, name, spent, |since, noted| {
                        logs.rivals(since, noted, least)
                    });
                } else {
                    chain.push_named(now, step, next.comm());
                }
                let mut counts = chain.counts();
                runs(&mut counts);
                chain.set_counts(counts);
            }
        }
    }

    /// Appends the step to a tip: in place, unless something is noted.
    #[inline(always)]
    fn append(self, tip: &mut Tip<'_>, now: u64) {
        if is_settled(tip) {
            self.append_to(&mut InTip(tip.again()), now);
        } else {
            self.append_unsettled(tip.again(), now);
        }
    }

    /// By value, so that the other case keeps all of it in registers.
    #[inline(never)]
    fn append_unsettled(self, mut tip: Tip<'_>, now: u64) {
        let mut chain = settled_chain(&tip);
        self.append_to(&mut chain, now);
        store(&mut tip, &chain);
    }
}

/// When the last step was taken, without those that are noted.
#[inline(always)]
pub(super) fn last(tip: &Tip<'_>) -> u64 {
    tip.word(CHAIN_AT + LAST)
}

#[inline(always)]
fn notes(tip: &Tip<'_>) -> [u64; NOTES] {
    core::array::from_fn(|at| tip.word(NOTES_AT + at))
}

/// Whether the tip belongs to a task that was switched in; `false` for the next tip of that task.
#[inline(always)]
pub(super) fn is_running(tip: &Tip<'_>) -> bool {
    is_of_running(counts(tip))
}

/// Whether a tip with these counts belongs to a task that was switched in.
#[inline(always)]
pub(super) fn is_of_running(counts: Counts) -> bool {
    matches!(counts.state(), State::Running | State::Leaving)
}

/// Whether it is in doubt (doubts.rs).
#[inline(always)]
pub(super) fn is_in_doubt(tip: &Tip<'_>) -> bool {
    counts(tip).state() == State::Doubted
}

/// Whether it belongs to this task, and not to an earlier one at this address.
#[inline(always)]
fn is_of(tip: &Tip<'_>, task: &TaskRef<'_>) -> bool {
    let owner = Owner::from_words([tip.word(0), 0, 0]);
    owner.start_mark == Owner::start_mark_of(task.start_time())
}

/// Whether a task that sleeps so goes on with its work afterwards (trap 5).
#[inline(always)]
pub(super) fn goes_on(sleep: Sleep) -> bool {
    sleep.is_lock_wait() || sleep.is_uninterruptible()
}

/// Whether it is a thread that runs softirqs.
#[inline(always)]
pub(super) fn is_softirq_thread(task: &TaskRef<'_>) -> bool {
    task.is_kthread() && [KSOFTIRQD, KTIMERS].contains(&task.comm()[0])
}

/// Stores the chain of a tip whose notes it contains. The number of wakings belongs to the wakers.
fn store(tip: &mut Tip<'_>, chain: &Chain) {
    const _: () = assert!(CHAIN_AT + chain::WORDS == NOTES_AT && MERGED == NOTES - 1);
    tip.set_words::<CHAIN_AT, { chain::WORDS }>(chain);
    tip.set_words::<NOTES_AT, MERGED>(&[0; MERGED]);
}

impl Probes {
    /// Another task is woken.
    #[inline(never)]
    pub(super) fn woken(&self, guard: &Guard, current: TaskRef<'_>, wakee: TaskRef<'_>) {
        // All that is called is called last, so this needs no frame.
        if may_be_waking(guard) {
            return self.woken_meanwhile(guard, current, wakee);
        }
        self.woken_by_another(guard, current, wakee);
    }

    /// Another task is woken while our readers may be woken.
    #[cold]
    #[inline(never)]
    fn woken_meanwhile(&self, guard: &Guard, current: TaskRef<'_>, wakee: TaskRef<'_>) {
        // Our own readers (trap 9).
        if !is_waking(guard) {
            self.woken_by_another(guard, current, wakee);
        }
    }

    /// Another task is woken, which is not one of our readers.
    #[inline(always)]
    fn woken_by_another(&self, guard: &Guard, current: TaskRef<'_>, wakee: TaskRef<'_>) {
        // One that wakes itself keeps running, in spite of its state.
        if current.is(&wakee) {
            return;
        }
        if is_softirq_thread(&wakee) {
            return self.softirq_thread_woken(guard, wakee);
        }
        self.task_woken(guard, current, wakee);
    }

    /// After an interrupt, on top of a task that has nothing to do with it (trap 2). The chain is that of
    /// the softirq.
    #[inline(never)]
    fn softirq_thread_woken(&self, guard: &Guard, wakee: TaskRef<'_>) {
        if wakee.is_awake() {
            return;
        }
        let (on_cpu, task, subject) = (self.own.cpu(guard), wakee.address(), subject(&wakee));
        if !on_cpu.wake_known_thread(task, subject) && wakee.cpu() == tasks::this_cpu(guard) {
            on_cpu.wake_thread(task, subject, wakee.comm());
        }
    }

    /// A task that runs no softirqs is woken.
    #[inline(never)]
    fn task_woken(&self, guard: &Guard, current: TaskRef<'_>, wakee: TaskRef<'_>) {
        let cpu = tasks::this_cpu(guard);
        if self.has_doubts() {
            self.forget_doubt(guard, wakee);
        }
        // Read between two looks: if it is awake in the second one, it had not left before.
        let seen = wakee.is_awake().then(|| wakee.leaves());
        let doubt = seen.filter(|_| wakee.is_awake());
        let sleep = Sleep::of_sleeper(&wakee);
        if doubt.is_some() {
            // If it continues, this has not made it run (trap 8).
            if self.merge(guard, wakee.address()) {
                self.core.count_extra(guard, Extra::Merged as usize);
            }
        } else if goes_on(sleep) || sleep.is_frozen() {
            // It slept in the middle of its work, and goes on with that. (What the freezer keeps
            // has no tip if it slept otherwise.)
            let tracker = self.core.tracker();
            // The owner of a lock, for instance. An interrupt is no task.
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
            if tracker.note_words(guard, &key(&wakee), is_running, NOTES_AT + WAKER, waking) {
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
        let Some(mut draft) = self.core.tracker().draft(guard) else {
            return self.woken_colder(guard, current, wakee, now, None);
        };
        let waking = Waking::new(wakee, cpu, now, None);
        let mut chain = InTip(draft.open());
        let is_of_thread = || waking.is_of_thread();
        // Asked for once more, where it is needed: before, it would have to be kept.
        let context = Context::current();
        let start = self.chain(guard, context, &current, &mut chain, cpu, is_of_thread);
        let Some(start) = start else { return };
        if !self.branch(&mut chain, &waking) {
            return self.core.tracker().filtered(guard);
        }
        let InTip(mut tip) = chain;
        tip.set_words::<0, { Owner::WORDS }>(&tasks::owner(&wakee).to_words());
        tip.set_words::<NOTES_AT, NOTES>(&[0; NOTES]);
        draft.begin(&key(&wakee), start);
    }

    /// Whether what is done here by a task, or on top of the idle one with interrupts off, may be on
    /// a chain.
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
        let tracker = self.core.tracker();
        if !self.branch(&mut chain, &waking) {
            return tracker.filtered(guard);
        }
        data[..Owner::WORDS].copy_from_slice(&tasks::owner(&wakee).to_words());
        let begin = || tracker.event_in(guard, &key(&wakee), start, &data);
        match waking.doubt {
            None => _ = begin(),
            Some(leaves) => self.begin_in_doubt(guard, wakee, leaves, begin),
        }
    }

    /// Notes another cause for the tip of the task at this address. Returns whether there
    /// is one. Two at the same time may count as one: a waker, and the interrupt of a thread.
    pub(super) fn merge(&self, guard: &Guard, task: u64) -> bool {
        const AT: usize = NOTES_AT + MERGED;
        let more = |tip: &Tip<'_>| tip.word(AT).wrapping_add(1);
        let tracker = self.core.tracker();
        tracker.note(guard, &[task], |_| true, AT, more)
    }

    /// A task is woken on this chain: continues it, for a new tip. Returns whether that is wanted.
    #[inline(always)]
    fn branch(&self, chain: &mut impl Words, waking: &Waking<'_>) -> bool {
        let wakee = waking.wakee;
        let is_hop = wakee.is_of_kernel();
        let mut is_target = !is_hop;
        // Mostly there is no filter.
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
            // The CPU where it has been; should it move, `moved` is next.
            let waits_for = wakee.cpu();
            if let Some(spent) = self.own.begin_wait(waits_for, waking.now) {
                chain.push_wait(waits_for, spent);
            }
        }
        true
    }

    /// Whether the filter accepts a task that is woken, on a chain that began on this CPU, as a target.
    #[inline(never)]
    fn is_target(&self, wakee: TaskRef<'_>, first_cpu: u32) -> bool {
        let core = &self.core;
        // Mostly all of those that are not of the kernel are.
        if core.are_default(TARGETS) {
            return !wakee.is_of_kernel();
        }
        // The thread of irq_work wakes our readers, too.
        !(wakee.is_kthread() && wakee.comm()[0] == IRQ_WORK)
            && (!wakee.is_user_worker() || core.value(tasks::KTHREADS) != 0)
            && tasks::may_be_wanted(core, &wakee)
            && tasks::is_wanted(core, &wakee, first_cpu)
            && self.is_urgent(&wakee)
    }

    /// Whether a task has the priority that a target must have.
    pub(super) fn is_urgent(&self, task: &TaskRef<'_>) -> bool {
        let most = self.core.value(PRIO);
        most == ALL || i64::from(task.prio()) <= most as i64
    }

    /// A task with a tip is switched out.
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
        let (tracker, key) = (self.core.tracker(), key(&prev));
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
                    // What it waits for need not have to do with the origin.
                    Kind::Reads
                } else {
                    Kind::Sleep
                };
                note(kind, cpu, last(tip), now)
            };
            tracker.note(guard, &key, is_running, NOTES_AT + SLEPT, sleeps);
            if is_endless {
                self.give_up(guard, &prev);
            }
            return;
        }
        let change = |tip: &mut Tip<'_>| {
            if state.is_runnable() && !state.is_dead() {
                self.takes_out(tip, (cpu, now), &prev, &next);
                Next::Keep
            } else if !state.is_dead() && counts(tip).is_target() && self.core.value(END) == BLOCKED
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
        // In line: it has a tip.
        if let Some((hash, hits)) = tracker.seek(guard, &key) {
            tracker.step_sought(guard, hash, hits, &key, is_running, change, report);
        }
    }

    /// Appends to the tip of a task that could run that it is switched out.
    #[inline(always)]
    pub(super) fn takes_out(
        &self,
        tip: &mut Tip<'_>,
        (cpu, now): (u32, u64),
        prev: &TaskRef<'_>,
        next: &TaskRef<'_>,
    ) {
        // A limit is the reason then, whatever runs instead.
        let (kind, subject) = if prev.is_throttled() {
            (Kind::Throttled, subject(prev))
        } else {
            (Kind::Preempted, subject(next))
        };
        let spent = self.own.begin_wait(cpu, now);
        Taken::Out(Step { kind, cpu, subject }, next, spent).append(tip, now);
    }

    /// A task is switched in, which is not the idle one; none that runs is known to have a tip yet.
    #[inline(always)]
    pub(super) fn switched_in(&self, guard: &Guard, next: TaskRef<'_>) {
        if let Some((hash, hits)) = self.core.tracker().seek(guard, &key(&next)) {
            self.switched_in_on_chain(guard, next, hash, hits);
        }
    }

    /// Drops the chain of a thread that only seems to be in the middle of its work. If it is being woken,
    /// that has been noted, or begins its next chain.
    #[cold]
    #[inline(never)]
    fn give_up(&self, guard: &Guard, prev: &TaskRef<'_>) {
        let tracker = self.core.tracker();
        let drop = |_: &mut Tip<'_>| Next::Gone;
        if tracker.step(guard, &key(prev), is_running, drop, |_| ()) == Some(Next::Gone) {
            self.core.count_extra(guard, Extra::Endless as usize);
        }
    }

    /// A task that may have a tip is switched in.
    #[inline(never)]
    fn switched_in_on_chain(&self, guard: &Guard, next: TaskRef<'_>, hash: u64, hits: Hits<'_>) {
        let found = self.core.tracker().step_sought(
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

    /// A task with a tip is switched in.
    #[inline(always)]
    fn switch_in(&self, guard: &Guard, tip: &mut Tip<'_>, next: &TaskRef<'_>) -> Next {
        if !is_of(tip, next) {
            return Next::Gone;
        }
        let now = Kernel::now();
        let counts = counts(tip);
        let (mut is_end, mut leaves) = (false, false);
        match self.core.value(END) {
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
        // It was named when it was switched in first.
        let state = chain::state(counts, &notes(tip));
        let is_named = !matches!(state, State::Running | State::Leaving);
        let cpu = tasks::this_cpu(guard);
        let spent = self.spent_here(guard, now);
        Taken::Switch(cpu, next, is_named, spent).append(tip, now);
        if leaves {
            self.leaves(guard, tip, now);
        }
        Next::Keep
    }

    /// A task that may have a tip will be on another CPU. It is not switched in meanwhile, and no one
    /// else makes a step of a tip that waits: see "Two CPUs". One in doubt is left alone, since the next
    /// waker has to find it: if the task is moved, its wait remains unknown.
    pub(super) fn moved(&self, guard: &Guard, task: &TaskRef<'_>, to: u32) {
        let waits = |tip: &Tip<'_>| !is_in_doubt(tip) && Seen(tip).is_waiting();
        let change = |tip: &mut Tip<'_>| {
            let now = Kernel::now();
            // The kernel has not queued it yet if it is just being woken.
            let was_queued = task.is_awake();
            InTip(tip.again()).move_wait(to, was_queued, |cpu| self.own.begin_wait(cpu, now));
            Next::Keep
        };
        let tracker = self.core.tracker();
        tracker.step(guard, &key(task), waits, change, |_| ());
    }

    /// What this CPU has spent its time on by `now`, who had it until the switch that goes on, and how
    /// long a wait must be for that to be told: a sixteenth of the threshold. A chain of steps that are
    /// all shorter would need more of them than there is room for.
    #[inline(always)]
    fn spent_here(&self, guard: &Guard, now: u64) -> Option<(Spent, Logs<'_>, u64)> {
        let logs = self.own.logs(guard)?;
        let spent = self.own.cpu(guard).spent(now);
        Some((spent, logs, self.core.tracker().threshold() / 16))
    }

    /// The chain of a tip ends now. Counts its steps.
    #[inline(always)]
    pub(super) fn ends(&self, guard: &Guard, tip: &mut Tip<'_>, now: u64) -> Next {
        if !is_settled(tip) {
            return self.ends_unsettled(guard, tip.again(), now);
        }
        let end = now.max(last(tip));
        self.own.totals.count(guard, &InTip(tip.again()), end);
        Next::End(end)
    }

    /// The chain of a tip with noted steps ends now. Counts its steps.
    #[cold]
    #[inline(never)]
    fn ends_unsettled(&self, guard: &Guard, tip: Tip<'_>, now: u64) -> Next {
        let chain = settled_chain(&tip);
        let end = now.max(chain.last());
        self.own.totals.count(guard, &chain, end);
        Next::End(end)
    }

    /// Makes the chain to the current task, which begins a work on it, if it is on one; returns when
    /// that begins. The tip goes on, for what the task does next, but no timeout reports it: the work
    /// has its own.
    pub(super) fn take_along(
        &self,
        guard: &Guard,
        current: &TaskRef<'_>,
        chain: &mut impl Words,
    ) -> Option<u64> {
        if !self.own.cpu(guard).is_running(current.address()) {
            return None;
        }
        let mut start = None;
        let take = |tip: &mut Tip<'_>| {
            chain.copy_from(&settled(&tip.data()));
            start = Some(tip.start());
            let mut counts = counts(tip);
            counts.set_begun();
            tip.set_word(CHAIN_AT + COUNTS, counts.0);
            Next::Keep
        };
        let tracker = self.core.tracker();
        tracker.step(guard, &key(current), is_running, take, |_| ());
        start
    }

    /// Reports a chain that has ended late, after the `last` step, which is taken at its end.
    #[cold]
    pub(super) fn report(
        &self,
        guard: &Guard,
        late: &Late<1, DATA>,
        end: End,
        last: impl FnOnce(&mut Chain, u64),
    ) {
        if !tasks::is_reported(&self.core, guard, &owner(&late.data)) {
            return;
        }
        let mut chain = settled(&late.data);
        let time = late.start.wrapping_add(late.delay);
        last(&mut chain, time);
        let mut late = *late;
        late.data = with_chain(&late.data, &chain);
        if chain.counts().more() > 0 {
            self.count(guard, Extra::Shortened);
        }
        let details = show::details(&late.data, end);
        self.core.raise(guard, time, &late, &details, &[]);
    }
}

/// The chain of a tip with the steps that are noted, but not the number of wakings, which stays a
/// note.
pub(super) fn settled_chain(tip: &Tip<'_>) -> Chain {
    let mut data = tip.data();
    data[NOTES_AT + MERGED] = 0;
    settled(&data)
}
