// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What a thread does for a while.

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
    /// What it did.
    pub state: State,
    /// The processor on which it ran, or for which it waited.
    pub cpu: Option<u32>,
    /// Who ended it, if it is a wait.
    pub waker: Option<WakerId>,
}

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Not known: before it is first seen, or after events were lost.
    Unknown,
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

/// What a state is for the time that it takes. All four together are the time that passed.
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
    /// What it is for the time that it takes.
    #[must_use]
    pub fn class(self) -> Class {
        match self {
            Self::Unknown => Class::Unknown,
            Self::Running(_) => Class::Working,
            Self::Interrupted(_) | Self::Preempted | Self::Waiting => Class::Interrupted,
            Self::Blocked(..) => Class::Blocked,
        }
    }
}
