// SPDX-License-Identifier: GPL-2.0

//! The activity of a CPU: its hard interrupt, with the timer in it, and its tasks.
//!
//! See the head of percpu.rs. "Trap N" is a row of the table of kernel traps in
//! Documentation/design/testing.md.

use super::{
    super::chain::{place_of_name, Kind, Spent, Step, Words},
    handlers::{Called, First},
    logs::Interrupt,
    spent::Spending,
    timers::{Base, Choice, Expiring, Timers},
    word, Word,
};
use crate::{
    engine::platform::Platform,
    sys::{
        atomic::Relaxed,
        irq::Action,
        platform::Kernel,
        timer::{HighRes, Timer, CLOCKS}, //
    },
};

/// Mask of the number of running handlers, in a word. The bits above show the state of the handler
/// that returned last: nothing relevant, [`WAKES`] or [`OVER`].
const DEPTH: u64 = u32::MAX as u64;
/// The thread of the handler that returned last is about to be woken.
const WAKES: u64 = 1 << 32;
/// The handler that returned last is not about to wake a thread.
const OVER: u64 = 2 << 32;

/// Number of known nested handlers: the handler of an interrupt controller finds out which of its
/// own lines is active, and calls the handler of that line. Deeper handlers count as the last known
/// one.
const NESTED: usize = 3;

/// A clock that can be set: its time minus `CLOCK_MONOTONIC`.
struct Clock {
    offset: Word,
    /// When the offset was last seen to change.
    since: Word,
}

/// A thread of softirqs.
pub(crate) struct Thread {
    task: Word,
    subject: Word,
    /// When the thread was woken; 0 if the thread has lost the CPU since. The time from the waking
    /// to the last switch-in is then not one wait for the CPU.
    woken: Word,
    /// The last switch-in; 0 if there was none since the waking.
    switched: Word,
    /// The name of the thread, in the form used in a chain.
    name: [Word; 2],
}

impl Thread {
    /// Notes that the thread is switched in.
    #[inline(never)]
    pub(crate) fn switch_in(&self) {
        if self.switched.load(Relaxed) != 0 {
            self.woken.store(0, Relaxed);
        }
        self.switched.store(Kernel::now(), Relaxed);
    }
}

/// Number of softirq threads of a CPU.
const THREADS: usize = 2;

/// The activity of a CPU.
pub(crate) struct CpuState {
    /// Number of running handlers, and the state of the one that returned last; see [`DEPTH`].
    handlers: Word,
    called: [Called; NESTED],
    /// The running local interrupt: 1 + its position in the list of local interrupts; 0 for none.
    vector: Word,
    vector_entered: Word,
    timer: Expiring,
    /// The address of the running task, if it has a tip.
    running: Word,
    /// Number of bytes that had been read for the running task at its switch-in.
    read: Word,
    /// Whether the running task's tip is `Leaving`.
    leaving: Word,
    /// Whether a function that another CPU has requested is running, on a known chain.
    calls: Word,
    /// The times of the CPU, if the instance keeps them.
    spending: Spending,
    threads: [Thread; THREADS],
    clocks: [Clock; CLOCKS],
}

impl CpuState {
    pub(super) fn new() -> Self {
        Self {
            handlers: word(),
            called: core::array::from_fn(|_| Called::new()),
            vector: word(),
            vector_entered: word(),
            timer: Expiring::new(),
            running: word(),
            read: word(),
            leaving: word(),
            calls: word(),
            spending: Spending::new(),
            threads: core::array::from_fn(|_| Thread {
                task: word(),
                subject: word(),
                woken: word(),
                switched: word(),
                name: [word(), word()],
            }),
            clocks: core::array::from_fn(|_| Clock {
                offset: word(),
                since: word(),
            }),
        }
    }

    /// Clears everything, and sets the clocks to their current offsets.
    pub(super) fn reset(&self, offsets: [u64; CLOCKS]) {
        self.forget_handlers();
        self.vector.store(0, Relaxed);
        self.timer.leave();
        self.running.store(0, Relaxed);
        self.set_leaving(false);
        self.set_calling(false);
        self.spending.reset();
        for thread in &self.threads {
            thread.task.store(0, Relaxed);
        }
        for (clock, offset) in self.clocks.iter().zip(offsets) {
            clock.offset.store(offset, Relaxed);
            clock.since.store(0, Relaxed);
        }
    }

