// SPDX-License-Identifier: GPL-2.0

//! The engine's interface to its machine: CPU numbers, nodes, a clock, a guard.
//!
//! The engine's files name no kernel function: atomics come from `sys::atomic`, memory from
//! `sys::memory`, and everything else through [`Platform`]. In the kernel, `sys::platform::Kernel`
//! implements it; in `user/engine`, threads and a model checker do, so that the same files are
//! tested natively.

use crate::sys::atomic::Atomic;

/// The machine that an engine runs on.
///
/// All functions may be called from any context, including NMI, unless they say otherwise, and with
/// any arguments.
///
/// # Safety
///
/// Unsafe code relies on this:
///
/// - While a guard lives, its holder stays on one CPU: [`Platform::cpu`] always returns the number
///   of that CPU, for which [`Platform::node_of`] has a node. A guard cannot be given to another
///   thread.
/// - A guard is an RCU read-side critical section of [`Platform::synchronize`], which does not
///   return before every guard that lived when it was called has been dropped; and what happened
///   before such a guard was dropped happens before `synchronize` returns.
/// - The results of [`Platform::nodes`] and [`Platform::cpus`] never change, and are at least 1.
///   The results of [`Platform::node_of`] and [`Platform::has_memory`] depend only on the argument.
pub(crate) unsafe trait Platform: 'static {
    /// Keeps the caller on its CPU and inside an RCU read-side critical section until dropped.
    ///
    /// In the kernel: preemption off, which serves both purposes since the RCU flavours were
    /// consolidated.
    type Guard;

    /// Takes a [`Platform::Guard`]. Guards nest.
    fn guard() -> Self::Guard;

    /// Returns the CPU that the guard holds, below [`Platform::cpus`].
    fn cpu(guard: &Self::Guard) -> usize;

    /// Returns one more than the largest possible CPU number.
    fn cpus() -> usize;

    /// Returns one more than the largest NUMA node number.
    fn nodes() -> usize;

    /// Returns the node of a CPU, below [`Platform::nodes`]; `None` if no such CPU is possible.
    fn node_of(cpu: usize) -> Option<usize>;

    /// Whether memory can be allocated on a node. At least one node has memory.
    fn has_memory(node: usize) -> bool;

    /// Returns the distance between two nodes, as in the firmware's table: smaller is nearer.
    fn distance(from: usize, to: usize) -> u32;

    /// Returns `CLOCK_MONOTONIC` in nanoseconds, by a read that is safe in NMI.
    fn now() -> u64;

    /// Returns the number of the cgroup of a thread; 0 if the thread does not exist, or the machine
    /// has no cgroups.
    fn cgroup_of(_tid: u32) -> u64 {
        0
    }

    /// Saves the innermost return addresses of the kernel stack of a thread, and returns their
    /// number; 0 if no thread has this id.
    ///
    /// If the thread is the current task, or `tid` is 0, saves the caller's own stack, without this
    /// module's functions on top. Any other thread must be off the CPU: the stack of a running
    /// thread is missing or out of date.
    fn stack_of(_tid: u32, _addresses: &mut [u64]) -> usize {
        0
    }

    /// Waits until every guard that is held now has been dropped: an RCU grace period. May sleep.
    fn synchronize();

    /// Queues the work that grows all pools that have requested it; the work runs in a context that
    /// may sleep.
    fn queue_memory_work();

    /// Adds to a counter that only this CPU writes.
    ///
    /// Atomic with respect to interrupts and NMIs of this CPU, which may add to the same counter
    /// in the middle; not with respect to other CPUs, which only read it.
    fn add_local(guard: &Self::Guard, counter: &Atomic<u64>, n: u64);

    /// Adds to the counter at a position known at compile time, as [`Platform::add_local`] does.
    #[inline(always)]
    fn add_word<const AT: usize, const N: usize>(
        guard: &Self::Guard,
        words: &[Atomic<u64>; N],
        n: u64,
    ) {
        Self::add_local(guard, &words[AT], n);
    }

    /// Adds one to the counter at a position known at compile time, as [`Platform::add_local`]
    /// does.
    #[inline(always)]
    fn count_word<const AT: usize, const N: usize>(guard: &Self::Guard, words: &[Atomic<u64>; N]) {
        Self::add_word::<AT, N>(guard, words, 1);
    }

    /// Adds one to the `nth` counter from `FIRST` on, if there is one, as [`Platform::add_local`]
    /// does.
    #[inline(always)]
    fn count_nth<const FIRST: usize, const N: usize>(
        guard: &Self::Guard,
        words: &[Atomic<u64>; N],
        nth: usize,
    ) {
        if let Some(counter) = words.get(FIRST..).and_then(|rest| rest.get(nth)) {
            Self::add_local(guard, counter, 1);
        }
    }
}
