// SPDX-License-Identifier: GPL-2.0

//! Running totals of the time that a CPU does not spend on tasks: see chain/wait.rs.
//!
//! ```text
//!   word      changed by                               when
//!   irq       handlers, local interrupts               outermost entry and exit, interrupts off
//!             threads of interrupts                    switches, softirqs in them; interrupts off
//!             NMIs                                     afterwards, by how long they took
//!   softirq   softirqs                                 entry and exit, preemption off
//!             switches from and to tasks in softirqs   PREEMPT_RT only; interrupts off
//!   idle      switches from and to the idle task       interrupts off
//! ```
//!
//! The words are changed in logs.rs.
//!
//! # Orderings
//!
//! Only the CPU itself changes its words, each by one addition that nothing on the CPU can
//! interrupt (`Platform::add_local`). An NMI adds to the word of interrupts in the middle of
//! another probe: the order of additions does not matter. The probes of one word do not interrupt
//! each other, as the table shows, so starts and ends alternate.
//!
//! The CPU that wakes a task reads the words of the CPU where the task will wait, and notes them in
//! the tip. Each word is read with one load, and is consistent by itself: it shows whether its
//! total is running, and refers to nothing else in memory. So relaxed suffices. When the task is
//! switched in, that CPU reads its own words. These values are not older than the noted ones, since
//! all CPUs see the changes of a word in one order (coherence), and the lookup of the tip is an
//! acquire.
//!
//! The values may be off by the duration of the reading: the clock was read a moment before, and an
//! interrupt may begin or end on the other CPU between one word and the next. `Spent::until` keeps
//! the parts from being negative, or more than the wait.

use super::{super::chain::wait, super::chain::Spent, word, Word};
use crate::{
    engine::platform::Platform,
    sys::{atomic::Relaxed, platform::Kernel},
};

/// The totals of a CPU.
pub(super) struct Spending {
    pub(super) irq: Word,
    pub(super) softirq: Word,
    pub(super) idle: Word,
}

impl Spending {
    pub(super) fn new() -> Self {
        Self {
            irq: word(),
            softirq: word(),
            idle: word(),
        }
    }

    /// Resets the totals to 0, none of them running, while no probe is running.
    pub(super) fn reset(&self) {
        for word in [&self.irq, &self.softirq, &self.idle] {
            word.store(0, Relaxed);
        }
    }

    /// Returns the time, and the clock that stands still in interrupts. Interrupts may be on.
    #[inline(always)]
    pub(super) fn clocks(&self) -> (u64, u64) {
        loop {
            let irq = self.irq.load(Relaxed);
            let now = Kernel::now();
            // No interrupt came in between.
            if self.irq.load(Relaxed) == irq {
                return (now, now.wrapping_sub(wait::total(irq, now)));
            }
        }
    }

    /// Returns all totals at this time. Any CPU.
    #[inline]
    pub(super) fn at(&self, now: u64) -> Spent {
        let words = [&self.irq, &self.softirq, &self.idle];
        Spent::of(words.map(|word| word.load(Relaxed)), now)
    }
}
