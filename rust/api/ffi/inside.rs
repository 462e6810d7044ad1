// SPDX-License-Identifier: GPL-2.0

//! Limits the nesting of callbacks.
//!
//! A callback may end events, whose callbacks are then nested in it, on the same stack. Each CPU
//! has a count for each of its contexts (thread, softirq, hard interrupt, NMI), since these have
//! their own stacks; the maximum is [`DEPTH`], over all trackers. Any context.

use crate::sys::{bindings, platform::PreemptGuard};
use core::{marker::PhantomData, ptr::NonNull};

/// Maximum number of nested callbacks, LATENCY_TRACKER_NESTED_MAX in the header.
const DEPTH: u8 = bindings::LATENCY_TRACKER_NESTED_MAX as u8;

/// Marks a running callback of this context until dropped.
///
/// # Invariants
///
/// The pointer is to the count of the CPU and context in which this was created; the guard keeps
/// the caller there.
pub(super) struct Inside<'a>(NonNull<u8>, PhantomData<&'a PreemptGuard>);

impl<'a> Inside<'a> {
    /// Returns the count of this CPU and context.
    fn count(_: &'a PreemptGuard) -> NonNull<u8> {
        // SAFETY: Preemption is off.
        let count = unsafe { bindings::lt_callback_depth() };
        // SAFETY: The address of a per-CPU variable.
        unsafe { NonNull::new_unchecked(count) }
    }

    /// Enters a callback, unless too many are nested.
    pub(super) fn enter(guard: &'a PreemptGuard) -> Option<Self> {
        let count = Self::count(guard);
        // SAFETY: The count belongs to this CPU and this context: an interrupt on top has another
        // count.
        unsafe {
            if count.read() >= DEPTH {
                return None;
            }
            count.write(count.read() + 1);
        }
        // INVARIANT: The guard keeps this thread on its CPU.
        Some(Self(count, PhantomData))
    }

    /// Whether the caller is inside a callback of this context. A callback that runs on this CPU
    /// can only be the caller's, since a thread in a callback has preemption off.
    pub(super) fn is_anywhere(guard: &PreemptGuard) -> bool {
        // SAFETY: As in `enter`.
        unsafe { Inside::count(guard).read() != 0 }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, as in `enter`, which has added one.
        unsafe { self.0.write(self.0.read() - 1) };
    }
}
