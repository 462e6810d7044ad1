// SPDX-License-Identifier: GPL-2.0

//! Attaching functions to the kernel's tracepoints.
//!
//! C header: [`include/linux/tracepoint.h`](srctree/include/linux/tracepoint.h)

use core::{ffi::CStr, ptr::NonNull};
use kernel::{
    bindings,
    error::to_result,
    ffi::c_void,
    prelude::*, //
};

/// A tracepoint of the kernel proper; those of modules may vanish and are not found.
#[derive(Clone, Copy)]
pub(crate) struct Tracepoint(NonNull<bindings::tracepoint>);

// SAFETY: Tracepoints of the kernel proper are static, and registering locks by itself.
unsafe impl Send for Tracepoint {}
// SAFETY: As above.
unsafe impl Sync for Tracepoint {}

impl Tracepoint {
    /// Finds a tracepoint by its name, unless it has other arguments than our probes take, see
    /// [`fits`]. Sleeps not, but walks all of them.
    pub(crate) fn find(name: &CStr) -> Option<Self> {
        if !fits(name) {
            return None;
        }
        // SAFETY: The name is a C string that outlives the call.
        let found = unsafe { crate::sys::bindings::lt_tracepoint_find(name.as_ptr().cast()) };
        NonNull::new(found).map(Self)
    }
}

/// Whether a tracepoint has the arguments that our probes take, in the headers that this module
/// was built with. True of those that none of ours is for, and of what is no tracepoint.
pub(crate) fn fits(name: &CStr) -> bool {
    // SAFETY: The name is a C string that outlives the call.
    unsafe { crate::sys::bindings::lt_tracepoint_fits(name.as_ptr().cast()) }
}

/// A function that is called at a tracepoint, until dropped.
///
/// After the drop the function may still be running somewhere: [`synchronize`] waits for it.
pub(crate) struct Probe {
    tracepoint: Tracepoint,
    function: *mut c_void,
    data: *mut c_void,
}

// SAFETY: The pointers are only handed back to the tracepoint code, from any thread.
unsafe impl Send for Probe {}
// SAFETY: Nothing can be done with a shared `Probe`.
unsafe impl Sync for Probe {}

impl Probe {
    /// Attaches `function`, to be called with `data` and the tracepoint's arguments.
    ///
    /// # Safety
    ///
    /// - `function` is an `extern "C" fn(*mut c_void, ...)` whose further arguments are those
    ///   of the tracepoint's `TP_PROTO`.
    /// - It may be called with `data` in the tracepoint's context on any CPU, until
    ///   [`synchronize`] has returned after this probe was dropped.
    pub(crate) unsafe fn attach(
        tracepoint: Tracepoint,
        function: *mut c_void,
        data: *mut c_void,
    ) -> Result<Self> {
        // SAFETY: The tracepoint is valid; the rest is the caller's promise.
        to_result(unsafe {
            bindings::tracepoint_probe_register(tracepoint.0.as_ptr(), function, data)
        })?;
        Ok(Self {
            tracepoint,
            function,
            data,
        })
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // SAFETY: Was registered with these three by `attach`. It can fail only if it was not.
        unsafe {
            bindings::tracepoint_probe_unregister(
                self.tracepoint.0.as_ptr(),
                self.function,
                self.data,
            )
        };
    }
}

/// Waits until no detached probe is running any more. Sleeps.
pub(crate) fn synchronize() {
    // SAFETY: Called where sleeping is allowed.
    unsafe { crate::sys::bindings::lt_tracepoint_sync() };
}