    /// Notes that a handler is called, perhaps by another one. Returns the time.
    #[inline(always)]
    pub(crate) fn enter_handler(
        &self,
        irq: u32,
        action: Action<'_>,
        now: impl FnOnce() -> u64,
    ) -> u64 {
        let depth = self.depth();
        self.handlers.store(depth.wrapping_add(1), Relaxed);
        if depth != 0 {
            return self.enter_nested(depth, irq, action, now);
        }
        let [outermost, ..] = &self.called;
        outermost.enter(irq, action, now)
    }

    /// Notes a handler that was called by another one, if it is among the known ones.
    #[cold]
    #[inline(never)]
    fn enter_nested(
        &self,
        depth: u64,
        irq: u32,
        action: Action<'_>,
        now: impl FnOnce() -> u64,
    ) -> u64 {
        match self.called.get(depth as usize) {
            Some(called) => called.enter(irq, action, now),
            None => now(),
        }
    }

    /// Notes that a handler has returned. The handler that called it, if any, continues.
    #[inline(always)]
    pub(crate) fn leave_handler(&self) {
        self.handlers
            .store(self.depth().saturating_sub(1) | OVER, Relaxed);
    }

    /// Notes that the thread of the handler that has just returned is woken next (trap 1).
    #[inline(always)]
    pub(crate) fn wakes_thread(&self) {
        self.handlers.store(self.depth() | WAKES, Relaxed);
    }

    #[inline(always)]
    pub(super) fn spending(&self) -> &Spending {
        &self.spending
    }

    /// Whether neither a handler nor a local interrupt is running.
    #[inline(always)]
    pub(super) fn is_out_of_interrupts(&self) -> bool {
        self.depth() == 0 && self.vector.load(Relaxed) == 0
    }

    /// Returns the running local interrupt: its position in the list of local interrupts.
    #[inline(always)]
    pub(super) fn vector(&self) -> Option<u64> {
        self.vector.load(Relaxed).checked_sub(1)
    }

    /// Returns the handler that has just returned.
    #[inline(always)]
    pub(crate) fn returned(&self) -> Interrupt {
        let nth = (self.depth() as usize).min(NESTED - 1);
        self.called[nth].interrupt()
    }

    /// Returns the interrupt that the current handler or local interrupt has interrupted, or that
    /// has called it; `None` if there is none.
    pub(super) fn outer(&self) -> Option<Interrupt> {
        match self.depth() {
            // A local interrupt has begun, and none is nested in another.
            0 => None,
            1 => Some(Interrupt::Vector(self.vector()?)),
            depth => Some(self.called[(depth as usize - 2).min(NESTED - 1)].interrupt()),
        }
    }

    /// Returns the CPU's totals at this time. Any CPU.
    #[inline(always)]
    pub(crate) fn spent(&self, now: u64) -> Spent {
        self.spending.at(now)
    }

    /// Notes that the CPU does something else now, so that an interrupt without a tracepoint is not
    /// taken for the last handler (trap 3).
    #[inline(always)]
    pub(crate) fn forget_handlers(&self) {
        self.handlers.store(0, Relaxed);
    }

    /// Whether a handler has returned, and nothing else has been seen since.
    pub(crate) fn is_stale(&self) -> bool {
        let handlers = self.handlers.load(Relaxed);
        handlers != 0 && handlers & DEPTH == 0 && self.vector.load(Relaxed) == 0
    }

    /// Returns the number of running handlers.
    #[inline(always)]
    fn depth(&self) -> u64 {
        self.handlers.load(Relaxed) & DEPTH
    }

    /// Returns the handler that a waking comes from; the waking of a thread comes after the handler
    /// has returned, or from a running handler (`irq_wake_thread`).
    fn handler(&self, wakes_thread: bool) -> Option<&Called> {
        let handlers = self.handlers.load(Relaxed);
        let depth = handlers & DEPTH;
        let nth = if wakes_thread && handlers & !DEPTH == WAKES {
            // The thread is woken once.
            self.handlers.store(depth | OVER, Relaxed);
            depth
        } else {
            depth.checked_sub(1)?
        };
        self.called.get((nth as usize).min(NESTED - 1))
    }

    /// Returns the time at which the clock of a timer was last seen to be set, 0 for never. Timers
    /// of that clock with an earlier due time became due only then. Reading the offset here, with
    /// each timer, is enough: timers that become due because the clock was set are called at once.
    pub(super) fn clock_set(&self, timer: &Timer, now: u64) -> u64 {
        let clock = timer.clock.checked_sub(1);
        let Some(clock) = clock.and_then(|clock| self.clocks.get(clock)) else {
            return 0;
        };
        if clock.offset.load(Relaxed) != timer.offset {
            clock.offset.store(timer.offset, Relaxed);
            clock.since.store(now, Relaxed);
        }
        clock.since.load(Relaxed)
    }

