// SPDX-License-Identifier: GPL-2.0

//! The handlers of the tracepoints: they note the activity of the CPU, and move tips along their
//! chains.
//!
//! ```text
//!             interrupt, vector, timer             softirq            task with a tip
//!                 |              |                    |  ^                 |
//!            raise|              |waking        waking|  |raised       waking, raise
//!                 v              v                    v  |                 v
//!               (percpu)         tip                  tip (percpu)       tip, (percpu)
//! ```
//!
//! "Trap N" is a row of the table of kernel traps in Documentation/design/testing.md.

use super::{
    chain::{Kind, Look, Step, Words},
    doubts::is_running_copy,
    percpu::{Interrupt, Timed},
    settled, tasks,
    tips::key,
    wakings::is_softirq_thread,
    Extra, Guard, Probes, Timing, PARAM_END, USER,
};
use crate::{
    engine::platform::Platform,
    sys::{
        causes,
        irq::{self, Action, WAKE_THREAD},
        platform::Kernel,
        sched::{self, State, Switch},
        task::{Context, TaskRef},
        timer::{HighRes, Timer},
        waker::{is_waking, may_be_waking}, //
    },
};

impl irq::Observer for Probes {
    #[inline(always)]
    fn entered<const TIMED: bool>(&self, guard: &Guard, irq: u32, action: &Action<'_>) {
        let on_cpu = self.own.cpu(guard);
        let at = on_cpu.enter_handler(irq, *action, Kernel::now);
        if let Some(timed) = self.timed::<TIMED>(guard) {
            timed.enter_irq(guard, at);
        }
    }

    #[inline(always)]
    fn left<const TIMED: bool>(&self, guard: &Guard, _: u32, action: &Action<'_>, ret: u32) {
        let on_cpu = self.own.cpu(guard);
        on_cpu.leave_handler();
        if let Some(timed) = self.timed::<TIMED>(guard) {
            timed.leave_irq(guard, on_cpu.returned());
        }
        if ret == WAKE_THREAD {
            self.wakes_thread(guard, action.thread());
        }
    }
}

impl causes::Observer for Probes {
    #[inline(always)]
    fn vector_entered<const TIMED: bool>(&self, guard: &Guard, vector: usize) {
        let (on_cpu, at) = (self.own.cpu(guard), Kernel::now());
        on_cpu.enter_vector(vector, at);
        if let Some(timed) = self.timed::<TIMED>(guard) {
            timed.enter_irq(guard, at);
        }
    }

    #[inline(always)]
    fn vector_left<const TIMED: bool>(&self, guard: &Guard, vector: usize) {
        self.own.cpu(guard).leave_vector();
        if let Some(timed) = self.timed::<TIMED>(guard) {
            timed.leave_irq(guard, Interrupt::Vector(vector as u64));
        }
    }

    #[inline(always)]
    fn timer_entered(&self, guard: &Guard, timer: HighRes<'_>) {
        // The clock is read first: fewer values must be kept in registers during the call.
        let (called, on_cpu) = (Kernel::now(), self.own.cpu(guard));
        match timer.read_monotonic() {
            Some(timer) => on_cpu.enter_timer(&timer, 0, called),
            None => on_cpu.enter_timer_of_clock(timer, called),
        }
    }

    #[inline(always)]
    fn timer_left(&self, guard: &Guard) {
        self.own.cpu(guard).leave_timer();
    }

    #[inline(always)]
    fn soft_timer_entered(&self, guard: &Guard, timer: HighRes<'_>) {
        let (called, task) = (
            Kernel::now(),
            TaskRef::with_current(|current| current.address()),
        );
        match timer.read_monotonic() {
            Some(timer) => self
                .own
                .enter_soft_timer(guard, task, &timer, Timing::Exact, 0, called),
            None => self
                .own
                .enter_soft_timer_of_clock(guard, task, timer, called),
        }
    }

    #[inline(always)]
    fn soft_timer_left(&self, guard: &Guard) {
        self.leave_soft_timer(guard);
    }

    #[inline(always)]
    fn raised(&self, guard: &Guard, vector: usize) {
        TaskRef::with_current(|current| {
            let context = Context::current();
            // Often there is nothing to do, as when a task off all chains sends a packet.
            if !self.is_off_chains(guard, context, &current) || self.own.is_raised(guard, vector) {
                self.raised_further(guard, vector, context, current);
            }
        });
    }

    fn softirq_entered<const TIMED: bool>(&self, guard: &Guard, vector: usize) {
        // Any other interrupt is over (trap 3).
        let on_cpu = self.own.cpu(guard);
        on_cpu.forget_handlers();
        let timed = self.timed::<TIMED>(guard);
        let timed = timed.map(|timed| timed.enter_softirq(guard, vector));
        // Most softirqs are on no known chain, and need no clock reading.
        let now = || timed.unwrap_or_else(Kernel::now);
        TaskRef::with_current(|current| {
            let cpu = tasks::this_cpu(guard);
            let task = current.address();
            if !self.own.serve(guard, vector, task, cpu, now) {
                self.count(guard, Extra::Unserved);
            }
        });
    }

