// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The kernel's memory orderings, as types.

use core::sync::atomic::Ordering as Native;

/// Orders nothing.
pub struct Relaxed;

/// Orders the load before all later accesses.
pub struct Acquire;

/// Orders all earlier accesses before the store.
pub struct Release;

/// A full barrier before and after.
pub struct Full;

/// Any ordering.
pub trait Ordering: sealed::Sealed {
    /// The ordering of a read-modify-write operation that it maps to; see [`super`].
    #[doc(hidden)]
    const NATIVE: Native;
}

/// Orderings of a load.
pub trait AcquireOrRelaxed: Ordering {}

/// Orderings of a store.
pub trait ReleaseOrRelaxed: Ordering {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Relaxed {}
    impl Sealed for super::Acquire {}
    impl Sealed for super::Release {}
    impl Sealed for super::Full {}
}

impl Ordering for Relaxed {
    const NATIVE: Native = Native::Relaxed;
}

impl Ordering for Acquire {
    const NATIVE: Native = Native::Acquire;
}

impl Ordering for Release {
    const NATIVE: Native = Native::Release;
}

impl Ordering for Full {
    const NATIVE: Native = if cfg!(loom) {
        Native::AcqRel
    } else {
        Native::SeqCst
    };
}

impl AcquireOrRelaxed for Acquire {}
impl AcquireOrRelaxed for Relaxed {}
impl ReleaseOrRelaxed for Release {}
impl ReleaseOrRelaxed for Relaxed {}
