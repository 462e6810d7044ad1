// SPDX-License-Identifier: GPL-2.0

//! `offcpu`: how long tasks are off the CPU, where they wait, and what wakes them.
//!
//! ```text
//!   running    switched out            woken             switched in
//!   -------------->|------- blocked ---->|---- runnable ---->|---------> running
//!                  |<---------------- delay ---------------->|
//!                                        |<---- queued ----->|
//! ```
//!
//! An event starts when a task is switched out (`sched_switch`), for any reason, unless it has
//! exited. It ends when that task is switched in. In between, `sched_waking` notes the waker, and
//! its stack if the delay already exceeds the threshold. The key is the task; the filter applies to
//! the task and to the CPU that it is switched out of.
//!
//! A task that is about to sleep may be woken before its switch-out. Then there is no event yet to
//! note the waking in, and the task is runnable as soon as it has left the CPU. The event that
//! starts at this switch-out ends with a sleeping state but without a waking (`early`); early.rs
//! may have the waker.
//!
//! The stack of the task itself does not change while it is off the CPU. It is walked when the task
//! is switched in late, or when its event times out; with `by=stack`, at each end. With `ustack=1`,
//! the report of a late switch-in waits until the switch is complete and the task can read its
//! stack in user space, see arrival.rs.
//!
//! A task that is off the CPU when the instance starts gets an event at that time (stock.rs). The
//! event has the task's state at that time, so a task that has been woken, but still waits for a
//! CPU, counts as runnable.
//!
//! Kernel threads usually wait for work, so they are not tracked by default.
//!
//! # Contexts
//!
//! The probes of wakings and switches run with the lock of the wakee or of the runqueue held,
//! except when a task wakes itself, see sys/sched.rs. For the probe of arrivals, see arrival.rs.

mod arrival;
mod early;

use self::{arrival::Arrivals, early::Early};
use super::{declare::*, stock};
use crate::{
    alert::record::actor::{Actor, Place},
    engine::{step::Next, Late},
    instance::{common, probed::Own as InstanceOwn, Values},
    record::{self, fields, How, Policy},
    sys::{
        assumptions::{self, WAKING_LOCK},
        sched::{self, State, Switch},
        stack::{CompactStack, Stack, COMPACT_WORDS},
        symbol::{show_stack, Symbol}, //
    },
};
use kernel::{fmt, prelude::*, sync::Arc};

/// The values of `when`.
const BLOCKED: u64 = 1;
const PREEMPTED: u64 = 2;

tracker! {
    offcpu: "tasks, from switch-out to switch-in (key: the task)";
    key: 1;
    threshold: 1_000_000_000;
    tasks: false;
    stock: Probes::take_stock;
    own: Notes;
    counters {
        /// Delays that are not reported, since they are longer than max.
        over_max,
        /// Late ends, except those in over_max, of tasks that were woken before they were switched
        /// out: queued is then the delay, and the alert has the waker only if it is known.
        // The waker is recorded in early.rs.
        early,
    }
    check: check;
    params {
        when: ParamKind::Word(&["all", "blocked", "preempted"]) => 0,
            "only tasks that went to sleep, or only runnable ones";
        max: ParamKind::Duration => 0, "longest delay to report; 0 is no limit";
        ustack: ParamKind::Switch => 0,
            "the task's stack in user space in the alert of an end, by frame pointers",
            fixed;
    }
    keeps: [17];
    alert {
        /// The priority of the task, as in the kernel: below 100 real-time, 120 for nice 0.
        prio: i16 at 0:32,
        /// The scheduling policy: other, fifo, rr, batch, idle, deadline, ext.
        policy: Policy at 0:48,
        /// The CPU that the task was switched out of.
        from: u32 at 0,
        /// Why the task was switched out, as in the event sched_switch: S, D, I, T, t, P, R, R+.
        state: State at 1,
        /// The waker, or the task that the waking interrupt had interrupted; 0 and empty if the
        /// task was not woken, or if the waker is not known (`early` in stats).
        waker: Actor at 2,
        /// The context of the waker's CPU: task, softirq, hardirq or nmi; task without a waker.
        context: Context at 2:44,
        /// Time since the waking, in nanoseconds; 0 if the task was not woken; equal to delay if it
        /// was woken before the switch (`early` in stats).
        // In an event, the time of the waking.
        queued: u64 at 5 if alert,
        /// The stack of the waker, like stack; missing unless the delay was above the threshold at
        /// the waking.
        waker_stack: WakerStack at 6 if alert => show_waker_stack,
    }
    attach: Attached = attach,
        || tracepoint::missing(sched::probes::<Probes, false>())
            .or_else(stock::missing)
            .or_else(|| assumptions::missing(&[&WAKING_LOCK]));
    impl {
        // Before the end, `queued` is a time, not a duration.
        const LABELS: labels::Rules = labels::Rules::WITH_STACK.without(&["queued"]);

        fn settle(detail: &mut Detail, _: u64, now: u64) {
            if detail.queued != 0 {
                detail.queued = now.saturating_sub(detail.queued);
            }
        }
    }
}

