// SPDX-License-Identifier: GPL-2.0

//! The running task of arm64, its preemption counter, and addresses of per-CPU memory, by inline
//! instructions.
//!
//! ```text
//!   sp_el0 --> task_struct
//!                thread_info.cpu --> __per_cpu_offset[cpu] + base: the value of this CPU
//!                thread_info.preempt_count, one word in two halves:
//!                  preempt.need_resched (0: needed) | preempt.count (0: preemption is on)
//! ```
//!
//! | here | C |
//! |---|---|
//! | [`current`] | `get_current` |
//! | [`preempt_count`] | `preempt_count` |
//! | [`preempt_disable`] | `preempt_disable_notrace`, `__preempt_count_add` |
//! | [`preempt_enable`] | `preempt_enable_notrace`, `__preempt_count_dec_and_test` |
//! | [`cpu`] | `raw_smp_processor_id` |
//! | [`per_cpu`] | `per_cpu_ptr` |
//!
//! The kernel patches none of these. It does patch its code that turns interrupts off, by a flag or
//! by priority (`CONFIG_ARM64_PSEUDO_NMI`): this remains a call of C. It also patches
//! this_cpu_ptr(), which reads the offset from `tpidr_el1` or `tpidr_el2`. Here, the offset is read
//! from `__per_cpu_offset`, from which the kernel has set that register.
//!
//! The structures are those of the `kernel` crate's bindings. helpers.c asserts what is assumed
//! about the two halves.
//!
//! C headers: [`arch/arm64/include/asm/current.h`](srctree/arch/arm64/include/asm/current.h),
//! [`arch/arm64/include/asm/preempt.h`](srctree/arch/arm64/include/asm/preempt.h),
//! [`arch/arm64/include/asm/smp.h`](srctree/arch/arm64/include/asm/smp.h),
//! [`include/linux/percpu-defs.h`](srctree/include/linux/percpu-defs.h)
//!
//! # Contexts
//!
//! Any.

#![allow(dead_code, reason = "not every user of this file needs each")]

use crate::sys::bindings as helpers;
use core::{
    arch::asm,
    ptr::{addr_of, addr_of_mut, NonNull}, //
};
use kernel::bindings;

/// Whether a guard is inline instructions, not calls.
pub(super) const IS_IN_PLACE: bool = true;

/// Returns the running task, or in an interrupt, the interrupted one.
#[inline(always)]
pub(super) fn current() -> *mut bindings::task_struct {
    let task;
    // SAFETY: Reads a register. It has the same value on every CPU where the caller may run, so
    // reads may be merged and moved: `pure` and `nomem`.
    unsafe {
        asm!(
            "mrs {task}, sp_el0",
            task = out(reg) task,
            options(nostack, pure, nomem, preserves_flags),
        );
    }
    task
}

/// Returns the address of the preemption counter with the need to reschedule. The word is 0 if
/// preemption is on and a reschedule is needed.
#[inline(always)]
fn counter() -> *mut u64 {
    // SAFETY: The current task is valid.
    unsafe { addr_of_mut!((*current()).thread_info.__bindgen_anon_1.preempt_count) }
}

/// Returns the address of the half of [`counter`] that counts.
#[inline(always)]
fn count() -> *mut u32 {
    // SAFETY: The current task is valid.
    unsafe { addr_of_mut!((*current()).thread_info.__bindgen_anon_1.preempt.count) }
}

/// Returns the preemption counter of the running task, which also counts interrupts.
#[inline(always)]
pub(super) fn preempt_count() -> u32 {
    // SAFETY: The current task is valid; read once.
    unsafe { count().read_volatile() }
}

/// Keeps the compiler from moving memory accesses across this call.
#[inline(always)]
fn barrier() {
    // SAFETY: Emits no instruction.
    unsafe { asm!("", options(nostack, preserves_flags)) };
}

/// As preempt_disable_notrace().
#[inline(always)]
pub(super) fn preempt_disable() {
    let count = count();
    // SAFETY: The current task is valid. Only its own code and interrupts change the count, and an
    // interrupt between the load and the store leaves it as it was. The store does not change the
    // need to reschedule, which an interrupt may set.
    unsafe { count.write_volatile(count.read_volatile().wrapping_add(1)) };
    barrier();
}

/// As preempt_enable_notrace() of a preemptible kernel. Undoes one [`preempt_disable`].
#[inline(always)]
pub(super) fn preempt_enable() {
    barrier();
    let counter = counter();
    // SAFETY: As in `preempt_disable`.
    let is_due = unsafe {
        let left = counter.read_volatile().wrapping_sub(1);
        count().write_volatile(left as u32);
        // All zeroes: this was the last guard, and a reschedule is needed. An interrupt between the
        // load and the store may have set that need, so it is read again.
        left == 0 || counter.read_volatile() == 0
    };
    if is_due {
        reschedule();
    }
}

#[cold]
fn reschedule() {
    // SAFETY: Allowed in every context. Turning preemption on again checks whether to reschedule.
    unsafe {
        helpers::lt_preempt_disable();
        helpers::lt_preempt_enable();
    }
}

/// As raw_smp_processor_id().
#[inline(always)]
pub(super) fn cpu() -> usize {
    // SAFETY: The current task is valid; volatile, so that the read is not moved out of a guard.
    unsafe { addr_of!((*current()).thread_info.cpu).read_volatile() as usize }
}

/// As per_cpu_ptr().
///
/// # Safety
///
/// `base` is from `lt_percpu_alloc` for a `T`, and `cpu` is a possible one.
#[inline(always)]
pub(super) unsafe fn per_cpu<T>(base: NonNull<T>, cpu: usize) -> NonNull<T> {
    let value: *mut T;
    // SAFETY: The array has an offset for each possible CPU, constant after boot. The assembly only
    // adds. It does what RELOC_HIDE() does in C: the compiler does not know how the result is
    // computed, so it cannot assume that the result points into the object of the base. The memory
    // of a possible CPU is never at address 0.
    unsafe {
        let offsets = addr_of!(bindings::__per_cpu_offset).cast::<usize>();
        asm!(
            "add {value}, {base}, {offset}",
            base = in(reg) base.as_ptr(),
            offset = in(reg) offsets.add(cpu).read(),
            value = lateout(reg) value,
            options(nostack, pure, nomem, preserves_flags),
        );
        NonNull::new_unchecked(value)
    }
}
