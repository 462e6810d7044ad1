// SPDX-License-Identifier: GPL-2.0

//! Follows tasks as they are woken, and switched in and out.
//!
//! ```text
//!      sched_waking, sched_wakeup_new                  sched_switch
//!   asleep ----------------------------> runnable ------------------> running
//!     ^                                      ^                           |
//!     |              sched_switch, not runnable, or runnable             |
//!     +--------------------------------------+---------------------------+
//! ```
//!
//! C header: [`include/trace/events/sched.h`](srctree/include/trace/events/sched.h)
//!
//! # Contexts
//!
//! Preemption is off in all probes except the probes of exits. At a switch and at the first waking
//! of a new task, interrupts are off, too, and raw spinlocks are held: the lock of the runqueue,
//! and at that waking also the lock of the new task. At any other waking, from any context but NMI,
//! the lock of the wakee is held with interrupts off. The exception is a waking of the current task
//! (`try_to_wake_up(current)`), by itself or by an interrupt on top of it: it takes no lock, and
//! interrupts may be on. Taking one of these locks again is a deadlock: no wakeup, no timer, no
//! printk; use irq_work instead. At an arrival, none of these locks is held, and interrupts are on.

use crate::{
    engine::platform::Platform,
    sys::{
        measure::Target,
        platform::{Kernel, PreemptGuard},
        task::TaskRef,
        tracepoint::{callbacks, probe, Probe}, //
    },
};
use kernel::{bindings, ffi::c_uint, fmt};

/// A switch of the CPU from one task to another.
#[derive(Clone, Copy)]
pub(crate) struct Switch<'a> {
    pub(crate) prev: TaskRef<'a>,
    pub(crate) next: TaskRef<'a>,
    /// Why `prev` was switched out.
    pub(crate) state: State,
}

/// Why a task was switched out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct State {
    preempt: bool,
    state: u32,
}

impl State {
    /// Whether the task is still runnable: preempted, yielding, or throttled.
    #[inline(always)]
    pub(crate) fn is_runnable(self) -> bool {
        self.preempt || self.state == bindings::TASK_RUNNING
    }

    /// Whether the task was preempted, whatever state it had set; the tracepoint's `+`.
    #[inline(always)]
    pub(crate) fn is_preempted(self) -> bool {
        self.preempt
    }

    /// Whether a signal has stopped the task.
    pub(crate) fn is_stopped(self) -> bool {
        self.state & bindings::__TASK_STOPPED != 0
    }

    /// Whether the task has exited, and never runs again.
    #[inline(always)]
    pub(crate) fn is_dead(self) -> bool {
        self.state & bindings::TASK_DEAD != 0
    }

    /// Whether the task waits for a spinlock, which sleeps on PREEMPT_RT.
    #[inline(always)]
    pub(crate) fn is_lock_wait(self) -> bool {
        self.state & bindings::TASK_RTLOCK_WAIT != 0
    }

    /// Whether the task sleeps in the middle of its work: `D`, but not an idle kernel thread.
    #[inline(always)]
    pub(crate) fn is_uninterruptible(self) -> bool {
        const IDLE: u32 = bindings::TASK_INTERRUPTIBLE | bindings::TASK_NOLOAD;
        self.state & bindings::TASK_UNINTERRUPTIBLE != 0 && self.state & IDLE == 0
    }

    /// Whether the state rules out that the task is in the middle of its work, or frozen: one test
    /// that covers most sleeps.
    #[inline(always)]
    pub(crate) fn is_plain(self) -> bool {
        const OTHERS: u32 =
            bindings::TASK_UNINTERRUPTIBLE | bindings::TASK_RTLOCK_WAIT | bindings::TASK_FROZEN;
        self.state & OTHERS == 0
    }

    /// Returns the state in which a task that is being woken slept.
    #[inline(always)]
    pub(crate) fn of_sleeper(task: &TaskRef<'_>) -> Self {
        Self {
            preempt: false,
            state: task.state(),
        }
    }

