// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Atomics over `core`'s. In debug builds every operation is a place for an interrupt.

use super::{
    AtomicType,
    ordering::{AcquireOrRelaxed, Ordering, Relaxed, ReleaseOrRelaxed},
    sealed::Repr,
};
use core::fmt;

/// A value that several CPUs read and write.
#[repr(transparent)]
pub struct Atomic<T: AtomicType>(T::Native);

/// Marks a place where an interrupt may come.
#[inline(always)]
fn step() {
    #[cfg(debug_assertions)]
    crate::hook::fire();
}

impl<T: AtomicType> Atomic<T> {
    /// Creates an atomic.
    #[inline(always)]
    pub fn new(value: T) -> Self {
        Self(T::Native::new(value))
    }

    /// Reads the value.
    #[inline(always)]
    pub fn load<O: AcquireOrRelaxed>(&self, _: O) -> T {
        step();
        self.0.load(O::NATIVE)
    }

    /// Writes the value.
    #[inline(always)]
    pub fn store<O: ReleaseOrRelaxed>(&self, value: T, _: O) {
        step();
        self.0.store(value, O::NATIVE);
    }

    /// Writes the value and returns the old one.
    #[inline(always)]
    pub fn xchg<O: Ordering>(&self, value: T, _: O) -> T {
        step();
        self.0.swap(value, O::NATIVE)
    }

    /// Writes `new` if the value is `old`; otherwise fails with the value.
    #[inline(always)]
    pub fn cmpxchg<O: Ordering>(&self, old: T, new: T, _: O) -> Result<T, T> {
        step();
        self.0.cmpxchg(old, new, O::NATIVE)
    }

    /// Adds to the value.
    #[inline(always)]
    pub fn add(&self, value: T, _: Relaxed) {
        step();
        self.0.fetch_add(value, Relaxed::NATIVE);
    }

    /// Adds to the value and returns the old one.
    #[inline(always)]
    pub fn fetch_add<O: Ordering>(&self, value: T, _: O) -> T {
        step();
        self.0.fetch_add(value, O::NATIVE)
    }

    /// Subtracts from the value and returns the old one.
    #[inline(always)]
    pub fn fetch_sub<O: Ordering>(&self, value: T, _: O) -> T {
        step();
        self.0.fetch_sub(value, O::NATIVE)
    }
}

impl<T: AtomicType + fmt::Debug> fmt::Debug for Atomic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.load(Relaxed).fmt(f)
    }
}
