// SPDX-License-Identifier: GPL-2.0

//! Tips in doubt: tips of tasks that were woken when they had set a sleeping state, but were still
//! awake.
//!
//! ```text
//!   waker          sched_waking            looks at on_rq
//!   --- lock ----------|--------------------------|------------------ unlock --->
//!                      |  1. it is 0: the task sleeps, and is woken
//!   task    state=S    |  2. it is 1: the task runs on, and its state is R
//!   -----------|-------+------- on_rq=0 -- sched_switch -->  in which case?
//! ```
//!
//! The tracepoint does not show which case it is. So the waker makes the tip that the task will
//! have if it goes to sleep now, and marks that tip as in doubt (`State::Doubted`). The tip is not
//! used as the task's chain, and no timeout reports it, until one of these decides the case:
//!
//! - *The next waking* (ordered after this one by the lock) drops the tip. If the task had slept,
//!   it would have been switched in since, and the tip would no longer be in doubt.
//! - *The switch to another task.* If the task is preempted, its state does not decide. If it stays
//!   runnable without having been preempted, the tip is dropped. If it goes to sleep, then in case
//!   1 the waker still holds its lock, since it waits until the task has left its CPU; or it has
//!   set the state to `WAKING`, and left the wakeup to that CPU. If neither is true, the waking is
//!   over: case 2, and the tip is dropped.
//! - *The switch to the task.* If the task has slept in between, this waking has ended that sleep:
//!   a later waking would have dropped the tip. The task has slept if it has left its CPU
//!   voluntarily, which the kernel counts before `sched_switch`. If not, the task was only
//!   preempted, and the tip is dropped.
//! - *The waker itself*, when the tip has been made: if the task has gone to sleep meanwhile, the
//!   waker's view is final, since only the waker can end that sleep. If the task has left its CPU
//!   meanwhile, and is awake, it did not sleep, and the tip is dropped. The waker reads first
//!   whether the task has left, and then whether it is awake: in the reverse order, the task might
//!   go to sleep between the two reads, and its tip would be dropped.
//!
//! A thread that goes to sleep in the middle of its work already has its own tip: it continues with
//! that tip, and the waking is a step of it. (If the waker is on no chain, it makes no tip, and
//! that step is missing.)
//!
//! A switch that claims the tip would hide it from the next waker, which must drop it. So the
//! switch reads the tip first, and claims it only if no waker can interfere: either a waker is
//! already waking the task, and will not drop the tip, or the switch itself drops it.
//!
//! A waker may be stopped between the end of its work and the unlock for so long that the task
//! sleeps again: then the tip stays until the next waking. It is counted as pending, without
//! further effect.
//!
//! # Two CPUs
//!
//! One word counts the tips in doubt: a tip is counted from before it is made until its case is
//! decided. Wakings and switches look for such a tip only if the word is not 0. Relaxed is enough.
//! A waking sees the stores of earlier wakings of the task, by the lock of the task. In case 2 the
//! waker takes the lock of the runqueue before the waking ends, as the task's CPU does for the next
//! switch. In case 1 the waker takes the lock of the runqueue that it puts the task on, from which
//! the task is then switched in. A switch that is concurrent with the waking may not see the tip.
//! In case 1 that is harmless: the switch would only have ended the doubt, so that a timeout may
//! report the tip. If the task was preempted, the switch would have left the tip in doubt. (If the
//! task stays runnable because of a signal, and another task is picked at that moment, the first
//! task's chain may begin with this waking, though that task never slept.)
//!
//! The waker first reads the number of times that the task has left, and then `on_rq`; the task's
//! CPU first stores `on_rq`, and then that number. On x86 the new number is thus never seen with
//! the old `on_rq`. Elsewhere it could be, although `on_rq` is stored far earlier in `__schedule`:
//! then the waking counts as the waking of a task that was awake.

use super::{
    chain::{note, Counts, Kind, State, COUNTS, PLACE, SLEPT, WOKEN},
    tips::{counts, goes_on, is_in_doubt, is_of_running, is_running, key, last, Tip},
    Extra, Guard, Probes, CHAIN_AT, DATA, NOTES_AT,
};
use crate::{
    alert::record::actor::Place,
    engine::{event::EventCopy, step::Next, Begin},
    sys::{
        atomic::Relaxed,
        sched::State as Sleep,
        task::TaskRef, //
    },
};
use core::sync::atomic::{fence, Ordering};

/// Whether the tip of a copied event belongs to a running task. See [`is_running`].
pub(super) fn is_running_copy(event: &EventCopy<1, DATA>) -> bool {
    is_of_running(Counts(event.data[CHAIN_AT + COUNTS]))
}

/// Returns the decision about a task that is woken from this sleep. `None` if the task then
/// continues its work: the decision depends on whether that work has a tip, which is known at the
/// switch-in.
fn has_slept(sleep: Sleep) -> Option<bool> {
    (!goes_on(sleep)).then_some(true)
}

impl Probes {
    /// Whether there may be a tip in doubt.
    #[inline(always)]
    pub(super) fn has_doubts(&self) -> bool {
        self.has_doubts_or(0)
    }

