// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Facts that are not in the events: from kernel counters and from stacks.

use crate::{Interval, ThreadId};

use super::cause::Leaf;

/// Whether a quota (`cpu.max`) held a thread back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quota {
    /// A quota of this cgroup held the thread back from the start of the wait, as the alert shows. The source of the
    /// fact chooses the cgroup's number; `None` if several cgroups are possible.
    Shown(Option<u16>),
    /// A quota of this cgroup was used up around the time of the wait, as its counters show.
    Proved(Option<u16>),
    /// No quota held the thread back.
    Excluded,
    /// Not known.
    Open,
}

/// Reason why a thread slept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slept {
    /// The cause of the wait.
    pub leaf: Leaf,
    /// Whether the leaf alone is the cause: the sleeper did not wait for the thread that ended the sleep.
    pub alone: bool,
}

/// A source of facts that are not in the events.
pub trait Beside {
    /// Whether a quota caused this wait for a CPU.
    fn quota(&self, thread: ThreadId, wait: &Interval) -> Quota;
    /// Why the thread slept in this interval, if a stack or a counter shows it.
    fn slept(&self, thread: ThreadId, sleep: &Interval) -> Option<Slept>;
}

/// A source without facts.
#[derive(Debug, Clone, Copy)]
pub struct Nothing;

impl Beside for Nothing {
    fn quota(&self, _: ThreadId, _: &Interval) -> Quota {
        Quota::Open
    }

    fn slept(&self, _: ThreadId, _: &Interval) -> Option<Slept> {
        None
    }
}
