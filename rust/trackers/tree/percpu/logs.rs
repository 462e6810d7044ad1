// SPDX-License-Identifier: GPL-2.0

//! The rivals that had a CPU while tasks waited for it. Kept by an instance with `interference=1`.
//!
//! ```text
//!   sort        rivals                             word with its time
//!   interrupts  lines, local interrupts, NMIs      irq
//!               threads of interrupts
//!   softirqs    their vectors                      softirq
//!   tasks       all others                         neither, and not idle
//! ```
//!
//! At each change of rival, the slice of the rival that had the CPU ends. It is added to the log of
//! its sort (chain/log.rs), and the words of the CPU change (spent.rs). So the slices of a sort add
//! up to its word, except for NMIs, which have a sum of their own until the next change.
//!
//! An interrupt within another one has its own slices, and so does a handler that another handler
//! or a local interrupt has called. Softirqs in threads count as softirqs. The thread of an
//! interrupt counts as an interrupt while it runs no softirq.
//!
//! # Contexts
//!
//! Each log is changed with preemption off, by probes that do not interrupt each other: probes of
//! interrupts and of switches have interrupts off, and where a softirq begins or ends in the thread
//! of an interrupt, interrupts are turned off. A switch reads all logs, with interrupts off. An NMI
//! only adds to a word. Another CPU only counts the waits.

use super::{
    super::chain::{
        log::{Log, Sums, Who},
        rivals::{cut, who, Rivals, Sort, Table},
        wait::{self, MASK},
        Spent,
    },
    spent::Spending,
    word, CpuState, Guard, Word,
};
use crate::{
    engine::platform::Platform,
    sys::{atomic::Relaxed, interrupts, platform::Kernel, task::TaskRef},
};

/// The log of a sort, and the start of its slice that has not ended, by the sort's clock.
struct Line {
    since: Word,
    log: Log,
}

impl Line {
    fn new() -> Self {
        let since = word();
        let log = Log::new();
        Self { since, log }
    }
}

/// The values of [`Head::thread`]. NONE: no thread that counts as an interrupt is running; THREAD:
/// one is running; INTERRUPTED: one is running, and an interrupt has interrupted it.
const NONE: u64 = 0;
const THREAD: u64 = 1;
const INTERRUPTED: u64 = 2;

/// The sorts of rivals.
const IRQS: usize = 0;
const SOFTIRQS: usize = 1;
const TASKS: usize = 2;
const SORTS: usize = 3;

/// The sums of all sorts of a CPU.
pub(super) type AllSums = [Sums; SORTS];

/// The state of a CPU besides its sums.
pub(crate) struct Head {
    /// Number of waits that have begun.
    waits: Word,
    lines: [Line; SORTS],
    /// The time of NMIs that is in no slice yet.
    nmi: Word,
    /// [`NONE`], [`THREAD`] or [`INTERRUPTED`].
    thread: Word,
    /// The softirq that is running.
    vector: Word,
    /// Time of the last switch, and the totals at that time.
    at: Word,
    spent: [Word; 3],
}

/// The start of the name of an interrupt's thread.
const IRQ: u64 = u32::from_le_bytes(*b"irq/") as u64;

fn is_of_interrupt(task: &TaskRef<'_>) -> bool {
    task.is_kthread() && task.comm()[0] & u64::from(u32::MAX) == IRQ
}

/// Returns a task as a rival.
fn who_is(task: &TaskRef<'_>) -> Who {
    let sort = if is_of_interrupt(task) {
        Sort::Thread
    } else {
        Sort::Task
    };
    let [low, high] = task.comm();
    [who(sort, task.tid()), low, high]
}

/// The logs of a CPU. See the head of this file.
#[derive(Clone, Copy)]
pub(crate) struct Logs<'a> {
    pub(super) head: &'a Head,
    pub(super) sums: &'a AllSums,
}

impl Head {
    pub(super) fn new() -> Self {
        Self {
            waits: word(),
            lines: [Line::new(), Line::new(), Line::new()],
            nmi: word(),
            thread: word(),
            vector: word(),
            at: word(),
            spent: [word(), word(), word()],
        }
    }

    /// Clears the logs, while no probe is running.
    pub(super) fn reset(&self, now: u64) {
        for line in &self.lines {
            line.log.reset();
            line.since.store(now, Relaxed);
        }
        for word in [&self.waits, &self.nmi, &self.thread] {
            word.store(0, Relaxed);
        }
    }

    /// Counts a task that waits for this CPU. Any CPU.
    #[inline(always)]
    pub(super) fn begin_wait(&self) {
        self.waits.fetch_add(1, Relaxed);
    }
}

