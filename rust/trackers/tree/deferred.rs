// SPDX-License-Identifier: GPL-2.0

//! Deferred work: items for workers, functions for other CPUs, timers of the wheel for later ticks.
//!
//! ```text
//!   on a chain                                    in a worker
//!   queued ----> (tip of the work) --------------> started: (tip of the worker) --> its end: gone
//!     |                                                ^
//!     +--> waking of a worker --> its own tip ---------+ its steps since the work was queued
//!
//!   requested -> (tip of the call) ----> called on the other CPU: (percpu) --> its end
//! ```
//!
//! A worker is woken for a queue, and takes the first item from it: only `workqueue_execute_start`
//! shows which item that is. So from that tracepoint to the end of the work, the worker has the
//! chain of the work, or none. Of the chain on which the worker was woken, only the steps that show
//! how the worker came to the work are kept. But a worker that is the target itself (`kthreads=1`)
//! keeps its own chain. A work item that a softirq executes (`WQ_BH`) is on the chain of that
//! softirq.
//!
//! A queued work item may be cancelled, which has no tracepoint. Its tip is dropped when the work
//! is queued again, or by an occasional search, which reads the memory of the work as the tracker
//! `workqueue` does. The tip is not reported.
//!
//! The work items of kthread workers are followed in the same way, by their own tracepoints. A
//! kthread worker is woken only if it is idle: these tracepoints are the only link to a work item
//! that is queued while the worker is busy.
//!
//! "Trap N" is a row of the table of kernel traps in Documentation/design/testing.md.
//!
//! # Two CPUs
//!
//! A work item is queued at most once at a time, and is queued and taken under the lock of its pool
//! or worker: the worker finds the tip, if it was made. The tip gets the worker as its new key,
//! under which nothing else is live then except a tip in doubt: the worker has dropped its own tip.
//! The search may find a work item just as the item is taken and queued again. So the search drops
//! a tip only if the tip still has the queueing time that the search has read. A call is queued
//! under the lock of its structure, and taken by the CPU that it was queued for.
//!
//! # Contexts
//!
//! See sys/deferred.rs and sys/workqueue.rs.

use super::{
    chain::{Chain, Counts, Kind, Look, State, Step, Words, COUNTS, LAST, NOTES, PLACE},
    doubts::is_running_copy,
    follows, tasks,
    tips::{counts, is_running, key, settled_chain, InTip, Tip},
    Data, Guard, InData, Probes, Timing, CALLS, CHAIN_AT, DATA, NOTES_AT, PARAM_HOPS, WHEEL, WORKS,
};
use crate::{
    alert::record::{actor::Place, Owner},
    engine::{platform::Platform, step::Next, Verdict},
    sys::{
        deferred::{self, Followed},
        kthread_work,
        platform::Kernel,
        task::{Context, TaskRef},
        timer::Timer,
        waker::is_waking,
        workqueue::{self, Queue, Work}, //
    },
};

/// The lowest bits of the keys of work items, calls, and work items of kthread workers. No task is
/// at an address with any of these bits.
const WORK: u64 = 1;
const CALL: u64 = 2;
const KTHREAD_WORK: u64 = 3;
const BITS: u64 = 3;

/// Pauses between searches for cancelled work items, in nanoseconds: `SOON` while work items wait,
/// `LATER` while none does.
const SOON: u64 = 1_000_000_000;
const LATER: u64 = 4_000_000_000;

/// Returns the function of a queued work item or call: the subject of its last step.
fn function(chain: &impl Look) -> u64 {
    chain.last_subject()
}

/// Returns the chain in the data of an event.
fn chain_in(data: &Data) -> &Chain {
    // Never the default: the array is long enough.
    data[CHAIN_AT..]
        .first_chunk()
        .unwrap_or(&[0; super::chain::WORDS])
}

/// Whether an event is a work item that is no longer queued, though no worker has taken it. Also
/// true of a work item that is just being queued.
pub(super) fn is_cancelled(key: &[u64; 1], data: &Data) -> bool {
    let (work, chain) = (key[0] & !BITS, chain_in(data));
    if chain.counts().state() != State::Queued {
        return false;
    }
    match key[0] & BITS {
        WORK => !workqueue::is_queued(work, function(chain)),
        KTHREAD_WORK => !kthread_work::is_queued(work, function(chain)),
        _ => false,
    }
}

impl deferred::Observer for Probes {
    fn followed(&self) -> Followed {
        let [works, calls, wheel] =
            [WORKS, CALLS, WHEEL].map(|hop| follows(self.core.halves(PARAM_HOPS), hop));
        Followed {
            works,
            calls,
            wheel,
        }
    }

    fn call_requested(&self, guard: &Guard, call: u64, function: u64) {
        TaskRef::with_current(|current| {
            self.defer(guard, &current, call | CALL, Kind::Call, function, || false);
        });
    }

