// SPDX-License-Identifier: GPL-2.0

//! Handles any tracepoint, by the registers of its arguments.
//!
//! A probe gets its own data in the first register. The arguments of `TP_PROTO`, integers and
//! pointers, follow in order, one in each register, as far as there are registers. Registers after
//! the last argument have undefined content, and so does the upper part of a register whose
//! argument is smaller.
//!
//! So no compiler can compare the types, as it does for probes made with
//! [`super::tracepoint::probe!`], and on a kernel with kCFI the call would trap: tracepoints.h
//! refuses such kernels.
//!
//! # Contexts
//!
//! The contexts of the tracepoint: any, including NMI. Preemption may be on.

use crate::{
    engine::platform::Platform,
    sys::{
        bindings as helpers,
        measure::Target,
        platform::{Kernel, PreemptGuard},
        tracepoint::{Attachment, Probe}, //
    },
};
use core::ffi::CStr;
use kernel::{ffi::c_void, prelude::*, sync::Arc};

/// Number of registers, available on all machines that pass six arguments or more in registers.
pub(crate) const REGISTERS: usize = 5;

/// Handles tracepoints. `S` distinguishes the roles of a type that implements this more than once.
/// See "Contexts" above.
pub(crate) trait Observer<S>: Target {
    /// Called when the tracepoint is hit.
    fn hit(&self, guard: &PreemptGuard, registers: &[u64; REGISTERS]);

    /// Called instead of [`Observer::hit`] while our readers are being woken.
    fn within_ourselves(&self, guard: &PreemptGuard);
}

/// # Safety
///
/// `data` is a valid `T`.
unsafe extern "C" fn hit<S, T: Observer<S>>(
    data: *mut c_void,
    a0: u64,
    a1: u64,
    a2: u64,
    a3: u64,
    a4: u64,
) {
    // SAFETY: The function's contract.
    let observer = unsafe { &*data.cast::<T>() };
    let guard = Kernel::guard();
    // SAFETY: Preemption is off.
    if unsafe { helpers::lt_is_waking() } {
        observer.within_ourselves(&guard);
    } else {
        observer.hit(&guard, &[a0, a1, a2, a3, a4]);
    }
}

/// Attaches an observer, until the result is dropped. If the tracepoint is in a module, the module
/// stays loaded until then. May sleep. Fails as
/// [`Tracepoint::find_any`](super::tracepoint::Tracepoint::find_any) does, or with `ENOMEM`.
pub(crate) fn attach<S, T: Observer<S>>(name: &CStr, observer: Arc<T>) -> Result<Attachment<T>> {
    // SAFETY: The function takes integers from registers, whatever the tracepoint has put there,
    // and may be called in any context.
    let probe = unsafe { Probe::of_any(name, hit::<S, T> as *mut c_void) };
    Attachment::new(observer, [probe])
}
