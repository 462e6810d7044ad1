// SPDX-License-Identifier: GPL-2.0

//! The fields of tasks that a probe may read.
//!
//! C header: [`include/linux/sched.h`](srctree/include/linux/sched.h)
//!
//! Fields may change while they are read, so each is read once, as by `READ_ONCE`.

use crate::sys::bindings as helpers;
use core::{
    marker::PhantomData,
    mem::MaybeUninit,
    ptr::{addr_of, NonNull},
    sync::atomic::{fence, Ordering}, //
};
use kernel::bindings;

/// Ids of a task in the initial namespace, its start time, and its command name.
pub(crate) use helpers::lt_task as Task;

/// Returns the current task; `None` in an interrupt. Any context.
pub(crate) fn current() -> Option<Task> {
    // SAFETY: Reads the preemption counter.
    if !unsafe { helpers::lt_in_task() } {
        return None;
    }
    let mut task = MaybeUninit::<Task>::uninit();
    // SAFETY: `current` is always valid; the function fills all of the structure. The name may
    // be changing, which at worst mixes two names; it is always terminated.
    unsafe {
        helpers::lt_current(task.as_mut_ptr());
        Some(task.assume_init())
    }
}

/// Returns the address of the running task, or in an interrupt, of the interrupted one. The address
/// identifies the task while it runs. Any context.
pub(crate) fn current_address() -> u64 {
    in_place::current().addr() as u64
}

/// The current task and context by inline instructions, without a call.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), CONFIG_SMP))]
mod in_place {
    #[cfg(target_arch = "aarch64")]
    pub(super) use crate::sys::arm64::current;
    #[cfg(target_arch = "aarch64")]
    use crate::sys::arm64::preempt_count;
    #[cfg(target_arch = "x86_64")]
    use crate::sys::compat::PreemptCount;
    #[cfg(target_arch = "x86_64")]
    use core::arch::asm;
    #[cfg(target_arch = "x86_64")]
    use kernel::bindings;

    #[cfg(target_arch = "x86_64")]
    extern "C" {
        // Per-CPU variables of arch/x86: their addresses are offsets from %gs. helpers.c asserts
        // their types.
        static current_task: *mut core::ffi::c_void;
        static __preempt_count: PreemptCount;
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn current() -> *mut bindings::task_struct {
        let task;
        // SAFETY: Reads a per-CPU variable. It is the same on every CPU where the caller may run,
        // so reads may be merged and moved: `pure` and `nomem`.
        unsafe {
            asm!(
                "mov {task}, qword ptr gs:[rip + {current}]",
                current = sym current_task,
                task = out(reg) task,
                options(nostack, pure, nomem, preserves_flags),
            );
        }
        task
    }

    /// Returns the preemption counter, which also counts interrupts.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn preempt_count() -> u32 {
        let count;
        // SAFETY: Reads a per-CPU variable. If it has two halves, only the lower half is tested,
        // which is the same on every CPU where the caller may run.
        unsafe {
            asm!(
                "mov {count:e}, dword ptr gs:[rip + {counter}]",
                counter = sym __preempt_count,
                count = out(reg) count,
                options(nostack, readonly, preserves_flags),
            );
        }
        count
    }

    /// Returns the innermost context of the CPU, as lt_context() does.
    #[inline(always)]
    pub(super) fn context() -> super::Context {
        use super::Context;
        use crate::sys::bindings::{LT_HARDIRQ_MASK, LT_NMI_MASK, LT_SOFTIRQ_OFFSET};

        let count = preempt_count();
        let softirqs = softirqs(count);
        if count & (LT_NMI_MASK | LT_HARDIRQ_MASK) | softirqs & LT_SOFTIRQ_OFFSET == 0 {
            Context::Task
        } else if count & LT_NMI_MASK != 0 {
            Context::Nmi
        } else if count & LT_HARDIRQ_MASK != 0 {
            Context::Hardirq
        } else {
            Context::Softirq
        }
    }

    /// Returns the count of softirqs: on PREEMPT_RT it is not in the preemption counter, since
    /// softirqs can be preempted.
    #[cfg(CONFIG_PREEMPT_RT)]
    #[inline(always)]
    fn softirqs(_: u32) -> u32 {
        // SAFETY: The current task is valid, and the field is a number, which only that task
        // writes.
        unsafe { core::ptr::addr_of!((*current()).softirq_disable_cnt).read_volatile() as u32 }
    }

