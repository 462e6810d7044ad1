// SPDX-License-Identifier: GPL-2.0

//! Follows kernel functions by their first argument, or by their result, where there is no
//! tracepoint.
//!
//! Cheaper than [`super::Functions`], but with fewer features: there is no frame, and the callback
//! must not call the function that it follows.
//!
//! To follow a return, fprobe needs room on the task's shadow stack: at most 32 words for all
//! probes of the function. With [`What::Result`], fprobe counts the calls that it misses for want
//! of room, unless the stack is so full that fprobe is not even called. A probe of the entry needs
//! no room.
//!
//! C header: [`include/linux/fprobe.h`](srctree/include/linux/fprobe.h)
//!
//! # Contexts
//!
//! The contexts of the function, with preemption off.

use crate::sys::{
    bindings as helpers,
    measure::{self, Meter, Target}, //
};
use core::{ffi::CStr, ptr::NonNull};
use kernel::{
    error::from_err_ptr,
    ffi::{c_char, c_void},
    prelude::*,
    sync::Arc, //
};

/// A callback: called with the owner, and the argument or the result.
pub(crate) type CallFn = unsafe extern "C" fn(owner: *mut c_void, word: u64);

/// The value passed to the callback.
pub(crate) enum What<T> {
    /// The first argument, at the entry.
    Argument,
    /// The result, at the return. [`Calls::collect_missed`] and the drop of [`Calls`] call this
    /// function with the owner, and with the number of calls that fprobe has missed since the last
    /// time. The function may sleep.
    Result(fn(&T, u64)),
}

/// Functions that are followed until dropped. Dropping waits for running callbacks; may sleep.
pub(crate) struct Calls<T> {
    raw: NonNull<helpers::lt_calls>,
    what: What<T>,
    /// Number of missed calls that the owner knows of.
    reported: u64,
    /// This and the owner stay alive until no callback is running.
    _measured: Option<KBox<Measured<T>>>,
    owner: Arc<T>,
}

/// A callback that is measured.
struct Measured<T> {
    function: CallFn,
    owner: Arc<T>,
    meter: Arc<dyn Meter>,
}

/// Calls a callback, and measures it.
///
/// # Safety
///
/// `data` is a valid `Measured<T>`, whose function may be called here.
unsafe extern "C" fn measured<T: Target>(data: *mut c_void, word: u64) {
    // SAFETY: The function's contract.
    let this = unsafe { &*data.cast::<Measured<T>>() };
    let owner = Arc::as_ptr(&this.owner).cast_mut().cast::<c_void>();
    // SAFETY: The function's contract: it may be called with a valid `T`.
    let run = || unsafe { (this.function)(owner, word) };
    measure::around(&*this.meter, |guard| this.owner.changes(guard), run);
}

// SAFETY: The C side does its own locking; the owner is `Send` and `Sync`.
unsafe impl<T: Send + Sync> Send for Calls<T> {}

impl<T: Target> Calls<T> {
    /// Follows the functions with these names. May sleep. Fails with `ENOENT` if one of them does
    /// not exist, or cannot be traced, or with `ENOMEM`.
    ///
    /// # Safety
    ///
    /// `function` may be called with a pointer to a valid `T`, in the context of these functions.
    pub(crate) unsafe fn new<const N: usize>(
        names: [&'static CStr; N],
        what: What<T>,
        function: CallFn,
        owner: Arc<T>,
    ) -> Result<Self> {
        let meter = names.first().and_then(|name| owner.meter(name));
        let measured = match meter {
            Some(meter) => {
                let owner = owner.clone();
                let measured = Measured {
                    function,
                    owner,
                    meter,
                };
                Some(KBox::new(measured, GFP_KERNEL)?)
            }
            None => None,
        };
        let (function, data): (CallFn, *const c_void) = match &measured {
            Some(this) => (
                self::measured::<T>,
                core::ptr::from_ref::<Measured<T>>(this).cast(),
            ),
            None => (function, Arc::as_ptr(&owner).cast()),
        };
        let names: [*const c_char; N] = names.map(|name| name.as_ptr().cast());
        // SAFETY: The names are C strings, and their number is passed. `function` is the caller's,
        // which may be called with a valid `T`, or is `measured`, which may be called with a valid
        // `Measured<T>`: `data` points into the `Arc` or the box, which is held until
        // `lt_calls_free` has returned, and then no callback is running.
        let raw = unsafe {
            from_err_ptr(helpers::lt_calls_new(
                names.as_ptr(),
                N as u32,
                matches!(what, What::Result(_)),
                Some(function),
                data.cast_mut(),
            ))?
        };
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            what,
            reported: 0,
            _measured: measured,
            owner,
        })
    }
}

impl<T> Calls<T> {
    /// Passes to the owner the number of calls that fprobe has missed since the last time.
    pub(crate) fn collect_missed(&mut self) {
        // SAFETY: Valid until it is freed by `drop`.
        let missed = unsafe { helpers::lt_calls_missed(self.raw.as_ptr()) };
        self.report_missed(missed);
    }

    fn report_missed(&mut self, missed: u64) {
        if let What::Result(report) = self.what {
            report(&self.owner, missed.wrapping_sub(self.reported));
        }
        self.reported = missed;
    }
}

impl<T> Drop for Calls<T> {
    fn drop(&mut self) {
        // SAFETY: Made by `lt_calls_new`, freed once.
        let missed = unsafe { helpers::lt_calls_free(self.raw.as_ptr()) };
        self.report_missed(missed);
    }
}
