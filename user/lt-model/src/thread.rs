// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What a thread did, interval by interval.

use crate::context::{Context, WakerId};
use crate::names::Name;
use crate::sleep::Sleep;

/// The number of a thread in [`crate::Model::threads`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(pub u32);

/// A thread, from where the events first tell of it to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// The kernel's number of it.
    pub tid: i32,
    /// The last name it had.
    pub name: Option<Name>,
    /// It begins here: not only is known from here on.
    pub born: bool,
    /// It has ended.
    pub dead: bool,
    /// What it did, without gaps.
    pub intervals: Vec<Interval>,
}

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
    /// Who ended it: of a thread that was blocked, or is new.
    pub waker: Option<WakerId>,
}

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

impl Thread {
    /// The intervals that have a part between `from` and `to`.
    #[must_use]
    pub fn between(&self, from: u64, to: u64) -> &[Interval] {
        let first = self.intervals.partition_point(|i| i.end <= from);
        let last = self.intervals.partition_point(|i| i.begin < to);
        self.intervals.get(first..last.max(first)).unwrap_or(&[])
    }

    /// How long it was in states of that class between `from` and `to`, ns.
    #[must_use]
    pub fn time_in(&self, class: Class, from: u64, to: u64) -> u64 {
        let part = |i: &Interval| i.end.min(to) - i.begin.max(from);
        let of = |i: &&Interval| i.state.class() == class;
        self.between(from, to).iter().filter(of).map(part).sum()
    }

    /// From where to where it is known, ns.
    #[must_use]
    pub fn span(&self) -> Option<(u64, u64)> {
        Some((self.intervals.first()?.begin, self.intervals.last()?.end))
    }
}
