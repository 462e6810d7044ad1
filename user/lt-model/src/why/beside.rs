// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Facts that are not in the events: from counters of the kernel, and from stacks.

use crate::{Interval, ThreadId};

use super::cause::Leaf;

/// Whether a quota (`cpu.max`) held a thread back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quota {
    /// It did: that of this cgroup, by a number that the one who knows gives it; `None` if it may be one of several.
    Proved(Option<u16>),
    /// It did not.
    Excluded,
    /// Not known.
    Open,
}

/// For what a thread slept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slept {
    /// The cause of the wait.
    pub leaf: Leaf,
    /// The thread that ended the sleep is not what it waited for.
    pub alone: bool,
}

/// A source of facts that are not in the events.
pub trait Beside {
    /// Whether a quota held the thread back in that wait for a CPU, of which the events show what a quota makes of it.
    fn quota(&self, thread: ThreadId, wait: &Interval) -> Quota;
    /// For what the thread slept in that interval, if a stack or a counter shows it.
    fn slept(&self, thread: ThreadId, sleep: &Interval) -> Option<Slept>;
}

/// Nothing is known beside the events.
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
