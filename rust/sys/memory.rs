// SPDX-License-Identifier: GPL-2.0

//! Arrays allocated on a chosen NUMA node, and one value for each CPU on its own node.
//!
//! The `kernel` crate's vectors do not take a node yet; its allocators do. All functions that
//! allocate sleep.

use crate::{platform::Platform, sys::bindings};
use core::{alloc::Layout, marker::PhantomData, ops::Deref, ptr::NonNull};
use kernel::{
    alloc::{allocator::KVmalloc, flags::__GFP_NOWARN, Allocator, NumaNode},
    prelude::*,
};

/// From this size on it is asked first whether there is so much memory, in bytes.
const LARGE: usize = 1 << 20;

/// `ENOMEM` if there is not so much memory, in bytes: nothing large is even tried, lest the
/// kernel kill processes to find it.
pub(crate) fn check(bytes: usize) -> Result {
    // SAFETY: No requirements.
    if bytes > LARGE && !unsafe { bindings::lt_memory_available(bytes) } {
        return Err(ENOMEM);
    }
    Ok(())
}

/// An array of fixed length on one node.
///
/// # Invariants
///
/// `ptr` points to `len` initialised values in memory from [`KVmalloc`], allocated with the
/// layout of `[T; len]`, or is dangling if that layout has size 0.
pub(crate) struct NodeSlice<T> {
    ptr: NonNull<T>,
    len: usize,
    owns: PhantomData<T>,
}

// SAFETY: A `NodeSlice` owns its values, as a vector does.
unsafe impl<T: Send> Send for NodeSlice<T> {}
// SAFETY: A shared `NodeSlice` gives out shared references only.
unsafe impl<T: Sync> Sync for NodeSlice<T> {}

impl<T> NodeSlice<T> {
    /// Makes an array of `len` values, the i-th by `make(i)`, on `node` or anywhere.
    ///
    /// Fails with `ENOMEM`, or with what `make` failed with; nothing is left behind.
    pub(crate) fn try_new(
        len: usize,
        node: Option<usize>,
        mut make: impl FnMut(usize) -> Result<T>,
    ) -> Result<Self> {
        let layout = Layout::array::<T>(len).map_err(|_| ENOMEM)?;
        let node = match node {
            Some(node) => NumaNode::new(i32::try_from(node)?)?,
            None => NumaNode::NO_NODE,
        };
        check(layout.size())?;
        let ptr: NonNull<T> = if layout.size() == 0 {
            NonNull::dangling()
        } else {
            KVmalloc::alloc(layout, GFP_KERNEL | __GFP_NOWARN, node)?.cast()
        };
        // INVARIANT: No value is initialised yet, and `len` says so; it grows with them, so that
        // an early return drops and frees exactly what is there. (`len` and the layout agree at
        // the end; freeing does not depend on the length.)
        let mut slice = Self {
            ptr,
            len: 0,
            owns: PhantomData,
        };
        for i in 0..len {
            let value = make(i)?;
            // SAFETY: `i` is below the allocated length.
            unsafe { slice.ptr.add(i).write(value) };
            slice.len = i + 1;
        }
        Ok(slice)
    }
}

impl<T> Deref for NodeSlice<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: By the type invariant.
        unsafe { core::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }
}

impl<T> Drop for NodeSlice<T> {
    fn drop(&mut self) {
        let values = core::ptr::slice_from_raw_parts_mut(self.ptr.as_ptr(), self.len);
        // SAFETY: By the type invariant these are initialised, and nobody uses them any more.
        unsafe { values.drop_in_place() };
        if size_of::<T>() == 0 || self.ptr == NonNull::dangling() {
            return;
        }
        // SAFETY: The memory came from `KVmalloc`, which frees by address alone.
        unsafe { KVmalloc::free(self.ptr.cast(), Layout::new::<T>()) };
    }
}

/// One value for each possible CPU, on that CPU's node.
pub(crate) struct PerCpu<T> {
    values: NodeSlice<NodeSlice<T>>,
}

impl<T> PerCpu<T> {
    /// Makes the values. Fails with `ENOMEM`, or with what `make` failed with.
    pub(crate) fn try_new<P: Platform>(mut make: impl FnMut(usize) -> Result<T>) -> Result<Self> {
        let values = NodeSlice::try_new(P::cpus(), None, |cpu| {
            let node = P::node_of(cpu);
            let node = P::has_memory(node).then_some(node);
            NodeSlice::try_new(1, node, |_| make(cpu))
        })?;
        Ok(Self { values })
    }

    /// The value of a CPU below [`Platform::cpus`].
    #[inline(always)]
    pub(crate) fn get(&self, cpu: usize) -> &T {
        &self.values[cpu][0]
    }

    /// All values, in the order of the CPUs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter().flat_map(|one| one.iter())
    }
}
