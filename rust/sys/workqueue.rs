// SPDX-License-Identifier: GPL-2.0

//! Follows work items as they are queued and executed.
//!
//! ```text
//!    workqueue_queue_work        workqueue_execute_start        workqueue_execute_end
//!   --------------------> queued ----------------------> running -------------------->
//!                                          queued again ---> (as a new one, meanwhile)
//! ```
//!
//! C headers: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h),
//! [`include/trace/events/workqueue.h`](srctree/include/trace/events/workqueue.h)
//!
//! With a delay of 0, mod_delayed_work() takes a waiting work item off its list and queues it again
//! at once. The tracepoints show a second queueing, as after a cancellation. So
//! mod_delayed_work_on(), which does this, is followed, too.
//!
//! A work item belongs to the code that queues it. It is valid when it is queued and when it
//! starts; its function may free it, so at the end only its address is known.
//!
//! # Contexts
//!
//! Queueing: any but NMI; interrupts are off, and a raw spinlock of the workqueue's pool is held.
//! Start and end: a worker, or a softirq for bottom-half work items; `current` is the same task at
//! both.

use crate::sys::{
    bindings as helpers,
    fprobe::{self, Call, Frame, Functions, What},
    measure::Target,
    platform::PreemptGuard,
    tracepoint::{self, callbacks, probe, Probe}, //
};
use core::{marker::PhantomData, ptr::NonNull};
use kernel::{
    bindings,
    ffi::c_int,
    prelude::*,
    sync::Arc, //
};

/// A work item, while it is valid.
///
/// # Invariants
///
/// The pointer is valid for `'a`.
pub(crate) struct Work<'a> {
    raw: NonNull<bindings::work_struct>,
    _during: PhantomData<&'a bindings::work_struct>,
}

impl Work<'_> {
    /// # Safety
    ///
    /// `raw` is valid for the duration of `'a`.
    unsafe fn from_raw<'a>(raw: *mut bindings::work_struct) -> Work<'a> {
        // INVARIANT: The caller's promise.
        Work {
            // SAFETY: A valid pointer is not NULL.
            raw: unsafe { NonNull::new_unchecked(raw) },
            _during: PhantomData,
        }
    }

    /// Returns a number that identifies the work while it is queued, and while it runs. A multiple
    /// of 8.
    pub(crate) fn id(&self) -> u64 {
        self.raw.as_ptr() as u64
    }

    /// Returns the address of the work's function.
    pub(crate) fn function(&self) -> u64 {
        // SAFETY: Valid by the type invariant.
        unsafe { helpers::lt_work_function(self.raw.as_ptr()) }
    }

    /// Whether the current task executes this work item; `false` in an interrupt.
    pub(crate) fn is_current(&self) -> bool {
        // SAFETY: Only the address is used.
        unsafe { helpers::lt_work_is_current(self.raw.as_ptr()) }
    }
}

/// The queue that a work item is put on.
///
/// # Invariants
///
/// The pointer is valid for `'a`.
pub(crate) struct Queue<'a> {
    raw: NonNull<helpers::pool_workqueue>,
    _during: PhantomData<&'a helpers::pool_workqueue>,
}

impl Queue<'_> {
    /// Returns the name of the workqueue, 32 bytes padded with NUL; empty if not known.
    pub(crate) fn name(&self) -> [u64; 4] {
        let mut name = [0; 4];
        // SAFETY: Valid by the type invariant, and so is the workqueue that it belongs to.
        unsafe { helpers::lt_wq_name_of(self.raw.as_ptr(), name.as_mut_ptr()) };
        name
    }
}

/// Whether a work item with this function is waiting at this moment, as far as the memory at its
/// address shows: the item may have been cancelled, and its memory may be used for something else.
/// An item on a timer does not wait, and one that is just being queued is not recognized yet.
pub(crate) fn is_queued(work: u64, function: u64) -> bool {
    // SAFETY: Any numbers are valid.
    unsafe { helpers::lt_work_is_queued(work, function) }
}

/// Receives the events of work items. See "Contexts" above.
pub(crate) trait Observer: Target {
    /// Called when a work item is queued, a delayed item when its delay is over.
    fn queued(&self, guard: &PreemptGuard, work: &Work<'_>, queue: &Queue<'_>);

