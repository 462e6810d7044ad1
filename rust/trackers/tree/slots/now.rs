// SPDX-License-Identifier: GPL-2.0

//! What a CPU is doing: its hard interrupt, with the timer in it, and its tasks.
//!
//! See the head of slots.rs.

use super::{
    super::path::{Kind, Origin, Spent, Step, Words},
    spent::Spending,
    word, Guard, Kept, Since, Timers, Word,
};
use crate::sys::{
    atomic::Relaxed,
    irq::{Action, NAME_WORDS},
    timer::{HighRes, Timer, CLOCKS}, //
};

/// How many handlers run, in a word; and above that, what came of the one that has returned last:
/// nothing that matters now, or one of these.
const DEPTH: u64 = u32::MAX as u64;
/// Its thread is about to be woken.
const WAKES: u64 = 1 << 32;
/// It is over.
const OVER: u64 = 2 << 32;

/// How many handlers are known, each called by the one before: those of controllers that find out
/// which of their own lines it is. Those further inside are taken for the last one that is known.
const NESTED: usize = 3;

/// A handler that was called.
struct Called {
    irq: Word,
    entered: Word,
    /// Its name, uncut: most are never needed.
    action: [Word; NAME_WORDS],
}

impl Called {
    /// It is called now. Returns the time.
    ///
    /// The name of the action is copied, though few interrupts need it: the action may be freed once
    /// the handler has returned.
    #[inline(always)]
    fn enter(&self, irq: u32, action: Action<'_>, now: impl FnOnce() -> u64) -> u64 {
        self.irq.store(irq.into(), Relaxed);
        action.with_uncut_name(|name| {
            for (word, value) in self.action.iter().zip(name) {
                word.store(value, Relaxed);
            }
        });
        // Last: less has to be kept in registers during the call.
        let now = now();
        self.entered.store(now, Relaxed);
        now
    }
}

/// The clocks that can be set: their times minus `CLOCK_MONOTONIC`.
struct Clock {
    offset: Word,
    /// When that was seen to change.
    since: Word,
}

/// The words of a timer whose function runs.
struct Expiring {
    due: Word,
    latest: Word,
    /// 0 if there is none.
    function: Word,
    called: Word,
}

/// What is known of when a timer was due.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timing {
    /// To the nanosecond.
    Exact = 0,
    /// The tick.
    Tick = 1,
    /// Nothing: it may be as late as it likes.
    Any = 2,
}

impl Timing {
    pub(super) fn of(word: u64) -> Self {
        match word {
            0 => Timing::Exact,
            1 => Timing::Tick,
            _ => Timing::Any,
        }
    }
}

impl Expiring {
    fn new() -> Self {
        Self {
            due: word(),
            latest: word(),
            function: word(),
            called: word(),
        }
    }

    /// Its function is called, and it was not due before `since`.
    #[inline(always)]
    fn enter(&self, timer: &Timer, since: u64, now: u64) {
        self.due.store(timer.due.max(since), Relaxed);
        self.latest.store(timer.latest.max(since), Relaxed);
        self.called.store(now, Relaxed);
        self.function.store(timer.function, Relaxed);
    }

    #[inline(always)]
    fn leave(&self) {
        self.function.store(0, Relaxed);
    }

    /// What is known of the timer with this function.
    #[inline(always)]
    fn expired(&self, function: u64) -> Expired {
        Expired {
            due: self.due.load(Relaxed),
            latest: self.latest.load(Relaxed),
            function,
            called: self.called.load(Relaxed),
            timing: Timing::Exact,
        }
    }
}

/// The interrupt that a path begins with.
struct First<'a> {
    origin: Origin,
    at: u64,
    step: Step,
    /// The handler, if it is that of a device.
    called: Option<&'a Called>,
}

impl<'a> First<'a> {
    #[inline(always)]
    fn of_handler(called: &'a Called, cpu: u32) -> Self {
        let (kind, subject) = (Kind::Irq, called.irq.load(Relaxed));
        Self {
            origin: Origin::Irq,
            at: called.entered.load(Relaxed),
            step: Step { kind, cpu, subject },
            called: Some(called),
        }
    }

    /// Begins the path. Returns when.
    #[inline(always)]
    fn begin(self, path: &mut impl Words) -> u64 {
        path.begin_with(self.origin, [(self.at, self.step)]);
        if let Some(called) = self.called {
            path.set_action(core::array::from_fn(|at| called.action[at].load(Relaxed)));
        }
        self.at
    }
}

