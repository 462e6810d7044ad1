// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The stays of a thread, packed: a thread has many stays of a few kinds.

use std::fmt;

use crate::tiles::{Kinds, Tiles};
use crate::{CallFile, Class, ThreadId};

use super::cause::Cause;

/// A stay of a thread in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stay {
    /// Start, ns.
    pub begin: u64,
    /// End, ns; later than the start.
    pub end: u64,
    /// Its activity, or the cause of its wait: [`Cause::Blocked`] if `by` names its waker.
    pub cause: Cause,
    /// The thread that woke it; `None` if the wait has another cause, for example if a tracer stopped the thread.
    pub by: Option<ThreadId>,
    /// The file of the system call in which it is, or its descriptor, if known.
    pub file: Option<CallFile>,
    /// Whether it is known to be outside of all system calls. Noted only of a thread that works or is blocked.
    pub outside: bool,
    /// Whether it was still blocked when the recording ended.
    pub open: bool,
}

impl Stay {
    /// The class that the time counts toward.
    #[must_use]
    pub fn class(&self) -> Class {
        self.cause.class()
    }

    /// Length, ns.
    #[must_use]
    pub fn took(&self) -> u64 {
        self.end - self.begin
    }
}

/// A stay except for its times: see [`Stay`].
type Kind = (Cause, Option<ThreadId>, Option<CallFile>, bool, bool);

/// Stays that follow each other without gaps, in 6 or 8 bytes each.
#[derive(Clone, Default)]
pub struct Stays {
    tiles: Tiles,
    kinds: Vec<Kind>,
}

/// Stays that are being added.
#[derive(Default)]
pub(super) struct Added {
    tiles: Tiles,
    kinds: Kinds<Kind>,
}

impl Added {
    /// Adds a stay, which starts at the end of the last one.
    pub(super) fn push(&mut self, stay: Stay) {
        let kind = (stay.cause, stay.by, stay.file, stay.outside, stay.open);
        let kind = self.kinds.number(kind);
        self.tiles.push(stay.begin, stay.end, kind);
    }

    /// All added stays, without the table by which the kinds were numbered.
    pub(super) fn finish(self) -> Stays {
        Stays {
            tiles: self.tiles,
            kinds: self.kinds.into_list(),
        }
    }
}

impl Stays {
    /// Number of stays.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tiles.len()
    }

    /// Whether there are no stays.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All stays, in time order.
    pub fn iter(&self) -> impl Iterator<Item = Stay> + Clone {
        self.numbered().map(|(_, stay)| stay)
    }

    /// All stays, in time order, each with the number of its kind. Stays of one kind differ only in their times. The
    /// numbers are given from 0 on, in the order of the first stays of the kinds.
    pub fn numbered(&self) -> impl Iterator<Item = (usize, Stay)> + Clone {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    fn get(&self, index: usize) -> Option<(usize, Stay)> {
        let (begin, end, number) = self.tiles.get(index)?;
        let number = number as usize;
        let (cause, by, file, outside, open) = *self.kinds.get(number)?;
        let stay = Stay {
            begin,
            end,
            cause,
            by,
            file,
            outside,
            open,
        };
        Some((number, stay))
    }
}

impl fmt::Debug for Stays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for Stays {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Stays {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_are_as_they_were_added_and_numbered_by_kind() {
        let stay = |begin, end, cause, outside| Stay {
            begin,
            end,
            cause,
            by: Some(ThreadId(3)),
            file: None,
            outside,
            open: false,
        };
        let late = 1 << 33;
        let all = [
            stay(5, 9, Cause::Running(None), true),
            stay(9, 10, Cause::Blocked(None), false),
            stay(10, late, Cause::Running(None), true),
            stay(late, late + 1, Cause::Running(None), false),
        ];
        let mut stays = Added::default();
        all.iter().for_each(|stay| stays.push(*stay));
        let stays = stays.finish();
        assert!(stays.iter().eq(all));
        let numbers: Vec<_> = stays.numbered().map(|(number, _)| number).collect();
        assert_eq!(numbers, [0, 1, 0, 2]);
        assert_eq!((stays.len(), stays.is_empty()), (4, false));
    }
}
