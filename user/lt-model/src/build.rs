// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The state machines: one of each thread, one of each processor, moved by one event after the other.
//!
//! ```text
//! thread     running --switch--> preempted, or blocked --waking--> waiting --switch--> running
//!               `--interrupt begins--> interrupted --ends--> running
//! processor  idle or a thread; above it the interrupts that it is in, the innermost last
//! ```
//!
//! What makes a difference between right and nearly right:
//!
//! - *A waking may come before its sleep.* A thread on its way to sleep is woken from another processor before its
//!   `sched_switch`. So the waking of a running thread is kept, and is the end of its sleep if it is switched out as
//!   blocked. If it was not on its way, the kernel says so (`sched_wakeup` while it still runs), or it does something
//!   else first: then the waking is void.
//! - *An interrupt has a tail.* Threads of interrupts and of softirqs are woken just after the handler's end. So their
//!   waking belongs to the interrupt that ended last, until something else happens on that processor.
//! - *A softirq may be a thread's own work*: that of ksoftirqd, and packets that a thread sends to this machine, which
//!   the same call delivers. Whom it wakes, the thread has woken.
//! - *A softirq may be interrupted by the scheduler* (PREEMPT_RT). It goes on when its thread does.

mod cpus;
mod tasks;

use self::cpus::Cpus;
use self::tasks::Tasks;
use crate::context::{Context, Vector, Waker, WakerId, is_for_softirqs};
use crate::event::{Event, What};
use crate::names::Names;
use crate::sleep::SwitchedOut;
use crate::thread::{State, ThreadId};
use crate::{Model, Processor};

/// More processors than Linux has. An event of one beyond is left out.
const CPUS: u32 = 8192;

/// Makes a [`Model`] of events.
#[derive(Debug, Default)]
pub struct Builder {
    tasks: Tasks,
    cpus: Cpus,
    wakers: Vec<Waker>,
    names: Names,
    /// The times of the first event and of the last.
    span: Option<(u64, u64)>,
}

impl Builder {
    /// One without events.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What ended at `time` or before is of no interest from now on: it takes no memory.
    pub fn forget_before(&mut self, time: u64) {
        self.tasks.keep = time;
        self.cpus.keep = time;
    }

    /// Takes the next event. One that is earlier than the last counts as at the same time.
    pub fn feed(&mut self, event: &Event<'_>) {
        if event.cpu >= CPUS {
            return;
        }
        let (first, last) = self.span.unwrap_or((event.time, event.time));
        let time = event.time.max(last);
        self.span = Some((first, time));
        self.tasks.start = first;
        let cpu = event.cpu;
        self.cpus.reach(cpu, first);
        match event.what {
            What::Switch {
                prev,
                prev_name,
                out,
                next,
                next_name,
            } => {
                self.switch_out(time, cpu, prev, prev_name, out);
                self.switch_in(time, cpu, next, next_name);
            }
            // The tail of an interrupt goes on.
            What::Waking { tid, name, target } => {
                return self.waking(time, cpu, tid, name, Some(target));
            }
            What::Wakeup { tid, name, target } => {
                return self.wakeup(time, cpu, tid, name, target);
            }
            What::Fork { child, name } => self.fork(time, cpu, child, name),
            What::There { tid, name } => {
                let thread = self.tasks.find(tid);
                self.named(thread, name);
            }
            What::Call { name } => {
                let name = self.names.number(name);
                self.call(time, cpu, Some(name));
            }
            What::Return => self.call(time, cpu, None),
            What::Irq { number, name } => {
                let name = self.names.number(name);
                self.enter(time, cpu, Context::Irq { number, name });
            }
            What::IrqEnd { number } => {
                let is = |c: &Context| matches!(c, Context::Irq { number: n, .. } if *n == number);
                self.leave(time, cpu, is);
            }
            What::Softirq { vector } => {
                let vector = Vector(vector);
                let own = self.is_own(cpu, vector);
                self.enter(time, cpu, Context::Softirq { vector, own });
            }
            What::SoftirqEnd { vector } => {
                let is =
                    |c: &Context| matches!(c, Context::Softirq { vector: v, .. } if v.0 == vector);
                self.leave(time, cpu, is);
            }
            What::Timer => self.enter(time, cpu, Context::Timer),
            What::TimerEnd => self.leave(time, cpu, |c| matches!(c, Context::Timer)),
            What::Ipi { name } => {
                let name = self.names.number(name);
                self.enter(time, cpu, Context::Ipi(name));
            }
            What::IpiEnd => self.leave(time, cpu, |c| matches!(c, Context::Ipi(_))),
            What::Lost { since } => self.lost(since.min(time), cpu),
        }
        if !matches!(
            event.what,
            What::IrqEnd { .. } | What::SoftirqEnd { .. } | What::TimerEnd | What::IpiEnd
        ) {
            self.cpus.at(cpu).tail = None;
        }
    }

