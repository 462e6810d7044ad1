// SPDX-License-Identifier: GPL-2.0

//! Work that is repeated, each time after a pause that it chooses itself.
//!
//! C headers: [`include/linux/hrtimer.h`](srctree/include/linux/hrtimer.h),
//! [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)
//!
//! A high-resolution timer queues the work on a workqueue; no work is done in interrupt context.
//! Work that must not be missed is watched by a second CPU: a hard interrupt there checks whether
//! the work is overdue. [`Schedule`] decides when and where the work runs, and which CPU takes
//! over. This file provides the timers, workers and lock.

use crate::{
    engine::{
        platform::Platform,
        schedule::{Machine, Schedule}, //
    },
    sys::{bindings, platform::Kernel},
};
use core::{cell::UnsafeCell, ptr::NonNull};
use kernel::{
    error::to_result,
    ffi::{c_uint, c_void},
    prelude::*,
    sync::Arc, //
};

/// Work that is done periodically.
pub(crate) trait Periodic: Send + Sync + 'static {
    /// Whether a second CPU takes over when the first one hangs or is occupied: when the work is 10
    /// ms overdue, or has run for more than 100 ms. Then two threads may do the work at the same
    /// time. A CPU that must not be disturbed (`isolcpus=`, `nohz_full=`) never takes over, so a
    /// machine may have no second CPU for this.
    const WATCHED: bool;

    /// Does the work, in a kernel thread that may sleep. Returns the nanoseconds until the next
    /// run, or `None` to rest until [`PeriodicWork::kick`].
    fn run(&self) -> Option<u64>;
}

/// The workqueue of all periodic work: created before the first work, dropped after the last. The
/// module has one.
pub(crate) struct PeriodicQueue(());

impl PeriodicQueue {
    /// Creates the workqueue. May sleep; fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: Called once, by the module, where sleeping is allowed.
        to_result(unsafe { bindings::lt_periodic_init() })?;
        Ok(Self(()))
    }
}

impl Drop for PeriodicQueue {
    fn drop(&mut self) {
        // SAFETY: It was created, and is destroyed once; the module drops it last.
        unsafe { bindings::lt_periodic_exit() };
    }
}

/// Data passed to the callbacks.
struct Shared<T> {
    target: Arc<T>,
    /// Accessed only by [`locked`].
    schedule: UnsafeCell<Schedule>,
}

// SAFETY: The target is `Send` and `Sync`. The schedule is plain data, accessed under the lock of
// the one `lt_periodic` that this was made for.
unsafe impl<T: Periodic> Send for Shared<T> {}
// SAFETY: As above.
unsafe impl<T: Periodic> Sync for Shared<T> {}

/// The timers and the work. Dropping it stops them and waits for them; may sleep.
pub(crate) struct PeriodicWork<T: Periodic> {
    raw: NonNull<bindings::lt_periodic>,
    /// Alive until the work has been stopped.
    shared: Arc<Shared<T>>,
}

// SAFETY: The C side and `Shared` do their own locking, and the target is `Send` and `Sync`.
unsafe impl<T: Periodic> Send for PeriodicWork<T> {}
// SAFETY: As above.
unsafe impl<T: Periodic> Sync for PeriodicWork<T> {}

impl<T: Periodic> PeriodicWork<T> {
    /// Creates work that rests until [`PeriodicWork::kick`]. May sleep; fails with `ENOMEM`.
    pub(crate) fn new(target: Arc<T>) -> Result<Self> {
        let schedule = UnsafeCell::new(Schedule::new(T::WATCHED));
        let shared = Arc::new(Shared { target, schedule }, GFP_KERNEL)?;
        let owner = Arc::as_ptr(&shared).cast_mut().cast::<c_void>();
        // SAFETY: The callbacks get the `Shared<T>` that is held until after `lt_periodic_free`.
        let raw = unsafe {
            bindings::lt_periodic_new(
                Some(work::<T>),
                Some(take_over::<T>),
                Some(look::<T>),
                T::WATCHED,
                owner,
            )
        };
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            shared,
        })
    }

    /// Starts the work now. Any context but NMI.
    pub(crate) fn kick(&self) {
        let raw = self.raw.as_ptr();
        // SAFETY: Both are alive, and were made for each other. The lock is only held by the code
        // of this file, which does not call this function.
        unsafe { locked(raw, &self.shared, |schedule, cpu| schedule.kick(cpu)) };
        // SAFETY: Alive until drop.
        unsafe { bindings::lt_periodic_kick(raw) };
    }
}

impl<T: Periodic> Drop for PeriodicWork<T> {
    fn drop(&mut self) {
        let raw = self.raw.as_ptr();
        // SAFETY: Both are alive, and were made for each other.
        unsafe { locked(raw, &self.shared, |schedule, _| schedule.stop()) };
        // SAFETY: Made by `lt_periodic_new`, freed once. From now on no timer is started, and no
        // takeover queued.
        unsafe { bindings::lt_periodic_free(raw) };
    }
}

/// The work that [`Platform::queue_memory_work`] starts, and that also runs after a CPU has gone
/// offline. The module has one. Dropping it waits for the work; may sleep.
pub(crate) struct MemoryWork<T: Periodic> {
    _work: PeriodicWork<T>,
}

impl<T: Periodic> MemoryWork<T> {
    /// Creates the work. May sleep; fails with `ENOMEM` or `ENOSPC`.
    pub(crate) fn new(target: Arc<T>) -> Result<Self> {
        let work = PeriodicWork::new(target)?;
        // SAFETY: Alive until drop, which unregisters it first.
        to_result(unsafe { bindings::lt_memory_work_start(work.raw.as_ptr()) })?;
        Ok(Self { _work: work })
    }
}

