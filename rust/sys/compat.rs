// SPDX-License-Identifier: GPL-2.0

//! What differs between the versions of Linux that this module is built for: 7.2 and 7.3.
//!
//! Where the kernel has a `CONFIG_` for the difference, that decides. The C part knows the types of
//! the kernel's variables and asserts what is said here of them (rust/sys/helpers.c).

use core::borrow::Borrow;

/// The value of a module parameter: `value()` gives a reference in 7.2 and a copy in 7.3.
pub(crate) fn parameter<T: Copy>(value: impl Borrow<T>) -> T {
    *value.borrow()
}

/// `__preempt_count` of x86. Its most significant bit says that there is no need to schedule.
///
/// `int` in 7.2. In 7.3 that bit has moved to an upper half, which leaves the count 32 bits of
/// its own.
#[cfg(not(CONFIG_HAS_SEPARATE_PREEMPT_RESCHED_BITS))]
pub(crate) type PreemptCount = kernel::ffi::c_int;
/// As above.
#[cfg(CONFIG_HAS_SEPARATE_PREEMPT_RESCHED_BITS)]
pub(crate) type PreemptCount = kernel::ffi::c_ulong;

/// An instruction on the whole of a [`PreemptCount`] in memory: what it leaves in the flags is of
/// the count and of the need to schedule.
#[cfg(not(CONFIG_HAS_SEPARATE_PREEMPT_RESCHED_BITS))]
macro_rules! on_preempt_count {
    ($operation:literal, $operand:literal) => {
        concat!($operation, " dword ptr ", $operand)
    };
}
#[cfg(CONFIG_HAS_SEPARATE_PREEMPT_RESCHED_BITS)]
macro_rules! on_preempt_count {
    ($operation:literal, $operand:literal) => {
        concat!($operation, " qword ptr ", $operand)
    };
}
pub(crate) use on_preempt_count;