    #[cfg(not(CONFIG_PREEMPT_RT))]
    #[inline(always)]
    fn softirqs(count: u32) -> u32 {
        count
    }
}

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), CONFIG_SMP)))]
use called as in_place;

/// The current task and context by calls of C functions.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), CONFIG_SMP)))]
mod called {
    use super::Context;
    use crate::sys::bindings as helpers;

    pub(super) fn current() -> *mut kernel::bindings::task_struct {
        // SAFETY: There is always a current task, on whichever CPU this runs.
        unsafe { kernel::bindings::get_current() }
    }

    pub(super) fn context() -> Context {
        // SAFETY: Reads the preemption counter.
        Context::from_number(unsafe { helpers::lt_context() })
    }
}

/// The innermost context of the CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Context {
    #[default]
    Task = 0,
    Softirq = 1,
    Hardirq = 2,
    Nmi = 3,
}

impl Context {
    /// Returns the context of the caller. Any context.
    #[inline(always)]
    pub(crate) fn current() -> Self {
        in_place::context()
    }

    pub(crate) fn from_number(number: u32) -> Self {
        match number {
            0 => Context::Task,
            1 => Context::Softirq,
            2 => Context::Hardirq,
            _ => Context::Nmi,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Context::Task => "task",
            Context::Softirq => "softirq",
            Context::Hardirq => "hardirq",
            Context::Nmi => "nmi",
        }
    }
}

/// A task for as long as it is valid: during a tracepoint, or while the caller has a reference.
///
/// # Invariants
///
/// The pointer is valid for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct TaskRef<'a> {
    raw: NonNull<bindings::task_struct>,
    _during: PhantomData<&'a bindings::task_struct>,
}

/// Reads a field of a task once.
macro_rules! read {
    ($task:expr, $($field:tt)+) => {
        // SAFETY: The task is valid by the type invariant, and the field is a number.
        unsafe { addr_of!((*$task.raw.as_ptr()).$($field)+).read_volatile() }
    };
}

impl<'a> TaskRef<'a> {
    /// # Safety
    ///
    /// `raw` is valid for the duration of `'a`.
    #[inline(always)]
    pub(crate) unsafe fn from_raw(raw: *mut bindings::task_struct) -> Self {
        // INVARIANT: The caller's promise.
        Self {
            // SAFETY: A valid pointer is not NULL.
            raw: unsafe { NonNull::new_unchecked(raw) },
            _during: PhantomData,
        }
    }

    /// Calls `see` with the running task, or in an interrupt, with the interrupted one. Any
    /// context, with preemption off.
    #[inline(always)]
    pub(crate) fn with_current<R>(see: impl FnOnce(TaskRef<'_>) -> R) -> R {
        // SAFETY: `current` is valid as long as it runs, and it runs while `see` does.
        see(unsafe { TaskRef::from_raw(in_place::current()) })
    }

    /// Returns the pointer, for the functions of the C side.
    pub(in crate::sys) fn as_ptr(&self) -> *mut bindings::task_struct {
        self.raw.as_ptr()
    }

    /// Returns a number that no other task has at the same time.
    #[inline(always)]
    pub(crate) fn address(&self) -> u64 {
        self.raw.as_ptr().addr() as u64
    }

    /// Whether both are the same task.
    #[inline(always)]
    pub(crate) fn is(&self, other: &TaskRef<'_>) -> bool {
        self.raw == other.raw
    }

    /// Returns the thread id in the initial namespace; 0 for the idle tasks of all CPUs.
    #[inline(always)]
    pub(crate) fn tid(&self) -> u32 {
        read!(self, pid) as u32
    }

    /// Whether the task is the idle task of a CPU.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.tid() == 0
    }

    /// Returns the thread group id in the initial namespace.
    #[inline(always)]
    pub(crate) fn pid(&self) -> u32 {
        read!(self, tgid) as u32
    }

    /// Returns the ids, the start time and the name.
    #[inline(always)]
    pub(crate) fn describe(&self) -> Task {
        Task {
            pid: self.pid(),
            tid: self.tid(),
            start_time: self.start_time(),
            comm: self.comm(),
        }
    }

    /// Returns the command name, 16 bytes padded with NUL. It may be changing, which at worst mixes
    /// two names.
    #[inline(always)]
    pub(crate) fn comm(&self) -> [u64; 2] {
        // SAFETY: The task is valid by the type invariant, its name has 16 bytes, which need not
        // be aligned, and any bytes are numbers.
        unsafe {
            addr_of!((*self.raw.as_ptr()).comm)
                .cast::<[u64; 2]>()
                .read_unaligned()
        }
    }

