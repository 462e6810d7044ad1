// SPDX-License-Identifier: GPL-2.0 OR MIT

//! States of threads, and their intervals.

use crate::context::Context;
use crate::ids::WakerId;
use crate::names::Name;
use crate::sleep::Sleep;

/// An interval in which a thread was in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// Start, ns.
    pub begin: u64,
    /// End, ns; later than the start.
    pub end: u64,
    /// The state.
    pub state: State,
    /// The processor on which the thread ran, for which it waited or, if it slept, on which it had run last. `None` if
    /// not recorded, or not kept.
    pub cpu: Option<u32>,
    /// The waker that ended the interval, if recorded. Only a sleep, or an unknown state, has a waker.
    pub waker: Option<WakerId>,
}

/// Reason why the activity of a thread or CPU is not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unrecorded {
    /// No event names the thread yet, or this part of its activity was not to be kept.
    Unseen,
    /// The stream of this CPU starts later.
    Before(u32),
    /// The stream of this CPU ends earlier.
    After(u32),
    /// The tracer discarded events of this CPU.
    Lost(u32),
    /// Packets of this CPU are missing.
    NoPackets(u32),
    /// A packet of this CPU is damaged.
    Damaged(u32),
    /// The time is between two traces of this CPU.
    Between(u32),
    /// The trace has no stream of this CPU.
    NoStream(u32),
    /// The events contradict each other: some are missing, and no gap is reported.
    Missing,
    /// The thread, or the recording, has ended.
    Ended,
}

/// A state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Not recorded, with the reason.
    Unknown(Unrecorded),
    /// Runs, in this system call if it is known to be in one.
    Running(Option<Name>),
    /// Runnable, but an interrupt or another context has the processor.
    Interrupted(Context),
    /// Switched out while runnable: preempted, or yielded.
    Preempted,
    /// Has been woken, and waits for a processor.
    Waiting,
    /// Waits, in this system call if it is known to be in one.
    Blocked(Sleep, Option<Name>),
}

/// Class of a state. The times of the four classes add up to the elapsed time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The thread made progress.
    Working,
    /// The thread was runnable, but had no processor.
    Interrupted,
    /// The thread was blocked.
    Blocked,
    /// Not known.
    Unknown,
}

impl State {
    /// Class in which the time in this state is counted.
    #[must_use]
    pub fn class(self) -> Class {
        match self {
            Self::Unknown(_) => Class::Unknown,
            Self::Running(_) => Class::Working,
            Self::Interrupted(_) | Self::Preempted | Self::Waiting => Class::Interrupted,
            Self::Blocked(..) => Class::Blocked,
        }
    }
}