/// The path on which a timer is called.
pub(super) enum Base<'a> {
    /// It is not known.
    Unknown,
    /// It is this interrupt, without another step.
    First(First<'a>),
    /// It began at this time.
    Path(u64, Kept<'a>),
}

impl Base<'_> {
    /// Makes the path. Returns when it begins.
    #[inline(always)]
    fn begin(self, path: &mut impl Words) -> Option<u64> {
        match self {
            Base::Unknown => None,
            Base::First(first) => Some(first.begin(path)),
            Base::Path(start, from) => {
                path.copy_from(&from);
                Some(start)
            }
        }
    }
}

/// A timer whose function runs.
#[derive(Clone, Copy)]
pub(super) struct Expired {
    pub(super) due: u64,
    pub(super) latest: u64,
    pub(super) function: u64,
    pub(super) called: u64,
    pub(super) timing: Timing,
}

impl Expired {
    /// Makes the path to what its function does. Returns when the path begins.
    #[inline(always)]
    pub(super) fn way(
        self,
        path: &mut impl Words,
        base: Base<'_>,
        cpu: u32,
        timers: Timers,
    ) -> Option<u64> {
        let called = self.called;
        let step = |kind| Step {
            kind,
            cpu,
            subject: self.function,
        };
        let (origin, kind) = match self.timing {
            Timing::Exact => (Origin::Timer, Kind::Due),
            _ => (Origin::Wheel, Kind::Wheel),
        };
        let start = match timers.since {
            Since::NoOrigin => {
                let start = base.begin(path)?;
                path.push(called, step(Kind::Expire));
                return Some(start);
            }
            Since::Vector => {
                let start = if let Some(start) = base.begin(path) {
                    path.push(called, step(Kind::Expire));
                    start
                } else {
                    // It is called by none that is known: nothing earlier is.
                    path.begin_with(origin, [(called, step(Kind::Expire))]);
                    called
                };
                let mut counts = path.counts();
                counts.set_origin(origin);
                path.set_counts(counts);
                timers.mark(path);
                return Some(start);
            }
            Since::Due => self.due,
            Since::Latest => self.latest,
        };
        // The clock of the interrupt may be a little ahead of ours.
        let start = start.min(called);
        let (due, expire) = ((start, step(kind)), (called, step(Kind::Expire)));
        match base {
            // Mostly a local interrupt, and nothing else.
            Base::First(First { at, step, .. }) if at >= start => {
                path.begin_with(origin, [due, (at, step), expire]);
            }
            Base::First(_) | Base::Unknown => path.begin_with(origin, [due, expire]),
            Base::Path(begin, before) => {
                path.begin_with(origin, [due]);
                // What came before the timer was due is not on the way from there.
                path.append(begin, &before, start);
                path.push(called, step(Kind::Expire));
            }
        }
        timers.mark(path);
        Some(start)
    }
}

impl Timers {
    /// Marks the path of a timer.
    #[inline(always)]
    fn mark(self, path: &mut impl Words) {
        if self.is_refused {
            let mut counts = path.counts();
            counts.set_refused();
            path.set_counts(counts);
        }
    }
}

/// A thread of softirqs.
struct Thread {
    task: Word,
    subject: Word,
    woken: Word,
    switched: Word,
    name: [Word; 2],
}

/// The threads of softirqs of a CPU.
const THREADS: usize = 2;

/// What a CPU is doing.
pub(crate) struct Now {
    /// How many handlers run, the last one inside of the others; see [`DEPTH`].
    handlers: Word,
    called: [Called; NESTED],
    /// The position of the local interrupt, from 1; 0 for none.
    vector: Word,
    vector_entered: Word,
    timer: Expiring,
    /// The address of the task that runs, if it has a tip.
    running: Word,
    /// Whether a function runs that another CPU has requested, on a path that is known.
    calls: Word,
    /// What it spends its time on, if the instance wants to know.
    spending: Spending,
    threads: [Thread; THREADS],
    clocks: [Clock; CLOCKS],
}

