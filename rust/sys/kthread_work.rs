// SPDX-License-Identifier: GPL-2.0

//! Follows the work items of kthread workers (`kthread_worker`) as they are queued and executed.
//!
//! ```text
//!    sched_kthread_work_queue_work     .._execute_start             .._execute_end
//!   -------------------------> queued ------------------> running ----------------->
//! ```
//!
//! A kthread worker is one thread with its own queue; it is woken for a work item only if it is
//! idle.
//!
//! C headers: [`include/linux/kthread.h`](srctree/include/linux/kthread.h),
//! [`include/trace/events/sched.h`](srctree/include/trace/events/sched.h)
//!
//! A work item is valid when it is queued and when it starts; its function may free it, so at the
//! end not even its address is passed on.
//!
//! # Contexts
//!
//! Queueing: any but NMI; interrupts are off, and the raw spinlock of the worker is held. Start and
//! end: the worker.

use crate::sys::{
    bindings as helpers,
    measure::Target,
    platform::PreemptGuard,
    tracepoint::{callbacks, probe, Probe}, //
};
use kernel::bindings;

/// Whether the memory at this address looks like a work item with this function that waits for its
/// worker. The item may have been cancelled, and its memory reused.
pub(crate) fn is_queued(work: u64, function: u64) -> bool {
    // SAFETY: Any numbers are valid.
    unsafe { helpers::lt_kthread_work_is_queued(work, function) }
}

/// Receives the events of the work items of kthread workers. See "Contexts" above.
pub(crate) trait Observer: Target {
    /// Called when a work item is queued, a delayed item when its delay is over. The item's
    /// address, a multiple of 8, identifies it; `function` is the address of its function.
    /// `is_current`: whether the current task, or in an interrupt, the interrupted one, executes
    /// the item.
    fn kthread_work_queued(
        &self,
        guard: &PreemptGuard,
        work: u64,
        function: u64,
        is_current: impl FnOnce() -> bool,
    );

    /// Called when the current task calls the function of a work item, which may be queued again
    /// from now on.
    fn kthread_work_started(&self, work: u64, function: u64);

    /// Called when the function that the current task called last has returned.
    fn kthread_work_ended(&self);
}

callbacks! {
    fn queued<T: Observer>(
        observer,
        worker: *mut bindings::kthread_worker,
        work: *mut bindings::kthread_work,
    ) {
        // SAFETY: The work item is valid.
        let function = unsafe { helpers::lt_kthread_work_function(work) };
        // SAFETY: The worker is valid and locked, see "Contexts" above. The closure borrows from
        // this frame, so it is not called later.
        let is_current = || unsafe { helpers::lt_kthread_work_is_current(worker, work) };
        // SAFETY: A raw spinlock is held, see "Contexts" above.
        let guard = unsafe { PreemptGuard::already() };
        observer.kthread_work_queued(guard, work.addr() as u64, function, is_current);
    }

    fn started<T: Observer>(observer, work: *mut bindings::kthread_work) {
        // SAFETY: The work item is valid.
        let function = unsafe { helpers::lt_kthread_work_function(work) };
        observer.kthread_work_started(work.addr() as u64, function);
    }

    fn ended<T: Observer>(
        observer,
        _work: *mut bindings::kthread_work,
        _function: bindings::kthread_work_func_t,
    ) {
        observer.kthread_work_ended();
    }
}

/// The probes, the last step first, so that no end is missed.
pub(super) fn probes<T: Observer>() -> [Probe<'static, T>; 3] {
    // SAFETY: The probes have the arguments of these tracepoints. The work item is valid except at
    // the end, where it is not used.
    unsafe {
        [
            probe!(sched_kthread_work_execute_end: ended::<T>),
            probe!(sched_kthread_work_execute_start: started::<T>),
            probe!(sched_kthread_work_queue_work: queued::<T>),
        ]
    }
}
