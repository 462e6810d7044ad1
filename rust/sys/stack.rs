// SPDX-License-Identifier: GPL-2.0

//! Kernel stacks of tasks, as addresses, which symbol.rs resolves to names.
//!
//! C headers: [`include/linux/pid.h`](srctree/include/linux/pid.h),
//! [`include/linux/stacktrace.h`](srctree/include/linux/stacktrace.h)
//!
//! A task is found by its id in the initial namespace. The id may have been reused since it was
//! noted; the caller checks this by the start time of the task. The function behind /proc/PID/stack
//! saves the stack, and leaves out functions of the scheduler. If a task is running on another CPU
//! at this moment, the ORC unwinder of x86 saves nothing; other unwinders may save stale entries.
//!
//! # Contexts
//!
//! [`Stack::of`] is only for callers that may sleep: kernel threads, and readers of `pending`.
//! Walking a stack takes microseconds, so a probe does it only for late events, or with `by=stack`
//! at every end (`Platform::stack_of`). [`Stack::of_task`], [`Stack::here`] and
//! [`CompactStack::here`] take no lock, and run in any context.

use crate::sys::{bindings as helpers, task::TaskRef, waiting::Counted};
use kernel::bindings;

/// Maximum number of entries of a stack.
pub(crate) const DEPTH_MAX: usize = helpers::LT_STACK_MAX as usize;

/// The stack of a task as return addresses, innermost first.
#[derive(Clone, Copy)]
pub(crate) struct Stack {
    entries: [u64; DEPTH_MAX],
    len: usize,
}

impl Stack {
    /// No entries.
    pub(crate) const EMPTY: Self = Self {
        entries: [0; DEPTH_MAX],
        len: 0,
    };

    /// Saves at most `depth` entries of the stack of the task that has the id `tid` in the initial
    /// namespace, if `is_meant` accepts its start time, in nanoseconds of `CLOCK_MONOTONIC`.
    ///
    /// Empty if there is no such task, or if it is the caller itself. For a task that is on a CPU
    /// at this moment, see the head of this file.
    pub(crate) fn of(tid: u32, depth: usize, is_meant: impl FnOnce(u64) -> bool) -> Self {
        let is_meant = |task: &Counted| is_meant(task.get().start_time());
        let task = Counted::find(tid).filter(is_meant);
        task.map_or(Self::EMPTY, |task| Self::of_task(&task.get(), depth))
    }

    /// Saves at most `depth` entries of the stack of a task that is off the CPU; empty for the
    /// current task. Any context.
    pub(crate) fn of_task(task: &TaskRef<'_>, depth: usize) -> Self {
        // SAFETY: The task is valid, and there is room for `room` entries.
        let save = |out, room| unsafe { helpers::lt_task_stack(task.as_ptr(), out, room) };
        Self::saved(depth, save)
    }

    /// Saves at most `depth` entries of the caller's own stack, without the functions of this
    /// module. Any context.
    pub(crate) fn here(depth: usize) -> Self {
        // SAFETY: There is room for `room` entries.
        let save = |out, room| unsafe { helpers::lt_stack_here(out, room) };
        Self::saved(depth, save)
    }

    /// Returns a stack of at most `depth` functions. `save` gets room for this many addresses, and
    /// returns how many it has stored.
    #[inline(always)]
    fn saved(depth: usize, save: impl FnOnce(*mut u64, u32) -> u32) -> Self {
        let mut stack = Self::EMPTY;
        if depth != 0 {
            let room = depth.min(DEPTH_MAX) as u32;
            let len = save(stack.entries.as_mut_ptr(), room);
            stack.len = (len as usize).min(DEPTH_MAX);
        }
        stack
    }

    pub(crate) fn entries(&self) -> &[u64] {
        self.entries.get(..self.len).unwrap_or_default()
    }
}

/// Number of words of a [`CompactStack`].
pub(crate) const COMPACT_WORDS: usize = 8;

/// Maximum number of entries of a [`CompactStack`].
const COMPACT_DEPTH: usize = 2 * COMPACT_WORDS;

/// The innermost entries of a stack, in half the space, as distances from a kernel function. An
/// address farther away than 2 GiB is not in the text of the kernel or of a module, and becomes an
/// address without a name.
#[derive(Clone, Copy, Default)]
pub(crate) struct CompactStack(pub(crate) [u64; COMPACT_WORDS]);

/// Returns the origin of distances.
fn origin() -> u64 {
    bindings::synchronize_rcu as *const () as u64
}

/// The distance that stands for an address without a name.
const FAR: i32 = 1;

impl CompactStack {
    /// The first word of an empty stack.
    pub(crate) const NONE: [u64; 1] = [0];

    /// Saves at most `depth` entries of the caller's own stack, without the functions of this
    /// module. Any context.
    pub(crate) fn here(depth: usize) -> Self {
        let stack = Stack::here(depth.min(COMPACT_DEPTH));
        let mut few = Self::default();
        for (at, address) in stack.entries().iter().take(COMPACT_DEPTH).enumerate() {
            let distance = address.wrapping_sub(origin()) as i64;
            let distance = match i32::try_from(distance) {
                Ok(0) | Err(_) => FAR,
                Ok(near) => near,
            };
            few.0[at / 2] |= u64::from(distance as u32) << (32 * (at & 1));
        }
        few
    }

    /// Returns the addresses, innermost first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = u64> + '_ {
        let halves = self
            .0
            .iter()
            .flat_map(|word| [*word as i32, (word >> 32) as i32]);
        halves
            .take_while(|&distance| distance != 0)
            .map(|distance| match distance {
                FAR => 0,
                near => origin().wrapping_add(i64::from(near) as u64),
            })
    }
}