type WakerStack = [u64; COMPACT_WORDS];

fields! {
    WakerStack, 512;
}

/// Number of words that are written at the start. The last one is `queued`: the stack after it is
/// undefined until `queued` is set.
const FIRST_WORDS: usize = WORDS - COMPACT_WORDS;

/// The position of the waker, which is followed by `queued`.
const WAKER: usize = FIRST_WORDS - 1 - Actor::WORDS;
const _: () = assert!(early::WAKER == Actor::WORDS);

const STATE: usize = Owner::WORDS + 1;

/// Returns the words of the waker (the current task, or the task that the current interrupt has
/// interrupted), and the time.
#[inline(always)]
fn woken(now: u64) -> [u64; Actor::WORDS + 1] {
    let woken = Detail {
        waker: TaskRef::with_current(|current| tasks::actor(&current)),
        context: Context::current(),
        queued: now,
        ..Detail::default()
    };
    let [_, _, woken @ ..]: [u64; WAKER - Owner::WORDS + Actor::WORDS + 1] = woken.words();
    woken
}

/// The state of an instance besides the core.
pub(crate) struct Notes {
    early: Early,
    /// The reports that wait for their task, with `ustack=1`.
    arrivals: Option<Arrivals>,
}

impl InstanceOwn for Notes {
    fn new(values: &Values) -> Result<Self> {
        let arrivals = match values[PARAM_USTACK] {
            0 => None,
            _ => Some(Arrivals::new()?),
        };
        Ok(Self {
            early: Early::new()?,
            arrivals,
        })
    }
}

/// Keeps the probes of switches and wakings attached, and with `ustack=1` the probe of arrivals.
///
/// The probes of switches and wakings are detached first. Their detachment waits for all sections
/// with preemption off ([`synchronize`](crate::sys::tracepoint::synchronize)): by then, each task
/// that was being switched in has arrived, and its report has been raised.
type Attached = (Attachment<Probes>, Option<Attachment<Probes>>);

fn attach(live: Arc<Probes>) -> Result<Attached> {
    live.own.early.close();
    let arrivals = match live.own.arrivals {
        Some(_) => Some(Attachment::new(live.clone(), sched::arrival_probes())?),
        None => None,
    };
    let switches = Attachment::new(live, sched::probes::<Probes, false>())?;
    Ok((switches, arrivals))
}

impl Detail {
    /// Returns the fields of a task that has not been woken.
    #[inline(always)]
    fn new(Place { cpu, prio, policy }: Place, state: State) -> Self {
        Self {
            prio,
            policy: Policy(policy),
            from: cpu,
            state,
            ..Self::default()
        }
    }

    fn of(_: &[u64; 1], data: &[u64; WORDS]) -> Self {
        let mut known: Self = record::known(data);
        if known.queued == 0 {
            known.waker_stack = WakerStack::default();
        }
        known
    }
}

