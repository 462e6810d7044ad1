// SPDX-License-Identifier: GPL-2.0

//! Follows work that the kernel defers: to a worker, to another CPU, or to a later tick.
//!
//! ```text
//!   workqueue_queue_work  ->  workqueue_execute_start .. end     a work item: see workqueue.rs
//!   sched_kthread_work_.. ->  sched_kthread_work_..              a kthread_work (kthread_work.rs)
//!   csd_queue_cpu         ->  csd_function_entry .. exit         a function, called on another CPU
//!                             timer_expire_entry .. exit         a timer of the timer wheel
//! ```
//!
//! A function call is identified by its `call_single_data_t`, which is in one queue at a time. That
//! queue also holds wakings and irq_works, which are not reported here. A function called at once
//! on the same CPU has no `call_single_data_t`, and is not reported, either.
//!
//! C headers: [`include/linux/smp.h`](srctree/include/linux/smp.h),
//! [`include/linux/timer.h`](srctree/include/linux/timer.h),
//! [`include/trace/events/csd.h`](srctree/include/trace/events/csd.h),
//! [`include/trace/events/timer.h`](srctree/include/trace/events/timer.h)
//!
//! # Contexts
//!
//! A call is requested in any context but NMI, with preemption off. The function runs with
//! interrupts off, usually in an interrupt or the idle task, sometimes in the stopper thread. A
//! timer's function is called in a softirq, which is preemptible on PREEMPT_RT.

use crate::{
    engine::platform::Platform,
    sys::{
        bindings as helpers,
        kthread_work,
        platform::{Kernel, PreemptGuard},
        timer::Timer,
        tracepoint::{callbacks, probe, Probe, Tracepoint},
        workqueue, //
    },
};
use core::mem::MaybeUninit;
use kernel::{bindings, ffi::c_ulong};

/// The kinds of deferred work that are followed.
#[derive(Clone, Copy)]
pub(crate) struct Followed {
    pub(crate) works: bool,
    pub(crate) calls: bool,
    pub(crate) wheel: bool,
}

/// Receives the events of deferred work. See "Contexts" above, in workqueue.rs and in
/// kthread_work.rs.
pub(crate) trait Observer: workqueue::Observer + kthread_work::Observer {
    /// Returns the kinds of work to follow. Called once for each attachment.
    fn followed(&self) -> Followed;

    /// Called when a call of a function on another CPU is requested, with the address of its
    /// `call_single_data_t` and of the function.
    fn call_requested(&self, guard: &PreemptGuard, call: u64, function: u64);

    /// Called when that function is about to be called. The `call_single_data_t` may be reused for
    /// another call from now on.
    fn call_entered(&self, guard: &PreemptGuard, call: u64, function: u64);
    fn call_left(&self, guard: &PreemptGuard);

    /// Called when the function of a timer of the wheel is about to be called. Its times are times
    /// of ticks: `due` is the start of the requested tick, `latest` the start of the tick to which
    /// the wheel rounded it. `is_deferrable`: the timer may be arbitrarily late while its CPU is
    /// idle.
    fn wheel_timer_entered(&self, guard: &PreemptGuard, timer: Timer, is_deferrable: bool);
    fn wheel_timer_left(&self, guard: &PreemptGuard);
}

callbacks! {
    #[cfg(CONFIG_SMP)]
    fn call_requested<T: Observer>(
        observer,
        _cpu: u32,
        _callsite: c_ulong,
        function: bindings::smp_call_func_t,
        csd: *mut bindings::call_single_data_t,
    ) {
        // SAFETY: The structure is valid, and about to be queued.
        if unsafe { helpers::lt_csd_is_call(csd) } {
            let function = function.map_or(0, |function| function as usize as u64);
            observer.call_requested(&Kernel::guard(), csd.addr() as u64, function);
        }
    }

    #[cfg(CONFIG_SMP)]
    fn call_entered<T: Observer>(
        observer,
        function: bindings::smp_call_func_t,
        csd: *mut bindings::call_single_data_t,
    ) {
        if !csd.is_null() {
            let function = function.map_or(0, |function| function as usize as u64);
            // SAFETY: Interrupts are off, see "Contexts" above.
            let guard = unsafe { PreemptGuard::already() };
            observer.call_entered(guard, csd.addr() as u64, function);
        }
    }

    #[cfg(CONFIG_SMP)]
    fn call_left<T: Observer>(
        observer,
        _function: bindings::smp_call_func_t,
        csd: *mut bindings::call_single_data_t,
    ) {
        if !csd.is_null() {
            // SAFETY: As in `call_entered`.
            let guard = unsafe { PreemptGuard::already() };
            observer.call_left(guard);
        }
    }

    fn timer_entered<T: Observer>(observer, timer: *mut bindings::timer_list, clock: c_ulong) {
        let mut raw = MaybeUninit::<helpers::lt_timer>::uninit();
        // SAFETY: The timer is valid, and its function is about to be called; `lt_wheel_timer`
        // fills all of the structure. Another CPU may start the timer again meanwhile: each word
        // is read once, so a wrong time is the worst outcome.
        let (raw, is_deferrable) = unsafe {
            let is_deferrable = helpers::lt_wheel_timer(timer, clock, raw.as_mut_ptr());
            (raw.assume_init(), is_deferrable)
        };
        observer.wheel_timer_entered(&Kernel::guard(), Timer::of_wheel(&raw), is_deferrable);
    }

    fn timer_left<T: Observer>(observer, _timer: *mut bindings::timer_list) {
        observer.wheel_timer_left(&Kernel::guard());
    }
}

#[cfg(CONFIG_SMP)]
fn calls<T: Observer>() -> impl Iterator<Item = Probe<'static, T>> {
    // SAFETY: The probes have the arguments of these tracepoints; the structure is valid when it is
    // about to be queued, and only its address is used afterwards.
    let probes = unsafe {
        [
            probe!(csd_function_exit: call_left::<T>),
            probe!(csd_function_entry: call_entered::<T>),
            probe!(csd_queue_cpu: call_requested::<T>),
        ]
    };
    probes.into_iter()
}

/// No calls: there is no other CPU.
#[cfg(not(CONFIG_SMP))]
fn calls<T: Observer>() -> impl Iterator<Item = Probe<'static, T>> {
    core::iter::empty()
}

/// Returns the probes of the work that an observer follows, the last step first. Tracepoints that
/// this kernel lacks are left out.
pub(super) fn probes<T: Observer>(observer: &T) -> impl Iterator<Item = Probe<'static, T>> {
    let Followed {
        works,
        calls: follows_calls,
        wheel,
    } = observer.followed();
    // SAFETY: The probes have the arguments of these tracepoints; the timer is valid, and its
    // function is about to be called.
    let timers = unsafe {
        [
            probe!(timer_expire_exit: timer_left::<T>),
            probe!(timer_expire_entry: timer_entered::<T>),
        ]
    };
    let works = Iterator::chain(
        workqueue::probes::<T>().into_iter(),
        kthread_work::probes::<T>(),
    )
    .filter(move |_| works);
    let calls = calls::<T>().filter(move |_| follows_calls);
    let timers = timers.into_iter().filter(move |_| wheel);
    let all = Iterator::chain(Iterator::chain(works, calls), timers);
    all.filter(|probe| Tracepoint::find(probe.tracepoint()).is_some())
}
