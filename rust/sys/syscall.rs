// SPDX-License-Identifier: GPL-2.0

//! Follows system calls, and the tasks that make them.
//!
//! ```text
//!   user space --sys_enter--> in the kernel -----------------sys_exit--> user space
//!                                |  ^                           ^
//!                    switched out|  |switched in                | a new task's first sys_exit
//!                                v  |                           | has no sys_enter before it
//!                              waiting        sched_process_exit: there is no way back
//! ```
//!
//! A call that a signal ends also reaches `sys_exit`. If a task is inside a call when an observer
//! is attached, the observer sees an exit without an entry.
//!
//! C headers: [`include/trace/events/syscalls.h`](srctree/include/trace/events/syscalls.h),
//! [`include/asm-generic/syscall.h`](srctree/include/asm-generic/syscall.h)
//!
//! # Contexts
//!
//! The current task, with preemption on, except when a task is switched in: see sys/sched.rs.

use crate::{
    engine::platform::Platform,
    sys::{
        bindings as helpers,
        measure::Target,
        platform::{Kernel, PreemptGuard},
        task::TaskRef,
        tracepoint::{callbacks, probe, Attachment, Probe}, //
    },
};
use core::{ffi::CStr, marker::PhantomData, ptr::NonNull};
use kernel::{
    bindings,
    ffi::{c_int, c_long, c_uint},
    prelude::*,
    sync::Arc, //
};

pub(crate) mod names;

/// The registers of the current task, which is making a call.
///
/// # Invariants
///
/// The pointer is valid for `'a`, and points to registers of the current task.
pub(crate) struct Registers<'a> {
    raw: NonNull<bindings::pt_regs>,
    _during: PhantomData<&'a bindings::pt_regs>,
}

impl Registers<'_> {
    /// # Safety
    ///
    /// `raw` is valid for the duration of `'a`, and points to registers of the current task.
    #[inline(always)]
    unsafe fn from_raw<'a>(raw: *mut bindings::pt_regs) -> Registers<'a> {
        // INVARIANT: The caller's promise.
        Registers {
            // SAFETY: A valid pointer is not NULL.
            raw: unsafe { NonNull::new_unchecked(raw) },
            _during: PhantomData,
        }
    }

    /// Returns the number of the call; below 0 if the call was skipped, or the task is in none.
    #[inline(always)]
    pub(crate) fn number(&self) -> i64 {
        // SAFETY: Valid by the type invariant.
        unsafe { helpers::lt_syscall_number(self.raw.as_ptr()) as i64 }
    }

    /// Returns the first three arguments.
    pub(crate) fn arguments(&self) -> [u64; 3] {
        let mut arguments = [0; 3];
        // SAFETY: Valid by the type invariant, and there is room for three arguments.
        unsafe { helpers::lt_syscall_arguments(self.raw.as_ptr(), arguments.as_mut_ptr()) };
        arguments
    }

    /// Whether the number belongs to a table other than the native one: for a 32-bit program on a
    /// 64-bit kernel, or a 64-bit program with 32-bit pointers (x32).
    #[inline(always)]
    pub(crate) fn is_compat(&self) -> bool {
        // SAFETY: Reads flags of the current task.
        unsafe { helpers::lt_syscall_is_compat() }
    }
}

/// Receives system calls. All functions are about the current task, except
/// [`Observer::switched_in`].
pub(crate) trait Observer: Target {
    /// Whether tasks are followed, too: if so, [`Observer::renamed`] and [`Observer::exited`] are
    /// called, and [`Observer::switched_in`] if the observer wants it.
    const TASKS: bool;

    /// Called when the task makes the call with this number, see [`Registers::number`]. Preemption
    /// is on.
    fn entered(&self, registers: &Registers<'_>, number: i64);

    /// Called when the task returns from a call. Preemption is on.
    fn left(&self, registers: &Registers<'_>, ret: i64);

    /// Called when the task executes another program, and has taken over the thread id of the
    /// group leader.
    fn renamed(&self, _guard: &PreemptGuard) {}

    /// Called when the task exits.
    fn exited(&self, _guard: &PreemptGuard) {}

    /// Whether [`Observer::switched_in`] is called.
    fn wants_switches(&self) -> bool {
        false
    }

    /// Called when a task is switched in, and is not on the CPU yet. The lock of the runqueue is
    /// held.
    fn switched_in(&self, _guard: &PreemptGuard, _task: TaskRef<'_>) {}
}

callbacks! {
    fn entered<T: Observer>(observer, regs: *mut bindings::pt_regs, number: c_long) {
        // SAFETY: These are the registers of the current task, which is making a call.
        let registers = unsafe { Registers::from_raw(regs) };
        observer.entered(&registers, number as i64);
    }

    fn left<T: Observer>(observer, regs: *mut bindings::pt_regs, ret: c_long) {
        // SAFETY: As in `entered`.
        let registers = unsafe { Registers::from_raw(regs) };
        observer.left(&registers, ret as i64);
    }

    fn executed<T: Observer>(
        observer,
        task: *mut bindings::task_struct,
        old: c_int,
        _bprm: *mut bindings::linux_binprm,
    ) {
        // SAFETY: It is the current task.
        let task = unsafe { TaskRef::from_raw(task) };
        if task.tid() != old as u32 {
            observer.renamed(&Kernel::guard());
        }
    }

    fn exited<T: Observer>(observer, _task: *mut bindings::task_struct, _group_dead: bool) {
        observer.exited(&Kernel::guard());
    }

    fn switched<T: Observer>(
        observer,
        _preempt: bool,
        _prev: *mut bindings::task_struct,
        next: *mut bindings::task_struct,
        _state: c_uint,
    ) {
        // SAFETY: The task is valid.
        let next = unsafe { TaskRef::from_raw(next) };
        // SAFETY: Preemption is off, see "Contexts" in sys/sched.rs.
        let guard = unsafe { PreemptGuard::already() };
        observer.switched_in(guard, next);
    }
}

/// The tracepoint that is attached only for observers that request it.
const SWITCH: &CStr = c"sched_switch";

/// The probes that an observer may need, the ends first, so that no end is missed.
pub(crate) fn probes<T: Observer>() -> impl Iterator<Item = Probe<'static, T>> {
    // SAFETY: The probes have the arguments of these tracepoints. The registers are those of the
    // current task; the tasks are valid, and current except at a switch.
    let probes = unsafe {
        [
            (true, probe!(sys_exit: left::<T>)),
            (T::TASKS, probe!(sched_process_exec: executed::<T>)),
            (T::TASKS, probe!(sched_process_exit: exited::<T>)),
            (T::TASKS, probe!(sched_switch: switched::<T>)),
            (true, probe!(sys_enter: entered::<T>)),
        ]
    };
    let needed = |(needed, probe): (bool, _)| needed.then_some(probe);
    probes.into_iter().filter_map(needed)
}

/// Attaches an observer. May sleep. Fails with `ENOSYS` if the kernel lacks a tracepoint, and then
/// leaves nothing attached.
pub(crate) fn attach<T: Observer>(observer: Arc<T>) -> Result<Attachment<T>> {
    let wants_switches = observer.wants_switches();
    let wanted = |probe: &Probe<'_, T>| wants_switches || probe.tracepoint() != SWITCH;
    Attachment::new(observer, probes().filter(wanted))
}
