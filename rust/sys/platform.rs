// SPDX-License-Identifier: GPL-2.0

//! The kernel as the engine's [`Platform`].

use crate::{
    engine::platform::Platform,
    sys::{atomic::Atomic, bindings, memory},
};
use core::{mem::size_of, ptr::NonNull};
use kernel::types::NotThreadSafe;

/// The running kernel.
pub(crate) struct Kernel;

/// Preemption is off while this lives, which also makes it an RCU read-side critical section.
pub(crate) struct PreemptGuard(NotThreadSafe);

impl PreemptGuard {
    #[inline(always)]
    fn new() -> Self {
        in_place::preempt_disable();
        Self(NotThreadSafe)
    }
}

impl PreemptGuard {
    /// Returns a guard for a caller with preemption off. It costs nothing, not even stack space.
    ///
    /// # Safety
    ///
    /// Preemption is off for as long as the result lives.
    #[inline(always)]
    pub(in crate::sys) unsafe fn already<'a>() -> &'a Self {
        const { assert!(size_of::<Self>() == 0) };
        // SAFETY: The pointer is aligned and not NULL, and a guard has no bytes. The reference
        // drops no guard.
        unsafe { NonNull::<Self>::dangling().as_ref() }
    }
}

impl Drop for PreemptGuard {
    #[inline(always)]
    fn drop(&mut self) {
        in_place::preempt_enable();
    }
}

/// Parts of a guard that take one or two instructions, inlined.
#[cfg(all(
    target_arch = "x86_64",
    CONFIG_SMP,
    CONFIG_PREEMPTION,
    not(CONFIG_DEBUG_PREEMPT),
    not(CONFIG_TRACE_PREEMPT_TOGGLE)
))]
mod in_place {
    use crate::sys::{
        bindings,
        compat::{on_preempt_count, PreemptCount},
    };
    use core::arch::asm;
    use kernel::ffi::c_int;

    extern "C" {
        // Per-CPU variables of arch/x86: their addresses are offsets from %gs. helpers.c asserts
        // their types.
        static __preempt_count: PreemptCount;
        static cpu_number: c_int;
    }

    pub(super) const IS_IN_PLACE: bool = true;

    /// As preempt_disable_notrace().
    #[inline(always)]
    pub(super) fn preempt_disable() {
        // SAFETY: One instruction; allowed in every context. A barrier to the compiler, since
        // not `nomem`.
        unsafe {
            asm!(
                on_preempt_count!("inc", "gs:[rip + {count}]"),
                count = sym __preempt_count,
                options(nostack),
            );
        }
    }

    /// As preempt_enable_notrace(). Undoes one [`preempt_disable`].
    #[inline(always)]
    pub(super) fn preempt_enable() {
        // SAFETY: An instruction and a jump by its flags. The whole word becomes zero if this was
        // the last guard and the need to reschedule was folded into it. A barrier to the compiler.
        unsafe {
            asm!(
                on_preempt_count!("dec", "gs:[rip + {count}]"),
                "jz {due}",
                count = sym __preempt_count,
                due = label { reschedule() },
                options(nostack),
            );
        }
    }

    #[cold]
    fn reschedule() {
        // SAFETY: Allowed in every context. Turning preemption on again checks whether to
        // reschedule.
        unsafe {
            bindings::lt_preempt_disable();
            bindings::lt_preempt_enable();
        }
    }

    /// As raw_smp_processor_id().
    #[inline(always)]
    pub(super) fn cpu() -> usize {
        let cpu: u32;
        // SAFETY: Reads a per-CPU variable. `readonly` but not `pure`: not moved out of the
        // guard.
        unsafe {
            asm!(
                "mov {cpu:e}, dword ptr gs:[rip + {number}]",
                number = sym cpu_number,
                cpu = out(reg) cpu,
                options(nostack, readonly, preserves_flags),
            );
        }
        cpu as usize
    }
}