    /// All that has happened.
    #[must_use]
    pub fn finish(mut self) -> Model {
        let span = self.span.unwrap_or_default();
        self.tasks.finish(span.1);
        let processors = self.cpus.finish(span.1);
        Model {
            threads: self.tasks.threads,
            processors: processors
                .into_iter()
                .map(|stretches| Processor { stretches })
                .collect(),
            wakers: self.wakers,
            names: self.names,
            span,
        }
    }

    fn named(&mut self, thread: Option<ThreadId>, name: &[u8]) {
        let Some(thread) = thread.and_then(|id| self.tasks.threads.get_mut(id.0 as usize)) else {
            return;
        };
        if name.is_empty()
            || thread
                .name
                .is_some_and(|n| self.names.text(n).as_bytes() == name)
        {
            return;
        }
        thread.name = Some(self.names.number(name));
    }

    fn switch_out(&mut self, time: u64, cpu: u32, tid: i32, name: &[u8], out: SwitchedOut) {
        let ran = self.cpus.at(cpu).thread();
        let prev = self.tasks.find(tid);
        if ran.is_some() && ran != prev {
            // Events are missing: it ran here, and something else ends running here.
            self.tasks.forget(ran, time);
        }
        // Hard interrupts do not switch; softirqs may, and go on with their thread.
        let held = std::mem::take(&mut self.cpus.at(cpu).contexts);
        self.named(prev, name);
        let Some(prev) = prev else {
            return;
        };
        let pending = self.tasks.of(prev).pending.take();
        self.tasks.of(prev).held = held
            .into_iter()
            .filter(|c| matches!(c, Context::Softirq { .. }))
            .collect();
        let call = self.tasks.of(prev).call;
        self.tasks.of(prev).cpu = Some(cpu);
        match out {
            SwitchedOut::Preempted => self.tasks.go(prev, time, State::Preempted),
            SwitchedOut::Dead => self.tasks.end(prev, time),
            SwitchedOut::Blocked(sleep) => {
                self.tasks.go(prev, time, State::Blocked(sleep, call));
                if let Some((waker, target)) = pending {
                    self.tasks.woken(prev, time, waker, target);
                }
            }
        }
    }

    fn switch_in(&mut self, time: u64, cpu: u32, tid: i32, name: &[u8]) {
        let next = self.tasks.find(tid);
        self.named(next, name);
        let Some(next) = next else {
            return self.cpus.at(cpu).go(time, Some(None));
        };
        let task = self.tasks.of(next);
        task.cpu = Some(cpu);
        let held = std::mem::take(&mut task.held);
        let call = task.call;
        self.cpus.at(cpu).contexts = held;
        self.cpus.at(cpu).go(time, Some(Some(next)));
        let above = self.cpus.at(cpu).above();
        let state = above.map_or(State::Running(call), State::Interrupted);
        self.tasks.go(next, time, state);
    }

    /// Who wakes a thread of that name on this processor now.
    fn waker(&mut self, time: u64, cpu: u32, whom: &[u8]) -> Option<WakerId> {
        let at = self.cpus.at(cpu);
        let tail = at.tail.filter(|_| is_for_softirqs(whom));
        let waker = Waker {
            time,
            cpu,
            thread: at.thread(),
            context: at.contexts.last().copied().or(tail),
        };
        // The sleep that it ends is not kept either.
        if time <= self.tasks.keep {
            return None;
        }
        self.wakers.push(waker);
        Some(WakerId((self.wakers.len() - 1) as u32))
    }

