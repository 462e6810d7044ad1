// SPDX-License-Identifier: GPL-2.0

//! Follows the causes that make tasks run: interrupts, timers, softirqs, wakings, switches.
//!
//! ```text
//!   irq_handler_entry .. exit       a device interrupt, and the thread of its action after it
//!   NAME_entry .. NAME_exit         a local interrupt: irq_vectors, only on x86
//!   hrtimer_expire_entry .. exit    the function of a timer, in an interrupt or a softirq
//!   softirq_raise                   work is deferred
//!   softirq_entry .. exit           the deferred work, after an interrupt or in a thread
//!   sched_waking, sched_switch      by any of these, or by a task
//!   sys_exit                        the task returns to user space
//!   sched_migrate_task, nmi_handler only with TIMED: moves of tasks that wait, and NMIs
//! ```
//!
//! Work deferred to a worker or another CPU is in deferred.rs.
//!
//! The reschedule interrupt is not followed: its handler does nothing that could wake a task.
//!
//! C headers: [`include/trace/events/irq.h`](srctree/include/trace/events/irq.h),
//! [`include/trace/events/timer.h`](srctree/include/trace/events/timer.h),
//! [`arch/x86/include/asm/trace/irq_vectors.h`](srctree/arch/x86/include/asm/trace/irq_vectors.h)
//!
//! # Contexts
//!
//! Interrupts are off when a handler or a local interrupt is entered or left, and when a softirq is
//! raised. A timer is called in a hard interrupt or in a softirq. On PREEMPT_RT softirqs, and the
//! timers that are called in them, are preemptible.

use crate::{
    engine::platform::Platform,
    sys::{
        bindings as helpers,
        deferred,
        irq,
        platform::{Kernel, PreemptGuard},
        sched,
        task::{Context, TaskRef},
        timer::HighRes,
        tracepoint::{self, callbacks, probe, Attachment, Probe, Tracepoint}, //
    },
};
use core::ffi::CStr;
use kernel::{
    bindings,
    ffi::{c_int, c_long, c_uint, c_void},
    prelude::*,
    sync::Arc, //
};

/// Number of softirq vectors.
pub(crate) const SOFTIRQS: usize = 10;

/// The names of the local interrupts, by position.
pub(crate) const VECTORS: [&str; 6] = [
    "local_timer",
    "x86_platform_ipi",
    "irq_work",
    "call_function",
    "call_function_single",
    "thermal_apic",
];

/// Receives the events listed at the head of this file, and the events of deferred.rs. See
/// "Contexts" above, and in sys/sched.rs.
///
/// `TIMED`: whether the observer measures how long the CPU spends in interrupts, softirqs and tasks
/// ([`Observer::wants_times`]). Each case has its own probes, so unwanted times cost nothing.
pub(crate) trait Observer: sched::Observer + irq::Observer + deferred::Observer {
    /// Called when a local interrupt is entered; `vector` is its position in [`VECTORS`].
    fn vector_entered<const TIMED: bool>(&self, guard: &PreemptGuard, vector: usize);
    fn vector_left<const TIMED: bool>(&self, guard: &PreemptGuard, vector: usize);

