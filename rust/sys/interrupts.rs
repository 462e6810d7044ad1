// SPDX-License-Identifier: GPL-2.0

//! Turns the interrupts of this CPU off while a function runs.

use crate::sys::bindings;

/// Calls a function that does not sleep, with the interrupts of this CPU off, even on PREEMPT_RT;
/// NMIs still arrive. If interrupts were off before, they stay off. Any context.
///
/// Takes a function instead of returning a guard: with two guards in variables, safe code could
/// drop the outer one first, and turn interrupts on under the inner one.
pub(crate) fn off<R>(function: impl FnOnce() -> R) -> R {
    // SAFETY: The flags are restored below, on the same CPU: with interrupts off, no task leaves
    // it. Calls of this function return in the reverse of the order in which they began.
    let flags = unsafe { bindings::lt_irq_save() };
    let result = function();
    // SAFETY: The flags are of the call above.
    unsafe { bindings::lt_irq_restore(flags) };
    result
}
