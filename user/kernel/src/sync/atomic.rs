// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Atomics with the methods and orderings of `rust/kernel/sync/atomic.rs`.
//!
//! # How the kernel's orderings are mapped
//!
//! A test proves something about the kernel only if these atomics promise no more than the kernel's
//! do (tools/memory-model, Documentation/atomic_t.txt):
//!
//! | kernel                 | here                              | promises                      |
//! |------------------------|-----------------------------------|-------------------------------|
//! | `load(Acquire)`        | `Acquire`                         | the same                      |
//! | `store(Release)`       | `Release`                         | the same                      |
//! | `add`, `Relaxed` RMW   | `Relaxed`                         | the same                      |
//! | `Acquire` RMW          | `Acquire`; the store is relaxed   | the same                      |
//! | `Release` RMW          | `Release`; the load is relaxed    | the same                      |
//! | `Full` RMW             | loom: `AcqRel`, natively `SeqCst` | less: the kernel's is a full  |
//! |                        |                                   | barrier before and after      |
//! | `xchg(Full)`           | loom: `AcqRel` between two fences | the same                      |
//! | `cmpxchg` that fails   | `Relaxed` in any case             | the same: a failed conditional|
//! |                        |                                   | operation orders nothing      |
//!
//! An algorithm that loom finds correct with `AcqRel` therefore needs only that part of `Full`; an
//! algorithm that relies on the full barrier (a store before, a load after) must use `xchg`, or
//! declare that it needs the barrier after a `cmpxchg`, too (`model::barriers`). Loom has limits of
//! its own. It remembers the seven latest stores of each atomic. A failing compare-and-swap always
//! sees the latest value. A load never returns a value that depends on a later store of the same
//! thread (load buffering); in the kernel's model, too, dependencies forbid that.
//!
//! `new` is not `const`, unlike the kernel's, since loom's is not.

#[cfg(not(loom))]
mod native;
#[cfg(not(loom))]
use native as imp;

#[cfg(loom)]
mod modelled;
#[cfg(loom)]
use modelled as imp;

pub mod ordering;

pub use imp::Atomic;
pub use ordering::{Acquire, Full, Relaxed, Release};

/// Types that can be atomic.
pub trait AtomicType: Copy + PartialEq + sealed::Sealed {
    /// `core`'s atomic of this type.
    #[doc(hidden)]
    type Native: sealed::Repr<Self>;

    /// Loom's atomic of this type.
    #[cfg(loom)]
    #[doc(hidden)]
    type Modelled: sealed::Repr<Self>;

    /// Converts the value to a word, for the mutations of the model.
    #[cfg(loom)]
    #[doc(hidden)]
    fn word(self) -> u64;

    /// Converts a word back, for the mutations of the model.
    #[cfg(loom)]
    #[doc(hidden)]
    fn from_word(word: u64) -> Self;

    /// Adds, wrapping around.
    #[cfg(loom)]
    #[doc(hidden)]
    fn plus(self, rhs: Self) -> Self;

    /// Subtracts, wrapping around.
    #[cfg(loom)]
    #[doc(hidden)]
    fn minus(self, rhs: Self) -> Self;
}

pub(crate) mod sealed {
    use core::sync::atomic::Ordering;

    pub trait Sealed {}

    /// Common interface of `core`'s and loom's atomics.
    pub trait Repr<T> {
        fn new(value: T) -> Self;
        fn load(&self, ordering: Ordering) -> T;
        fn store(&self, value: T, ordering: Ordering);
        fn swap(&self, value: T, ordering: Ordering) -> T;
        fn cmpxchg(&self, old: T, new: T, ordering: Ordering) -> Result<T, T>;
        fn fetch_add(&self, value: T, ordering: Ordering) -> T;
        fn fetch_sub(&self, value: T, ordering: Ordering) -> T;
    }
}

macro_rules! repr {
    ($type:ty, $atomic:ty) => {
        impl sealed::Repr<$type> for $atomic {
            #[inline(always)]
            fn new(value: $type) -> Self {
                Self::new(value)
            }

            #[inline(always)]
            fn load(&self, ordering: core::sync::atomic::Ordering) -> $type {
                self.load(ordering)
            }

            #[inline(always)]
            fn store(&self, value: $type, ordering: core::sync::atomic::Ordering) {
                self.store(value, ordering);
            }

            #[inline(always)]
            fn swap(&self, value: $type, ordering: core::sync::atomic::Ordering) -> $type {
                self.swap(value, ordering)
            }

            #[inline(always)]
            fn cmpxchg(
                &self,
                old: $type,
                new: $type,
                ordering: core::sync::atomic::Ordering,
            ) -> Result<$type, $type> {
                self.compare_exchange(old, new, ordering, core::sync::atomic::Ordering::Relaxed)
            }

            #[inline(always)]
            fn fetch_add(&self, value: $type, ordering: core::sync::atomic::Ordering) -> $type {
                self.fetch_add(value, ordering)
            }

            #[inline(always)]
            fn fetch_sub(&self, value: $type, ordering: core::sync::atomic::Ordering) -> $type {
                self.fetch_sub(value, ordering)
            }
        }
    };
}

macro_rules! atomic_types {
    ($($type:ty = $atomic:ident,)*) => {$(
        impl sealed::Sealed for $type {}

        impl AtomicType for $type {
            type Native = core::sync::atomic::$atomic;

            #[cfg(loom)]
            type Modelled = loom::sync::atomic::$atomic;

            #[cfg(loom)]
            fn word(self) -> u64 {
                self as u64
            }

            #[cfg(loom)]
            fn from_word(word: u64) -> Self {
                word as $type
            }

            #[cfg(loom)]
            fn plus(self, rhs: Self) -> Self {
                self.wrapping_add(rhs)
            }

            #[cfg(loom)]
            fn minus(self, rhs: Self) -> Self {
                self.wrapping_sub(rhs)
            }
        }

        repr!($type, core::sync::atomic::$atomic);

        #[cfg(loom)]
        repr!($type, loom::sync::atomic::$atomic);
    )*};
}

atomic_types! {
    i32 = AtomicI32,
    u32 = AtomicU32,
    i64 = AtomicI64,
    u64 = AtomicU64,
    isize = AtomicIsize,
    usize = AtomicUsize,
}