    /// Called when the function of a timer is about to be called, in a hard interrupt.
    fn timer_entered(&self, guard: &PreemptGuard, timer: HighRes<'_>);
    fn timer_left(&self, guard: &PreemptGuard);

    /// Called when the function of a timer is about to be called, in a softirq.
    fn soft_timer_entered(&self, guard: &PreemptGuard, timer: HighRes<'_>);
    fn soft_timer_left(&self, guard: &PreemptGuard);

    /// Called when a softirq is raised on this CPU.
    fn raised(&self, guard: &PreemptGuard, vector: usize);
    fn softirq_entered<const TIMED: bool>(&self, guard: &PreemptGuard, vector: usize);
    fn softirq_left<const TIMED: bool>(&self, guard: &PreemptGuard, vector: usize);

    /// Whether [`Observer::returned`] is called, which slows down all system calls.
    fn wants_returns(&self) -> bool;

    /// Whether the probes are `TIMED`, and [`Observer::nmi_left`] and [`Observer::moves`] are
    /// called. Read once.
    fn wants_times(&self) -> bool;

    /// Called in an NMI, when one of its handlers has returned, after `time` ns.
    fn nmi_left(&self, guard: &PreemptGuard, time: u64);

    /// Called when a task that is not running, and is not switched in meanwhile, moves to another
    /// CPU.
    fn moves(&self, guard: &PreemptGuard, task: TaskRef<'_>, to: u32);

    /// Called when the current task returns from a system call.
    fn returned(&self, guard: &PreemptGuard);
}

/// Whether a task that is being switched in will return from a system call.
pub(crate) fn is_in_syscall(task: &TaskRef<'_>) -> bool {
    // SAFETY: The task is valid by the type invariant; it is not running, so its registers are on
    // its stack.
    unsafe { helpers::lt_task_in_syscall(task.as_ptr()) }
}

callbacks! {
    #[allow(dead_code, reason = "not all machines have these tracepoints")]
    fn vector_entered<T: Observer, const N: usize, const TIMED: bool>(observer, _vector: c_int) {
        // SAFETY: Interrupts are off, see "Contexts" above.
        let guard = unsafe { PreemptGuard::already() };
        observer.vector_entered::<TIMED>(guard, N);
    }

    #[allow(dead_code, reason = "not all machines have these tracepoints")]
    fn vector_left<T: Observer, const N: usize, const TIMED: bool>(observer, _vector: c_int) {
        // SAFETY: As in `vector_entered`.
        let guard = unsafe { PreemptGuard::already() };
        observer.vector_left::<TIMED>(guard, N);
    }

    fn timer_entered<T: Observer>(observer, timer: *mut bindings::hrtimer, _now: i64) {
        // SAFETY: The timer is valid. The base runs it, so it stays in memory and keeps its base
        // until its function has returned.
        let timer = unsafe { HighRes::from_raw(timer) };
        if Context::current() != Context::Hardirq {
            return observer.soft_timer_entered(&Kernel::guard(), timer);
        }
        // SAFETY: A hard interrupt cannot be preempted.
        let guard = unsafe { PreemptGuard::already() };
        observer.timer_entered(guard, timer);
    }

    fn timer_left<T: Observer>(observer, _timer: *mut bindings::hrtimer) {
        if Context::current() != Context::Hardirq {
            return observer.soft_timer_left(&Kernel::guard());
        }
        // SAFETY: A hard interrupt cannot be preempted.
        let guard = unsafe { PreemptGuard::already() };
        observer.timer_left(guard);
    }

    fn raised<T: Observer>(observer, vector: c_uint) {
        // SAFETY: Interrupts are off, see "Contexts" above.
        let guard = unsafe { PreemptGuard::already() };
        observer.raised(guard, vector as usize);
    }

    fn softirq_entered<T: Observer, const TIMED: bool>(observer, vector: c_uint) {
        observer.softirq_entered::<TIMED>(&Kernel::guard(), vector as usize);
    }

    fn softirq_left<T: Observer, const TIMED: bool>(observer, vector: c_uint) {
        observer.softirq_left::<TIMED>(&Kernel::guard(), vector as usize);
    }

    fn returned<T: Observer>(observer, _regs: *mut bindings::pt_regs, _ret: c_long) {
        observer.returned(&Kernel::guard());
    }

    fn nmi_left<T: Observer>(observer, _handler: *mut c_void, time: i64, _handled: c_int) {
        if let Ok(time) = u64::try_from(time) {
            observer.nmi_left(&Kernel::guard(), time);
        }
    }

    fn moves<T: Observer>(observer, task: *mut bindings::task_struct, to: c_int) {
        // SAFETY: The task is valid.
        let task = unsafe { TaskRef::from_raw(task) };
        observer.moves(&Kernel::guard(), task, to as u32);
    }
}

/// The probes that only a `TIMED` observer needs.
fn of_times<T: Observer>() -> [Probe<'static, T>; 2] {
    // SAFETY: The probes have the arguments of these tracepoints, and the task is valid.
    unsafe {
        [
            probe!(nmi_handler: nmi_left::<T>),
            probe!(sched_migrate_task: moves::<T>),
        ]
    }
}

/// The probes that exist on every machine, the probes of ends first.
fn common<T: Observer, const TIMED: bool>() -> impl Iterator<Item = Probe<'static, T>> {
    // SAFETY: The probes have the arguments of these tracepoints.
    let own = unsafe {
        [
            probe!(hrtimer_expire_exit: timer_left::<T>),
            probe!(softirq_exit: softirq_left::<T, TIMED>),
            probe!(softirq_entry: softirq_entered::<T, TIMED>),
            probe!(softirq_raise: raised::<T>),
        ]
    };
    // SAFETY: As above; the timer is valid, and its function is about to be called.
    let timer = unsafe { probe!(hrtimer_expire_entry: timer_entered::<T>) };
    let tasks = sched::probes::<T, TIMED>();
    let all = Iterator::chain(Iterator::chain(tasks, own), irq::probes::<T, TIMED>());
    Iterator::chain(all, [timer])
}

/// Whether this architecture has tracepoints of local interrupts and of NMIs.
pub(crate) const HAS_LOCAL: bool = cfg!(CONFIG_X86_LOCAL_APIC);

/// The probes of local interrupts.
#[cfg(CONFIG_X86_LOCAL_APIC)]
fn local<T: Observer, const TIMED: bool>() -> impl Iterator<Item = Probe<'static, T>> {
    // SAFETY: The probes have the arguments of these tracepoints.
    let probes = unsafe {
        [
            [
                probe!(local_timer_exit: vector_left::<T, 0, TIMED>),
                probe!(local_timer_entry: vector_entered::<T, 0, TIMED>),
            ],
            [
                probe!(x86_platform_ipi_exit: vector_left::<T, 1, TIMED>),
                probe!(x86_platform_ipi_entry: vector_entered::<T, 1, TIMED>),
            ],
            #[cfg(CONFIG_IRQ_WORK)]
            [
                probe!(irq_work_exit: vector_left::<T, 2, TIMED>),
                probe!(irq_work_entry: vector_entered::<T, 2, TIMED>),
            ],
            #[cfg(CONFIG_SMP)]
            [
                probe!(call_function_exit: vector_left::<T, 3, TIMED>),
                probe!(call_function_entry: vector_entered::<T, 3, TIMED>),
            ],
            #[cfg(CONFIG_SMP)]
            [
                probe!(call_function_single_exit: vector_left::<T, 4, TIMED>),
                probe!(call_function_single_entry: vector_entered::<T, 4, TIMED>),
            ],
            #[cfg(CONFIG_X86_THERMAL_VECTOR)]
            [
                probe!(thermal_apic_exit: vector_left::<T, 5, TIMED>),
                probe!(thermal_apic_entry: vector_entered::<T, 5, TIMED>),
            ],
        ]
    };
    probes.into_iter().flatten()
}

/// No local interrupts: other machines have no tracepoints for them.
#[cfg(not(CONFIG_X86_LOCAL_APIC))]
fn local<T: Observer, const TIMED: bool>() -> impl Iterator<Item = Probe<'static, T>> {
    core::iter::empty()
}

