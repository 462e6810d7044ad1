// SPDX-License-Identifier: GPL-2.0

//! Work that is repeated, each time after a delay that it chooses itself.
//!
//! C headers: [`include/linux/hrtimer.h`](srctree/include/linux/hrtimer.h),
//! [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)
//!
//! A high-resolution timer queues the work on a workqueue; nothing is done in interrupt context.
//! Work that must not be missed is watched by a second CPU (`ticker.c`).

use crate::sys::bindings;
use core::ptr::NonNull;
use kernel::{error::to_result, ffi::c_void, prelude::*, sync::Arc};

/// The work.
pub(crate) trait Tick: Send + Sync + 'static {
    /// Whether a second CPU takes over when the one whose turn it is hangs or is occupied: when it
    /// is 10 ms overdue, or has run for more than 100 ms. Then two threads may do the work at the
    /// same time. A machine with only one CPU that may be disturbed (`isolcpus=`, `nohz_full=`) has
    /// no second CPU for that.
    const WATCHED: bool;

    /// Does the work, in a kernel thread that may sleep. Returns the nanoseconds until the next
    /// time, or `None` to rest until [`Ticker::kick`].
    fn tick(&self) -> Option<u64>;
}

/// What tickers need: created before the first of them, dropped after the last. The module has one.
pub(crate) struct Tickers(());

impl Tickers {
    /// Creates it. `ENOMEM`. Sleeps.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: Called once, by the module, where sleeping is allowed.
        to_result(unsafe { bindings::lt_ticker_start() })?;
        Ok(Self(()))
    }
}

impl Drop for Tickers {
    fn drop(&mut self) {
        // SAFETY: It was started, and is stopped once; the module drops it last.
        unsafe { bindings::lt_ticker_stop() };
    }
}

/// The timer and the work. Dropping it stops both and waits for them; sleeps.
pub(crate) struct Ticker<T: Tick> {
    raw: NonNull<bindings::lt_ticker>,
    /// Alive until the work has been stopped.
    _target: Arc<T>,
}

// SAFETY: The C side does its own locking, and the target is `Send` and `Sync`.
unsafe impl<T: Tick> Send for Ticker<T> {}
// SAFETY: As above.
unsafe impl<T: Tick> Sync for Ticker<T> {}

impl<T: Tick> Ticker<T> {
    /// Creates a ticker at rest. `ENOMEM`. Sleeps.
    pub(crate) fn new(target: Arc<T>) -> Result<Self> {
        let owner = Arc::as_ptr(&target).cast_mut().cast::<c_void>();
        // SAFETY: `tick` gets the `T` that is held until after `lt_ticker_free`.
        let raw = unsafe { bindings::lt_ticker_new(Some(tick::<T>), owner, T::WATCHED) };
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            _target: target,
        })
    }

    /// Starts the work now. Any context but NMI.
    pub(crate) fn kick(&self) {
        // SAFETY: Alive until drop.
        unsafe { bindings::lt_ticker_kick(self.raw.as_ptr()) };
    }
}

impl<T: Tick> Drop for Ticker<T> {
    fn drop(&mut self) {
        // SAFETY: Made by `lt_ticker_new`, freed once.
        unsafe { bindings::lt_ticker_free(self.raw.as_ptr()) };
    }
}

/// The ticker that [`Platform::call_grower`] starts, and that also ticks after a CPU has gone
/// offline. The module has one. Dropping it waits for it; sleeps.
///
/// [`Platform::call_grower`]: crate::platform::Platform::call_grower
pub(crate) struct Grower<T: Tick> {
    _ticker: Ticker<T>,
}

impl<T: Tick> Grower<T> {
    /// Creates it. `ENOMEM` or `ENOSPC`. Sleeps.
    pub(crate) fn new(target: Arc<T>) -> Result<Self> {
        let ticker = Ticker::new(target)?;
        // SAFETY: Alive until drop, which unregisters it first.
        to_result(unsafe { bindings::lt_grower_start(ticker.raw.as_ptr()) })?;
        Ok(Self { _ticker: ticker })
    }
}

impl<T: Tick> Drop for Grower<T> {
    fn drop(&mut self) {
        // SAFETY: It was started, and is stopped once.
        unsafe { bindings::lt_grower_stop() };
    }
}

/// Lets other tasks run, if it is time. For a [`Tick`] that takes long.
pub(crate) fn relax() {
    // SAFETY: Called by kernel threads that may sleep.
    unsafe { bindings::lt_relax() };
}

/// # Safety
///
/// `owner` is the target of a live [`Ticker<T>`].
unsafe extern "C" fn tick<T: Tick>(owner: *mut c_void) -> u64 {
    // SAFETY: The function's contract.
    let target = unsafe { &*owner.cast::<T>() };
    target.tick().unwrap_or(u64::MAX)
}
