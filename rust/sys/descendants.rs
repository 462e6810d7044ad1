// SPDX-License-Identifier: GPL-2.0

//! A process and its descendants: a set of processes that every fork keeps up to date.
//!
//! ```text
//!   kernel_clone: child linked --> sched_process_fork --> wake_up_new_task
//!                                  bit(child) = bit(creator)
//!                                  before the child's first instruction
//! ```
//!
//! The set has a bit for each process ID (thread group ID) of the initial PID namespace. Threads
//! have no bits of their own: either all threads of a process belong to the set, or none does.
//!
//! # Why the bits are right
//!
//! - *Each process gets its bit at its fork.* Only `kernel_clone` makes new processes. It calls
//!   `sched_process_fork` after the last point of failure, and before it wakes the child. (io_uring
//!   and vhost call `copy_process` directly, but only for threads. The idle tasks have no ID.) So
//!   the bit of a reused ID is the bit of its new owner, and an exit needs no probe.
//! - *A process keeps its ID.* When a thread other than the leader calls execve, thread IDs are
//!   exchanged, but the ID of the process remains.
//! - *The creator decides*, not the parent: the child of a member is a member even with
//!   `CLONE_PARENT`, and remains one whatever parent, session, process group or namespace it has
//!   later.
//! - An ID is free once its owner has been reaped. The owner may still run for a few microseconds
//!   then, until its last switch. If the ID were reused within that time, the new bit would apply
//!   to the old owner as well, as a comparison with the ID would.
//!
//! # Why no process is missed at the start
//!
//! [`Descendants::of`] attaches the probe, and only then looks at all processes, in passes: a
//! process becomes a member if its parent is one. The first pass that adds nothing is the last. Let
//! `Q` be a member, and `C` a child of `Q`:
//!
//! - If the fork of `C` has missed the probe, `C` was linked before the first pass, which begins
//!   after [`tracepoint::synchronize`]. Every pass visits it.
//! - If the fork of `C` has called the probe, the probe first clears the bit of `C`, and then reads
//!   the bit of `Q`. If it reads 1, it sets the bit of `C`. If it reads 0, a pass has set the bit
//!   of `Q` later, and another pass follows, which finds `C`: the probe has a full barrier between
//!   the linking of `C` and its read, and the pass has one between its write and the next pass, so
//!   at least one of the two sees what the other wrote.
//! - A pass may visit `C` before the fork of `C` reaches the probe, which then clears the bit that
//!   the pass has set. But the pass has set it because the bit of `Q` was set, so the probe reads
//!   that bit as 1 afterwards, and sets the bit of `C` again. `C` does not run before that.
//! - The last pass has added nothing. So each child of a member was a member when the pass visited
//!   it, or got its bit from the probe.
//! - With `CLONE_PARENT` the probe reads the bit of a sibling of `C`, not the bit of `Q`. The
//!   sibling is an older child of `Q`: by the same argument it is a member in the end, and if its
//!   bit was set after that read, another pass finds `C`.
//!
//! No other process gets a bit. A pass sets a bit while the process cannot be released ([`Kept`]),
//! so its ID is its own. If the parent has been released by the end of the test, the tested bit may
//! belong to another process, and the test is repeated.
//!
//! Passes follow existing links. A process that loses its parent before [`Descendants::of`] returns
//! may remain unknown, and its descendants with it. Conversely, a process counts as a child of the
//! reaper that it was given, which may be the init of its PID namespace or a subreaper.
//!
//! # Contexts
//!
//! The probe runs in the task that forks. It takes no lock, and neither waits nor allocates; its
//! loops repeat only if another CPU has changed the same word. [`Descendants::contains`]: any
//! context.
//!
//! Each set attaches the probe for itself: the tracepoint's own array of functions, each with its
//! data, serves as the list of all sets. Without a set the tracepoint remains a no-op.
//!
//! C headers: [`include/trace/events/sched.h`](srctree/include/trace/events/sched.h),
//! [`include/linux/sched/signal.h`](srctree/include/linux/sched/signal.h)