/// Prints the waker's stack, without the function by which a tracepoint calls its probes.
fn show_waker_stack(detail: &Detail, _: &How, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let stack = CompactStack(detail.waker_stack);
    let is_ours = |&address: &u64| Symbol(address).starts_with("__traceiter_");
    show_stack("waker_stack", stack.entries().skip_while(is_ours), f)
}

/// Rejects `ustack=1` on a kernel without the tracepoint that it needs, and values with which no
/// alert is possible: a `max` that is not above the threshold, if there is no timeout. With a
/// timeout, events raise alerts before they end, whatever `max` is.
fn check(values: &Values) -> Option<(usize, &'static str)> {
    let is_missing = || tracepoint::missing(sched::arrival_probes::<Probes>()).is_some();
    if values[PARAM_USTACK] != 0 && is_missing() {
        let why = "expected 0, since this kernel lacks the tracepoint sched_exit_tp";
        return Some((PARAM_USTACK, why));
    }
    let [max, threshold, timeout] =
        [PARAM_MAX, common::THRESHOLD, common::TIMEOUT].map(|at| values[at]);
    let is_impossible = max != 0 && max <= threshold && timeout == 0;
    is_impossible.then_some((PARAM_MAX, "no delay is above threshold and at most max"))
}

impl sched::Observer for Probes {
    const WAKINGS: bool = true;
    const NEW: bool = false;

    #[inline(always)]
    fn waking(&self, guard: &Guard, wakee: TaskRef<'_>) {
        let engine = self.core.engine();
        // While the waker is being noted, no other CPU finds the event. A sleeping task is switched
        // in only after this waking. A task that was preempted on its way to sleep may be switched
        // in at this very moment, so its event is left alone: no waker made the task runnable.
        //
        // `may_run` is read before the event is looked up. If it is `false`, the task has gone to
        // sleep and has left its CPU, so its event is there.
        let may_run = wakee.may_run();
        let noted = engine.step(
            guard,
            &tasks::key(&wakee),
            |event| !State::from_word(event.word(STATE)).is_runnable(),
            |event| {
                let now = Kernel::now();
                event.set_words::<WAKER, { Actor::WORDS + 1 }>(&woken(now));
                if now.saturating_sub(event.start()) > engine.threshold() && self.core.may_raise() {
                    let stack = CompactStack::here(self.core.depth());
                    event.set_words::<FIRST_WORDS, _>(&stack.0);
                } else {
                    event.set_words::<FIRST_WORDS, _>(&CompactStack::NONE);
                }
                Next::Keep
            },
            |_| (),
        );
        if may_run && noted.is_none() {
            self.woken_early(wakee);
        }
    }

    #[inline(always)]
    fn switched<const TIMED: bool>(&self, guard: &Guard, switch: Switch<'_>) {
        let Switch { prev, next, state } = switch;
        let mut begun = None;
        if !prev.is_idle() && !state.is_dead() {
            if tasks::may_be_wanted(&self.core, &prev) {
                begun = self.begin_if_wanted(guard, prev, state);
            } else {
                self.core.engine().filtered(guard);
            }
        }
        self.core.engine().event_out_if_known(
            guard,
            &tasks::key(&next),
            // One clock reading serves as the start of one event and the end of the other.
            || begun.unwrap_or_else(Kernel::now),
            |_| true,
            |late| self.report(guard, late, next),
        );
    }
}

impl sched::ArrivalObserver for Probes {
    #[inline(always)]
    fn arrived(&self, guard: &Guard) {
        if let Some(arrivals) = &self.own.arrivals {
            if arrivals.is_waiting(guard) {
                self.report_arrived(guard, arrivals);
            }
        }
    }
}