    /// Returns the state of a task that is off the CPU, with its `pi_lock` held: asleep, or
    /// runnable. `None` if the task has not run yet, or never runs again.
    pub(crate) fn of_waiting(task: &TaskRef<'_>) -> Option<Self> {
        let state = task.state();
        match state {
            bindings::TASK_RUNNING | bindings::TASK_WAKING => Some(Self::default()),
            state if state & (bindings::TASK_NEW | bindings::TASK_DEAD) != 0 => None,
            // Preempted on its way to sleep, or asleep in this state.
            state => Some(Self {
                preempt: !task.is_asleep(),
                state,
            }),
        }
    }

    /// Whether the freezer holds the task: the state in which it slept before is unknown.
    #[inline(always)]
    pub(crate) fn is_frozen(self) -> bool {
        self.state & bindings::TASK_FROZEN != 0
    }

    /// Whether the task is being woken from a sleep (`TASK_WAKING`).
    #[inline(always)]
    pub(crate) fn is_waking(self) -> bool {
        self.state == bindings::TASK_WAKING
    }

    /// Whether the task has exactly this state now.
    #[inline(always)]
    pub(crate) fn is_that_of(self, task: &TaskRef<'_>) -> bool {
        self.state == task.state()
    }

    #[inline(always)]
    pub(crate) fn to_word(self) -> u64 {
        u64::from(self.preempt) << 32 | u64::from(self.state)
    }

    pub(crate) fn from_word(word: u64) -> Self {
        Self {
            preempt: word >> 32 & 1 != 0,
            state: word as u32,
        }
    }
}

/// Prints the state of a task that is not dead, as the tracepoint does.
impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // From the most to the least significant, as the kernel does.
        const LETTERS: [(u32, &str); 5] = [
            (bindings::TASK_PARKED, "P"),
            (bindings::__TASK_TRACED, "t"),
            (bindings::__TASK_STOPPED, "T"),
            (bindings::TASK_UNINTERRUPTIBLE, "D"),
            (bindings::TASK_INTERRUPTIBLE, "S"),
        ];
        const IDLE: u32 = bindings::TASK_UNINTERRUPTIBLE | bindings::TASK_NOLOAD;
        const BLOCKED: u32 = bindings::TASK_RTLOCK_WAIT | bindings::TASK_FROZEN;
        let letter = LETTERS.iter().find(|(bit, _)| self.state & bit != 0);
        f.write_str(match (self.preempt, letter) {
            (true, _) => "R+",
            _ if self.state & IDLE == IDLE => "I",
            _ if self.state & BLOCKED != 0 => "D",
            (false, Some((_, letter))) => letter,
            (false, None) => "R",
        })
    }
}

/// Receives the events of tasks. See "Contexts" above.
pub(crate) trait Observer: Target {
    /// Whether [`Observer::waking`] is called.
    const WAKINGS: bool;

    /// Whether [`Observer::waking_new`] is called.
    const NEW: bool;