// The parts of a guard, inlined.
#[cfg(all(
    target_arch = "aarch64",
    CONFIG_SMP,
    CONFIG_PREEMPTION,
    not(CONFIG_DEBUG_PREEMPT),
    not(CONFIG_TRACE_PREEMPT_TOGGLE)
))]
use crate::sys::arm64 as in_place;

/// The parts of a guard, as calls.
#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    CONFIG_SMP,
    CONFIG_PREEMPTION,
    not(CONFIG_DEBUG_PREEMPT),
    not(CONFIG_TRACE_PREEMPT_TOGGLE)
)))]
mod in_place {
    use crate::sys::bindings;

    pub(super) const IS_IN_PLACE: bool = false;

    pub(super) fn preempt_disable() {
        // SAFETY: Allowed in every context.
        unsafe { bindings::lt_preempt_disable() };
    }

    /// Undoes one [`preempt_disable`].
    pub(super) fn preempt_enable() {
        // SAFETY: Undoes a `preempt_disable` on this CPU.
        unsafe { bindings::lt_preempt_enable() };
    }

    pub(super) fn cpu() -> usize {
        // SAFETY: Reads a per-CPU variable.
        unsafe { bindings::lt_cpu() as usize }
    }
}

/// Whether a guard is inline instructions, not calls.
#[allow(dead_code, reason = "for tests/module")]
pub(crate) const GUARDS_ARE_IN_PLACE: bool = in_place::IS_IN_PLACE;

/// Returns the number of CPUs that are online at about this time.
pub(crate) fn online_cpus() -> usize {
    // SAFETY: No requirements.
    let is_online = |&cpu: &usize| unsafe {
        bindings::lt_cpu_possible(cpu as u32) && !bindings::lt_cpu_offline(cpu as u32)
    };
    (0..Kernel::cpus()).filter(is_online).count()
}

/// Calls `see` for all CPUs that are offline at about this time.
pub(crate) fn each_offline_cpu(see: impl FnMut(usize)) {
    // SAFETY: No requirements.
    let is_offline = |&cpu: &usize| unsafe { bindings::lt_cpu_offline(cpu as u32) };
    (0..Kernel::cpus()).filter(is_offline).for_each(see);
}

// SAFETY: With preemption off a task stays on its CPU, which is a possible one, and the guard is
// not `Send`. synchronize_rcu() waits for sections with preemption off as for any RCU read-side
// critical section. The numbers of CPUs and nodes, and which are possible, are constant after boot.
// (Memory that is plugged into a node, or removed, after the engine looked does not matter for
// safety: the allocator falls back.)
unsafe impl Platform for Kernel {
    type Guard = PreemptGuard;

    #[inline(always)]
    fn guard() -> PreemptGuard {
        PreemptGuard::new()
    }

    #[inline(always)]
    fn cpu(_: &PreemptGuard) -> usize {
        in_place::cpu()
    }

    fn cpus() -> usize {
        // SAFETY: Reads a variable that is constant after boot.
        unsafe { bindings::lt_nr_cpus() as usize }
    }

    fn nodes() -> usize {
        // SAFETY: Reads a variable that is constant after boot.
        unsafe { bindings::lt_nr_nodes() as usize }
    }

    fn node_of(cpu: usize) -> Option<usize> {
        // SAFETY: A possible CPU has per-CPU memory, where the number of its node is.
        memory::is_possible(cpu).then(|| unsafe { bindings::lt_cpu_to_node(cpu as u32) as usize })
    }

    fn has_memory(node: usize) -> bool {
        // SAFETY: The node is below the number of nodes, which the mask has bits for.
        node < Self::nodes() && unsafe { bindings::lt_node_has_memory(node as u32) }
    }

    fn distance(from: usize, to: usize) -> u32 {
        if from.max(to) >= Self::nodes() {
            return u32::MAX;
        }
        // SAFETY: Both nodes are below the number of nodes.
        unsafe { bindings::lt_node_distance(from as u32, to as u32) }
    }

    fn cgroup_of(tid: u32) -> u64 {
        // SAFETY: Any number is valid; any context.
        unsafe { bindings::lt_cgroup_of(tid) }
    }

