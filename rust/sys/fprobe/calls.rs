// SPDX-License-Identifier: GPL-2.0

//! Following functions of the kernel by their first argument, or by what they return, where no
//! tracepoint stands in for them.
//!
//! Less than [`super::Functions`], and at less cost: there is no frame, and who is told must not
//! call what it follows.
//!
//! C header: [`include/linux/fprobe.h`](srctree/include/linux/fprobe.h)
//!
//! # Contexts
//!
//! Those of the function, with preemption off.

use crate::sys::bindings as helpers;
use core::{ffi::CStr, ptr::NonNull};
use kernel::{
    error::from_err_ptr,
    ffi::{c_char, c_void},
    prelude::*,
    sync::Arc, //
};

/// What a function is told of: the owner, and the argument or the result.
pub(crate) type Told = unsafe extern "C" fn(owner: *mut c_void, word: u64);

/// What is told of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// The first argument, at the entry.
    Argument,
    /// The result, at the return.
    Result,
}

/// Functions that are followed until this is dropped, which waits for those who are told. Sleeps.
pub(crate) struct Calls<T> {
    raw: NonNull<helpers::lt_calls>,
    /// Kept alive until nobody is told any more.
    _owner: Arc<T>,
}

// SAFETY: The C side locks by itself; the owner is `Send` and `Sync`.
unsafe impl<T: Send + Sync> Send for Calls<T> {}

impl<T: Send + Sync + 'static> Calls<T> {
    /// Follows the functions with these names. `ENOENT` if one of them is none, or can not be
    /// traced; `ENOMEM`. Sleeps.
    ///
    /// # Safety
    ///
    /// `told` may be called with a pointer to a valid `T`, in the context of these functions.
    pub(crate) unsafe fn new<const N: usize>(
        names: [&'static CStr; N],
        what: What,
        told: Told,
        owner: Arc<T>,
    ) -> Result<Self> {
        let names: [*const c_char; N] = names.map(|name| name.as_ptr().cast());
        let data = Arc::as_ptr(&owner).cast_mut().cast::<c_void>();
        // SAFETY: The names are C strings, as many as is said. `told` is called with a valid `T`,
        // as the caller allows: `data` points into the `Arc` that is held until `lt_calls_free` has
        // returned, when nobody is told any more.
        let raw = unsafe {
            from_err_ptr(helpers::lt_calls_new(
                names.as_ptr(),
                N as u32,
                what == What::Result,
                Some(told),
                data,
            ))?
        };
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            _owner: owner,
        })
    }
}

impl<T> Drop for Calls<T> {
    fn drop(&mut self) {
        // SAFETY: Made by `lt_calls_new`, freed once.
        unsafe { helpers::lt_calls_free(self.raw.as_ptr()) };
    }
}