    fn call_entered(&self, guard: &Guard, call: u64, function: u64) {
        let enter = |tip: &mut Tip<'_>| {
            let (now, cpu) = (Kernel::now(), tasks::this_cpu(guard));
            let start = tip.start();
            let chain = InTip(tip.again());
            self.own
                .enter_call(guard, start, &chain, function, cpu, now);
            Next::Gone
        };
        let engine = self.core.engine();
        engine.step(guard, &[call | CALL], |_| true, enter, |_| ());
    }

    fn call_left(&self, guard: &Guard) {
        self.own.cpu(guard).set_calling(false);
    }

    fn wheel_timer_entered(&self, guard: &Guard, timer: Timer, is_deferrable: bool) {
        let timing = if is_deferrable {
            Timing::Any
        } else {
            Timing::Tick
        };
        if Context::current() == Context::Softirq {
            self.enter_wheel_timer(guard, &timer, timing);
        }
    }

    fn wheel_timer_left(&self, guard: &Guard) {
        if Context::current() == Context::Softirq {
            self.leave_soft_timer(guard);
        }
    }
}

impl workqueue::Observer for Probes {
    fn queued(&self, guard: &Guard, work: &Work<'_>, _: &Queue<'_>) {
        let is_current = || work.is_current();
        self.work_queued(guard, work.id() | WORK, work.function(), is_current);
    }

    fn started(&self, work: &Work<'_>) {
        self.work_started(work.id() | WORK, work.function());
    }

    fn ended(&self, _: u64) {
        self.work_ended();
    }
}

impl kthread_work::Observer for Probes {
    fn kthread_work_queued(
        &self,
        guard: &Guard,
        work: u64,
        function: u64,
        is_current: impl FnOnce() -> bool,
    ) {
        self.work_queued(guard, work | KTHREAD_WORK, function, is_current);
    }

    fn kthread_work_started(&self, work: u64, function: u64) {
        self.work_started(work | KTHREAD_WORK, function);
    }

    fn kthread_work_ended(&self) {
        self.work_ended();
    }
}

impl Probes {
    /// Tracks a work item that is queued. `is_current`: whether the current task executes it.
    fn work_queued(
        &self,
        guard: &Guard,
        key: u64,
        function: u64,
        is_current: impl FnOnce() -> bool,
    ) {
        TaskRef::with_current(|current| {
            // A work item is queued at most once at a time: if there is a tip, the item was
            // cancelled, perhaps by the function that now queues it again (mod_delayed_work()).
            let engine = self.core.engine();
            engine.step(guard, &[key], |_| true, |_| Next::Gone, |_| ());
            self.defer(guard, &current, key, Kind::Queue, function, is_current);
        });
    }

    /// Notes that the current task starts a work item.
    fn work_started(&self, key: u64, function: u64) {
        let guard = Kernel::guard();
        TaskRef::with_current(|current| self.start_work(&guard, &current, key, function));
    }

    /// Notes that the current task has finished its work.
    fn work_ended(&self) {
        let guard = Kernel::guard();
        TaskRef::with_current(|current| {
            let on_cpu = self.own.cpu(&guard);
            if Context::current() != Context::Task || !on_cpu.is_running(current.address()) {
                return;
            }
            let is_meant = |tip: &Tip<'_>| is_running(tip) && !counts(tip).is_target();
            let engine = self.core.engine();
            let ended = engine.step(&guard, &key(&current), is_meant, |_| Next::Gone, |_| ());
            if ended.is_some() {
                on_cpu.set_running(0);
            }
        });
    }

    /// Makes a tip for work deferred to another context, if the current activity is on a wanted
    /// chain. `is_current`: whether the work is a work item that the current task executes.
    fn defer(
        &self,
        guard: &Guard,
        current: &TaskRef<'_>,
        key: u64,
        kind: Kind,
        subject: u64,
        is_current: impl FnOnce() -> bool,
    ) {
        let context = Context::current();
        let may_be = context != Context::Task || self.may_be_on_chain(guard, current);
        // Work items and calls that are deferred while our own readers are woken are ignored (trap
        // 9).
        if !may_be || is_waking(guard) {
            return;
        }
        // A work item that queues itself continues its work, and the cause of the remaining work is
        // unknown. The chain of an item that always does so would never end. An item with another
        // function is the next step of the work, or another item at the same address.
        if context == Context::Task && is_current() && self.may_execute(guard, current, subject) {
            return;
        }
        let (now, cpu) = (Kernel::now(), tasks::this_cpu(guard));
        let step = Step { kind, cpu, subject };
        let engine = self.core.engine();
        let Some(mut draft) = engine.draft(guard) else {
            let mut data = [0; DATA];
            let mut chain = InData(&mut data);
            if let Some(start) = self.chain_on(guard, context, current, &mut chain, now, step) {
                engine.event_in(guard, &[key], start, &data);
            }
            return;
        };
        let mut chain = InTip(draft.open());
        let start = self.chain_on(guard, context, current, &mut chain, now, step);
        let Some(start) = start else { return };
        let InTip(mut tip) = chain;
        tip.set_words::<0, { Owner::WORDS }>(&[0; Owner::WORDS]);
        tip.set_words::<NOTES_AT, NOTES>(&[0; NOTES]);
        draft.begin(&[key], start);
    }

