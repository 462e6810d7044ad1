// SPDX-License-Identifier: GPL-2.0

//! The interface of the module's rust/sys/memory.rs, implemented with the heap of the
//! process. Allocations can be made to fail.

use crate::{engine::platform::Platform, sys::atomic::Atomic};
use kernel::prelude::*;
use std::{cell::Cell, ops::Deref};

thread_local! {
    /// Number of further allocations of this thread that succeed.
    static BUDGET: Cell<usize> = const { Cell::new(usize::MAX) };
    /// Number of arrays that this thread has created, less the number that it has dropped.
    static ALIVE: Cell<isize> = const { Cell::new(0) };
}

/// Runs `body` with memory for `budget` allocations.
pub(crate) fn with_budget<R>(budget: usize, body: impl FnOnce() -> R) -> R {
    BUDGET.set(budget);
    let result = body();
    BUDGET.set(usize::MAX);
    result
}

/// Returns the number of arrays that this thread has created, less the number that it has dropped.
pub(crate) fn alive() -> isize {
    ALIVE.get()
}

/// Bit to OR into an address to set its highest bit.
pub(crate) const ADDRESS_MARK: u64 = 1 << 63;

/// An array of fixed length.
pub(crate) struct NodeSlice<T> {
    values: Vec<T>,
    #[cfg(loom)]
    watched: Option<watched::Memory>,
}

/// For models: memory that detects whether it is still accessed when it is freed.
#[cfg(loom)]
pub(crate) mod watched {
    use std::cell::Cell;

    thread_local! {
        static WATCH: Cell<bool> = const { Cell::new(false) };
    }

    /// Sets whether this thread's allocations are watched from now on. All threads of a model are
    /// one thread here.
    pub(crate) fn watch(on: bool) {
        WATCH.set(on);
    }

    /// A cell that is written when memory is freed, and read at each use of the memory: loom fails if
    /// the two are not ordered.
    pub(crate) struct Memory(loom::cell::UnsafeCell<()>);

    impl Memory {
        pub(crate) fn new() -> Option<Self> {
            WATCH.get().then(|| Self(loom::cell::UnsafeCell::new(())))
        }

        pub(crate) fn used(&self) {
            self.0.with(|_| ());
        }

        pub(crate) fn freed(&self) {
            self.0.with_mut(|_| ());
        }
    }
}

impl<T> NodeSlice<T> {
    /// Creates an array of `len` values, the i-th by `make(i)`.
    pub(crate) fn try_new(
        len: usize,
        _node: Option<usize>,
        make: impl FnMut(usize) -> Result<T>,
    ) -> Result<Self> {
        BUDGET.set(BUDGET.get().checked_sub(1).ok_or(ENOMEM)?);
        let values: Vec<T> = (0..len).map(make).collect::<Result<_>>()?;
        ALIVE.set(ALIVE.get() + 1);
        Ok(Self {
            values,
            #[cfg(loom)]
            watched: watched::Memory::new(),
        })
    }
}

impl<T> Drop for NodeSlice<T> {
    fn drop(&mut self) {
        ALIVE.set(ALIVE.get() - 1);
        #[cfg(loom)]
        if let Some(memory) = &self.watched {
            // A second failure would abort.
            if !std::thread::panicking() {
                memory.freed();
            }
            // The values are dropped, but the memory is not freed, so that an access to it is
            // detected.
            let mut values = std::mem::take(&mut self.values);
            values.drain(..).for_each(drop);
            std::mem::forget(values);
        }
    }
}

impl<T> Deref for NodeSlice<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        #[cfg(loom)]
        if let Some(memory) = &self.watched {
            memory.used();
        }
        &self.values
    }
}

/// One value for each CPU.
pub(crate) struct PerCpu<T> {
    values: NodeSlice<T>,
}

/// Types that can be created with all words zero.
pub(crate) trait Zeroes {
    fn zeroes() -> Self;
}

impl<const N: usize> Zeroes for [Atomic<u64>; N] {
    fn zeroes() -> Self {
        std::array::from_fn(|_| Atomic::new(0))
    }
}

impl<T> PerCpu<T> {
    /// Creates the values.
    pub(crate) fn try_new<P: Platform>(make: impl FnMut(usize) -> Result<T>) -> Result<Self> {
        let values = NodeSlice::try_new(P::cpus(), None, make)?;
        Ok(Self { values })
    }

    /// Creates the values, all zero.
    pub(crate) fn zeroed<P: Platform>() -> Result<Self>
    where
        T: Zeroes,
    {
        Self::try_new::<P>(|_| Ok(T::zeroes()))
    }

    /// Returns the value of the guard's CPU.
    #[inline(always)]
    pub(crate) fn this<P: Platform>(&self, guard: &P::Guard) -> &T {
        &self.values[P::cpu(guard)]
    }

    /// Returns the value of a CPU.
    #[inline(always)]
    pub(crate) fn get(&self, cpu: usize) -> Option<&T> {
        self.values.get(cpu)
    }

    /// Returns all values, in the order of the CPUs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }
}