    fn softirq_left<const TIMED: bool>(&self, guard: &Guard, _: usize) {
        if let Some(timed) = self.timed::<TIMED>(guard) {
            timed.leave_softirq(guard);
        }
        TaskRef::with_current(|current| self.own.done(guard, current.address()));
    }

    fn wants_returns(&self) -> bool {
        self.core.value(PARAM_END) == USER
    }

    fn wants_times(&self) -> bool {
        self.own.keeps_times()
    }

    fn nmi_left(&self, guard: &Guard, time: u64) {
        if let Some(timed) = self.own.timed(guard) {
            timed.nmi(guard, time);
        }
    }

    fn moves(&self, guard: &Guard, task: TaskRef<'_>, to: u32) {
        self.moved(guard, &task, to);
    }

    #[inline(always)]
    fn returned(&self, guard: &Guard) {
        TaskRef::with_current(|current| {
            if self.own.cpu(guard).is_running(current.address()) {
                self.has_returned(guard, &current);
            }
        });
    }
}

impl sched::Observer for Probes {
    const WAKINGS: bool = true;
    const NEW: bool = false;

    #[inline(always)]
    fn waking(&self, guard: &Guard, wakee: TaskRef<'_>) {
        TaskRef::with_current(|current| {
            if !self.is_waking_off_chains(guard, &current, &wakee) {
                self.woken(guard, current, wakee);
            }
        });
    }

    #[inline(always)]
    fn switched<const TIMED: bool>(&self, guard: &Guard, switch: Switch<'_>) {
        let Switch { prev, next, state } = switch;
        let on_cpu = self.own.cpu(guard);
        on_cpu.forget_handlers();
        if let Some(timed) = self.timed::<TIMED>(guard) {
            let serves = self.own.served(guard, next.address());
            timed.switch(guard, &prev, &next, serves);
        }
        // Most switches are between tasks without a tip. They need no frame: the functions for
        // other switches are called last.
        if self.has_doubts_or(on_cpu.running()) {
            self.switched_further(guard, prev, next, state);
        } else if let Some(thread) = on_cpu.thread(next.address()) {
            // A thread of softirqs never has a tip.
            thread.switch_in();
        } else if !next.is_idle() {
            self.switched_in(guard, next);
        }
    }
}