    /// Whether the work item that the current task executes has this function, or an unknown one,
    /// see [`Look::executed`].
    #[cold]
    #[inline(never)]
    fn may_execute(&self, guard: &Guard, current: &TaskRef<'_>, function: u64) -> bool {
        let engine = self.core.engine();
        let event = engine.copy_of(guard, &key(current), is_running_copy);
        let called = event.and_then(|event| chain_in(&event.data).executed());
        called.is_none_or(|called| called == function)
    }

    /// Makes the chain to deferred work. Returns its start, if it is wanted.
    #[inline(always)]
    fn chain_on(
        &self,
        guard: &Guard,
        context: Context,
        current: &TaskRef<'_>,
        chain: &mut impl Words,
        now: u64,
        step: Step,
    ) -> Option<u64> {
        let start = self.chain(guard, context, current, chain, step.cpu, || false)?;
        if !self.is_origin_wanted(chain) {
            return None;
        }
        let place = Place {
            cpu: step.cpu,
            prio: -1,
            policy: 0,
        };
        chain.set(PLACE, place.to_word());
        chain.push_and(now, step, |counts| counts.set_state(State::Queued));
        Some(start)
    }

    /// Moves the tip of a work item to the current task, a worker that starts the item.
    fn start_work(&self, guard: &Guard, current: &TaskRef<'_>, waiting: u64, called: u64) {
        let (engine, waiting) = (self.core.engine(), [waiting]);
        let gone = |key: &[u64; 1], is_meant: &dyn Fn(&Tip<'_>) -> bool| {
            engine.step(guard, key, is_meant, |_| Next::Gone, |_| ())
        };
        if Context::current() != Context::Task {
            gone(&waiting, &|_| true);
            return;
        }
        let (now, cpu) = (Kernel::now(), tasks::this_cpu(guard));
        let on_cpu = self.own.cpu(guard);
        let mut before = None;
        if on_cpu.is_running(current.address()) {
            let take = |tip: &mut Tip<'_>| {
                // With kthreads=1 the worker may be the target.
                if counts(tip).is_target() {
                    return Next::Keep;
                }
                before = Some((tip.start(), settled_chain(tip)));
                Next::Gone
            };
            if engine.step(guard, &key(current), is_running, take, |_| ()) == Some(Next::Keep) {
                gone(&waiting, &|_| true);
                return;
            }
        }
        let found = engine.rename(guard, &waiting, &key(current), |tip| {
            let mut chain = InTip(tip.again());
            if function(&chain) != called {
                return Verdict::Gone;
            }
            if let Some((start, before)) = &before {
                let (since, from) = (chain.last(), before.last_of(Kind::Waking));
                chain.append_from(*start, before, since, from);
            }
            let (kind, subject) = (Kind::Work, called);
            chain.set(PLACE, tasks::place(current, cpu).to_word());
            chain.push_and(now, Step { kind, cpu, subject }, |counts| {
                counts.set_state(State::Running);
            });
            tip.set_words::<0, { Owner::WORDS }>(&tasks::owner(current).to_words());
            Verdict::Keep
        });
        let goes_on = found == Some(Verdict::Keep);
        on_cpu.set_running(if goes_on { current.address() } else { 0 });
    }

    /// Drops the tips of cancelled work items, at least [`SOON`] after the queueing. Returns the
    /// nanoseconds until the next search; `None` if work items are not followed, or the instance is
    /// off. May sleep.
    pub(super) fn drop_cancelled(&self) -> Option<u64> {
        if !follows(self.core.halves(PARAM_HOPS), WORKS) || !self.core.is_enabled() {
            return None;
        }
        let engine = self.core.engine();
        let mut waits = false;
        // This cannot fail, since the closure does not.
        let _ = engine.each_pending(|event| {
            let is_queued = Counts(event.data[CHAIN_AT + COUNTS]).state() == State::Queued;
            waits |= is_queued && [WORK, KTHREAD_WORK].contains(&(event.key[0] & BITS));
            // A work item of a kthread worker is put on its list shortly after its tip is made.
            let age = Kernel::now().saturating_sub(event.data[CHAIN_AT + LAST]);
            if age >= SOON && is_cancelled(&event.key, &event.data) {
                // Drops the tip only if the work has not been queued again.
                let (start, last) = (event.start, event.data[CHAIN_AT + LAST]);
                let is_it = |tip: &Tip<'_>| {
                    tip.start() == start
                        && tip.word(CHAIN_AT + LAST) == last
                        && counts(tip).state() == State::Queued
                };
                let guard = Kernel::guard();
                engine.step(&guard, &event.key, is_it, |_| Next::Gone, |_| ());
            }
            Ok(())
        });
        Some(if waits { SOON } else { LATER })
    }
}
