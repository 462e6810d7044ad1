// SPDX-License-Identifier: GPL-2.0

//! Client modules: their identity, the reference that keeps latency_tracker loaded for them, and
//! the notification of their unloading.
//!
//! C header: [`include/linux/module.h`](srctree/include/linux/module.h)

use crate::sys::bindings;
use core::{ffi::CStr, ptr::NonNull};
use kernel::{
    ffi::c_void,
    fmt,
    prelude::*,
    sync::{
        atomic::{Atomic, Relaxed},
        Arc,
    },
};

/// A client module. Keeps latency_tracker loaded as long as the value lives.
///
/// # Invariants
///
/// `raw` is null, for the kernel itself, or points to a module that still exists.
pub(crate) struct Owner {
    raw: *mut kernel::bindings::module,
    is_for_ever: Atomic<u32>,
}

// SAFETY: Of the module only the name and the address are used, which do not change.
unsafe impl Send for Owner {}
// SAFETY: As above.
unsafe impl Sync for Owner {}

impl Owner {
    /// Takes a reference to latency_tracker for a client.
    ///
    /// # Safety
    ///
    /// `raw` is null or points to a module that is not unloaded before the result is dropped.
    pub(crate) unsafe fn new(raw: *mut kernel::bindings::module) -> Self {
        // SAFETY: This module is live: it is being called.
        unsafe { bindings::lt_module_get() };
        // INVARIANT: The function's contract.
        Self {
            raw,
            is_for_ever: Atomic::new(0),
        }
    }

    /// Returns the address of the client module, as a number.
    pub(crate) fn address(&self) -> usize {
        self.raw.addr()
    }

    /// Keeps latency_tracker loaded even after the drop.
    pub(crate) fn pin_forever(&self) {
        // Relaxed: the drop comes after.
        self.is_for_ever.store(1, Relaxed);
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if self.is_for_ever.load(Relaxed) == 0 {
            // SAFETY: Balances the reference taken in `new`.
            unsafe { bindings::lt_module_put() };
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: By the type invariant; the name is a C string that lives as long.
        let name = unsafe { CStr::from_ptr(bindings::lt_module_name(self.raw).cast()) };
        f.write_str(name.to_str().unwrap_or("?"))
    }
}

/// Receives notifications of unloaded modules.
pub(crate) trait Watcher: Send + Sync + 'static {
    /// Called before the memory of a module is freed: its exit function has returned, or its
    /// loading has failed. May sleep.
    fn gone(&self, module: usize);
}

/// Notifies a [`Watcher`] until dropped. Dropping may sleep.
pub(crate) struct Watch<T: Watcher> {
    raw: NonNull<bindings::lt_module_watch>,
    /// Alive until no notification is running.
    _watcher: Arc<T>,
}

// SAFETY: The C side does its own locking, and the watcher is `Send` and `Sync`.
unsafe impl<T: Watcher> Send for Watch<T> {}
// SAFETY: As above.
unsafe impl<T: Watcher> Sync for Watch<T> {}

impl<T: Watcher> Watch<T> {
    /// Starts watching. May sleep; fails with `ENOMEM`.
    pub(crate) fn new(watcher: Arc<T>) -> Result<Self> {
        let owner = Arc::as_ptr(&watcher).cast_mut().cast::<c_void>();
        // SAFETY: `gone` gets the `T` that is held until after `lt_module_watch_free`.
        let raw = unsafe { bindings::lt_module_watch_new(Some(gone::<T>), owner) };
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            _watcher: watcher,
        })
    }
}

impl<T: Watcher> Drop for Watch<T> {
    fn drop(&mut self) {
        // SAFETY: Made by `lt_module_watch_new`, freed once.
        unsafe { bindings::lt_module_watch_free(self.raw.as_ptr()) };
    }
}

/// # Safety
///
/// `owner` is the watcher of a live [`Watch<T>`].
unsafe extern "C" fn gone<T: Watcher>(owner: *mut c_void, module: *mut kernel::bindings::module) {
    // SAFETY: The function's contract.
    let watcher = unsafe { &*owner.cast::<T>() };
    watcher.gone(module.addr());
}
