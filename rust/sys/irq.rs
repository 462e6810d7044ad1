// SPDX-License-Identifier: GPL-2.0

//! Follows the handlers of interrupts.
//!
//! ```text
//!   irq_handler_entry          irq_handler_exit
//!   ------> action->handler() -------->
//! ```
//!
//! C headers: [`include/linux/interrupt.h`](srctree/include/linux/interrupt.h),
//! [`include/trace/events/irq.h`](srctree/include/trace/events/irq.h)
//!
//! # Contexts
//!
//! Hard interrupt, with interrupts off.

use crate::sys::{
    bindings as helpers,
    platform::PreemptGuard,
    tracepoint::{self, probe, Attachment, Probe}, //
};
use core::{ffi::CStr, marker::PhantomData, ptr::NonNull};
use kernel::{
    bindings,
    ffi::{c_int, c_void},
    prelude::*,
    sync::Arc, //
};

/// The action of an interrupt line, while its handler runs. A shared line has several.
///
/// # Invariants
///
/// The pointer is valid for `'a`.
pub(crate) struct Action<'a> {
    raw: NonNull<bindings::irqaction>,
    _during: PhantomData<&'a bindings::irqaction>,
}

/// The words of [`Action::name`].
pub(crate) const NAME_WORDS: usize = 4;

impl Action<'_> {
    /// # Safety
    ///
    /// `raw` is valid for the duration of `'a`.
    unsafe fn from_raw<'a>(raw: *mut bindings::irqaction) -> Action<'a> {
        // INVARIANT: The caller's promise.
        Action {
            // SAFETY: A valid pointer is not NULL.
            raw: unsafe { NonNull::new_unchecked(raw) },
            _during: PhantomData,
        }
    }

    /// Its name, as in /proc/interrupts, padded with NUL; truncated to 31 bytes.
    #[inline(always)]
    pub(crate) fn name(&self) -> [u64; NAME_WORDS] {
        let mut name = [0; NAME_WORDS];
        // SAFETY: Valid by the type invariant, and there is room for the 32 bytes of a name.
        unsafe { helpers::lt_irq_action_name(self.raw.as_ptr().cast(), name.as_mut_ptr()) };
        name
    }
}

/// Follows handlers of interrupts. Interrupts are off.
pub(crate) trait Handlers: Send + Sync + 'static {
    /// A handler is called.
    fn entered(&self, guard: &PreemptGuard, irq: u32, action: &Action<'_>);

    /// It has returned, with a value of `irqreturn_t`.
    fn left(&self, guard: &PreemptGuard, irq: u32, ret: u32);
}

/// # Safety
///
/// `data` is a valid `T`, `action` a valid action.
unsafe extern "C" fn handler_entered<T: Handlers>(
    data: *mut c_void,
    irq: c_int,
    action: *mut bindings::irqaction,
) {
    // SAFETY: The function's contract.
    let (follower, action) = unsafe { (&*data.cast::<T>(), Action::from_raw(action)) };
    // SAFETY: Interrupts are off, see "Contexts" above.
    let guard = unsafe { PreemptGuard::already() };
    follower.entered(&guard, irq as u32, &action);
}

/// # Safety
///
/// `data` is a valid `T`.
unsafe extern "C" fn handler_left<T: Handlers>(
    data: *mut c_void,
    irq: c_int,
    _action: *mut bindings::irqaction,
    ret: c_int,
) {
    // SAFETY: The function's contract.
    let follower = unsafe { &*data.cast::<T>() };
    // SAFETY: As in `handler_entered`.
    let guard = unsafe { PreemptGuard::already() };
    follower.left(&guard, irq as u32, ret as u32);
}

/// The probes of handlers, the end first: nothing begins whose end would be missed.
fn handler_probes<T: Handlers>() -> [Probe<'static, T>; 2] {
    // SAFETY: They have the arguments of these tracepoints, whose action is valid.
    unsafe {
        [
            probe!(irq_handler_exit: handler_left::<T>),
            probe!(irq_handler_entry: handler_entered::<T>),
        ]
    }
}

/// The first tracepoint of handlers that this kernel lacks, if any.
pub(crate) fn missing_handlers<T: Handlers>() -> Option<&'static CStr> {
    tracepoint::missing(handler_probes::<T>())
}

/// Attaches a follower of handlers. `ENOSYS` if the kernel lacks a tracepoint; nothing is left
/// behind. Sleeps.
pub(crate) fn attach_to_handlers<T: Handlers>(follower: Arc<T>) -> Result<Attachment<T>> {
    Attachment::new(follower, handler_probes())
}
