// SPDX-License-Identifier: GPL-2.0

//! One step of a chain: what happens, and where.

use super::KIND_AT;

/// The kind of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A handler of a device interrupt is called; the subject is its line.
    Irq = 1,
    /// A local interrupt; the subject is the position in the list of them.
    Vector = 2,
    /// A high-resolution timer was due; the subject is its function.
    Due = 3,
    /// The function of a timer is called.
    Expire = 4,
    /// A softirq is raised; the subject is its vector.
    Raise = 5,
    /// It runs.
    Softirq = 6,
    /// A task is woken; the subject is a [`task`].
    Waking = 7,
    /// A task is switched in.
    Switch = 8,
    /// It is switched out though it could run; the subject is the task that runs instead.
    Preempted = 9,
    /// It waits for a lock of PREEMPT_RT.
    Lock = 10,
    /// It waits for something else, and not for the next event.
    Sleep = 11,
    /// It returns to user space.
    User = 12,
    /// It waits for the next event.
    Block = 13,
    /// It begins a work; the subject is a [`begin`]. The cookie takes the places of names.
    Begin = 14,
    /// A task has done the work.
    Done = 15,
    /// A work item is queued; the subject is its function.
    Queue = 16,
    /// A worker calls that.
    Work = 17,
    /// A timer of the timer wheel was due; the subject is its function.
    Wheel = 18,
    /// A function is to be called on another CPU.
    Call = 19,
    /// It is called there.
    Called = 20,
    /// It is switched out though it could run, since a limit keeps it from running.
    Throttled = 21,
    /// It sleeps as [`Kind::Sleep`] says, after it has requested reads of its own since it was switched
    /// in.
    Reads = 22,
    /// Not a step: who had the CPU in that time, see rivals.rs.
    Rivals = 28,
    /// Not a step: what the CPU did in the time that the step before says, see wait.rs.
    Parts = 29,
    /// Not a step: what the CPU had done when the wait began for which the step before is the reason.
    Wait = 30,
    /// Not a step: a name, or a part of one, of the step before.
    Name = 31,
}

/// Whether the word of this tag belongs to the step before: it is of none of the kinds of steps.
#[inline(always)]
pub(super) fn is_attached(tag: u64) -> bool {
    tag >> KIND_AT > Kind::LAST as u64
}

impl Kind {
    /// The step with the highest number.
    pub(crate) const LAST: Self = Self::Reads;

    pub(super) fn of(tag: u64) -> Option<Self> {
        use Kind::*;
        const ALL: [Kind; 22] = [
            Irq, Vector, Due, Expire, Raise, Softirq, Waking, Switch, Preempted, Lock, Sleep, User,
            Block, Begin, Done, Queue, Work, Wheel, Call, Called, Throttled, Reads,
        ];
        match tag >> KIND_AT {
            28 => Some(Rivals),
            29 => Some(Parts),
            30 => Some(Wait),
            31 => Some(Name),
            tag => ALL.get((tag as usize).wrapping_sub(1)).copied(),
        }
    }
}

/// What happens, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    pub(crate) kind: Kind,
    pub(crate) cpu: u32,
    pub(crate) subject: u64,
}

/// A task as the subject of a step: its thread id, and its priority.
#[inline(always)]
pub(crate) fn task(tid: u32, prio: i32) -> u64 {
    u64::from(prio as u32) << 32 | u64::from(tid)
}

/// A [`task`] as the subject of a waking by another task, with its thread id instead of the priority.
pub(super) fn woken_by(subject: u64, waker: u32) -> u64 {
    u64::from(waker) << 32 | u64::from(subject as u32)
}

/// The thread id of the waker in the subject of a waking that has a name.
pub(crate) fn waker_of(subject: u64) -> u32 {
    (subject >> 32) as u32
}

/// The task that begins a work as the subject of that step: its thread id, and how many bytes the
/// cookie has.
pub(crate) fn begin(tid: u32, len: usize) -> u64 {
    (len as u64) << 32 | u64::from(tid)
}

/// How many bytes the cookie of a [`begin`] has.
pub(super) fn len_of(subject: u64) -> usize {
    (subject >> 32) as usize
}

/// The inverse of [`task`].
pub(crate) fn of_task(subject: u64) -> (u32, i32) {
    (subject as u32, (subject >> 32) as i32)
}
