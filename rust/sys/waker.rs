// SPDX-License-Identifier: GPL-2.0

//! A wait queue that can be woken from any context: by an irq_work, and a timer to delay it.
//!
//! C headers: [`include/linux/irq_work.h`](srctree/include/linux/irq_work.h),
//! [`include/linux/wait.h`](srctree/include/linux/wait.h)
//!
//! A probe may run under the runqueue lock, where waking any task deadlocks. [`Handle::queue`] only
//! raises an irq_work; [`Callbacks::on_irq_work`] runs a moment later in interrupt context (in a
//! kernel thread on PREEMPT_RT), and may wake tasks, or arm the timer to do so later.

use crate::sys::{bindings, platform::PreemptGuard};
use core::{
    ops::Deref,
    ptr::{addr_of, NonNull}, //
};
use kernel::{error::to_result, ffi::c_void, prelude::*};

/// Whether a callback of a waker, such as one that wakes readers, is running in the current task.
#[inline(always)]
pub(crate) fn is_waking(guard: &PreemptGuard) -> bool {
    // SAFETY: Preemption is off.
    may_be_waking(guard) && unsafe { bindings::lt_is_waking() }
}

/// Whether a callback of a waker is running on some CPU, perhaps this one. Inline, without a call.
#[inline(always)]
pub(crate) fn may_be_waking(_: &PreemptGuard) -> bool {
    // SAFETY: The variable is static, and a number; atomics of C may be read while they change.
    let callbacks = unsafe { addr_of!(bindings::lt_callbacks.counter).read_volatile() };
    callbacks != 0
}

/// Callbacks for [`Handle::queue`] and [`Handle::arm`].
pub(crate) trait Callbacks: Send + Sync + 'static {
    /// Runs in hard interrupt context, on PREEMPT_RT in a thread.
    fn on_irq_work(&self, handle: &Handle);
    /// Runs in softirq context.
    fn on_timer(&self, handle: &Handle);
}

/// The irq_work, the timer and the wait queue.
///
/// # Invariants
///
/// Points to a live `struct lt_waker`.
pub(crate) struct Handle(NonNull<bindings::lt_waker>);

impl Handle {
    /// Requests a call of [`Callbacks::on_irq_work`]; no effect if one is pending. Any context.
    pub(crate) fn queue(&self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::lt_waker_queue(self.0.as_ptr()) };
    }

    /// Requests a call of [`Callbacks::on_timer`] in `ns` nanoseconds, rounded up to a tick. Only
    /// from the callbacks.
    pub(crate) fn arm(&self, ns: u64) {
        // SAFETY: By the type invariant.
        unsafe { bindings::lt_waker_arm(self.0.as_ptr(), ns) };
    }

    /// Wakes all waiting tasks. From the callbacks and from tasks.
    pub(crate) fn wake(&self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::lt_waker_wake(self.0.as_ptr()) };
    }
}

/// A [`Handle`] with the state of its callbacks. Dropping it waits for both callbacks; may sleep.
pub(crate) struct Waker<T: Callbacks> {
    handle: Handle,
    state: KBox<T>,
}

// SAFETY: The C side does its own locking, and `T` is `Send`.
unsafe impl<T: Callbacks> Send for Waker<T> {}
// SAFETY: The C side does its own locking, and `T` is `Sync`.
unsafe impl<T: Callbacks> Sync for Waker<T> {}

impl<T: Callbacks> Waker<T> {
    /// Creates a waker. May sleep; fails with `ENOMEM`.
    pub(crate) fn new(state: T) -> Result<Self> {
        let state = KBox::new(state, GFP_KERNEL)?;
        let owner = core::ptr::from_ref(&*state).cast_mut().cast::<c_void>();
        // SAFETY: The callbacks get the `T` in the box, which lives until `lt_waker_free` has
        // waited for them.
        let raw =
            unsafe { bindings::lt_waker_new(Some(on_irq_work::<T>), Some(on_timer::<T>), owner) };
        // INVARIANT: Just made.
        let handle = Handle(NonNull::new(raw).ok_or(ENOMEM)?);
        Ok(Self { handle, state })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Sleeps until `ready` returns true, which is checked at the start and after each wakeup.
    /// Fails with `ERESTARTSYS` on a signal.
    pub(crate) fn wait<F: Fn() -> bool>(&self, ready: F) -> Result {
        /// # Safety
        ///
        /// `arg` points to an `F`.
        unsafe extern "C" fn call<F: Fn() -> bool>(arg: *mut c_void) -> bool {
            // SAFETY: The function's contract.
            let ready = unsafe { &*arg.cast::<F>() };
            ready()
        }
        let arg = core::ptr::from_ref(&ready).cast_mut().cast::<c_void>();
        // SAFETY: By the invariant of `Handle`; `arg` is an `F` that outlives the call.
        to_result(unsafe { bindings::lt_waker_wait(self.handle.0.as_ptr(), Some(call::<F>), arg) })
    }

    /// Registers a poller.
    ///
    /// # Safety
    ///
    /// `file` and `table` are the arguments of a running poll method.
    pub(crate) unsafe fn poll(
        &self,
        file: *mut kernel::bindings::file,
        table: *mut kernel::bindings::poll_table_struct,
    ) {
        // SAFETY: By the invariant of `Handle` and the caller's promise.
        unsafe { bindings::lt_waker_poll(self.handle.0.as_ptr(), file, table) };
    }
}

impl<T: Callbacks> Deref for Waker<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.state
    }
}

impl<T: Callbacks> Drop for Waker<T> {
    fn drop(&mut self) {
        // SAFETY: Made by `lt_waker_new`, freed once. No task can start to wait during the drop,
        // and the function waits for tasks that still wait.
        unsafe { bindings::lt_waker_free(self.handle.0.as_ptr()) };
    }
}

/// # Safety
///
/// Called by a live `lt_waker` made by [`Waker::new`].
unsafe extern "C" fn on_irq_work<T: Callbacks>(raw: *mut bindings::lt_waker, owner: *mut c_void) {
    // SAFETY: The function's contract: both are alive until `lt_waker_free` has waited for us.
    let (state, handle) = unsafe { (&*owner.cast::<T>(), Handle(NonNull::new_unchecked(raw))) };
    state.on_irq_work(&handle);
}

/// # Safety
///
/// Called by a live `lt_waker` made by [`Waker::new`].
unsafe extern "C" fn on_timer<T: Callbacks>(raw: *mut bindings::lt_waker, owner: *mut c_void) {
    // SAFETY: As in `on_irq_work`.
    let (state, handle) = unsafe { (&*owner.cast::<T>(), Handle(NonNull::new_unchecked(raw))) };
    state.on_timer(&handle);
}
