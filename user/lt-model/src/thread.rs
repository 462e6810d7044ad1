// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A thread, and its intervals.

use crate::ids::WakerId;
use crate::intervals::Intervals;
use crate::names::Name;
use crate::state::{Class, Interval};

/// A thread. If its number is reused, that is a different thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// The thread's number in the kernel.
    pub tid: i32,
    /// The last name of the thread.
    pub name: Option<Name>,
    /// Earlier names in order of time, each with the time just after the last event that has the name.
    pub earlier: Vec<(u64, Name)>,
    /// Whether the first event is the thread's creation.
    pub born: bool,
    /// The thread that created it, and when, if known.
    pub maker: Option<WakerId>,
    /// When the thread ended, ns; `None` if the trace does not show its end.
    pub ended: Option<u64>,
    /// Its intervals, without gaps.
    pub intervals: Intervals,
}

impl Thread {
    /// The name at `time`, as far as recorded; the first name also counts for earlier times.
    #[must_use]
    pub fn name_at(&self, time: u64) -> Option<Name> {
        let earlier = self.earlier.iter().find(|(until, _)| time < *until);
        earlier.map(|(_, name)| *name).or(self.name)
    }

    /// All its recorded names, the earliest first.
    pub fn names(&self) -> impl Iterator<Item = Name> {
        let earlier = self.earlier.iter().map(|(_, name)| *name);
        earlier.chain(self.name)
    }

    /// The intervals that overlap `from` to `to`.
    pub fn between(&self, from: u64, to: u64) -> impl DoubleEndedIterator<Item = Interval> + Clone {
        self.intervals.between(from, to)
    }

    /// Time in states of this class between `from` and `to`, ns.
    #[must_use]
    pub fn time_in(&self, class: Class, from: u64, to: u64) -> u64 {
        let part = |i: Interval| i.end.min(to) - i.begin.max(from);
        let of = |i: &Interval| i.state.class() == class;
        self.between(from, to).filter(of).map(part).sum()
    }

    /// Start and end of the time in which the thread is known, ns.
    #[must_use]
    pub fn span(&self) -> Option<(u64, u64)> {
        Some((self.intervals.first()?.begin, self.intervals.last()?.end))
    }
}