impl Logs<'_> {
    fn add(&self, sort: usize, who: Who, time: u64, end: u64) {
        let (log, sums) = (&self.head.lines[sort].log, &self.sums[sort]);
        log.add(sums, self.head.waits.load(Relaxed), who, time, end);
    }

    /// Returns the rivals that had this CPU in a wait from `since` on, when the totals were
    /// `noted`, until the current switch; none if the wait is shorter than `least`.
    #[inline(never)]
    pub(crate) fn rivals(&self, since: u64, noted: Spent, least: u64) -> Rivals {
        let wait = self.head.at.load(Relaxed).saturating_sub(since);
        let [irq, softirq, idle] = [0, 1, 2].map(|at| self.head.spent[at].load(Relaxed) & MASK);
        let spent = Spent { irq, softirq, idle };
        let parts = noted.until(spent, wait).filter(|_| wait >= least);
        let Some(parts) = parts else {
            return Rivals::default();
        };
        let mut table = Table::new();
        let of_sorts = [parts.irq, parts.softirq, parts.tasks(wait)];
        for ((line, sums), part) in self.head.lines.iter().zip(self.sums).zip(of_sorts) {
            let see = |who, time| table.add(who, time);
            let rest = line.log.divide(sums, since, part, see);
            table.add_rest(rest);
        }
        table.most(wait)
    }
}

/// A CPU whose time is divided.
pub(crate) struct Timed<'a> {
    on_cpu: &'a CpuState,
    spending: &'a Spending,
    logs: Logs<'a>,
}

impl<'a> Timed<'a> {
    #[inline(always)]
    pub(super) fn new(on_cpu: &'a CpuState, logs: Logs<'a>) -> Self {
        let spending = on_cpu.spending();
        Self {
            on_cpu,
            spending,
            logs,
        }
    }

    /// Ends the slice of an interrupt at this time, and starts the next.
    fn cut(&self, who: Who, at: u64) {
        let since = &self.logs.head.lines[IRQS].since;
        let time = at.saturating_sub(since.load(Relaxed));
        self.logs.add(IRQS, who, time, at);
        since.store(at, Relaxed);
    }

    /// Ends the slice of the NMIs since the last change.
    fn cut_nmi(&self, guard: &Guard, at: u64) {
        let time = self.logs.head.nmi.load(Relaxed);
        if time != 0 {
            Kernel::add_local(guard, &self.logs.head.nmi, time.wrapping_neg());
            self.logs.add(IRQS, [who(Sort::Nmi, 0), 0, 0], time, at);
        }
    }

    /// Notes that a handler, or a local interrupt, has begun at this time.
    #[inline(always)]
    pub(crate) fn enter_irq(&self, guard: &Guard, at: u64) {
        if !wait::is_running(self.spending.irq.load(Relaxed)) {
            Kernel::add_local(guard, &self.spending.irq, wait::begin(at));
            self.logs.head.lines[IRQS].since.store(at, Relaxed);
        } else {
            self.enter_inner(at);
        }
    }

    /// Notes that a handler, or a local interrupt, has begun inside another one, or in the thread
    /// of an interrupt.
    #[cold]
    #[inline(never)]
    fn enter_inner(&self, at: u64) {
        if let Some(outer) = self.on_cpu.outer() {
            self.cut(who_interrupts(outer), at);
        } else if self.logs.head.thread.load(Relaxed) == THREAD {
            self.logs.head.thread.store(INTERRUPTED, Relaxed);
            TaskRef::with_current(|thread| self.cut(who_is(&thread), at));
        }
    }

    /// Notes that an interrupt has ended.
    #[inline(always)]
    pub(crate) fn leave_irq(&self, guard: &Guard, interrupt: Interrupt) {
        if !wait::is_running(self.spending.irq.load(Relaxed)) {
            return;
        }
        let at = Kernel::now();
        if self.on_cpu.is_out_of_interrupts() {
            self.cut_nmi(guard, at);
            match self.logs.head.thread.load(Relaxed) {
                NONE => Kernel::add_local(guard, &self.spending.irq, wait::end(at)),
                // The start of the handler was not seen.
                THREAD => return,
                _ => self.logs.head.thread.store(THREAD, Relaxed),
            }
        }
        self.cut(who_interrupts(interrupt), at);
    }

    /// Adds the time of an NMI. If it came in an interrupt, or in the thread of one, that
    /// interrupt's slice is shortened. An NMI that comes after the clock was read for the start or
    /// end of an interrupt, but before the word is changed, may count twice, or not at all.
    pub(crate) fn nmi(&self, guard: &Guard, time: u64) {
        if wait::is_running(self.spending.irq.load(Relaxed)) {
            Kernel::add_local(guard, &self.logs.head.lines[IRQS].since, time);
        } else {
            Kernel::add_local(guard, &self.spending.irq, wait::more(time));
        }
        Kernel::add_local(guard, &self.logs.head.nmi, time);
    }

    /// Stops counting the current task, the thread of an interrupt, as an interrupt. Interrupts are
    /// off.
    fn stop_thread(&self, guard: &Guard, at: u64) {
        TaskRef::with_current(|thread| self.cut(who_is(&thread), at));
        Kernel::add_local(guard, &self.spending.irq, wait::end(at));
        self.logs.head.thread.store(NONE, Relaxed);
    }

