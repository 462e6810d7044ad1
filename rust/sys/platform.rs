// SPDX-License-Identifier: GPL-2.0

//! The kernel as the engine's [`Platform`].

use crate::{
    platform::Platform,
    sys::{atomic::Atomic, bindings},
};
use kernel::types::NotThreadSafe;

/// The running kernel.
pub(crate) struct Kernel;

/// Preemption is off while it lives, which also makes it an RCU read-side critical section.
pub(crate) struct PreemptGuard(NotThreadSafe);

impl Drop for PreemptGuard {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: The guard was made by `lt_preempt_disable` on this CPU and is not `Send`.
        unsafe { bindings::lt_preempt_enable() };
    }
}

impl Platform for Kernel {
    type Guard = PreemptGuard;

    #[inline(always)]
    fn guard() -> PreemptGuard {
        // SAFETY: Allowed in every context; the guard's drop undoes it.
        unsafe { bindings::lt_preempt_disable() };
        PreemptGuard(NotThreadSafe)
    }

    #[inline(always)]
    fn cpu(_: &PreemptGuard) -> usize {
        // SAFETY: Reads a per-CPU variable.
        unsafe { bindings::lt_cpu() as usize }
    }

    fn cpus() -> usize {
        // SAFETY: Reads a variable that is constant after boot.
        unsafe { bindings::lt_nr_cpus() as usize }
    }

    fn nodes() -> usize {
        // SAFETY: Reads a variable that is constant after boot.
        unsafe { bindings::lt_nr_nodes() as usize }
    }

    #[inline(always)]
    fn node_of(cpu: usize) -> usize {
        // SAFETY: Callers ask for possible CPUs only.
        unsafe { bindings::lt_cpu_to_node(cpu as u32) as usize }
    }

    fn has_memory(node: usize) -> bool {
        // SAFETY: Callers ask for nodes below `nodes()` only.
        unsafe { bindings::lt_node_has_memory(node as u32) }
    }

    fn distance(from: usize, to: usize) -> u32 {
        // SAFETY: Callers ask for nodes below `nodes()` only.
        unsafe { bindings::lt_node_distance(from as u32, to as u32) }
    }

    #[inline(always)]
    fn now() -> u64 {
        // SAFETY: NMI-safe by its contract (include/linux/timekeeping.h).
        unsafe { kernel::bindings::ktime_get_mono_fast_ns() }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn add_local(_: &PreemptGuard, counter: &Atomic<u64>, n: u64) {
        // SAFETY: One instruction, so no interrupt of this CPU comes in between; no other CPU
        // writes this counter (contract), so no lock prefix is needed. The memory is valid.
        unsafe {
            core::arch::asm!(
                "add qword ptr [{counter}], {n}",
                counter = in(reg) counter.as_ptr(),
                n = in(reg) n,
                options(nostack),
            );
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[inline(always)]
    fn add_local(_: &PreemptGuard, counter: &Atomic<u64>, n: u64) {
        use crate::sys::atomic::Relaxed;
        // Relaxed: a counter orders nothing.
        counter.add(n, Relaxed);
    }
}
