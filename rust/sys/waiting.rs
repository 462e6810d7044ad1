// SPDX-License-Identifier: GPL-2.0

//! Visits all tasks that are not running at this moment, with their states.
//!
//! ```text
//!   attach probes    wait for the switches that missed them    look at each task     look again
//!   ---------------->|---------------------------------------->|-- under its lock -->|---------->
//!                                                                                     runnable
//!                                                                                     tasks
//! ```
//!
//! A note that a caller makes about a task must be true until the task's next switch-in, which a
//! probe sees. So:
//!
//! - A switch, from its tracepoint on, runs with interrupts off: it sets `on_cpu` of the next task,
//!   and clears `on_cpu` of the previous one. After [`tracepoint::synchronize`], each switch that
//!   did not call the probes is complete, and `on_cpu` shows its result.
//! - A task that is *asleep* runs only after it was woken, which takes its `pi_lock`. We read the
//!   task under this lock. So the task does not run before we release the lock, and a later probe
//!   sees all notes made under the lock.
//! - A task that is *runnable* may be switched in at any time, and the probe may have run before
//!   anything was noted. After another [`tracepoint::synchronize`] that switch is complete. The
//!   task is on a CPU then, or has been switched out, which is counted ([`TaskRef::switches`]): see
//!   [`Watched::has_run`].
//!
//! C headers: [`include/linux/sched.h`](srctree/include/linux/sched.h),
//! [`include/linux/idr.h`](srctree/include/linux/idr.h)
//!
//! # Contexts
//!
//! A task that may sleep. [`each`] calls its `see` with a raw spinlock held and interrupts off: no
//! wakeup, no allocation, no printk.

use crate::sys::{
    bindings as helpers,
    periodic,
    platform::PreemptGuard,
    sched::State,
    task::TaskRef,
    tracepoint, //
};
use core::{mem::MaybeUninit, ptr::NonNull};
use kernel::bindings;

/// A reference to a task.
pub(super) struct Counted(NonNull<bindings::task_struct>);

impl Counted {
    /// Returns the task with this id.
    pub(super) fn find(tid: u32) -> Option<Self> {
        // SAFETY: Any number is valid; the function returns NULL or a task with a reference.
        let task = unsafe { helpers::lt_task_find(tid) };
        NonNull::new(task).map(Self)
    }

    /// Returns the task with the lowest id that is at least `tid`, and that id.
    pub(super) fn next(mut tid: u32) -> Option<(u32, Self)> {
        // SAFETY: `tid` may be written; the function returns NULL or a task with a reference.
        let task = unsafe { helpers::lt_task_next(&mut tid) };
        Some((tid, Self(NonNull::new(task)?)))
    }

    pub(super) fn get(&self) -> TaskRef<'_> {
        // SAFETY: The reference keeps it valid.
        unsafe { TaskRef::from_raw(self.0.as_ptr()) }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // SAFETY: The reference is ours.
        unsafe { bindings::put_task_struct(self.0.as_ptr()) };
    }
}

/// A task that was off the CPU when it was read.
///
/// # Invariants
///
/// Its `pi_lock` is held. If its state is not runnable, it is asleep, and its stack is valid.
pub(crate) struct Waiting<'a> {
    task: TaskRef<'a>,
    state: State,
}

/// A system call that a task is in.
pub(crate) use helpers::lt_syscall as Called;

/// Whether [`Waiting::system_call`] finds calls on this architecture.
pub(crate) const FINDS_CALLS: bool = cfg!(CONFIG_X86_64);