impl Probes {
    fn take_stock(&self) {
        self.own.early.open();
        stock::take(&self.core, |waiting| {
            let (task, state) = (waiting.task(), waiting.state());
            if task.is_idle() || !self.is_asked_for(state) {
                return None;
            }
            let known = Detail::new(tasks::place(&task, task.cpu()), state);
            Some((tasks::key(&task), record::data(tasks::owner(&task), &known)))
        });
    }

    /// Handles the waking of a task that may not have been switched out to sleep yet.
    #[cold]
    #[inline(never)]
    fn woken_early(&self, wakee: TaskRef<'_>) {
        // The current task, woken by itself or by an interrupt on top of it, does not go to sleep.
        if TaskRef::with_current(|current| current.is(&wakee)) {
            return;
        }
        let is_wanted = tasks::may_be_wanted(&self.core, &wakee);
        let early = &self.own.early;
        early.note(wakee.tid(), wakee.switches(), is_wanted, || {
            let [ids, low, high, _] = woken(0);
            [ids, low, high]
        });
    }

    /// Whether `when` accepts tasks in this state.
    #[inline(always)]
    fn is_asked_for(&self, state: State) -> bool {
        match self.core.value(PARAM_WHEN) {
            BLOCKED => !state.is_runnable(),
            PREEMPTED => state.is_runnable(),
            _ => true,
        }
    }

    /// Starts an event if it is wanted, and returns its start.
    ///
    /// Not inlined: the registers that this needs should not be saved on every switch.
    #[inline(never)]
    fn begin_if_wanted(&self, guard: &Guard, prev: TaskRef<'_>, state: State) -> Option<u64> {
        let engine = self.core.engine();
        let cpu = Kernel::cpu(guard) as u32;
        if !self.is_asked_for(state) || !tasks::is_wanted(&self.core, &prev, cpu) {
            engine.filtered(guard);
            return None;
        }
        let known = Detail::new(tasks::place(&prev, cpu), state);
        let data = record::data::<FIRST_WORDS>(tasks::owner(&prev), &known);
        let now = Kernel::now();
        engine.event_in_unique(guard, &tasks::key(&prev), now, &data);
        Some(now)
    }

    /// Reports the late end of an event; with `ustack=1`, stores the report until the task's
    /// arrival. The task is not on the CPU yet: its kernel stack is unchanged.
    #[cold]
    fn report(&self, guard: &Guard, late: &Late<1, WORDS>, task: TaskRef<'_>) {
        let max = self.core.value(PARAM_MAX);
        if max != 0 && late.delay > max {
            self.core.count_extra(guard, COUNT_OVER_MAX);
            return;
        }
        let mut detail = Tracked::detail(&late.key, &late.data);
        if detail.queued == 0 && !detail.state.is_runnable() {
            // The task was woken before its switch-out, and has been runnable since then.
            if let Some(waker) = self.own.early.waker_of(task.tid(), task.switches()) {
                let mut data = late.data;
                data[WAKER..WAKER + Actor::WORDS].copy_from_slice(&waker);
                detail = Tracked::detail(&late.key, &data);
            }
            detail.queued = late.start;
            self.core.count_extra(guard, COUNT_EARLY);
        }
        let now = late.start.wrapping_add(late.delay);
        Tracked::settle(&mut detail, late.start, now);
        let details = detail.details(record::owner(&late.data));
        let stack = self
            .core
            .stack_to_raise(|depth| Stack::of_task(&task, depth));
        match &self.own.arrivals {
            Some(arrivals) => arrivals.put(guard, late, &details, stack.entries()),
            None => tasks::raise(&self.core, guard, late, &details, stack.entries()),
        }
    }

    /// Raises the report that waits on this CPU: it is about the current task, which has just been
    /// switched in.
    #[cold]
    #[inline(never)]
    fn report_arrived(&self, guard: &Guard, arrivals: &Arrivals) {
        if let Some(waited) = arrivals.take(guard) {
            let (late, details) = (&waited.late, &waited.details);
            tasks::raise(&self.core, guard, late, details, waited.stack());
        }
    }
}
