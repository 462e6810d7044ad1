// SPDX-License-Identifier: GPL-2.0

//! The stack of the current task in user space, by frame pointers, as addresses. Only user space
//! can resolve them to names.
//!
//! ```text
//!   registers at the entry     memory of the task, higher addresses below
//!   ip, fp --------------+---> | fp of the caller | return address |
//!                                    |
//!                                    +---> | fp of its caller | return address |  ...  0: the end
//! ```
//!
//! The caller of a function that sets up no frame is missing: a system call's wrapper in the C
//! library often hides the function that called it. In a program without frame pointers, the
//! register has an arbitrary value.
//!
//! # Contexts
//!
//! Any, with preemption off. Nothing is faulted in.

use crate::sys::{
    bindings as helpers,
    platform::PreemptGuard, //
};

/// Maximum number of entries.
pub(crate) const USER_DEPTH_MAX: usize = helpers::LT_USER_STACK_MAX as usize;

/// Walks the stack of the current task, and stores the addresses, innermost first: the next
/// instruction, then return addresses. Returns their number, and where the stack ends:
/// `LT_USER_...`. Any context.
#[inline(always)]
pub(crate) fn walk(
    _guard: &PreemptGuard,
    entries: &mut [u64; USER_DEPTH_MAX],
) -> (usize, helpers::lt_user_end) {
    let (room, mut len) = (USER_DEPTH_MAX as u32, 0);
    // SAFETY: There is room for `room` entries and for their number, and the guard keeps preemption
    // off.
    let end = unsafe { helpers::lt_user_stack(entries.as_mut_ptr(), room, &mut len) };
    ((len as usize).min(USER_DEPTH_MAX), end)
}
