// SPDX-License-Identifier: GPL-2.0

//! Reports of late switch-ins that wait until their task can read its own stack (`ustack=1`).
//!
//! ```text
//!   sched_switch              context_switch()              sched_exit_tp
//!   ----|-------------------------------------------------------|----> the task continues
//!     late: put                                               take: alert
//!     the runqueue's lock, the memory                         no lock, interrupts on,
//!     of the previous task                                    the memory of this task
//! ```
//!
//! # Why here
//!
//! A task's stack in user space can be read only in its own address space. Three points are
//! candidates:
//!
//! - *Its switch-out.* The task is current, but whether it will be late is not known. Each switch
//!   would pay for a walk, with the runqueue's lock held and interrupts off, and each event for the
//!   words of a stack.
//! - *Its switch-in* (`sched_switch`). The task is known to be late, but the CPU still has the
//!   address space of the previous task.
//! - *The end of that switch* (`sched_exit_tp`). The task is current, has its address space, and is
//!   known to be late. A switch to any other task pays for one test.
//!
//! The walk uses the registers with which the task entered the kernel, so it starts where it would
//! have started at the switch-out: the task has executed nothing in between. Its memory may have
//! changed meanwhile: another thread may have written to the stack, or a page of it may have been
//! reclaimed. In the latter case, the stack ends there (`unreadable`).
//!
//! # Contexts
//!
//! Preemption is off from `sched_switch` to `sched_exit_tp`, on one CPU. Every switch reaches
//! `sched_exit_tp`: at the end of `__schedule`, or in `schedule_tail` if the task is new. So one
//! slot per CPU is enough: it is free at each `sched_switch`, and no other code accesses it between
//! the two tracepoints. The probe at `sched_exit_tp` is attached as long as reports can be stored.

use super::WORDS;
use crate::{
    alert::record::{Owner, DETAIL},
    engine::{Late, Why},
    instance::Details,
    sys::{
        atomic::{Atomic, Relaxed},
        memory::PerCpu,
        platform::{Kernel, PreemptGuard},
        stack::DEPTH_MAX, //
    },
};
use kernel::prelude::*;

// The bits of the first word: whether there is a report, and of which kind.
const FULL: u64 = 1;
const LATE_END: u64 = 2;
const FOUND: u64 = 4;

// The positions of further words.
const START: usize = 1;
const DELAY: usize = 2;
const THRESHOLD: usize = 3;
const LEN: usize = 4;
const OWNER: usize = 5;
const DETAILS: usize = OWNER + Owner::WORDS;
const STACK: usize = DETAILS + DETAIL;

/// Room for one report, on the CPU on which its task was switched in.
type Slot = [Atomic<u64>; STACK + DEPTH_MAX];

/// Room for a report on each CPU.
pub(super) struct Arrivals(PerCpu<Slot>);

/// A report that has waited.
pub(super) struct Waited {
    /// The event, without its key and data: the details have been made from them.
    pub(super) late: Late<1, WORDS>,
    pub(super) details: Details,
    stack: [u64; DEPTH_MAX],
    len: usize,
}

impl Waited {
    /// Returns the kernel stack.
    pub(super) fn stack(&self) -> &[u64] {
        self.stack.get(..self.len).unwrap_or_default()
    }
}

impl Arrivals {
    /// Creates the slots. May sleep; fails with `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        PerCpu::zeroed::<Kernel>().map(Self)
    }

    /// Stores a report, with the kernel stack of its task, until the task arrives on this CPU.
    pub(super) fn put(
        &self,
        guard: &PreemptGuard,
        late: &Late<1, WORDS>,
        details: &Details,
        stack: &[u64],
    ) {
        let mut kind = FULL;
        if late.why == Why::LateEnd {
            kind |= LATE_END;
        }
        if late.found {
            kind |= FOUND;
        }
        let len = stack.len() as u64;
        let words = [kind, late.start, late.delay, late.threshold, len].into_iter();
        let words = Iterator::chain(words, details.owner.to_words());
        let words = Iterator::chain(words, details.words);
        let words = Iterator::chain(words, stack.iter().copied());
        for (to, word) in self.0.this::<Kernel>(guard).iter().zip(words) {
            // Relaxed: only this CPU uses the slot, see "Contexts".
            to.store(word, Relaxed);
        }
    }

    /// Whether a report waits on this CPU.
    #[inline(always)]
    pub(super) fn is_waiting(&self, guard: &PreemptGuard) -> bool {
        let [kind, ..] = self.0.this::<Kernel>(guard);
        // Relaxed: as in `put`.
        kind.load(Relaxed) != 0
    }

    /// Takes the report that waits on this CPU, if there is one.
    pub(super) fn take(&self, guard: &PreemptGuard) -> Option<Waited> {
        let slot = self.0.this::<Kernel>(guard);
        // Relaxed for all words, as in `put`.
        let word = |at: usize| slot.get(at).map_or(0, |word| word.load(Relaxed));
        let kind = word(0);
        if kind & FULL == 0 {
            return None;
        }
        slot[0].store(0, Relaxed);
        let why = if kind & LATE_END == 0 {
            Why::Threshold
        } else {
            Why::LateEnd
        };
        Some(Waited {
            late: Late {
                why,
                start: word(START),
                delay: word(DELAY),
                found: kind & FOUND != 0,
                threshold: word(THRESHOLD),
                key: [0],
                data: [0; WORDS],
            },
            details: Details {
                owner: Owner::from_words(core::array::from_fn(|at| word(OWNER + at))),
                words: core::array::from_fn(|at| word(DETAILS + at)),
            },
            stack: core::array::from_fn(|at| word(STACK + at)),
            len: word(LEN) as usize,
        })
    }
}
