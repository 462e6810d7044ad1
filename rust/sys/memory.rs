// SPDX-License-Identifier: GPL-2.0

//! Arrays on a chosen NUMA node, if it has room, and values for each CPU on its own node.
//!
//! The `kernel` crate's allocators take a node, but its vectors do not pass one yet, and the crate
//! has no per-CPU memory. All functions that allocate may sleep.

use crate::{
    engine::platform::Platform,
    sys::{atomic::Atomic, bindings},
};
use core::{alloc::Layout, marker::PhantomData, ops::Deref, ptr::NonNull};
use kernel::{
    alloc::{allocator::KVmalloc, flags::__GFP_NOWARN, Allocator, NumaNode},
    prelude::*,
};

/// Bit to OR into a kernel address to set its highest bit; 0 on architectures where kernel
/// addresses are in the upper half.
pub(crate) const ADDRESS_MARK: u64 = if cfg!(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64",
    target_arch = "loongarch64"
)) {
    0
} else {
    1 << 63
};

/// Size in bytes above which [`check`] looks at the available memory.
const LARGE: usize = 1 << 20;

/// Fails with `ENOMEM` for more than [`LARGE`] bytes, unless they are less than half of the
/// available memory. Called before allocations, so that a large one does not invoke the OOM killer.
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
/// `ptr` points to `len` initialised values in memory from [`KVmalloc`], allocated with `layout`,
/// or is dangling if that layout has size 0.
pub(crate) struct NodeSlice<T> {
    ptr: NonNull<T>,
    len: usize,
    layout: Layout,
    owns: PhantomData<T>,
}

// SAFETY: A `NodeSlice` owns its values, as a vector does.
unsafe impl<T: Send> Send for NodeSlice<T> {}
// SAFETY: A shared `NodeSlice` gives out shared references only.
unsafe impl<T: Sync> Sync for NodeSlice<T> {}

impl<T> NodeSlice<T> {
    /// Creates an array of `len` values, the i-th by `make(i)`. The memory is on `node`, if given
    /// and not full, or anywhere.
    ///
    /// Fails with `ENOMEM`, or with the error of `make`; a failure leaves nothing allocated.
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
        // INVARIANT: No value is initialised yet, and `len` says so; it grows with them, so that an
        // early return drops exactly the initialised ones.
        let mut slice = Self {
            ptr,
            len: 0,
            layout,
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
        // SAFETY: By the type invariant these are initialised, and they are not used again.
        unsafe { values.drop_in_place() };
        if self.layout.size() == 0 {
            return;
        }
        // SAFETY: By the type invariant it came from `KVmalloc`, with this layout.
        unsafe { KVmalloc::free(self.ptr.cast(), self.layout) };
    }
}

/// A value for each possible CPU, in the kernel's per-CPU memory, which is on the CPU's node.
///
/// # Invariants
///
/// `base` is from `lt_percpu_alloc`, with an initialised value for each possible CPU.
pub(crate) struct PerCpu<T> {
    base: NonNull<T>,
    owns: PhantomData<T>,
}

// SAFETY: A `PerCpu` owns its values.
unsafe impl<T: Send> Send for PerCpu<T> {}
// SAFETY: A shared `PerCpu` gives out shared references only, to any CPU's value.
unsafe impl<T: Sync> Sync for PerCpu<T> {}

/// Iterates over the possible CPUs.
fn possible() -> impl Iterator<Item = usize> {
    // SAFETY: Reads a variable that is constant after boot.
    let cpus = unsafe { bindings::lt_nr_cpus() };
    (0..cpus as usize).filter(|&cpu| is_possible(cpu))
}

pub(super) fn is_possible(cpu: usize) -> bool {
    // SAFETY: Reads a variable that is constant after boot.
    let cpus = unsafe { bindings::lt_nr_cpus() };
    // SAFETY: The number is below the number of the mask's bits.
    cpu < cpus as usize && unsafe { bindings::lt_cpu_possible(cpu as u32) }
}

/// Types for which all-zero bytes are a valid value, so that even values too large for the stack
/// can be created ([`PerCpu::zeroed`]).
///
/// # Safety
///
/// All-zero bytes are a valid value of the type.
pub(crate) unsafe trait Zeroes {}

// SAFETY: It is a word.
unsafe impl Zeroes for Atomic<u64> {}

// SAFETY: It consists of such values.
unsafe impl<T: Zeroes, const N: usize> Zeroes for [T; N] {}

