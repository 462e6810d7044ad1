// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Causes of delay: the activity of a thread, or the object of its wait.

use crate::{
    Class, Context, Disk, Events, Handler, Interval, Kind, Model, Name, Raiser, Runtime, Sleep,
    State, ThreadId, Unrecorded, Vector,
};

/// Cause of a piece of a path; "the thread" is the thread of the piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The thread ran, in this system call if it is known to be in one.
    Running(Option<Name>),
    /// The thread was interrupted.
    Interrupted(Leaf),
    /// The thread was switched out while runnable: it was preempted, or it yielded.
    Preempted,
    /// The thread had been woken, and waited for a processor.
    Waiting,
    /// The thread was on the runqueue of a CPU that was still leaving idle.
    LeavesIdle,
    /// The thread was runnable, and a limit kept it from running.
    Limited(Limit),
    /// The thread waited, in this system call if it is known to be in one, for this leaf.
    For(Leaf, Option<Name>),
    /// The thread waited, in this system call, for a request that was at this place, and not yet at this disk.
    Held(Disk, Place, Option<Name>),
    /// The thread waited. Its waker is not recorded, or is a thread that is not followed.
    Blocked(Option<Name>),
    /// The thread was a kernel thread without work. The source of its next work is not recorded, or is a thread that is
    /// not followed.
    Idle,
    /// The waker had finished the work, but had not woken the thread yet.
    Transit,
    /// The thread's activity is not recorded, for this reason.
    Unknown(Unrecorded),
}

/// A limit that keeps a runnable thread from running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Limit {
    /// The quota (`cpu.max`) of a cgroup: see [`super::Quota::Proved`].
    Quota(Option<u16>),
    /// SCHED_DEADLINE: the thread has no runtime left.
    Deadline(Runtime),
}

/// A stage of a request before the disk has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// Not submitted: a cgroup's limit (io.max) holds it back, or another thread must submit it.
    Unsubmitted,
    /// Not submitted: a cgroup's limit (io.max) held it back, as shown by the work item that submitted it.
    Limited,
    /// In a stacked device.
    Stacked,
    /// Submitted, but without a request: writeback throttling, io.cost, io.latency, or no free tag.
    Unallocated,
    /// Submitted, but without a request: no tag of the disk was free, as the stack of the thread shows.
    NoTag,
    /// Submitted, but without a request: held back by writeback throttling, as the stack of the thread shows.
    WritebackThrottling,
    /// Submitted, but without a request: held back by io.cost, as the stack of the thread shows.
    IoCost,
    /// Submitted, but without a request: held back by io.latency, as the stack of the thread shows.
    IoLatency,
    /// In the queue of the I/O scheduler or of a busy disk.
    Queued,
    /// Not recorded.
    Unrecorded,
}

/// Functions in which a thread sleeps before its bio gets a request, and what each shows.
const BEFORE_REQUEST: [(&str, Place); 4] = [
    ("blk_mq_get_tag", Place::NoTag),
    ("wbt_wait", Place::WritebackThrottling),
    ("ioc_rqos_throttle", Place::IoCost),
    ("blkcg_iolatency_throttle", Place::IoLatency),
];

impl Place {
    /// The kernel function that shows this place, if a stack does.
    #[must_use]
    pub fn function(self) -> Option<&'static str> {
        let mut all = BEFORE_REQUEST.iter();
        let of = all.find(|(_, place)| *place == self);
        of.map(|(function, _)| *function)
    }

    /// The place of the request of a thread that sleeps for this leaf, if the leaf's function shows that the thread has
    /// no request yet.
    pub(crate) fn of_sleep(leaf: Leaf) -> Option<Self> {
        let Leaf::Resource(&(function, _)) = leaf else {
            return None;
        };
        let mut all = BEFORE_REQUEST.iter();
        let of = all.find(|(name, _)| *name == function);
        of.map(|(_, place)| *place)
    }
}

/// The end of a chain of waits: a cause that is not a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Leaf {
    /// A timer.
    Timer,
    /// A timer, or a cause that looks like one because its events are not recorded: a disk whose driver completes
    /// requests in a timer, or the pause of the dirty limit.
    PerhapsTimer {
        /// The cause may be a disk: `block_rq_complete` is not recorded.
        disk: bool,
        /// The cause may be the dirty limit: `writeback_balance_dirty_pages` is not recorded.
        dirty: bool,
    },
    /// A timer, perhaps of the `memory.high` delay of a cgroup that exceeded this limit around the time of the wait:
    /// see [`super::Quota::Proved`].
    PerhapsHigh(Option<u16>),
    /// A block device, by number if the completion is in the trace.
    Disk(Option<Disk>),
    /// A block device with a request that is not a plain read or write.
    Special(Disk, Kind),
    /// A block device that completed another thread's request. That request was for a page that both threads need, or
    /// held a resource, such as a tag, that this thread's request needs.
    Others(Disk, ThreadId),
    /// The dirty limit: too much dirty data for this disk.
    Dirty(Option<Disk>),
    /// The completion of a request of this disk, whose earlier stages are not recorded.
    Completion(Disk),
    /// The network: a packet received or sent in the interrupt of a device.
    Network(Handler),
    /// A packet not known to come from a device, with the raiser of its softirq.
    Packet(Raiser),
    /// The handler of a device's hard interrupt, with its number and name.
    Irq(i32, Name),
    /// Any other softirq, with its raiser.
    Softirq(u32, Raiser),
    /// An interrupt that a processor sent, to another one or to itself.
    Ipi(Name),
    /// An interrupt, a fault, a signal or task work that the trace does not show.
    Unseen,
    /// SIGCONT, which lets a stopped thread continue.
    Continue,
    /// The thread's tracer.
    Tracer,
    /// The kernel function that waits for a resource, and the resource in words. A reference, since all causes take as
    /// much room as the largest.
    Resource(&'static (&'static str, &'static str)),
    /// The freezer of a cgroup: see [`super::Quota::Proved`].
    Freezer(Option<u16>),
}