    /// Starts counting a thread of an interrupt, the current task or the next one, as an interrupt,
    /// unless an interrupt is being counted. Interrupts are off.
    fn start_thread(&self, guard: &Guard, at: u64) {
        if !wait::is_running(self.spending.irq.load(Relaxed)) {
            Kernel::add_local(guard, &self.spending.irq, wait::begin(at));
            self.logs.head.lines[IRQS].since.store(at, Relaxed);
            self.logs.head.thread.store(THREAD, Relaxed);
        }
    }

    fn start_softirq(&self, guard: &Guard, vector: u64, clock: u64) {
        if !wait::is_running(self.spending.softirq.load(Relaxed)) {
            Kernel::add_local(guard, &self.spending.softirq, wait::begin(clock));
            self.logs.head.lines[SOFTIRQS].since.store(clock, Relaxed);
            self.logs.head.vector.store(vector, Relaxed);
        }
    }

    fn stop_softirq(&self, guard: &Guard, (now, clock): (u64, u64)) {
        if wait::is_running(self.spending.softirq.load(Relaxed)) {
            Kernel::add_local(guard, &self.spending.softirq, wait::end(clock));
            let line = &self.logs.head.lines[SOFTIRQS];
            let who = who(Sort::Softirq, self.logs.head.vector.load(Relaxed) as u32);
            let time = clock.saturating_sub(line.since.load(Relaxed));
            self.logs.add(SOFTIRQS, [who, 0, 0], time, now);
        }
    }

    /// Notes that a softirq begins. Returns the time.
    #[inline(always)]
    pub(crate) fn enter_softirq(&self, guard: &Guard, vector: usize) -> u64 {
        if self.logs.head.thread.load(Relaxed) != NONE {
            interrupts::off(|| self.stop_thread(guard, Kernel::now()));
        }
        let (now, clock) = self.spending.clocks();
        self.start_softirq(guard, vector as u64, clock);
        now
    }

    /// Notes that the softirq ends.
    #[inline(always)]
    pub(crate) fn leave_softirq(&self, guard: &Guard) {
        self.stop_softirq(guard, self.spending.clocks());
        TaskRef::with_current(|current| {
            if is_of_interrupt(&current) {
                interrupts::off(|| self.start_thread(guard, Kernel::now()));
            }
        });
    }

    /// Handles the switch from one task to another; `serves`: the softirq that `next` resumes, if
    /// any. Interrupts are off.
    #[inline(never)]
    pub(crate) fn switch(
        &self,
        guard: &Guard,
        prev: &TaskRef<'_>,
        next: &TaskRef<'_>,
        serves: Option<u64>,
    ) {
        if self.logs.head.thread.load(Relaxed) != NONE {
            self.stop_thread(guard, Kernel::now());
        }
        let (at, clock) = self.spending.clocks();
        self.cut_nmi(guard, at);
        self.stop_softirq(guard, (at, clock));
        let Spending { irq, softirq, idle } = self.spending;
        let irq = wait::total(irq.load(Relaxed), at);
        let softirq = wait::total(softirq.load(Relaxed), clock);
        let clock_of_idle = clock.wrapping_sub(softirq);
        if wait::is_running(idle.load(Relaxed)) {
            Kernel::add_local(guard, idle, wait::end(clock_of_idle));
        }
        let idled = wait::total(idle.load(Relaxed), clock_of_idle);
        let line = &self.logs.head.lines[TASKS];
        let end = clock_of_idle.wrapping_sub(idled);
        if !prev.is_idle() {
            let time = end.saturating_sub(line.since.load(Relaxed));
            self.logs.add(TASKS, who_is(prev), time, at);
        }
        line.since.store(end, Relaxed);
        self.logs.head.at.store(at, Relaxed);
        for (word, total) in self.logs.head.spent.iter().zip([irq, softirq, idled]) {
            word.store(total, Relaxed);
        }
        if next.is_idle() {
            Kernel::add_local(guard, idle, wait::begin(clock_of_idle));
        } else if let Some(vector) = serves {
            self.start_softirq(guard, vector, clock);
        } else if is_of_interrupt(next) {
            self.start_thread(guard, at);
        }
    }
}

/// An interrupt that a CPU runs.
#[derive(Clone, Copy)]
pub(crate) enum Interrupt {
    /// The handler of a line, with the first bytes of its action's name, which may be longer.
    Handler(u64, [u64; 2]),
    /// A local interrupt, by its position in the list of local interrupts.
    Vector(u64),
}

fn who_interrupts(interrupt: Interrupt) -> Who {
    match interrupt {
        Interrupt::Handler(line, name) => {
            let [low, high] = cut(name);
            [who(Sort::Irq, line as u32), low, high]
        }
        Interrupt::Vector(position) => [who(Sort::Vector, position as u32), 0, 0],
    }
}