/// Returns the first tracepoint that every observer needs and this kernel lacks, if any. The
/// tracepoints of local interrupts, of deferred.rs and for `TIMED` are optional, and only some
/// observers need `sys_exit`.
pub(crate) fn missing<T: Observer>() -> Option<&'static CStr> {
    tracepoint::missing(common::<T, false>())
}

/// Attaches an observer to all required tracepoints, and to the optional ones that exist (see
/// [`missing`]). May sleep. Fails with `ENOSYS` if the kernel lacks a required tracepoint, and then
/// leaves nothing attached.
pub(crate) fn attach<T: Observer>(observer: Arc<T>) -> Result<Attachment<T>> {
    if observer.wants_times() {
        attach_with::<T, true>(observer)
    } else {
        attach_with::<T, false>(observer)
    }
}

fn attach_with<T: Observer, const TIMED: bool>(observer: Arc<T>) -> Result<Attachment<T>> {
    let probes = all::<T, TIMED>(&observer)?;
    Attachment::new(observer.clone(), probes)
}

/// Returns all probes, the probes of ends first. Fails with `ENOMEM`.
///
/// Out of line, so that the iterators are off the stack before the first probe is attached: the
/// caller's frame and these iterators together would leave too little stack for probes that run
/// on top of the caller.
#[inline(never)]
fn all<T: Observer, const TIMED: bool>(observer: &T) -> Result<KVec<Probe<'_, T>>> {
    // SAFETY: The probe has the arguments of this tracepoint.
    let returns = unsafe { probe!(sys_exit: returned::<T>) };
    let mut returns = observer.wants_returns().then_some(returns).into_iter();
    let is_there = |probe: &Probe<'_, T>| Tracepoint::find(probe.tracepoint()).is_some();
    let times = TIMED.then(of_times::<T>).into_iter().flatten();
    let mut local = Iterator::chain(local::<T, TIMED>(), times).filter(is_there);
    let (mut common, mut deferred) = (common::<T, TIMED>(), deferred::probes(observer));
    // The full type name would be too long for a symbol.
    let all: [&mut dyn Iterator<Item = Probe<'_, T>>; 4] =
        [&mut returns, &mut common, &mut local, &mut deferred];
    let mut probes = KVec::new();
    for probe in all.into_iter().flatten() {
        probes.push(probe, GFP_KERNEL)?;
    }
    Ok(probes)
}