impl<T: Periodic> Drop for MemoryWork<T> {
    fn drop(&mut self) {
        // SAFETY: It was started, and is stopped once.
        unsafe { bindings::lt_memory_work_stop() };
    }
}

/// Lets other tasks run, if necessary. For long work in a task that may sleep.
pub(crate) fn cond_resched() {
    // SAFETY: The caller may sleep.
    unsafe { bindings::lt_cond_resched() };
}

/// This CPU, under the lock.
///
/// # Invariants
///
/// The pointer is to a live `lt_periodic` whose lock this CPU holds, with interrupts off.
struct ThisCpu(*mut bindings::lt_periodic);

impl Machine for ThisCpu {
    fn now(&self) -> u64 {
        // SAFETY: Allowed in every context but NMI.
        unsafe { kernel::bindings::ktime_get() as u64 }
    }

    fn cpu(&self) -> usize {
        // SAFETY: Reads a per-CPU variable. Interrupts are off, so it stays this CPU.
        unsafe { bindings::lt_cpu() as usize }
    }

    fn cpus(&self) -> usize {
        Kernel::cpus()
    }

    fn may_watch(&self, cpu: usize) -> bool {
        // SAFETY: The CPU is below `cpus()`, so the masks have a bit for it. Preemption is off.
        cpu < self.cpus() && unsafe { bindings::lt_may_watch(cpu as c_uint) }
    }

    fn start_timer(&self, at: u64) {
        // SAFETY: The type invariant.
        unsafe { bindings::lt_periodic_start_timer(self.0, at) };
    }

    fn start_watch(&self, at: u64) {
        // SAFETY: The type invariant.
        unsafe { bindings::lt_periodic_start_watch(self.0, at) };
    }

    fn ask(&self, cpu: usize) {
        // SAFETY: The type invariant. The CPU is online: `may_watch` was true, and interrupts have
        // been off since.
        unsafe { bindings::lt_periodic_ask(self.0, cpu as c_uint) };
    }

    fn is_asked(&self) -> bool {
        // SAFETY: The type invariant.
        unsafe { bindings::lt_periodic_is_asked(self.0) }
    }

    fn cancel(&self) {
        // SAFETY: The type invariant.
        unsafe { bindings::lt_periodic_cancel(self.0) };
    }
}

/// Calls `decide` under the lock, with interrupts off. `decide` must not call `locked`.
///
/// # Safety
///
/// `raw` is a live `lt_periodic`, and the only one that was made for `shared`. The lock is not
/// held by this CPU.
unsafe fn locked<T, R>(
    raw: *mut bindings::lt_periodic,
    shared: &Shared<T>,
    decide: impl FnOnce(&mut Schedule, &ThisCpu) -> R,
) -> R {
    // SAFETY: It is alive, and this CPU does not hold its lock.
    let flags = unsafe { bindings::lt_periodic_lock(raw) };
    // SAFETY: The lock is held, and every access is here, under it.
    let schedule = unsafe { &mut *shared.schedule.get() };
    // INVARIANT: Alive by the function's contract, and just locked.
    let result = decide(schedule, &ThisCpu(raw));
    // SAFETY: It was locked above, with these flags.
    unsafe { bindings::lt_periodic_unlock(raw, flags) };
    result
}

/// Does the work on this CPU.
///
/// # Safety
///
/// As for [`locked`].
unsafe fn run<T: Periodic>(raw: *mut bindings::lt_periodic, shared: &Shared<T>) {
    // SAFETY: The function's contract.
    let run = unsafe { locked(raw, shared, |schedule, cpu| schedule.begin(cpu)) };
    let pause = shared.target.run();
    // SAFETY: The function's contract.
    unsafe { locked(raw, shared, |schedule, cpu| schedule.end(cpu, run, pause)) };
}

/// Does the work, queued by its timer, by [`PeriodicWork::kick`], or for [`MemoryWork`] by an
/// irq_work.
///
/// # Safety
///
/// `owner` is the `Shared<T>` that the live `raw` was made for.
unsafe extern "C" fn work<T: Periodic>(raw: *mut bindings::lt_periodic, owner: *mut c_void) {
    // SAFETY: The function's contract.
    let shared = unsafe { &*owner.cast::<Shared<T>>() };
    // SAFETY: The function's contract; a worker holds no lock of ours.
    unsafe { run(raw, shared) };
}

/// Takes over, in a worker of the CPU that was asked.
///
/// # Safety
///
/// As for [`work`].
unsafe extern "C" fn take_over<T: Periodic>(raw: *mut bindings::lt_periodic, owner: *mut c_void) {
    // SAFETY: The function's contract.
    let shared = unsafe { &*owner.cast::<Shared<T>>() };
    // SAFETY: The function's contract; a worker holds no lock of ours.
    let takes_over = unsafe { locked(raw, shared, |schedule, cpu| schedule.takes_over(cpu)) };
    if takes_over {
        // SAFETY: As above.
        unsafe { run(raw, shared) };
    }
}

/// Checks whether the work is overdue, in a hard interrupt.
///
/// # Safety
///
/// As for [`work`].
unsafe extern "C" fn look<T: Periodic>(raw: *mut bindings::lt_periodic, owner: *mut c_void) {
    // SAFETY: The function's contract.
    let shared = unsafe { &*owner.cast::<Shared<T>>() };
    // SAFETY: The function's contract; the lock is only held with interrupts off, so the code that
    // this interrupt has interrupted does not hold it.
    unsafe { locked(raw, shared, |schedule, cpu| schedule.look(cpu)) };
}
