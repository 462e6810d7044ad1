// SPDX-License-Identifier: GPL-2.0

//! System calls, as tasks enter and leave the kernel.
//!
//! ```text
//!   user space --> sys_enter --> the call --> sys_exit --> user space
//! ```
//!
//! Each call that is entered is left, also if a signal ends it or its task; a task that is in the
//! middle of one when a follower is attached leaves it unentered.
//!
//! C header: [`include/trace/events/syscalls.h`](srctree/include/trace/events/syscalls.h)
//!
//! # Contexts
//!
//! The current task, with preemption on; it may even sleep.

use crate::sys::{
    bindings as helpers,
    tracepoint::{self, Attachment, Probe}, //
};
use core::{ffi::CStr, marker::PhantomData, ptr::NonNull};
use kernel::{
    bindings,
    ffi::{c_long, c_void},
    prelude::*,
    sync::Arc, //
};

/// A system call of the current task, during a tracepoint.
///
/// # Invariants
///
/// The pointer is valid for `'a`, and of the current task.
pub(crate) struct Call<'a> {
    regs: NonNull<bindings::pt_regs>,
    _during: PhantomData<&'a bindings::pt_regs>,
}

impl Call<'_> {
    /// # Safety
    ///
    /// `regs` is valid for the duration of `'a`, and of the current task.
    #[inline(always)]
    unsafe fn from_raw<'a>(regs: *mut bindings::pt_regs) -> Call<'a> {
        // INVARIANT: The caller's promise.
        Call {
            // SAFETY: A valid pointer is not NULL.
            regs: unsafe { NonNull::new_unchecked(regs) },
            _during: PhantomData,
        }
    }

    /// Its number, which means one of the tables of the architecture, see [`Call::is_compat`]. None
    /// if the call was skipped, or is not one.
    #[inline(always)]
    pub(crate) fn number(&self) -> Option<u32> {
        // SAFETY: Valid by the type invariant.
        u32::try_from(unsafe { helpers::lt_syscall_number(self.regs.as_ptr()) }).ok()
    }

    /// Whether it is one of another table than the native one: of a 32-bit program on a 64-bit
    /// kernel.
    pub(crate) fn is_compat(&self) -> bool {
        // SAFETY: Looks at the current task.
        unsafe { helpers::lt_syscall_is_compat() }
    }
}

/// Follows system calls. See "Contexts" above.
pub(crate) trait Follower: Send + Sync + 'static {
    /// The current task begins a call.
    fn entered(&self, call: Call<'_>);

    /// It is about to return from it.
    fn left(&self, call: Call<'_>);
}

/// # Safety
///
/// `data` is a valid `T`, `regs` are valid ones of the current task.
unsafe extern "C" fn entered<T: Follower>(
    data: *mut c_void,
    regs: *mut bindings::pt_regs,
    _number: c_long,
) {
    // SAFETY: The function's contract.
    let (follower, call) = unsafe { (&*data.cast::<T>(), Call::from_raw(regs)) };
    follower.entered(call);
}

/// # Safety
///
/// `data` is a valid `T`, `regs` are valid ones of the current task.
unsafe extern "C" fn left<T: Follower>(
    data: *mut c_void,
    regs: *mut bindings::pt_regs,
    _result: c_long,
) {
    // SAFETY: The function's contract.
    let (follower, call) = unsafe { (&*data.cast::<T>(), Call::from_raw(regs)) };
    follower.left(call);
}

/// The probes, the end first: nothing begins whose end would be missed.
fn probes<T: Follower>() -> [Probe<'static, T>; 2] {
    // SAFETY: They have the arguments of these tracepoints, whose first are the registers of the
    // current task.
    unsafe {
        [
            Probe::new(c"sys_exit", left::<T> as *mut c_void),
            Probe::new(c"sys_enter", entered::<T> as *mut c_void),
        ]
    }
}

/// The first tracepoint that this kernel lacks, if any.
pub(crate) fn missing<T: Follower>() -> Option<&'static CStr> {
    tracepoint::missing(probes::<T>())
}

/// Attaches a follower. `ENOSYS` if the kernel lacks a tracepoint; nothing is left behind. Sleeps.
pub(crate) fn attach<T: Follower>(follower: Arc<T>) -> Result<Attachment<T>> {
    Attachment::new(follower, probes())
}