    /// Returns the kernel's priority: -1 for SCHED_DEADLINE, 0 to 98 for real-time tasks, 100 to
    /// 139 by nice value (120 for nice 0).
    #[inline(always)]
    pub(crate) fn prio(&self) -> i32 {
        read!(self, prio)
    }

    /// Returns the policy, `SCHED_...`.
    #[inline(always)]
    pub(crate) fn policy(&self) -> u32 {
        read!(self, policy)
    }

    /// Returns the CPU that the task runs on, is queued on, or ran on last.
    #[inline(always)]
    pub(crate) fn cpu(&self) -> u32 {
        // SAFETY: Valid by the type invariant.
        unsafe { helpers::lt_task_cpu(self.raw.as_ptr()) }
    }

    /// Whether the task is a kernel thread.
    #[inline(always)]
    pub(crate) fn is_kthread(&self) -> bool {
        read!(self, flags) & bindings::PF_KTHREAD != 0
    }

    /// Whether a limit keeps the task from running: the quota of its cgroup, or its runtime of
    /// SCHED_DEADLINE. Only at its switch-out, when the lock of its runqueue is held.
    #[inline(always)]
    pub(crate) fn is_throttled(&self) -> bool {
        // SAFETY: Valid by the type invariant.
        unsafe { helpers::lt_task_throttled(self.raw.as_ptr()) }
    }

    /// Whether the quota of the task's cgroup is used up, so that the kernel stops the task on its
    /// way back to user space, unless the quota is replenished by then.
    #[inline(always)]
    pub(crate) fn is_to_be_throttled(&self) -> bool {
        // SAFETY: Valid by the type invariant.
        unsafe { helpers::lt_task_throttles(self.raw.as_ptr()) }
    }

    /// Returns the real user id in the initial namespace.
    pub(crate) fn uid(&self) -> u32 {
        // SAFETY: Valid by the type invariant.
        unsafe { helpers::lt_task_uid(self.raw.as_ptr()) }
    }

    /// Whether the task is in the cgroup of version 2 with this number, or below it.
    pub(crate) fn is_in_cgroup(&self, number: u64) -> bool {
        // SAFETY: Valid by the type invariant; any number is valid.
        unsafe { helpers::lt_task_in_cgroup(self.raw.as_ptr(), number) }
    }

    /// Whether the task is a kernel thread or a user worker ([`Self::is_user_worker`]), and not a
    /// thread of a program.
    #[inline(always)]
    pub(crate) fn is_of_kernel(&self) -> bool {
        read!(self, flags) & (bindings::PF_KTHREAD | bindings::PF_USER_WORKER) != 0
    }

    /// Whether the task is a thread that the kernel has started inside a process, for io_uring or
    /// vhost: it never returns to user space.
    #[inline(always)]
    pub(crate) fn is_user_worker(&self) -> bool {
        read!(self, flags) & bindings::PF_USER_WORKER != 0
    }

    /// Returns the state in which the task waits, or is about to: `TASK_...`. At `sched_waking`,
    /// the waking has not changed it yet.
    #[inline(always)]
    pub(crate) fn state(&self) -> u32 {
        read!(self, __state)
    }

    /// Returns whether and how the task is on a runqueue: `TASK_ON_RQ_...`, private to
    /// kernel/sched/.
    pub(super) fn on_rq(&self) -> i64 {
        i64::from(read!(self, on_rq))
    }

    /// Returns the number of times that the task was switched out because it was about to sleep,
    /// whether or not it slept. Incremented before `sched_switch`; preemptions do not count.
    #[inline(always)]
    pub(crate) fn leaves(&self) -> u64 {
        read!(self, nvcsw) as u64
    }

    /// Returns the number of times that the task was switched out, incremented before each
    /// `sched_switch`.
    #[inline(always)]
    pub(crate) fn switches(&self) -> u64 {
        (read!(self, nvcsw) as u64).wrapping_add(read!(self, nivcsw) as u64)
    }

    /// Whether the task is on a CPU: from shortly after its switch-in until shortly after its
    /// switch-out, see sys/waiting.rs.
    #[inline(always)]
    pub(crate) fn is_on_cpu(&self) -> bool {
        let on_cpu = read!(self, on_cpu) != 0;
        // Acquire: pairs with the release of `finish_task`. Everything that the task did before it
        // left the CPU is visible to later reads.
        fence(Ordering::Acquire);
        on_cpu
    }