    #[inline(always)]
    pub(crate) fn enter_vector(&self, vector: usize, now: u64) {
        self.forget_handlers();
        self.vector_entered.store(now, Relaxed);
        self.vector.store(vector as u64 + 1, Relaxed);
    }

    #[inline(always)]
    pub(crate) fn leave_vector(&self) {
        self.vector.store(0, Relaxed);
    }

    /// Notes the call of a timer's function. `since` is when the timer's clock was last set, or 0:
    /// an earlier due time counts as `since`.
    #[inline(always)]
    pub(crate) fn enter_timer(&self, timer: &Timer, since: u64, now: u64) {
        self.timer.enter(timer, since, now);
    }

    /// Notes the call of the function of a timer whose clock may be set.
    #[inline(never)]
    pub(crate) fn enter_timer_of_clock(&self, timer: HighRes<'_>, now: u64) {
        let timer = timer.read();
        self.enter_timer(&timer, self.clock_set(&timer, now), now);
    }

    #[inline(always)]
    pub(crate) fn leave_timer(&self) {
        self.timer.leave();
    }

    /// Makes the chain to this hard interrupt. Returns its start. `wakes_thread`: whether the chain
    /// is for the thread of the interrupt's action, which may be woken after the handler.
    #[inline]
    pub(crate) fn hard(
        &self,
        chain: &mut impl Words,
        cpu: u32,
        choice: &impl Choice,
        wakes_thread: bool,
    ) -> Option<u64> {
        match self.timer.function.load(Relaxed) {
            0 => Some(self.first(cpu, wakes_thread)?.begin(chain)),
            function => self.timer_in_hard(function, chain, cpu, choice, wakes_thread),
        }
    }

    /// Makes the chain to the function of a timer that is running in this hard interrupt. Returns
    /// the start of the chain.
    #[inline(never)]
    fn timer_in_hard(
        &self,
        function: u64,
        chain: &mut impl Words,
        cpu: u32,
        choice: &impl Choice,
        wakes_thread: bool,
    ) -> Option<u64> {
        let timer = self.timer.expired(function);
        let timers = if choice.is_plain() {
            Timers::PLAIN
        } else {
            choice.timers(timer.timing, function)
        };
        let mut chain_from = |base| timer.chain(chain, base, cpu, timers);
        // The calls are separate, so that each is inlined with a known base.
        if let Some(called) = self.handler(wakes_thread) {
            chain_from(Base::First(First::of_handler(called, cpu)))
        } else if let Some(first) = self.first_of_vector(cpu) {
            chain_from(Base::First(first))
        } else {
            chain_from(Base::Unknown)
        }
    }

    /// Whether a known interrupt is running here, and in it neither a timer's function nor a
    /// function that another CPU has requested.
    #[inline(always)]
    pub(crate) fn is_plain_interrupt(&self) -> bool {
        let function = self.timer.function.load(Relaxed) | self.calls.load(Relaxed);
        function == 0 && self.depth() | self.vector.load(Relaxed) != 0
    }

    /// Makes the chain to this interrupt, which is a plain one, with a step taken now. Returns its
    /// start.
    #[inline(always)]
    pub(crate) fn hard_with(&self, chain: &mut impl Words, step: Step) -> Option<u64> {
        let first = self.first(step.cpu, false)?;
        Some(first.begin_with(chain, Kernel::now(), step))
    }