    fn waking(&mut self, time: u64, cpu: u32, tid: i32, name: &[u8], target: Option<u32>) {
        let thread = self.tasks.find(tid);
        self.named(thread, name);
        let Some(thread) = thread else {
            return;
        };
        match self.tasks.of(thread).state {
            State::Blocked(..) | State::Unknown => {
                let waker = self.waker(time, cpu, name);
                self.tasks.woken(thread, time, waker, target);
            }
            State::Running(_) | State::Interrupted(_) => {
                let waker = self.waker(time, cpu, name);
                self.tasks.of(thread).pending = Some((waker, target));
            }
            State::Preempted | State::Waiting => {}
        }
    }

    fn wakeup(&mut self, time: u64, cpu: u32, tid: i32, name: &[u8], target: u32) {
        let Some(thread) = self.tasks.find(tid) else {
            return;
        };
        let task = self.tasks.of(thread);
        match task.state {
            // It had not gone to sleep, and will not for this one.
            State::Running(_) | State::Interrupted(_) => task.pending = None,
            State::Waiting => task.cpu = Some(target),
            _ => self.waking(time, cpu, tid, name, Some(target)),
        }
    }

    fn fork(&mut self, time: u64, cpu: u32, child: i32, name: &[u8]) {
        let waker = self.waker(time, cpu, name);
        if let Some(thread) = self.tasks.born(child, time, waker) {
            self.named(Some(thread), name);
        }
    }

    /// The thread of this processor begins or ends a system call.
    fn call(&mut self, time: u64, cpu: u32, call: Option<crate::Name>) {
        let Some(thread) = self.cpus.at(cpu).thread() else {
            return;
        };
        let above = self.cpus.at(cpu).above();
        let task = self.tasks.of(thread);
        task.call = call;
        task.pending = None;
        if above.is_none() {
            self.tasks.go(thread, time, State::Running(call));
        }
    }

    /// Whether a softirq that begins now is the thread's own work.
    fn is_own(&mut self, cpu: u32, vector: Vector) -> bool {
        let at = self.cpus.at(cpu);
        let (after_interrupt, inside) = (at.tail.is_some(), !at.contexts.is_empty());
        let Some(thread) = at.thread() else {
            return false;
        };
        let name = self
            .tasks
            .threads
            .get(thread.0 as usize)
            .and_then(|t| t.name);
        let for_softirqs = name.is_some_and(|n| is_for_softirqs(self.names.text(n).as_bytes()));
        let sends = self.tasks.of(thread).call.is_some()
            && matches!(vector, Vector::NET_TX | Vector::NET_RX)
            && !after_interrupt;
        !inside && (for_softirqs || sends)
    }

    fn enter(&mut self, time: u64, cpu: u32, context: Context) {
        let at = self.cpus.at(cpu);
        at.contexts.push(context);
        self.show(time, cpu);
    }

    /// The innermost context of that kind ends, and those within it of which no end was seen.
    fn leave(&mut self, time: u64, cpu: u32, is: impl Fn(&Context) -> bool) {
        let at = self.cpus.at(cpu);
        // An end without a begin, before which the trace begins, is left out.
        if let Some(place) = at.contexts.iter().rposition(is) {
            at.tail = at.contexts.get(place).copied();
            at.contexts.truncate(place);
            self.show(time, cpu);
        }
    }

    /// The processor and its thread are in what has become the innermost context.
    fn show(&mut self, time: u64, cpu: u32) {
        let at = self.cpus.at(cpu);
        at.note(time);
        let (thread, above) = (at.thread(), at.above());
        if let Some(thread) = thread {
            let call = self.tasks.of(thread).call;
            let state = above.map_or(State::Running(call), State::Interrupted);
            self.tasks.go(thread, time, state);
        }
    }

    /// What was before the gap need not be so any more.
    fn lost(&mut self, since: u64, cpu: u32) {
        let at = self.cpus.at(cpu);
        let ran = at.thread();
        at.contexts.clear();
        at.go(since, None);
        self.tasks.forget(ran, since);
    }
}
