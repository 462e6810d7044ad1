// SPDX-License-Identifier: GPL-2.0

//! Tips: tasks on a chain, from the waking (wakings.rs) through switches (switches.rs) to the end.
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
//! "Trap N" is a row of the table of kernel traps in Documentation/design/testing.md.
//!
//! # Two CPUs
//!
//! A task is switched in and out on its CPU, and woken from other CPUs under its own lock, so its
//! wakers are serialised. A waker and the CPU of the task are ordered only by this: a waker that
//! finds the task asleep acts before the task is switched in again, and after the task has left the
//! runqueue, though perhaps before `sched_switch` reports the switch-out. So the two change the tip
//! by separate rules:
//!
//! - The CPU of the task changes and ends the tip, as its owner. A switch-out is only applied to a
//!   tip that is `Running` or `Leaving`: a tip in any other state is already the task's next one,
//!   from a waker that was faster.
//! - A waker that finds the task asleep makes a new tip. If the task's state shows that it sleeps
//!   in the middle of its work, the waker only notes the waking on the existing tip.
//! - A waker that finds the task awake notes that on the existing tip. The task may still go to
//!   sleep in the next moment, so the waker also makes a new tip, which is in doubt (doubts.rs).
//! - A task that waits for a lock, asleep or awake, and has no tip gets none from its waker.
//! - While the task waits for a CPU, it may be moved to another one: by its waker, before the task
//!   is on a runqueue, or by a CPU that holds the lock of the task's runqueue. That CPU first takes
//!   the task off the runqueue (`TASK_ON_RQ_MIGRATING`); only a throttled deadline task is already
//!   off it. In each case the task is put on a runqueue after the move, so it is not switched in
//!   meanwhile. The notes about the wait move with the task.
//!
//! So no two CPUs claim a tip at the same time. A note, unlike a claim, does not hide the tip from
//! its owner (engine/step.rs). The new tip does not drop an older tip of its key when it starts:
//! the older one is about to end in `sched_switch`, perhaps with an alert. The exit of a task
//! removes its tip. If an address is reused nevertheless, the start time of the task differs.

use super::{
    chain::{
        self, task, Chain, Counts, Look, State, Words, COUNTS, LAST, MERGED, NOTES, SLEPT, WOKEN,
    },
    owner, settled,
    show::{self, End},
    tasks, with_chain, Extra, Guard, Probes, CHAIN_AT, DATA, NOTES_AT,
};
use crate::{
    alert::record::Owner,
    engine::{step::Next, Late, Open},
    sys::{sched::State as Sleep, task::TaskRef},
};

pub(super) type Tip<'a> = Open<'a, 1, DATA>;

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

/// The chain of a tip without its notes, or the chain of a draft (engine/draft.rs).
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

/// The chain of a tip without its notes, read-only.
pub(super) struct Seen<'a, 'b>(pub(super) &'a Tip<'b>);

impl Look for Seen<'_, '_> {
    #[inline(always)]
    fn get(&self, at: usize) -> u64 {
        self.0.word(CHAIN_AT + at)
    }
}

/// Whether a tip has no notes besides the number of wakings.
#[inline(always)]
pub(super) fn is_settled(tip: &Tip<'_>) -> bool {
    tip.word(NOTES_AT + SLEPT) | tip.word(NOTES_AT + WOKEN) == 0
}

/// Returns the time at which the last step was taken, not counting noted steps.
#[inline(always)]
pub(super) fn last(tip: &Tip<'_>) -> u64 {
    tip.word(CHAIN_AT + LAST)
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

/// Whether the tip is in doubt (doubts.rs).
#[inline(always)]
pub(super) fn is_in_doubt(tip: &Tip<'_>) -> bool {
    counts(tip).state() == State::Doubted
}

/// Whether the tip belongs to this task, and not to an earlier one at this address.
#[inline(always)]
pub(super) fn is_of(tip: &Tip<'_>, task: &TaskRef<'_>) -> bool {
    let owner = Owner::from_words([tip.word(0), 0, 0]);
    owner.start_mark == Owner::start_mark_of(task.start_time())
}

/// Whether a task in this sleep continues its work afterwards (trap 5).
#[inline(always)]
pub(super) fn goes_on(sleep: Sleep) -> bool {
    sleep.is_lock_wait() || sleep.is_uninterruptible()
}

/// Stores the chain of a tip, in which its notes have become steps, and clears the notes except the
/// number of wakings, which belongs to the wakers.
pub(super) fn store(tip: &mut Tip<'_>, chain: &Chain) {
    const _: () = assert!(CHAIN_AT + chain::WORDS == NOTES_AT && MERGED == NOTES - 1);
    tip.set_words::<CHAIN_AT, { chain::WORDS }>(chain);
    tip.set_words::<NOTES_AT, MERGED>(&[0; MERGED]);
}

impl Probes {
    /// Ends the chain of a tip now. Counts its steps.
    #[inline(always)]
    pub(super) fn ends(&self, guard: &Guard, tip: &mut Tip<'_>, now: u64) -> Next {
        if !is_settled(tip) {
            return self.ends_unsettled(guard, tip.again(), now);
        }
        let end = now.max(last(tip));
        self.own.totals.count(guard, &InTip(tip.again()), end);
        Next::End(end)
    }

    /// Ends the chain of a tip with noted steps now. Counts its steps.
    #[cold]
    #[inline(never)]
    fn ends_unsettled(&self, guard: &Guard, tip: Tip<'_>, now: u64) -> Next {
        let chain = settled_chain(&tip);
        let end = now.max(chain.last());
        self.own.totals.count(guard, &chain, end);
        Next::End(end)
    }

    /// Makes a copy of the chain to the current task, which begins a unit of work, if the task is
    /// on a chain; returns the start of the chain.
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
            Next::Keep
        };
        let engine = self.core.engine();
        engine.step(guard, &key(current), is_running, take, |_| ());
        start
    }

    /// Notes that a unit of work has started with the chain to the current task. The tip continues
    /// for the next activity of the task, but no timeout reports it: the work has its own timeout.
    pub(super) fn has_begun_work(&self, guard: &Guard, current: &TaskRef<'_>) {
        let mark = |tip: &mut Tip<'_>| {
            let mut counts = counts(tip);
            counts.set_begun();
            tip.set_word(CHAIN_AT + COUNTS, counts.0);
            Next::Keep
        };
        let engine = self.core.engine();
        engine.step(guard, &key(current), is_running, mark, |_| ());
    }

    /// Reports a chain that has ended late; `last` appends the step at its end.
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
        last(&mut chain, late.start.wrapping_add(late.delay));
        let mut late = *late;
        late.data = with_chain(&late.data, &chain);
        if chain.counts().more() > 0 {
            self.count(guard, Extra::Shortened);
        }
        let details = show::details(&late.data, end);
        self.core.raise(guard, &late, &details, &[]);
    }
}

/// Returns the chain of a tip including its noted steps. The number of wakings stays a note.
pub(super) fn settled_chain(tip: &Tip<'_>) -> Chain {
    let mut data = tip.data();
    data[NOTES_AT + MERGED] = 0;
    settled(&data)
}