    /// Called when a task is woken, by the current one or by an interrupt on top of it.
    fn waking(&self, guard: &PreemptGuard, wakee: TaskRef<'_>);

    /// Called when the current task has put a new task on a runqueue. The new task was never
    /// asleep, and has not run yet.
    fn waking_new(&self, _guard: &PreemptGuard, _wakee: TaskRef<'_>) {}

    /// Called when the CPU switches from one task to another. `TIMED`: see [`probes`].
    fn switched<const TIMED: bool>(&self, guard: &PreemptGuard, switch: Switch<'_>);
}

callbacks! {
    fn waking<T: Observer>(observer, wakee: *mut bindings::task_struct) {
        // SAFETY: The task is valid.
        let wakee = unsafe { TaskRef::from_raw(wakee) };
        // SAFETY: Preemption is off until the probe returns: by a raw spinlock of the wakee, or,
        // when a task wakes itself, by the `guard(preempt)` of `try_to_wake_up`. See "Contexts"
        // above.
        let guard = unsafe { PreemptGuard::already() };
        observer.waking(guard, wakee);
    }

    fn waking_new<T: Observer>(observer, wakee: *mut bindings::task_struct) {
        // SAFETY: The task is valid.
        let wakee = unsafe { TaskRef::from_raw(wakee) };
        // SAFETY: `wake_up_new_task` holds raw spinlocks, and has interrupts off.
        let guard = unsafe { PreemptGuard::already() };
        observer.waking_new(guard, wakee);
    }

    fn switched<T: Observer, const TIMED: bool>(
        observer,
        preempt: bool,
        prev: *mut bindings::task_struct,
        next: *mut bindings::task_struct,
        state: c_uint,
    ) {
        // SAFETY: Both tasks are valid.
        let (prev, next) = unsafe { (TaskRef::from_raw(prev), TaskRef::from_raw(next)) };
        // SAFETY: `__schedule` holds the runqueue's raw spinlock, and has interrupts off.
        let guard = unsafe { PreemptGuard::already() };
        let state = State { preempt, state };
        observer.switched::<TIMED>(guard, Switch { prev, next, state });
    }
}

/// Returns the probes that an observer needs, the end of the event first, so that no end is missed.
/// `TIMED` is passed on to the observer, which may then do more.
pub(crate) fn probes<T: Observer, const TIMED: bool>() -> impl Iterator<Item = Probe<'static, T>> {
    // SAFETY: The probes have the arguments of these tracepoints, whose tasks are valid.
    let (switched, waking, new) = unsafe {
        (
            probe!(sched_switch: switched::<T, TIMED>),
            probe!(sched_waking: waking::<T>),
            probe!(sched_wakeup_new: waking_new::<T>),
        )
    };
    let waking = T::WAKINGS.then_some(waking);
    let new = T::NEW.then_some(new);
    [Some(switched), waking, new].into_iter().flatten()
}

/// Receives notifications of tasks that have been switched in.
pub(crate) trait ArrivalObserver: Target {
    /// Called in the task that the CPU has switched to, before the task continues: its address
    /// space is in use. The task has not left the CPU since `sched_switch`. See "Contexts" above.
    fn arrived(&self, guard: &PreemptGuard);
}

callbacks! {
    fn arrived<T: ArrivalObserver>(observer, is_switch: bool) {
        // SAFETY: The callers of `__schedule` keep preemption off until that function has returned,
        // and `schedule_tail` turns preemption on only after the tracepoint.
        let guard = unsafe { PreemptGuard::already() };
        if is_switch {
            observer.arrived(guard);
        }
    }
}

/// The probe of an arrival.
pub(crate) fn arrival_probes<T: ArrivalObserver>() -> [Probe<'static, T>; 1] {
    // SAFETY: The probe has the argument of this tracepoint.
    unsafe { [probe!(sched_exit_tp: arrived::<T>)] }
}

/// Receives notifications of tasks that exit. Any context.
pub(crate) trait ExitObserver: Target {
    /// Called twice for a task that exits: at `sched_process_exit`, while it is still running, and
    /// at `sched_process_free`, after it has run for the last time.
    fn exits(&self, guard: &PreemptGuard, task: TaskRef<'_>);
}

callbacks! {
    fn exits<T: ExitObserver>(observer, task: *mut bindings::task_struct, _group_dead: bool) {
        // SAFETY: The task is valid.
        let task = unsafe { TaskRef::from_raw(task) };
        observer.exits(&Kernel::guard(), task);
    }

    fn freed<T: ExitObserver>(observer, task: *mut bindings::task_struct) {
        // SAFETY: The task is valid.
        let task = unsafe { TaskRef::from_raw(task) };
        observer.exits(&Kernel::guard(), task);
    }
}

/// The probes of a task's end.
pub(crate) fn exit_probes<T: ExitObserver>() -> [Probe<'static, T>; 2] {
    // SAFETY: The probes have the arguments of these tracepoints, whose task is valid.
    unsafe {
        [
            probe!(sched_process_exit: exits::<T>),
            probe!(sched_process_free: freed::<T>),
        ]
    }
}

/// Returns the word for a policy.
pub(crate) fn policy_name(policy: u32) -> &'static str {
    match policy {
        bindings::SCHED_NORMAL => "other",
        bindings::SCHED_FIFO => "fifo",
        bindings::SCHED_RR => "rr",
        bindings::SCHED_BATCH => "batch",
        bindings::SCHED_IDLE => "idle",
        bindings::SCHED_DEADLINE => "deadline",
        bindings::SCHED_EXT => "ext",
        _ => "?",
    }
}