impl Waiting<'_> {
    pub(crate) fn task(&self) -> TaskRef<'_> {
        self.task
    }

    /// Returns its state: asleep, or runnable; also runnable if it was woken from a sleep.
    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Returns the system call that the task sleeps in. `None` if the task is runnable, in no
    /// system call, or exiting, and without [`FINDS_CALLS`].
    pub(crate) fn system_call(&self) -> Option<Called> {
        if self.state.is_runnable() {
            return None;
        }
        let mut out = MaybeUninit::<Called>::uninit();
        // SAFETY: By the type invariant it is asleep and stays so, with its stack; the function
        // fills the structure if it returns `true`.
        let out = unsafe {
            if !helpers::lt_task_syscall(self.task.as_ptr(), out.as_mut_ptr()) {
                return None;
            }
            out.assume_init()
        };
        // The entry code stores -ENOSYS as the result, and the real one replaces it before
        // sys_exit: a task that is stopped or throttled on its way back to user space is no longer
        // in a call.
        let is_in_call = out.number >= 0 && out.result == -i64::from(bindings::ENOSYS);
        is_in_call.then_some(out)
    }

    /// Returns the address of the mutex that the task waits for; always `None` on PREEMPT_RT.
    pub(crate) fn mutex(&self) -> Option<u64> {
        if self.state.is_runnable() {
            return None;
        }
        // SAFETY: The task is valid.
        let address = unsafe { helpers::lt_task_mutex(self.task.as_ptr()) };
        (address != 0).then_some(address)
    }
}

/// A runnable task, and the number of its switches when it was read.
pub(crate) struct Watched {
    task: Counted,
    switches: u64,
}

impl Watched {
    /// Whether the task has run since, or is running. Must be called after
    /// [`tracepoint::synchronize`].
    pub(crate) fn has_run(&self) -> bool {
        let task = self.task.get();
        // In this order: if the task ran and was switched out before the first test, the second one
        // shows that.
        task.is_on_cpu() || task.switches() != self.switches
    }
}

/// Calls `see` with each task that is not running, under its lock. For each result that is `Some`,
/// calls `after` without the lock, with the result, and with the task if it may have run meanwhile.
/// Tasks that have never run, have exited, or start running meanwhile are left out.
///
/// Tasks created meanwhile may be seen. Probes that were attached before this call are called for
/// each switch that was not complete when a task was read.
pub(crate) fn each<R>(
    mut see: impl FnMut(&PreemptGuard, &Waiting<'_>) -> Option<R>,
    mut after: impl FnMut(R, Option<Watched>),
) {
    tracepoint::synchronize();
    let mut first = 1;
    while let Some((tid, counted)) = Counted::next(first) {
        first = tid + 1;
        if let Some((seen, state, switches)) = look(&counted.get(), &mut see) {
            let watched = state.is_runnable().then_some(Watched {
                task: counted,
                switches,
            });
            after(seen, watched);
        }
        periodic::cond_resched();
    }
}

/// Calls `see` with a task that is not running; returns its result, with the state of the task, and
/// the number of its switches.
fn look<R>(
    task: &TaskRef<'_>,
    see: impl FnOnce(&PreemptGuard, &Waiting<'_>) -> Option<R>,
) -> Option<(R, State, u64)> {
    // SAFETY: The task is valid; the lock is released below.
    let flags = unsafe { helpers::lt_task_lock(task.as_ptr()) };
    let seen = is_waiting(task).and_then(|(state, switches)| {
        // INVARIANT: The lock is held; a task that is asleep does not exit meanwhile.
        let waiting = Waiting { task: *task, state };
        // SAFETY: Preemption is off: a raw spinlock is held.
        let guard = unsafe { PreemptGuard::already() };
        see(guard, &waiting).map(|seen| (seen, state, switches))
    });
    // SAFETY: We hold the lock, and `flags` are those that `lt_task_lock` returned.
    unsafe { helpers::lt_task_unlock(task.as_ptr(), flags) };
    seen
}

/// Returns the state of a task, and the number of its switches; `None` if it is running, has never
/// run, or has exited. Its `pi_lock` is held.
fn is_waiting(task: &TaskRef<'_>) -> Option<(State, u64)> {
    if task.is_on_cpu() {
        return None;
    }
    let switches = task.switches();
    let state = State::of_waiting(task)?;
    (switches != 0 && !task.has_exited()).then_some((state, switches))
}