use crate::sys::{
    atomic::{Acquire, Atomic, Full, Relaxed},
    bindings as helpers,
    measure::{Meter, Target},
    memory::NodeSlice,
    periodic,
    platform::PreemptGuard,
    task::TaskRef,
    tracepoint::{self, probe, Attachment},
    waiting::Counted, //
};
use core::ffi::CStr;
use kernel::{
    bindings,
    ffi::{c_ulong, c_void},
    prelude::*,
    sync::Arc, //
};

/// Number of process IDs: helpers.c asserts that the kernel has no more. Their bits take 512 KiB.
const IDS: usize = 1 << 22;

/// A process and its descendants, until dropped. Dropping may sleep.
pub(crate) struct Descendants {
    members: Arc<Members>,
    /// Calls the probe, with a reference of its own to the members.
    _attachment: Attachment<Members>,
}

impl Descendants {
    /// Returns the set of a process with its present and future descendants. May sleep. Fails with
    /// `ESRCH` if there is no such process, or if it has not been woken yet; `ENOMEM`; or `ENOSYS`
    /// if the kernel lacks the tracepoint.
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let members = Members::new()?;
        // SAFETY: The probe has the arguments of this tracepoint: the current task, and one that is
        // not woken before the probe has returned, so both are valid.
        let probe = unsafe { probe!(sched_process_fork: forked) };
        let attachment = Attachment::new(members.clone(), [probe])?;
        // Processes whose fork has missed the probe are linked, and visible.
        tracepoint::synchronize();
        members.add(pid)?;
        // Each pass but the last one adds a process. The children that members fork from now on do
        // not prolong this: the probe adds them.
        while members.add_children() {}
        Ok(Self {
            members,
            _attachment: attachment,
        })
    }

    /// Whether a process is in the set. Any context.
    #[inline(always)]
    pub(crate) fn contains(&self, pid: u32) -> bool {
        self.members.contains(pid)
    }
}

/// Whether there is a process with this ID. Does not sleep.
pub(crate) fn is_process(pid: u32) -> bool {
    Counted::find(pid).is_some_and(|task| task.get().pid() == pid)
}

/// The bits of the members.
struct Members(NodeSlice<Atomic<u64>>);

impl Members {
    fn new() -> Result<Arc<Self>> {
        let words = IDS / u64::BITS as usize;
        let words = NodeSlice::try_new(words, None, |_| Ok(Atomic::new(0)))?;
        Ok(Arc::new(Self(words), GFP_KERNEL)?)
    }

    /// Returns the word with the bit of a process, and the bit.
    #[inline(always)]
    fn place(&self, pid: u32) -> Option<(&Atomic<u64>, u64)> {
        let word = self.0.get((pid / u64::BITS) as usize)?;
        Some((word, 1 << (pid % u64::BITS)))
    }

    #[inline(always)]
    fn contains(&self, pid: u32) -> bool {
        let place = self.place(pid);
        // Acquire: a pass tests afterwards whether the process of this ID has been released. A
        // filter needs no order: the bit was set or cleared before its process was first woken.
        place.is_some_and(|(word, bit)| word.load(Acquire) & bit != 0)
    }

    /// Sets or clears a bit; a full barrier.
    fn put(&self, pid: u32, is_member: bool) {
        let Some((word, bit)) = self.place(pid) else {
            return;
        };
        // Relaxed: the exchange verifies it.
        let mut old = word.load(Relaxed);
        loop {
            let new = if is_member { old | bit } else { old & !bit };
            // Full, also if the word does not change: see the head of this file.
            match word.cmpxchg(old, new, Full) {
                Ok(_) => return,
                Err(found) => old = found,
            }
        }
    }

    /// Called at a fork, before the child is woken.
    fn forked(&self, creator: TaskRef<'_>, child: TaskRef<'_>) {
        let (creator, child) = (creator.pid(), child.pid());
        // The child is a thread of the creator's process.
        if creator == child {
            return;
        }
        // The bit is cleared before the creator's bit is read: see the head of this file.
        self.put(child, false);
        if self.contains(creator) {
            self.put(child, true);
        }
    }