impl Probes {
    /// Returns this CPU and its logs, for probes that divide the time of the CPU; `None` unless
    /// `TIMED`.
    #[inline(always)]
    fn timed<const TIMED: bool>(&self, guard: &Guard) -> Option<Timed<'_>> {
        self.own.timed(guard).filter(|_| TIMED)
    }

    /// Notes that the function of a timer of the wheel is about to be called in a softirq.
    pub(super) fn enter_wheel_timer(&self, guard: &Guard, timer: &Timer, timing: Timing) {
        TaskRef::with_current(|current| {
            let (task, now) = (current.address(), Kernel::now());
            self.own
                .enter_soft_timer(guard, task, timer, timing, 0, now);
        });
    }

    /// Notes that the function of a timer in a softirq has returned.
    #[inline(always)]
    pub(super) fn leave_soft_timer(&self, guard: &Guard) {
        TaskRef::with_current(|current| self.own.leave_soft_timer(guard, current.address()));
    }

    /// Whether a task's activity, or the softirq that it serves, is certainly on no chain.
    #[inline(always)]
    fn is_off_chains(&self, guard: &Guard, context: Context, current: &TaskRef<'_>) -> bool {
        match context {
            Context::Task => !self.may_be_on_chain(guard, current),
            Context::Softirq => self.own.is_serving_off_chains(guard, current.address()),
            Context::Hardirq | Context::Nmi => false,
        }
    }

    /// Handles a softirq that is raised on a chain, or raised again.
    #[inline(never)]
    fn raised_further(&self, guard: &Guard, vector: usize, context: Context, current: TaskRef<'_>) {
        // A softirq is usually raised in an interrupt that does nothing else. The other cases are
        // handled by a tail call.
        let on_cpu = self.own.cpu(guard);
        if may_be_waking(guard) || context != Context::Hardirq || !on_cpu.is_plain_interrupt() {
            return self.raised_elsewhere(guard, vector, context, current);
        }
        let step = raise(vector, tasks::this_cpu(guard));
        let first = self.own.raise(guard, vector, |chain| {
            let start = on_cpu.hard_with(chain, step)?;
            // Unlike a timer, an interrupt is never marked as refused.
            let is_plain = self.core.are_default(Self::ORIGINS);
            Some((start, is_plain || self.is_origin_wanted(chain)))
        });
        if !first {
            self.core.count_extra(guard, Extra::Merged as usize);
        }
    }

    /// Handles a softirq that is raised on a chain, or raised again, in any context.
    #[inline(never)]
    fn raised_elsewhere(
        &self,
        guard: &Guard,
        vector: usize,
        context: Context,
        current: TaskRef<'_>,
    ) {
        if is_waking(guard) {
            return;
        }
        let step = raise(vector, tasks::this_cpu(guard));
        // A softirq that raises itself continues its work, and the cause of the remaining work is
        // unknown.
        let first = self.own.raise(guard, vector, |chain| {
            let start = self.chain(guard, context, &current, chain, step.cpu, || false)?;
            let is_soft = context == Context::Softirq;
            if is_soft && chain.is_last(Kind::Softirq, step.subject) {
                return None;
            }
            chain.push(Kernel::now(), step);
            Some((start, self.is_origin_wanted(chain)))
        });
        if !first {
            self.core.count_extra(guard, Extra::Merged as usize);
        }
    }

    /// Whether the waker is off all chains, and the wakee is asleep and needs no note on any tip
    /// that it may have: the usual case for wakings by tasks, and by the softirqs that they raise.
    /// [`Probes::woken`] would have the same result; this is inlined and calls nothing.
    #[inline(always)]
    fn is_waking_off_chains(
        &self,
        guard: &Guard,
        current: &TaskRef<'_>,
        wakee: &TaskRef<'_>,
    ) -> bool {
        self.is_off_chains(guard, Context::current(), current)
            && !self.has_doubts()
            && !is_softirq_thread(wakee)
            && !wakee.is_awake()
            && State::of_sleeper(wakee).is_plain()
    }

    /// Handles the return of a handler whose action's thread will be woken. Out of line, so that
    /// most interrupts need no memory on the stack.
    #[inline(never)]
    fn wakes_thread(&self, guard: &Guard, thread: u64) {
        self.own.cpu(guard).wakes_thread();
        if self.merge(guard, thread) {
            // The thread is on the chain of an earlier interrupt, and will not be woken for this
            // one.
            self.core.count_extra(guard, Extra::Merged as usize);
        }
    }

    /// Handles a switch from a task with a tip, or while there are tips in doubt.
    #[inline(never)]
    fn switched_further(&self, guard: &Guard, prev: TaskRef<'_>, next: TaskRef<'_>, state: State) {
        let on_cpu = self.own.cpu(guard);
        if on_cpu.is_running(prev.address()) {
            self.switched_out(guard, prev, next, state);
        }
        on_cpu.set_running(0);
        if let Some(thread) = on_cpu.thread(next.address()) {
            thread.switch_in();
        }
        let has_doubts = self.has_doubts();
        if has_doubts {
            self.doubt_switched_out(guard, prev, state);
        }
        if next.is_idle() {
            return;
        }
        if has_doubts {
            self.doubt_switched_in(guard, next);
        }
        self.switched_in(guard, next);
    }

    /// Makes the chain to the current activity, if it is known, and returns its start.
    /// `wakes_thread`: whether the activity wakes the thread of an interrupt.
    #[inline(always)]
    pub(super) fn chain(
        &self,
        guard: &Guard,
        context: Context,
        current: &TaskRef<'_>,
        chain: &mut impl Words,
        cpu: u32,
        wakes_thread: impl FnOnce() -> bool,
    ) -> Option<u64> {
        let on_cpu = self.own.cpu(guard);
        match context {
            Context::Nmi => None,
            // Interrupts are off: the requested function is running, in an interrupt or in the idle
            // task.
            Context::Hardirq | Context::Task if on_cpu.is_calling() => self.own.call(guard, chain),
            Context::Hardirq => {
                let start = on_cpu.hard(chain, cpu, self, wakes_thread());
                if start.is_none() && on_cpu.is_stale() {
                    self.count(guard, Extra::Stale);
                }
                start
            }
            Context::Softirq => {
                let task = current.address();
                self.own.soft(guard, task, chain, cpu, self)
            }
            Context::Task if on_cpu.is_running(current.address()) => {
                self.chain_of(guard, *current, chain)
            }
            Context::Task => None,
        }
    }

    /// Makes the chain to a running kernel thread, and returns its start.
    #[inline(never)]
    fn chain_of(&self, guard: &Guard, current: TaskRef<'_>, chain: &mut impl Words) -> Option<u64> {
        // The task's next tip, which is in doubt, is skipped.
        let engine = self.core.engine();
        let event = engine.copy_of(guard, &key(&current), is_running_copy)?;
        chain.copy_from(&settled(&event.data));
        // A chain with a target has ended; the next activity of the target is its own.
        (!chain.counts().is_target()).then_some(event.start)
    }
}

/// Returns the step of a raised softirq.
#[inline(always)]
fn raise(vector: usize, cpu: u32) -> Step {
    let (kind, subject) = (Kind::Raise, vector as u64);
    Step { kind, cpu, subject }
}