impl<T> PerCpu<T> {
    /// Creates the values. May sleep; fails with `ENOMEM`, or with the error of `make`.
    pub(crate) fn try_new<P: Platform>(mut make: impl FnMut(usize) -> Result<T>) -> Result<Self> {
        // SAFETY: No requirements; may sleep.
        let base = unsafe { bindings::lt_percpu_alloc(size_of::<T>(), align_of::<T>()) };
        let base: NonNull<T> = NonNull::new(base.cast()).ok_or(ENOMEM)?;
        for cpu in possible() {
            match make(cpu) {
                // SAFETY: The memory of a possible CPU, not initialised yet.
                Ok(value) => unsafe { on(base, cpu).write(value) },
                Err(error) => {
                    for cpu in possible().take_while(|&before| before < cpu) {
                        // SAFETY: Was initialised, and is not used again.
                        unsafe { on(base, cpu).drop_in_place() };
                    }
                    // SAFETY: From `lt_percpu_alloc`.
                    unsafe { bindings::lt_percpu_free(base.as_ptr().cast()) };
                    return Err(error);
                }
            }
        }
        // INVARIANT: All are initialised.
        Ok(Self {
            base,
            owns: PhantomData,
        })
    }

    /// Creates the values in place, all zero. Fails with `ENOMEM`. May sleep.
    pub(crate) fn zeroed<P: Platform>() -> Result<Self>
    where
        T: Zeroes,
    {
        // Each value starts at a cache line.
        let align = align_of::<T>().max(64);
        // SAFETY: No requirements; may sleep.
        let base = unsafe { bindings::lt_percpu_alloc(size_of::<T>(), align) };
        // INVARIANT: The memory is zeroed, which is a value of `T`.
        Ok(Self {
            base: NonNull::new(base.cast()).ok_or(ENOMEM)?,
            owns: PhantomData,
        })
    }

    /// Returns the value of the CPU that the guard holds.
    #[inline(always)]
    pub(crate) fn this<P: Platform>(&self, guard: &P::Guard) -> &T {
        // SAFETY: By the type invariant; the guard keeps the caller on its CPU, which is a possible
        // one (contract of `Platform`).
        unsafe { this_cpu(self.base, || P::cpu(guard)).as_ref() }
    }

    /// Returns the value of a possible CPU.
    pub(crate) fn get(&self, cpu: usize) -> Option<&T> {
        // SAFETY: By the type invariant; the CPU is a possible one.
        is_possible(cpu).then(|| unsafe { on(self.base, cpu).as_ref() })
    }

    /// Iterates over all values, in the order of the CPUs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        // SAFETY: By the type invariant.
        possible().map(|cpu| unsafe { on(self.base, cpu).as_ref() })
    }
}

impl<T> Drop for PerCpu<T> {
    fn drop(&mut self) {
        for cpu in possible() {
            // SAFETY: By the type invariant it is initialised, and it is not used again.
            unsafe { on(self.base, cpu).drop_in_place() };
        }
        // SAFETY: From `lt_percpu_alloc`, freed once.
        unsafe { bindings::lt_percpu_free(self.base.as_ptr().cast()) };
    }
}

/// As per_cpu_ptr().
///
/// # Safety
///
/// `base` is from `lt_percpu_alloc` for a `T`, and `cpu` is a possible one.
unsafe fn on<T>(base: NonNull<T>, cpu: usize) -> NonNull<T> {
    // SAFETY: The function's contract.
    let value = unsafe { bindings::lt_percpu_on(base.as_ptr().cast(), cpu as u32) };
    // SAFETY: The memory of a possible CPU is never at address 0.
    unsafe { NonNull::new_unchecked(value.cast()) }
}

/// As this_cpu_ptr().
///
/// # Safety
///
/// As `on`, for the CPU that the caller is held on.
#[cfg(all(target_arch = "x86_64", CONFIG_SMP))]
#[inline(always)]
unsafe fn this_cpu<T>(base: NonNull<T>, _cpu: impl FnOnce() -> usize) -> NonNull<T> {
    extern "C" {
        // A per-CPU variable of arch/x86: its address is an offset from %gs. helpers.c asserts its
        // type.
        static this_cpu_off: usize;
    }
    let value: *mut T;
    // SAFETY: Reads a per-CPU variable. `readonly` but not `pure`: not moved out of the guard.
    unsafe {
        core::arch::asm!(
            "add {value}, qword ptr gs:[rip + {offset}]",
            offset = sym this_cpu_off,
            value = inout(reg) base.as_ptr() => value,
            options(nostack, readonly),
        );
        // SAFETY: The memory of a possible CPU is never at address 0.
        NonNull::new_unchecked(value)
    }
}

/// As this_cpu_ptr().
///
/// # Safety
///
/// As `on`, for the CPU that the caller is held on.
#[cfg(all(target_arch = "aarch64", CONFIG_SMP))]
#[inline(always)]
unsafe fn this_cpu<T>(base: NonNull<T>, cpu: impl FnOnce() -> usize) -> NonNull<T> {
    // SAFETY: The function's contract.
    unsafe { crate::sys::arm64::per_cpu(base, cpu()) }
}

/// As this_cpu_ptr().
///
/// # Safety
///
/// As `on`, for the CPU that the caller is held on.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), CONFIG_SMP)))]
#[inline(always)]
unsafe fn this_cpu<T>(base: NonNull<T>, cpu: impl FnOnce() -> usize) -> NonNull<T> {
    // SAFETY: The function's contract.
    unsafe { on(base, cpu()) }
}
