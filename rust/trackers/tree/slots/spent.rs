// SPDX-License-Identifier: GPL-2.0

//! What a CPU spends its time on besides tasks, as running totals: see path/wait.rs.
//!
//! ```text
//!   word      changed by                               when
//!   irq       handlers of interrupts, local ones       outermost entry and exit, interrupts off
//!             NMIs                                     afterwards, by how long they took
//!   softirq   softirqs; not on PREEMPT_RT              entry and exit, preemption off
//!   idle      switches from and to the idle task       interrupts off
//! ```
//!
//! On PREEMPT_RT softirqs run in tasks, which others preempt: they count as tasks.
//!
//! # Orderings
//!
//! Only the CPU itself changes its words, each by one addition that nothing on the CPU can come in
//! between (`Platform::add_local`), and an NMI adds to the word of interrupts while something else
//! does not: the order of additions does not matter. The probes of one word do not interrupt each
//! other, as the table says, so begin and end alternate.
//!
//! The CPU that wakes a task reads the words of the one where the task will wait, and notes what it
//! has read in the tip. Each word is read at once, and is right by itself: a total that runs has
//! begun, one that does not has ended, and nothing else is in memory that the word speaks of. So
//! relaxed is enough, there is nothing to publish. When the task is switched in, that CPU reads its
//! own words: no older values than those noted, since a word has one order of changes for all
//! (coherence), and the tip was found after it was made, which is acquired with it.
//!
//! What is read may be off by how long the reading takes: the clock was read a moment before, and an
//! interrupt may begin or end on the other CPU between one word and the next. `Spent::until` keeps
//! the parts from being negative, or more than the wait.

use super::{super::path::wait, super::path::Spent, word, Guard, Word};
use crate::{
    engine::platform::Platform,
    sys::{atomic::Relaxed, platform::Kernel},
};

/// The totals of a CPU.
pub(super) struct Spending {
    irq: Word,
    softirq: Word,
    idle: Word,
}

impl Spending {
    pub(super) fn new() -> Self {
        Self {
            irq: word(),
            softirq: word(),
            idle: word(),
        }
    }

    /// Nothing runs, while no probe does.
    pub(super) fn reset(&self) {
        for word in [&self.irq, &self.softirq, &self.idle] {
            word.store(0, Relaxed);
        }
    }

    /// An interrupt begins; one inside of another changes nothing.
    #[inline(always)]
    pub(super) fn enter_irq(&self, guard: &Guard, now: u64) {
        if !wait::is_running(self.irq.load(Relaxed)) {
            Kernel::add_local(guard, &self.irq, wait::begin(now));
        }
    }

    /// The outermost interrupt ends, if its begin was seen.
    #[inline(always)]
    pub(super) fn leave_irq(&self, guard: &Guard) {
        if wait::is_running(self.irq.load(Relaxed)) {
            Kernel::add_local(guard, &self.irq, wait::end(Kernel::now()));
        }
    }

    /// An NMI has taken this long. If it came in an interrupt, it is a part of that. One that comes
    /// between the clock and the word of an interrupt's begin or end may count twice, or not.
    pub(super) fn nmi(&self, guard: &Guard, time: u64) {
        if !wait::is_running(self.irq.load(Relaxed)) {
            Kernel::add_local(guard, &self.irq, wait::more(time));
        }
    }

    /// The time, and that of the clock that stands still in interrupts. Interrupts may be on.
    #[inline(always)]
    fn clocks(&self) -> (u64, u64) {
        loop {
            let irq = self.irq.load(Relaxed);
            let now = Kernel::now();
            // No interrupt has come in between.
            if self.irq.load(Relaxed) == irq {
                return (now, now.wrapping_sub(wait::total(irq, now)));
            }
        }
    }

    /// A softirq begins. Returns the time.
    #[inline(always)]
    pub(super) fn enter_softirq(&self, guard: &Guard) -> u64 {
        let (now, clock) = self.clocks();
        if !cfg!(CONFIG_PREEMPT_RT) && !wait::is_running(self.softirq.load(Relaxed)) {
            Kernel::add_local(guard, &self.softirq, wait::begin(clock));
        }
        now
    }

    /// It ends.
    #[inline(always)]
    pub(super) fn leave_softirq(&self, guard: &Guard) {
        if wait::is_running(self.softirq.load(Relaxed)) {
            let (_, clock) = self.clocks();
            Kernel::add_local(guard, &self.softirq, wait::end(clock));
        }
    }

    /// The idle task is switched in, or out. Interrupts are off.
    #[inline(never)]
    pub(super) fn switch_idle(&self, guard: &Guard, is_in: bool) {
        if wait::is_running(self.idle.load(Relaxed)) == is_in {
            return;
        }
        let (_, clock) = self.clocks();
        let clock = clock.wrapping_sub(wait::total(self.softirq.load(Relaxed), clock));
        let change = if is_in { wait::begin } else { wait::end };
        Kernel::add_local(guard, &self.idle, change(clock));
    }

    /// All totals at this time. Any CPU.
    #[inline]
    pub(super) fn at(&self, now: u64) -> Spent {
        let words = [&self.irq, &self.softirq, &self.idle];
        Spent::of(words.map(|word| word.load(Relaxed)), now)
    }
}