    /// Whether the task may be on a CPU, or wait for one. `false` during a waking means that it
    /// sleeps, and has left its CPU, see sys/waiting.rs.
    #[inline(always)]
    pub(crate) fn may_run(&self) -> bool {
        // Acquire: as in `is_awake`. on_rq is read first: a task leaves its queue, and then its
        // CPU.
        fence(Ordering::Acquire);
        let on_rq = read!(self, on_rq) != 0;
        // Acquire: the read of `on_cpu` must not be ordered before the read of `on_rq`.
        fence(Ordering::Acquire);
        self.is_on_cpu() | on_rq
    }

    /// Whether the task has exited, or is in the last part of its exit (`exit_state` is set).
    pub(crate) fn has_exited(&self) -> bool {
        read!(self, exit_state) != 0
    }

    /// Whether a task that is off the CPU has gone to sleep, and stays asleep until it is woken.
    /// The caller holds the task's `pi_lock`, so the task is not taken off its queue and put back
    /// meanwhile.
    pub(crate) fn is_asleep(&self) -> bool {
        let is_fair = self.prio() >= bindings::MAX_RT_PRIO as i32
            && self.policy() != bindings::SCHED_EXT
            && !self.is_on_ext_queue();
        // As in `is_awake`; tasks of sched_ext are never on a fair queue.
        read!(self, on_rq) == 0
            || read!(self, se.sched_delayed) != 0
            || (is_fair && read!(self, se.on_rq) == 0)
    }

    /// Whether the task is on a queue of sched_ext, which may take over tasks of any policy.
    fn is_on_ext_queue(&self) -> bool {
        #[cfg(CONFIG_SCHED_CLASS_EXT)]
        return read!(self, scx.flags) & bindings::scx_ent_flags_SCX_TASK_QUEUED as u32 != 0;
        #[cfg(not(CONFIG_SCHED_CLASS_EXT))]
        false
    }

    /// Returns the number of bytes read from storage for the task so far, each counted when it is
    /// requested; always 0 if the kernel does not count them.
    #[inline(always)]
    pub(crate) fn bytes_read(&self) -> u64 {
        #[cfg(CONFIG_TASK_IO_ACCOUNTING)]
        return read!(self, ioac.read_bytes);
        #[cfg(not(CONFIG_TASK_IO_ACCOUNTING))]
        0
    }

    /// Whether the task may be in the middle of a waking, as far as its lock shows. If this is
    /// `false`, any waking that the caller knows of is complete, and visible to later reads.
    #[inline(always)]
    pub(crate) fn may_be_woken_now(&self) -> bool {
        // SAFETY: Valid by the type invariant.
        let is_locked = unsafe { helpers::lt_task_waking_locked(self.raw.as_ptr()) };
        // Acquire: pairs with the release of the lock at the end of a waking.
        fence(Ordering::Acquire);
        is_locked
    }

    /// Returns the start time, as in [`Task::start_time`].
    #[inline(always)]
    pub(crate) fn start_time(&self) -> u64 {
        read!(self, start_time)
    }

    /// Whether the task has not gone to sleep, as far as its fields show at this moment: a wakeup
    /// finds it running, or about to run.
    ///
    /// If this is `false` during a waking, the waking has made the task run. If it is `true`, the
    /// task may be on its way to sleep on another CPU, and go to sleep in the next instant.
    #[inline(always)]
    pub(crate) fn is_awake(&self) -> bool {
        // Acquire: try_to_wake_up() has read the state before the tracepoint; our load of on_rq
        // must not be ordered before that. If it were, an old 0 could be seen here, although the
        // task was woken, ran and is about to sleep again. The kernel has an smp_rmb() there for
        // the same purpose; on x86 this fence restricts only the compiler.
        fence(Ordering::Acquire);
        let on_rq = read!(self, on_rq);
        // A fair task may stay on the queue for a while after it has gone to sleep.
        if on_rq == 0 || read!(self, se.sched_delayed) != 0 {
            return false;
        }
        // The task's CPU then dequeues it: se.on_rq = 0, sched_delayed = 0, on_rq = 0, in this
        // order. So a task that still seems to be on the queue may be asleep. Tasks of other
        // classes also have an se.on_rq of 0. A task of sched_ext counts as asleep if it was
        // preempted on its way to sleep, and so does a task that is off the queue to get another
        // priority. 1 is TASK_ON_RQ_QUEUED, private to kernel/sched/; any other value means that
        // the task is being moved.
        on_rq != 1
            || read!(self, se.on_rq) != 0
            || read!(self, on_cpu) != 0
            || read!(self, prio) < bindings::MAX_RT_PRIO as i32
    }
}