    /// Returns the interrupt that the chain begins with.
    #[inline(always)]
    fn first(&self, cpu: u32, wakes_thread: bool) -> Option<First<'_>> {
        // A handler is nested in the local interrupt that has called it, if there is one.
        match self.handler(wakes_thread) {
            Some(called) => Some(First::of_handler(called, cpu)),
            None => self.first_of_vector(cpu),
        }
    }

    /// Returns the local interrupt that the chain begins with, if no handler is running.
    #[inline(always)]
    fn first_of_vector(&self, cpu: u32) -> Option<First<'_>> {
        let vector = self.vector.load(Relaxed).checked_sub(1)?;
        let entered = self.vector_entered.load(Relaxed);
        Some(First::of_vector(vector, entered, cpu))
    }

    /// Returns the address of the running task, if it has a tip; 0 if not. A switch finds here the
    /// task that it leaves, or 0.
    #[inline(always)]
    pub(crate) fn running(&self) -> u64 {
        self.running.load(Relaxed)
    }

    /// Whether the running task is this task, and has a tip.
    #[inline(always)]
    pub(crate) fn is_running(&self, task: u64) -> bool {
        self.running() == task
    }

    #[inline(always)]
    pub(crate) fn set_running(&self, task: u64) {
        if !self.is_running(task) {
            self.running.store(task, Relaxed);
        }
    }

    /// Whether the running task is on its way back to user space, or there (leaving.rs).
    #[inline(always)]
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.load(Relaxed) != 0
    }

    #[inline(always)]
    pub(crate) fn set_leaving(&self, leaves: bool) {
        self.leaving.store(leaves.into(), Relaxed);
    }

    /// Sets the number of bytes read so far for the running task.
    #[inline(always)]
    pub(crate) fn set_read(&self, bytes: u64) {
        self.read.store(bytes, Relaxed);
    }

    /// Whether the running task has requested reads since [`CpuState::set_read`].
    #[inline(always)]
    pub(crate) fn has_read(&self, bytes: u64) -> bool {
        self.read.load(Relaxed) != bytes
    }

    /// Whether a function that another CPU has requested is running, on a known chain, with
    /// interrupts off.
    #[inline(always)]
    pub(crate) fn is_calling(&self) -> bool {
        self.calls.load(Relaxed) != 0
    }

    #[inline(always)]
    pub(crate) fn set_calling(&self, calls: bool) {
        self.calls.store(calls.into(), Relaxed);
    }

    /// Appends the local interrupt that this CPU is in, if it came after the last step.
    pub(super) fn append_vector(&self, chain: &mut impl Words, cpu: u32) {
        let (vector, entered) = (self.vector.load(Relaxed), self.vector_entered.load(Relaxed));
        if vector != 0 && entered >= chain.last() {
            let (kind, subject) = (Kind::Vector, vector - 1);
            chain.push(entered, Step { kind, cpu, subject });
        }
    }

    /// Notes the waking of a softirq thread, if the thread was woken on this CPU before: a softirq
    /// thread never runs on another CPU. Returns whether it was.
    #[inline(always)]
    pub(crate) fn wake_known_thread(&self, task: u64, subject: u64) -> bool {
        let Some(thread) = self.thread(task) else {
            return false;
        };
        thread.subject.store(subject, Relaxed);
        thread.switched.store(0, Relaxed);
        thread.woken.store(Kernel::now(), Relaxed);
        true
    }

    /// Notes the first waking of a softirq thread of this CPU, if a slot is free.
    #[cold]
    #[inline(never)]
    pub(crate) fn wake_thread(&self, task: u64, subject: u64, name: [u64; 2]) {
        let now = Kernel::now();
        let of = |thread: &&Thread| [0, task].contains(&thread.task.load(Relaxed));
        let Some(thread) = self.threads.iter().find(of) else {
            return;
        };
        thread.subject.store(subject, Relaxed);
        thread.switched.store(0, Relaxed);
        thread.woken.store(now, Relaxed);
        for (word, value) in thread.name.iter().zip(place_of_name(name)) {
            word.store(value, Relaxed);
        }
        thread.task.store(task, Relaxed);
    }

    /// Returns the softirq thread with this task's address, if it was woken on this CPU.
    #[inline(always)]
    pub(crate) fn thread(&self, task: u64) -> Option<&Thread> {
        let mut threads = self.threads.iter();
        threads.find(|thread| thread.task.load(Relaxed) == task)
    }

    /// Appends the step of a softirq that is served, preceded by those steps of its serving thread
    /// that came after the raise.
    #[inline(always)]
    pub(super) fn append_served(
        &self,
        chain: &mut impl Words,
        task: u64,
        (now, served): (u64, Step),
    ) {
        let Some(thread) = self.thread(task) else {
            return chain.push(now, served);
        };
        let (subject, raised) = (thread.subject.load(Relaxed), chain.last());
        let step = |kind| Step {
            subject,
            kind,
            ..served
        };
        let (woken, switched) = (thread.woken.load(Relaxed), thread.switched.load(Relaxed));
        // The name is read late, so that no register must keep it.
        let name = || core::array::from_fn(|at| thread.name[at].load(Relaxed));
        if woken >= raised && switched >= woken {
            let mut row = chain.row::<4>();
            row.step(woken, step(Kind::Waking));
            row.step(switched, step(Kind::Switch));
            row.place(name());
            row.step(now, served);
            return row.end();
        }
        // At most one of the two steps came after the raise.
        if woken >= raised {
            chain.push(woken, step(Kind::Waking));
        }
        if switched >= raised {
            let mut row = chain.row::<2>();
            row.step(switched, step(Kind::Switch));
            row.place(name());
            row.end();
        }
        chain.push(now, served);
    }
}