impl Leaf {
    /// Whether the leaf shows only how a sleep ended, not its reason.
    pub(crate) fn is_vague(self) -> bool {
        matches!(
            self,
            Self::Timer
                | Self::PerhapsTimer { .. }
                | Self::Unseen
                | Self::Ipi(_)
                | Self::Softirq(..)
                | Self::Others(..)
        )
    }
}

impl From<Context> for Leaf {
    fn from(context: Context) -> Self {
        match context {
            Context::Timer => Self::Timer,
            Context::Irq { number, name } => Self::Irq(number, name),
            Context::Ipi(name) => Self::Ipi(name),
            Context::Disk(disk) => Self::Completion(disk),
            Context::Unseen => Self::Unseen,
            Context::Softirq { vector, by, .. } => match vector {
                Vector::NET_TX | Vector::NET_RX => match by {
                    Raiser::Device(handler) => Self::Network(handler),
                    by => Self::Packet(by),
                },
                Vector::TIMER | Vector::HRTIMER => Self::Timer,
                Vector::BLOCK | Vector::IRQ_POLL => Self::Disk(None),
                Vector(other) => Self::Softirq(other, by),
            },
        }
    }
}

impl Cause {
    /// Whether the thread was runnable, but did not run.
    #[must_use]
    pub fn is_runnable(self) -> bool {
        matches!(
            self,
            Self::Waiting | Self::Preempted | Self::LeavesIdle | Self::Limited(_)
        )
    }

    /// The class that the thread's time counts toward.
    #[must_use]
    pub fn class(self) -> Class {
        match self {
            Self::Running(_) => Class::Working,
            Self::Interrupted(_) => Class::Interrupted,
            other if other.is_runnable() => Class::Interrupted,
            Self::Unknown(_) => Class::Unknown,
            _ => Class::Blocked,
        }
    }

    /// The cause of an interval of a thread, without following its waker.
    #[must_use]
    pub fn of(model: &Model, interval: &Interval) -> Self {
        let State::Blocked(sleep, call) = interval.state else {
            return plain(interval.state);
        };
        if let Some(leaf) = stopped(sleep) {
            return Self::For(leaf, call);
        }
        let waker = interval.waker.and_then(|w| model.waker(w));
        match waker.map(|waker| (waker.by(), waker.context)) {
            Some((None, Some(Context::Disk(disk))))
                if interval.waker.and_then(|w| model.request(w)).is_some() =>
            {
                Self::For(Leaf::Disk(Some(disk)), call)
            }
            // A timer ends this sleep, but is not its cause.
            Some((None, Some(_))) | None if let Sleep::Dirty(disk) = sleep => {
                Self::For(Leaf::Dirty(disk), call)
            }
            Some((None, Some(context))) => Self::For(ended(model, interval, sleep, context), call),
            _ if sleep == Sleep::Idle => Self::Idle,
            _ => Self::Blocked(call),
        }
    }
}

/// What a stopped thread waits for. The thread that wakes it need not have stopped it.
pub(super) fn stopped(sleep: Sleep) -> Option<Leaf> {
    match sleep {
        Sleep::Stopped => Some(Leaf::Continue),
        Sleep::Traced => Some(Leaf::Tracer),
        _ => None,
    }
}

/// The leaf that ended a sleep. If this is a timer, the cause may be one whose events are not recorded: the dirty
/// limit, or a disk. It cannot be a disk if the timer is known to be the thread's own.
fn ended(model: &Model, interval: &Interval, sleep: Sleep, context: Context) -> Leaf {
    let leaf = context.into();
    if leaf != Leaf::Timer {
        return leaf;
    }
    let own = interval.waker.is_some_and(|w| model.is_timeout(w));
    let disk = !model.has(Events::Completions) && !own;
    // The pause of the dirty limit is an uninterruptible sleep that a timer ends.
    let pauses = !matches!(sleep, Sleep::Interruptible | Sleep::Idle);
    let dirty = !model.has(Events::Dirty) && pauses;
    match disk || dirty {
        true => Leaf::PerhapsTimer { disk, dirty },
        false => leaf,
    }
}

/// The cause that a state shows by itself, without its waker.
pub(crate) fn plain(state: State) -> Cause {
    match state {
        State::Running(call) => Cause::Running(call),
        State::Interrupted(context) => Cause::Interrupted(context.into()),
        State::Preempted => Cause::Preempted,
        State::Waiting => Cause::Waiting,
        State::Blocked(_, call) => Cause::Blocked(call),
        State::Unknown(why) => Cause::Unknown(why),
    }
}
