// SPDX-License-Identifier: GPL-2.0

//! Differences between the versions of Linux that this module supports: 7.2 and 7.3.
//!
//! If the kernel has a `CONFIG_` symbol for a difference, that symbol decides. The C part
//! (rust/sys/helpers.c) sees the types of the kernel's variables, and asserts that the types here
//! match.

use core::borrow::Borrow;

/// The value of a module parameter: `value()` gives a reference in 7.2 and a copy in 7.3.
pub(crate) fn parameter<T: Copy>(value: impl Borrow<T>) -> T {
    *value.borrow()
}

/// `__preempt_count` of x86. Its most significant bit means that there is no need to reschedule.
///
/// `int` in 7.2. In 7.3 that bit is in an upper half, which leaves 32 bits for the count.
#[cfg(all(target_arch = "x86_64", not(CONFIG_HAS_SEPARATE_PREEMPT_RESCHED_BITS)))]
pub(crate) type PreemptCount = kernel::ffi::c_int;
/// `__preempt_count` of x86, `unsigned long` in 7.3.
#[cfg(all(target_arch = "x86_64", CONFIG_HAS_SEPARATE_PREEMPT_RESCHED_BITS))]
pub(crate) type PreemptCount = kernel::ffi::c_ulong;

/// An instruction on a whole [`PreemptCount`] in memory. The flags that it sets depend on both the
/// count and the need to reschedule.
#[cfg(all(target_arch = "x86_64", not(CONFIG_HAS_SEPARATE_PREEMPT_RESCHED_BITS)))]
macro_rules! on_preempt_count {
    ($operation:literal, $operand:literal) => {
        concat!($operation, " dword ptr ", $operand)
    };
}
#[cfg(all(target_arch = "x86_64", CONFIG_HAS_SEPARATE_PREEMPT_RESCHED_BITS))]
macro_rules! on_preempt_count {
    ($operation:literal, $operand:literal) => {
        concat!($operation, " qword ptr ", $operand)
    };
}
#[cfg(target_arch = "x86_64")]
#[allow(
    unused_imports,
    reason = "kernels that check themselves call functions instead"
)]
pub(crate) use on_preempt_count;
