// SPDX-License-Identifier: GPL-2.0

//! The activity of a CPU while a task waited for it: interrupts, softirqs, other tasks, idle.
//!
//! ```text
//!   interrupts     ___##_______#________     begin, end: one addition each to a word
//!   softirqs       _____####_##_#_______     in the time that no interrupt took
//!   idle           ##___________________     in the time that neither took
//!   other tasks    __#______#____####___     the rest
//!                   ^                ^ switch: the totals, minus those noted
//!                   waking: the totals are noted
//! ```
//!
//! Interrupts, softirqs and idle each have a running total in one word of the CPU. An even word is
//! twice the total. While the total is running, the word is odd: it is twice the difference of the
//! total and the start, plus 1. The total follows from the word and the clock, so one load is
//! enough to read it at any time, from any CPU. Totals are exact modulo 2^63, and noted modulo
//! [`MASK`] + 1.
//!
//! The clock of softirqs stands still during interrupts, and the idle clock during both. So nothing
//! is counted twice, an interrupt writes only one word, and the four parts of a wait add up to the
//! wait.

use super::{step::Kind, CPU_AT, CPU_BITS, KIND_AT};

/// Returns what to add to the word of a total that starts running at this time of its clock.
#[inline(always)]
pub(crate) fn begin(clock: u64) -> u64 {
    1u64.wrapping_sub(clock << 1)
}

/// Returns what to add to the word of a total that stops at this time of its clock.
#[inline(always)]
pub(crate) fn end(clock: u64) -> u64 {
    (clock << 1).wrapping_sub(1)
}

/// Returns what to add for this many nanoseconds, whether the total is running or not.
#[inline(always)]
pub(crate) fn more(time: u64) -> u64 {
    time << 1
}

/// Whether the total is running.
#[inline(always)]
pub(crate) fn is_running(word: u64) -> bool {
    word & 1 != 0
}

/// Returns the total at this time of its clock.
#[inline(always)]
pub(crate) fn total(word: u64, clock: u64) -> u64 {
    let running = if is_running(word) { clock } else { 0 };
    (word >> 1).wrapping_add(running)
}

const BITS: u32 = 36;
/// Mask of the bits of a noted time.
pub(crate) const MASK: u64 = (1 << BITS) - 1;
/// Maximum length of a wait, 34 s: a larger difference of totals counts as a negative one.
pub(crate) const LONGEST_WAIT: u64 = MASK >> 1;

/// The times of a CPU, except the time of other tasks: totals, modulo [`MASK`] + 1, or parts of a
/// wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Spent {
    pub(crate) irq: u64,
    pub(crate) softirq: u64,
    pub(crate) idle: u64,
}

impl Spent {
    /// Returns the totals of these words at this time.
    #[inline(always)]
    pub(crate) fn of([irq, softirq, idle]: [u64; 3], now: u64) -> Self {
        let irq = total(irq, now);
        let rest = now.wrapping_sub(irq);
        let softirq = total(softirq, rest);
        let idle = total(idle, rest.wrapping_sub(softirq));
        Self { irq, softirq, idle }.each(|time| time & MASK)
    }

    #[inline(always)]
    fn each(self, change: impl Fn(u64) -> u64) -> Self {
        Self {
            irq: change(self.irq),
            softirq: change(self.softirq),
            idle: change(self.idle),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            irq: self.irq.wrapping_add(other.irq) & MASK,
            softirq: self.softirq.wrapping_add(other.softirq) & MASK,
            idle: self.idle.wrapping_add(other.idle) & MASK,
        }
    }

    fn minus(self, other: Self) -> Self {
        self.plus(other.each(|time| time.wrapping_neg() & MASK))
    }

    /// Returns the parts of a wait of length `wait` that began at the totals `self` and ends at the
    /// totals `now`; `None` if the wait is too long.
    ///
    /// Totals read by another CPU may be slightly off, since they were read one after the other: a
    /// part that would be negative is 0, and together the parts are at most the wait.
    pub(crate) fn until(self, now: Self, wait: u64) -> Option<Self> {
        if wait > LONGEST_WAIT {
            return None;
        }
        let mut left = wait;
        let mut part = |time: u64| {
            let part = if time > LONGEST_WAIT {
                0
            } else {
                time.min(left)
            };
            left -= part;
            part
        };
        let Self { irq, softirq, idle } = now.minus(self);
        Some(Self {
            irq: part(irq),
            softirq: part(softirq),
            idle: part(idle),
        })
    }

    /// Returns the sums of the parts of two waits; `None` if a sum does not fit.
    pub(crate) fn and(self, other: Self) -> Option<Self> {
        let sum = Self {
            irq: self.irq + other.irq,
            softirq: self.softirq + other.softirq,
            idle: self.idle + other.idle,
        };
        let fits = [sum.irq, sum.softirq, sum.idle]
            .iter()
            .all(|&part| part <= MASK);
        fits.then_some(sum)
    }

    /// Returns the note for a wait that began at the totals `self`, and now moves from a CPU with
    /// the totals `from` to a CPU with the totals `to`: as if the whole wait had been on the second
    /// CPU, with the parts it had so far.
    pub(crate) fn moved(self, from: Self, to: Self) -> Self {
        self.plus(to).minus(from)
    }

    /// Returns the part of other tasks in a wait of this length.
    pub(crate) fn tasks(self, wait: u64) -> u64 {
        let Self { irq, softirq, idle } = self;
        wait.saturating_sub(irq + softirq + idle)
    }

    /// Returns the words of a place with these times, and a CPU.
    #[inline(always)]
    pub(crate) fn to_words(self, kind: Kind, cpu: u32) -> [u64; 2] {
        let times = u128::from(self.irq)
            | u128::from(self.softirq) << BITS
            | u128::from(self.idle) << (2 * BITS);
        let low = times as u64 & ((1 << CPU_AT) - 1);
        let cpu = u64::from(cpu) & ((1 << CPU_BITS) - 1);
        [
            (kind as u64) << KIND_AT | cpu << CPU_AT | low,
            (times >> CPU_AT) as u64,
        ]
    }

    /// Unpacks the result of [`Spent::to_words`], including the CPU.
    pub(crate) fn of_words([low, high]: [u64; 2]) -> (u32, Self) {
        let times = u128::from(low & ((1 << CPU_AT) - 1)) | u128::from(high) << CPU_AT;
        let time = |nth: u32| (times >> (nth * BITS)) as u64 & MASK;
        let spent = Self {
            irq: time(0),
            softirq: time(1),
            idle: time(2),
        };
        ((low >> CPU_AT) as u32 & ((1 << CPU_BITS) - 1), spent)
    }
}

// Three times fit in a place, besides its kind and its CPU.
const _: () = assert!(3 * BITS <= CPU_AT + 64);