    /// Adds a process.
    fn add(&self, pid: u32) -> Result {
        loop {
            let counted = Counted::find(pid).ok_or(ESRCH)?;
            let task = counted.get();
            if task.pid() != pid {
                return Err(ESRCH);
            }
            let Some(kept) = Kept::new(task) else {
                // Perhaps another thread has become the leader.
                continue;
            };
            // The probe may not have cleared the bit of a task that has never been woken. If the
            // task has been woken, the probe cleared the bit before the state was changed, and we
            // read the state before the full barrier of `put`.
            if kept.task.state() & bindings::TASK_NEW != 0 {
                return Err(ESRCH);
            }
            self.put(pid, true);
            return Ok(());
        }
    }

    /// Makes one pass over all processes. Returns whether the pass has added a process.
    fn add_children(&self) -> bool {
        let mut has_added = false;
        let mut next = 1;
        while let Some((number, counted)) = Counted::next(next) {
            next = number;
            if let Some(is_new) = self.add_if_child(number, counted.get()) {
                has_added |= is_new;
                next += 1;
            }
            periodic::cond_resched();
        }
        has_added
    }

    /// Adds the process with this ID if its parent is a member; `task` was found by the ID. Returns
    /// whether it was added, or `None` if a task was released meanwhile, so that the ID must be
    /// looked up again.
    fn add_if_child(&self, number: u32, task: TaskRef<'_>) -> Option<bool> {
        if task.pid() != number || self.contains(number) {
            return Some(false);
        }
        let kept = Kept::new(task)?;
        let parent = kept.parent();
        let is_child = self.contains(parent.pid());
        if is_child {
            if is_released(&parent) {
                return None;
            }
            self.put(number, true);
        }
        Some(is_child)
    }
}

impl Target for Members {
    /// Forks are not measured: only the probes of trackers are.
    fn meter(&self, _: &CStr) -> Option<Arc<dyn Meter>> {
        None
    }

    fn changes(&self, _: &PreemptGuard) -> u64 {
        0
    }
}

/// # Safety
///
/// `data` is a valid `Members`, `creator` and `child` are valid tasks.
unsafe extern "C" fn forked(
    data: *mut c_void,
    creator: *mut bindings::task_struct,
    child: *mut bindings::task_struct,
) {
    // SAFETY: The function's contract.
    let (members, creator, child) = unsafe {
        let (creator, child) = (TaskRef::from_raw(creator), TaskRef::from_raw(child));
        (&*data.cast::<Members>(), creator, child)
    };
    members.forked(creator, child);
}

/// A task that is not released while this exists: it keeps its IDs, and its parent is not freed.
///
/// # Invariants
///
/// We hold the lock of its signal handlers and are in a read-side critical section of RCU.
struct Kept<'a> {
    task: TaskRef<'a>,
    flags: c_ulong,
}

impl<'a> Kept<'a> {
    /// Returns `None` if the task has been released. Must not be nested.
    fn new(task: TaskRef<'a>) -> Option<Self> {
        let mut flags = 0;
        // SAFETY: The task is valid, and `flags` can be written.
        let is_kept = unsafe { helpers::lt_task_keep(task.as_ptr(), &mut flags) };
        // INVARIANT: If true, the function has taken the lock and entered the section.
        is_kept.then(|| Self { task, flags })
    }

    /// Returns the parent of the task: usually the thread that created it, another thread of the
    /// same process if that thread has exited, or a reaper; the idle task for the first task.
    fn parent(&self) -> TaskRef<'_> {
        // SAFETY: By the type invariant we are in a section of RCU, and the task is not released.
        // The parent is released only after its children have got another one, so it was not
        // released when it was read, and is not freed before the section ends, with `self`.
        unsafe { TaskRef::from_raw(helpers::lt_task_parent(self.task.as_ptr())) }
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant we hold the lock and are in the section; `flags` are those
        // that `lt_task_keep` stored when it took the lock.
        unsafe { helpers::lt_task_unkeep(self.task.as_ptr(), self.flags) };
    }
}

/// Whether a task has been released, and its IDs may belong to others.
fn is_released(task: &TaskRef<'_>) -> bool {
    // SAFETY: The task is valid.
    unsafe { helpers::lt_task_is_released(task.as_ptr()) }
}
