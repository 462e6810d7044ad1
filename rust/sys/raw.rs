// SPDX-License-Identifier: GPL-2.0

//! Passing any tracepoint, with what is in the registers of its arguments.
//!
//! The arguments of `TP_PROTO` come in registers, in their order, as far as they fit: integers and
//! pointers, each in a register of its own. The first register is the probe's own. Registers
//! behind the last argument have something in them that means nothing; so has the upper part of
//! the register of a type that is smaller than it.
//!
//! # Contexts
//!
//! Those of the tracepoint: any, NMI included. Preemption may be on.

use crate::{
    platform::Platform,
    sys::{
        bindings as helpers,
        platform::{Kernel, PreemptGuard},
        tracepoint::{self, Probe, Tracepoint}, //
    },
};
use core::{ffi::CStr, marker::PhantomData};
use kernel::{ffi::c_void, prelude::*, sync::Arc};

/// How many registers there are, on all machines that pass arguments in six or more.
pub(crate) const REGISTERS: usize = 5;

/// Passes a tracepoint as `S`, for who passes several. See "Contexts" above.
pub(crate) trait Passer<S>: Send + Sync + 'static {
    /// A tracepoint is passed.
    fn passed(&self, guard: &PreemptGuard, registers: &[u64; REGISTERS]);

    /// A tracepoint is passed while readers of ours are woken.
    fn within_ourselves(&self, guard: &PreemptGuard);
}

/// # Safety
///
/// `data` is a valid `T`.
unsafe extern "C" fn passed<S, T: Passer<S>>(
    data: *mut c_void,
    a0: u64,
    a1: u64,
    a2: u64,
    a3: u64,
    a4: u64,
) {
    // SAFETY: The function's contract.
    let passer = unsafe { &*data.cast::<T>() };
    let guard = Kernel::guard();
    // SAFETY: Preemption is off.
    if unsafe { helpers::lt_is_waking() } {
        passer.within_ourselves(&guard);
    } else {
        passer.passed(&guard, &[a0, a1, a2, a3, a4]);
    }
}

/// A tracepoint that is passed, until dropped. Dropping sleeps.
pub(crate) struct Passing<S, T: Passer<S>> {
    probe: Option<Probe>,
    /// Kept alive until the probe has returned.
    _passer: Arc<T>,
    _as: PhantomData<fn(S)>,
}

impl<S, T: Passer<S>> Passing<S, T> {
    /// Begins. `ENOENT` if there is no such tracepoint in the kernel proper.
    pub(crate) fn new(name: &CStr, passer: Arc<T>) -> Result<Self> {
        let data = Arc::as_ptr(&passer).cast_mut().cast::<c_void>();
        let tracepoint = Tracepoint::find(name).ok_or(ENOENT)?;
        let function = passed::<S, T> as *mut c_void;
        // SAFETY: The function takes integers from registers, whatever the tracepoint has put
        // there, and may be called in any context. `data` points into the `Arc` that is held
        // until after `synchronize` in `drop`.
        let probe = unsafe { Probe::attach(tracepoint, function, data)? };
        Ok(Self {
            probe: Some(probe),
            _passer: passer,
            _as: PhantomData,
        })
    }
}

impl<S, T: Passer<S>> Drop for Passing<S, T> {
    fn drop(&mut self) {
        self.probe = None;
        tracepoint::synchronize();
    }
}