    fn stack_of(tid: u32, addresses: &mut [u64]) -> usize {
        let room = addresses.len() as u32;
        // SAFETY: Any number is valid, in any context; there is room for `room` addresses.
        let len = unsafe { bindings::lt_stack_of(tid, addresses.as_mut_ptr(), room) };
        len as usize
    }

    #[inline(always)]
    fn now() -> u64 {
        // SAFETY: NMI-safe by its contract (include/linux/timekeeping.h).
        unsafe { kernel::bindings::ktime_get_mono_fast_ns() }
    }

    fn synchronize() {
        // SAFETY: Callers may sleep, as the trait says. Sections with preemption off are waited
        // for, too.
        unsafe { kernel::bindings::synchronize_rcu() };
    }

    fn queue_memory_work() {
        // SAFETY: Allowed in every context.
        unsafe { bindings::lt_queue_memory_work() };
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn add_local(_: &PreemptGuard, counter: &Atomic<u64>, n: u64) {
        // SAFETY: The memory is valid, and may be written while it is shared, as an atomic. One
        // instruction, so no interrupt of this CPU comes in between. Without the lock prefix: if
        // another CPU wrote this counter, too, a count could be lost, and nothing else.
        unsafe {
            core::arch::asm!(
                "add qword ptr [{counter}], {n}",
                counter = in(reg) counter.as_ptr(),
                n = in(reg) n,
                options(nostack),
            );
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn add_word<const AT: usize, const N: usize>(
        _: &PreemptGuard,
        words: &[Atomic<u64>; N],
        n: u64,
    ) {
        const { assert!(AT < N) };
        // SAFETY: As in `add_local`; the word is within the array.
        unsafe {
            core::arch::asm!(
                "add qword ptr [{words} + 8 * {at}], {n}",
                words = in(reg) words,
                at = const AT,
                n = in(reg) n,
                options(nostack),
            );
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn count_word<const AT: usize, const N: usize>(_: &PreemptGuard, words: &[Atomic<u64>; N]) {
        const { assert!(AT < N) };
        // SAFETY: As in `add_local`; the word is within the array.
        unsafe {
            core::arch::asm!(
                "inc qword ptr [{words} + 8 * {at}]",
                words = in(reg) words,
                at = const AT,
                options(nostack),
            );
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn count_nth<const FIRST: usize, const N: usize>(
        _: &PreemptGuard,
        words: &[Atomic<u64>; N],
        nth: usize,
    ) {
        const { assert!(FIRST < N) };
        if nth >= N - FIRST {
            return;
        }
        // SAFETY: As in `add_local`; the word is within the array.
        unsafe {
            core::arch::asm!(
                "inc qword ptr [{words} + 8 * {nth} + 8 * {first}]",
                words = in(reg) words,
                nth = in(reg) nth,
                first = const FIRST,
                options(nostack),
            );
        }
    }

    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    fn add_local(_: &PreemptGuard, counter: &Atomic<u64>, n: u64) {
        // SAFETY: The memory is valid, and may be written while it is shared, as an atomic. The
        // loop is that of __percpu_add_case_64() in arch/arm64/include/asm/percpu.h, for a
        // processor without LSE: if an interrupt of this CPU comes between load and store, the
        // store fails and the loop repeats. Relaxed: a counter orders nothing.
        unsafe {
            core::arch::asm!(
                "2:",
                "ldxr {sum}, [{counter}]",
                "add {sum}, {sum}, {n}",
                "stxr {failed:w}, {sum}, [{counter}]",
                "cbnz {failed:w}, 2b",
                counter = in(reg) counter.as_ptr(),
                n = in(reg) n,
                sum = out(reg) _,
                failed = out(reg) _,
                options(nostack, preserves_flags),
            );
        }
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    #[inline(always)]
    fn add_local(_: &PreemptGuard, counter: &Atomic<u64>, n: u64) {
        use crate::sys::atomic::Relaxed;
        // Relaxed: a counter orders nothing.
        counter.add(n, Relaxed);
    }
}