impl Now {
    pub(super) fn new() -> Self {
        Self {
            handlers: word(),
            called: core::array::from_fn(|_| Called {
                irq: word(),
                entered: word(),
                action: core::array::from_fn(|_| word()),
            }),
            vector: word(),
            vector_entered: word(),
            timer: Expiring::new(),
            running: word(),
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

    /// Forgets all; the clocks are what they are now.
    pub(super) fn reset(&self, offsets: [u64; CLOCKS]) {
        self.forget_handlers();
        self.vector.store(0, Relaxed);
        self.timer.leave();
        self.running.store(0, Relaxed);
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

    /// A handler is called, perhaps by another one. Returns the time.
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

    /// A handler that was called by another one, if it is among those that are known.
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

    /// It has returned. The one that has called it, if any, goes on.
    #[inline(always)]
    pub(crate) fn leave_handler(&self) {
        self.handlers
            .store(self.depth().saturating_sub(1) | OVER, Relaxed);
    }

    /// The thread of the action of the handler that has just returned is woken next (trap 1).
    #[inline(always)]
    pub(crate) fn wakes_thread(&self) {
        self.handlers.store(self.depth() | WAKES, Relaxed);
    }

    /// An interrupt begins, perhaps in another one: its time is that of interrupts.
    #[inline(always)]
    pub(crate) fn time_interrupt(&self, guard: &Guard, now: u64) {
        self.spending.enter_irq(guard, now);
    }

    /// It has ended, and left.
    #[inline(always)]
    pub(crate) fn time_after_interrupt(&self, guard: &Guard) {
        if self.depth() == 0 && self.vector.load(Relaxed) == 0 {
            self.spending.leave_irq(guard);
        }
    }

    /// An NMI has taken this long.
    pub(crate) fn time_nmi(&self, guard: &Guard, time: u64) {
        self.spending.nmi(guard, time);
    }

    /// A softirq begins. Returns the time.
    #[inline(always)]
    pub(crate) fn time_softirq(&self, guard: &Guard) -> u64 {
        self.spending.enter_softirq(guard)
    }

    /// It has ended.
    #[inline(always)]
    pub(crate) fn time_after_softirq(&self, guard: &Guard) {
        self.spending.leave_softirq(guard);
    }

    /// The CPU goes to the idle task, or comes from it.
    #[inline(always)]
    pub(crate) fn time_switch(&self, guard: &Guard, from_idle: bool, to_idle: bool) {
        if from_idle || to_idle {
            self.spending.switch_idle(guard, to_idle);
        }
    }

    /// What it has spent its time on by now. Any CPU.
    #[inline(always)]
    pub(super) fn spent(&self, now: u64) -> Spent {
        self.spending.at(now)
    }

    /// The CPU does something else now: no interrupt that comes without a tracepoint is taken for
    /// the last one (trap 3).
    #[inline(always)]
    pub(crate) fn forget_handlers(&self) {
        self.handlers.store(0, Relaxed);
    }

    /// Whether a handler has returned, and nothing else has been seen since.
    pub(crate) fn is_stale(&self) -> bool {
        let handlers = self.handlers.load(Relaxed);
        handlers != 0 && handlers & DEPTH == 0 && self.vector.load(Relaxed) == 0
    }

    /// How many handlers run.
    #[inline(always)]
    fn depth(&self) -> u64 {
        self.handlers.load(Relaxed) & DEPTH
    }

    /// The handler that a waking comes from, or the waking of a thread, which comes after the
    /// handler has returned or from one that runs (`irq_wake_thread`).
    fn handler(&self, wakes_thread: bool) -> Option<&Called> {
        let (handlers, depth) = (self.handlers.load(Relaxed), self.depth());
        let nth = if wakes_thread && handlers & !DEPTH == WAKES {
            // It is woken once.
            self.handlers.store(depth | OVER, Relaxed);
            depth
        } else {
            depth.checked_sub(1)?
        };
        self.called.get((nth as usize).min(NESTED - 1))
    }

    /// When a clock was last seen to be set, 0 for not yet: its timers that were due before only
    /// became due then. One that is asked for its offset here, with each timer, is enough: those
    /// that become due by that are called at once.
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

    /// The function of a timer is called, which was not due before `since`.
    #[inline(always)]
    pub(crate) fn enter_timer(&self, timer: &Timer, since: u64, now: u64) {
        self.timer.enter(timer, since, now);
    }

    /// The same of a timer whose clock may be set.
    #[inline(never)]
    pub(crate) fn enter_timer_of_clock(&self, timer: HighRes<'_>, now: u64) {
        let timer = timer.read();
        self.enter_timer(&timer, self.clock_set(&timer, now), now);
    }

    #[inline(always)]
    pub(crate) fn leave_timer(&self) {
        self.timer.leave();
    }

    /// Makes the path to where this hard interrupt is, to wake a task; or to wake the thread of its
    /// action, which happens after the handler. Returns when it begins.
    #[inline]
    pub(crate) fn hard(
        &self,
        path: &mut impl Words,
        cpu: u32,
        timers: impl FnOnce(Timing, u64) -> Timers,
        wakes_thread: bool,
    ) -> Option<u64> {
        match self.timer.function.load(Relaxed) {
            0 => Some(self.first(cpu, wakes_thread)?.begin(path)),
            function => self.timer_in_hard(function, path, cpu, timers, wakes_thread),
        }
    }

    /// The same, if the function of a timer runs there.
    #[inline(never)]
    fn timer_in_hard(
        &self,
        function: u64,
        path: &mut impl Words,
        cpu: u32,
        timers: impl FnOnce(Timing, u64) -> Timers,
        wakes_thread: bool,
    ) -> Option<u64> {
        let timer = self.timer.expired(function);
        let timers = timers(timer.timing, function);
        let mut way = |base| timer.way(path, base, cpu, timers);
        // Called apart, so that each is in line with what is known of the base.
        if let Some(called) = self.handler(wakes_thread) {
            way(Base::First(First::of_handler(called, cpu)))
        } else if let Some(first) = self.first_of_vector(cpu) {
            way(Base::First(first))
        } else {
            way(Base::Unknown)
        }
    }

    /// The interrupt that the path begins with.
    #[inline(always)]
    fn first(&self, cpu: u32, wakes_thread: bool) -> Option<First<'_>> {
        // A handler is inside of the local interrupt that has called it, if there is one.
        match self.handler(wakes_thread) {
            Some(called) => Some(First::of_handler(called, cpu)),
            None => self.first_of_vector(cpu),
        }
    }

    /// The same, if no handler runs.
    #[inline(always)]
    fn first_of_vector(&self, cpu: u32) -> Option<First<'_>> {
        let vector = self.vector.load(Relaxed).checked_sub(1)?;
        let (kind, subject) = (Kind::Vector, vector);
        Some(First {
            origin: Origin::Vector,
            at: self.vector_entered.load(Relaxed),
            step: Step { kind, cpu, subject },
            called: None,
        })
    }

    /// The address of the task that runs, if it has a tip; 0 if not. A switch finds there the task
    /// that it leaves, or 0.
    #[inline(always)]
    pub(crate) fn running(&self) -> u64 {
        self.running.load(Relaxed)
    }

    /// Whether that is this task.
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

    /// Whether a function runs that another CPU has requested, on a path that is known. Interrupts
    /// are off meanwhile.
    #[inline(always)]
    pub(crate) fn is_calling(&self) -> bool {
        self.calls.load(Relaxed) != 0
    }

    #[inline(always)]
    pub(crate) fn set_calling(&self, calls: bool) {
        self.calls.store(calls.into(), Relaxed);
    }

    /// Appends the local interrupt that this CPU is in, if it came after the last step.
    pub(super) fn append_vector(&self, path: &mut impl Words, cpu: u32) {
        let (vector, entered) = (self.vector.load(Relaxed), self.vector_entered.load(Relaxed));
        if vector != 0 && entered >= path.last() {
            let (kind, subject) = (Kind::Vector, vector - 1);
            path.push(entered, Step { kind, cpu, subject });
        }
    }

    /// A thread of softirqs of this CPU is woken.
    pub(crate) fn wake_thread(&self, task: u64, subject: u64, name: [u64; 2], now: u64) {
        let of = |thread: &&Thread| [0, task].contains(&thread.task.load(Relaxed));
        let Some(thread) = self.threads.iter().find(of) else {
            return;
        };
        thread.subject.store(subject, Relaxed);
        thread.switched.store(0, Relaxed);
        thread.woken.store(now, Relaxed);
        for (word, value) in thread.name.iter().zip(name) {
            word.store(value, Relaxed);
        }
        thread.task.store(task, Relaxed);
    }

    /// Whether a task is one of its threads of softirqs that it has woken.
    #[inline(always)]
    pub(crate) fn is_thread(&self, task: u64) -> bool {
        let mut threads = self.threads.iter();
        threads.any(|thread| thread.task.load(Relaxed) == task)
    }

    /// A task is switched in.
    pub(crate) fn switch_thread(&self, task: u64, now: impl FnOnce() -> u64) {
        let of = |thread: &&Thread| thread.task.load(Relaxed) == task;
        if let Some(thread) = self.threads.iter().find(of) {
            thread.switched.store(now(), Relaxed);
        }
    }

    /// The steps of the thread that serves a softirq, as far as they came after it was raised.
    #[inline(always)]
    pub(super) fn append_thread(&self, path: &mut impl Words, task: u64, cpu: u32) {
        if self.is_thread(task) {
            self.append_steps_of(task, path, cpu);
        }
    }

    #[inline(never)]
    fn append_steps_of(&self, task: u64, path: &mut impl Words, cpu: u32) {
        let of = |thread: &&Thread| thread.task.load(Relaxed) == task;
        let Some(thread) = self.threads.iter().find(of) else {
            return;
        };
        let subject = thread.subject.load(Relaxed);
        let step = |kind| Step { kind, cpu, subject };
        let (woken, switched) = (thread.woken.load(Relaxed), thread.switched.load(Relaxed));
        if woken >= path.last() {
            path.push(woken, step(Kind::Waking));
        }
        if switched >= path.last() {
            let name = core::array::from_fn(|at| thread.name[at].load(Relaxed));
            path.push_named(switched, step(Kind::Switch), name);
        }
    }
}