    /// Called when the current task calls the function of a work item, which may be queued again
    /// from now on.
    fn started(&self, work: &Work<'_>);

    /// Called when the function has returned. The work may no longer exist: only its address is
    /// passed.
    fn ended(&self, work: u64);

    /// Called when the current task is about to take a waiting work item off its list and queue it
    /// again. Only for an [`Attachment`] that requests these calls.
    fn requeueing(&self, _work: u64) {}
}

/// Follows mod_delayed_work_on() for an [`Observer`].
struct Requeueing;

impl<T: Observer> fprobe::Observer<Requeueing> for T {
    fn entered(&self, _: &PreemptGuard, call: &Call<'_>, _: Frame) -> Option<u64> {
        // mod_delayed_work_on(cpu, wq, dwork, delay)
        let (work, delay) = (call.argument(2), call.argument(3));
        // With a delay, a timer queues the work item.
        if delay == 0 {
            // SAFETY: The delayed work item that is passed to this function is valid, and begins
            // with its work item.
            let is_listed = unsafe {
                helpers::lt_work_is_listed(core::ptr::with_exposed_provenance(work as usize))
            };
            if is_listed {
                self.requeueing(work);
            }
        }
        None
    }

    fn returned(&self, _: &PreemptGuard, _: &Call<'_>, _: Frame, _: u64) {
        // Only the entry is followed.
    }

    fn within_ourselves(&self, _: &PreemptGuard) {
        // Waking the readers of alerts does not requeue a waiting work item.
    }

    fn missed(&self, _: u64) {
        // The queueing that follows then looks like one after a cancellation.
    }
}

callbacks! {
    fn queued<T: Observer>(
        observer,
        _cpu: c_int,
        pwq: *mut helpers::pool_workqueue,
        work: *mut bindings::work_struct,
    ) {
        // SAFETY: The work item is valid.
        let work = unsafe { Work::from_raw(work) };
        // INVARIANT: The queue is valid.
        let queue = Queue {
            // SAFETY: A valid pointer is not NULL.
            raw: unsafe { NonNull::new_unchecked(pwq) },
            _during: PhantomData,
        };
        // SAFETY: A raw spinlock is held, see "Contexts" above.
        let guard = unsafe { PreemptGuard::already() };
        observer.queued(guard, &work, &queue);
    }

    fn started<T: Observer>(observer, work: *mut bindings::work_struct) {
        // SAFETY: The work item is valid.
        observer.started(&unsafe { Work::from_raw(work) });
    }

    fn ended<T: Observer>(
        observer,
        work: *mut bindings::work_struct,
        _function: bindings::work_func_t,
    ) {
        observer.ended(work as u64);
    }
}

/// The probes, the last step first, so that no end is missed.
pub(crate) fn probes<T: Observer>() -> [Probe<'static, T>; 3] {
    // SAFETY: The probes have the arguments of these tracepoints. The queue and the work item are
    // valid, except the work item at the end, of which only the address is used.
    unsafe {
        [
            probe!(workqueue_execute_end: ended::<T>),
            probe!(workqueue_execute_start: started::<T>),
            probe!(workqueue_queue_work: queued::<T>),
        ]
    }
}

/// An attached observer, until dropped. Dropping may sleep.
pub(crate) struct Attachment<T: Observer> {
    _works: tracepoint::Attachment<T>,
    /// `None` if requeued work items are not requested, or if this kernel cannot follow them.
    _requeueing: Option<Functions<Requeueing, T>>,
}

impl<T: Observer> Attachment<T> {
    /// Attaches an observer; `requeueing`: whether it wants requeued work items. May sleep. Fails
    /// with `ENOSYS` if the kernel lacks a tracepoint, `ENOENT` if mod_delayed_work_on() cannot be
    /// followed, or `ENOMEM`, and then leaves nothing attached.
    pub(crate) fn new(observer: Arc<T>, requeueing: bool) -> Result<Self> {
        // SAFETY: Called where sleeping is allowed.
        unsafe { helpers::lt_wq_find_names() };
        let requeueing = if requeueing && fprobe::missing().is_none() {
            let function = c"mod_delayed_work_on";
            Some(Functions::new(function, What::Entry, observer.clone())?)
        } else {
            None
        };
        Ok(Self {
            _works: tracepoint::Attachment::new(observer, probes())?,
            _requeueing: requeueing,
        })
    }
}
