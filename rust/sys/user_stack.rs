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

/// Where a stack ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// There is no stack: the context is an interrupt, the task has no user-space memory or is
    /// replacing its program, or another walk is in progress on this CPU.
    None,
    /// There is no stack: the task is a kernel thread, or a kernel worker in a user process (of
    /// io_uring or vhost).
    Kernel,
    /// At the outermost function.
    Outermost,
    /// At a frame pointer that is not aligned, is below the stack pointer, or does not increase.
    Broken,
    /// At an address that cannot be read without a page fault.
    Unreadable,
    /// At the maximum number of entries.
    Depth,
    /// At the innermost entry: the frame layout is not known (32-bit programs on arm64, or another
    /// architecture).
    Unsupported,
}

/// Addresses in user space, innermost first: the next instruction, then return addresses.
pub(crate) struct UserStack {
    entries: [u64; USER_DEPTH_MAX],
    len: usize,
    ended: Ended,
}

impl UserStack {
    /// Walks the stack of the current task. Any context.
    #[inline(always)]
    pub(crate) fn of_current(_guard: &PreemptGuard) -> Self {
        let (mut entries, mut len) = ([0; USER_DEPTH_MAX], 0);
        let room = USER_DEPTH_MAX as u32;
        // SAFETY: There is room for `room` entries and for their number, and the guard keeps
        // preemption off.
        let end = unsafe { helpers::lt_user_stack(entries.as_mut_ptr(), room, &mut len) };
        let ended = match end {
            helpers::lt_user_end_LT_USER_OUTERMOST => Ended::Outermost,
            helpers::lt_user_end_LT_USER_BROKEN => Ended::Broken,
            helpers::lt_user_end_LT_USER_UNREADABLE => Ended::Unreadable,
            helpers::lt_user_end_LT_USER_DEPTH => Ended::Depth,
            helpers::lt_user_end_LT_USER_UNSUPPORTED => Ended::Unsupported,
            helpers::lt_user_end_LT_USER_KERNEL => Ended::Kernel,
            _ => Ended::None,
        };
        let len = (len as usize).min(USER_DEPTH_MAX);
        Self {
            entries,
            len,
            ended,
        }
    }

    /// Returns the addresses.
    pub(crate) fn entries(&self) -> &[u64] {
        self.entries.get(..self.len).unwrap_or_default()
    }

    /// Returns where the stack ends.
    pub(crate) fn ended(&self) -> Ended {
        self.ended
    }
}
