// SPDX-License-Identifier: GPL-2.0

//! One step of a chain: its kind, its CPU, its subject.

use super::KIND_AT;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A handler of a device interrupt is called; the subject is its line.
    Irq = 1,
    /// A local interrupt; the subject is its position in the list of local interrupts.
    Vector = 2,
    /// A high-resolution timer was due; the subject is its function.
    Due = 3,
    /// The function of a timer is called.
    Expire = 4,
    /// A softirq is raised; the subject is its vector.
    Raise = 5,
    /// The softirq runs.
    Softirq = 6,
    /// A task is woken; the subject is a [`task`].
    Waking = 7,
    /// A task is switched in.
    Switch = 8,
    /// The task is switched out though it is runnable; the subject is the task that runs instead.
    Preempted = 9,
    /// The task waits for a spinlock or an rwlock of PREEMPT_RT, and sleeps meanwhile.
    Lock = 10,
    /// The task sleeps in the middle of its work, for something other than its next event.
    Sleep = 11,
    /// The task returns to user space.
    User = 12,
    /// The target waits for its next event.
    Block = 13,
    /// The task begins a unit of work; the subject is a [`begin`]. The cookie takes the places of
    /// names.
    Begin = 14,
    /// A task reports that the work is done.
    Done = 15,
    /// A work item is queued; the subject is its function.
    Queue = 16,
    /// A worker starts the work item.
    Work = 17,
    /// A timer of the timer wheel was due; the subject is its function.
    Wheel = 18,
    /// A call of a function on another CPU is requested; the subject is the function.
    Call = 19,
    /// The function is called on that CPU.
    Called = 20,
    /// The task is switched out though it is runnable, since a limit keeps it from running.
    Throttled = 21,
    /// The task sleeps as in [`Kind::Sleep`], after it has requested reads of its own since its
    /// switch-in.
    Reads = 22,
    /// Not a step: the rivals that had the CPU in the wait that the preceding step ended, see
    /// rivals.rs.
    Rivals = 28,
    /// Not a step: the CPU's activity in the wait that the preceding step ended, see wait.rs.
    Parts = 29,
    /// Not a step: the CPU's totals at the start of the wait that the preceding step caused.
    Wait = 30,
    /// Not a step: a name, or a part of one, of the preceding step.
    Name = 31,
}

/// Whether the place with this tag belongs to the preceding step, since its kind is not a step's.
#[inline(always)]
pub(super) fn is_attached(tag: u64) -> bool {
    tag >> KIND_AT > Kind::LAST as u64
}

impl Kind {
    /// The kind of step with the highest number.
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

/// A step: its kind, its CPU, and its subject.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    pub(crate) kind: Kind,
    pub(crate) cpu: u32,
    pub(crate) subject: u64,
}

/// Returns a task as the subject of a step: its thread id, and its priority.
#[inline(always)]
pub(crate) fn task(tid: u32, prio: i32) -> u64 {
    u64::from(prio as u32) << 32 | u64::from(tid)
}

/// Returns a [`task`] as the subject of its waking, with the waker's thread id instead of the
/// priority.
pub(super) fn woken_by(subject: u64, waker: u32) -> u64 {
    u64::from(waker) << 32 | u64::from(subject as u32)
}

/// Returns the thread id of the waker in the subject of a waking that has a name.
pub(crate) fn waker_of(subject: u64) -> u32 {
    (subject >> 32) as u32
}

/// Returns the task that begins a unit of work as the subject of that step: its thread id, and the
/// number of bytes of the cookie.
pub(crate) fn begin(tid: u32, len: usize) -> u64 {
    (len as u64) << 32 | u64::from(tid)
}

/// Returns the number of bytes of the cookie of a [`begin`].
pub(super) fn len_of(subject: u64) -> usize {
    (subject >> 32) as usize
}

/// Unpacks the result of [`task`].
pub(crate) fn of_task(subject: u64) -> (u32, i32) {
    (subject as u32, (subject >> 32) as i32)
}