    /// Whether there may be a tip in doubt, or `word` is not 0: one test for both.
    #[inline(always)]
    pub(super) fn has_doubts_or(&self, word: u64) -> bool {
        self.own.doubts.load(Relaxed) | word != 0
    }

    /// Creates a tip in doubt, for a task that had left its CPU `leaves` times, and seems to be
    /// awake.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_in_doubt(
        &self,
        guard: &Guard,
        wakee: TaskRef<'_>,
        leaves: u64,
        begin: impl FnOnce() -> Begin,
    ) {
        self.own.doubts.fetch_add(1, Relaxed);
        if begin() != Begin::Started {
            self.own.doubts.fetch_sub(1, Relaxed);
            return;
        }
        // Full: the tip is there before the task is read again. If the task has not left, and is
        // still awake after that, the next switch sees the tip, or leaves the decision to a later
        // switch.
        fence(Ordering::SeqCst);
        // The count is read first, so that a sleep for which the task has left is seen in the read
        // of the runqueue, which begins with an acquire.
        let has_left = wakee.leaves() != leaves;
        if !wakee.is_awake() {
            let sleep = Sleep::of_sleeper(&wakee);
            self.resolve(guard, &wakee, |_| has_slept(sleep));
        } else if has_left {
            self.resolve(guard, &wakee, |_| Some(false));
        }
    }

    /// Drops the tip in doubt, if any, of a task that is woken again: the task has not slept since.
    #[cold]
    #[inline(never)]
    pub(super) fn forget_doubt(&self, guard: &Guard, wakee: TaskRef<'_>) {
        self.resolve(guard, &wakee, |_| Some(false));
    }

    /// Decides about the tip in doubt of a task that is switched out, if there is one.
    #[cold]
    #[inline(never)]
    pub(super) fn doubt_switched_out(&self, guard: &Guard, prev: TaskRef<'_>, state: Sleep) {
        if state.is_preempted() {
            return;
        }
        // The tip is not claimed: a waker that drops the tip must find it.
        let is_there = |event: &EventCopy<1, DATA>| {
            Counts(event.data[CHAIN_AT + COUNTS]).state() == State::Doubted
        };
        let engine = self.core.engine();
        if engine.copy_of(guard, &key(&prev), is_there).is_none() {
            return;
        }
        // Full: the store to on_rq comes before the read of the lock. A waker that takes the lock
        // after this read sees the task asleep, and makes no tip that could be dropped here.
        fence(Ordering::SeqCst);
        let decision = if state.is_dead() || state.is_runnable() {
            Some(false)
        } else {
            // The lock is read first: if it is free, the waking that made the tip is over, and the
            // state shows its result.
            let may_be_woken = prev.may_be_woken_now();
            if Sleep::of_sleeper(&prev).is_waking() {
                has_slept(state)
            } else {
                (!may_be_woken && state.is_that_of(&prev)).then_some(false)
            }
        };
        if decision.is_some() {
            self.resolve(guard, &prev, |_| decision);
        }
    }

    /// Decides about the tip in doubt of a task that is switched in, if there is one.
    #[cold]
    #[inline(never)]
    pub(super) fn doubt_switched_in(&self, guard: &Guard, next: TaskRef<'_>) {
        let engine = self.core.engine();
        let running = engine.copy_of(guard, &key(&next), is_running_copy);
        let mut woken = None;
        self.resolve(guard, &next, |tip| {
            let has_left = counts(tip).has_left(next.leaves());
            let cpu = Place::from_word(tip.word(CHAIN_AT + PLACE)).cpu;
            woken = has_left.then_some((cpu, last(tip)));
            Some(has_left && running.is_none())
        });
        let (Some(running), Some((cpu, time))) = (running, woken) else {
            return;
        };
        // A task that slept in the middle of its work continues it.
        let [slept, woken] = [SLEPT, WOKEN].map(|at| running.data[NOTES_AT + at]);
        if slept != 0 && woken == 0 {
            let waking = |tip: &Tip<'_>| note(Kind::Waking, cpu, last(tip), time);
            engine.note(guard, &key(&next), is_running, NOTES_AT + WOKEN, waking);
        }
    }

    /// Decides about the tip in doubt of a task, if there is one. `decide` returns whether the task
    /// has slept, or `None` to leave the tip in doubt.
    fn resolve(
        &self,
        guard: &Guard,
        task: &TaskRef<'_>,
        decide: impl FnOnce(&Tip<'_>) -> Option<bool>,
    ) {
        let engine = self.core.engine();
        let mut found = None;
        let change = |tip: &mut Tip<'_>| {
            found = decide(tip);
            match found {
                Some(true) => {
                    let mut counts = counts(tip);
                    counts.end_doubt();
                    tip.set_word(CHAIN_AT + COUNTS, counts.0);
                    Next::Keep
                }
                Some(false) => Next::Gone,
                None => Next::Keep,
            }
        };
        engine.step(guard, &key(task), is_in_doubt, change, |_| ());
        if found.is_some() {
            self.own.doubts.fetch_sub(1, Relaxed);
        }
        if found == Some(false) {
            self.core.count_extra(guard, Extra::Awake as usize);
        }
    }
}
