// SPDX-License-Identifier: GPL-2.0 OR MIT

//! States of threads, and their intervals.

use crate::context::Context;
use crate::ids::WakerId;
use crate::names::Name;
use crate::sleep::Sleep;

/// A thread did one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// From here, ns.
    pub begin: u64,
    /// To here; later than the begin.
    pub end: u64,
    /// The state.
    pub state: State,
    /// The processor on which it ran, or for which it waited.
    pub cpu: Option<u32>,
    /// The waker that ended it, if it is a wait.
    pub waker: Option<WakerId>,
}

/// Why it is not recorded what a thread or a CPU did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unrecorded {
    /// No event names the thread yet.
    Unseen,
    /// The stream of this CPU starts later.
    Before(u32),
    /// The stream of this CPU ends earlier.
    After(u32),
    /// Events of this CPU were lost.
    Lost(u32),
    /// The trace has no stream of this CPU.
    NoStream(u32),
    /// The events contradict each other: some are missing, and no gap is reported.
    Missing,
}

/// A state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Not recorded, and why.
    Unknown(Unrecorded),
    /// Runs, in this system call if it is known to be in one.
    Running(Option<Name>),
    /// Would run, but the processor does something else first.
    Interrupted(Context),
    /// Would run, but others go first.
    Preempted,
    /// Has been woken, and waits for a processor.
    Waiting,
    /// Waits, in this system call if it is known to be in one.
    Blocked(Sleep, Option<Name>),
}

/// The class to which the time of a state counts. The four classes add up to the time that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The thread got on.
    Working,
    /// It could have, but had no processor.
    Interrupted,
    /// It waited for something.
    Blocked,
    /// Not known.
    Unknown,
}

impl State {
    /// The class to which its time counts.
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
