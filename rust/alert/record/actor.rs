// SPDX-License-Identifier: GPL-2.0

//! The tasks that an alert names besides its owner: the one that woke it, or ran instead.

use super::{Owner, DETAIL, ID_BITS, ID_MASK};
use crate::text::Quoted;
use kernel::{fmt, prelude::*};

/// A task, as it was at that moment, and the tracker's note about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Actor {
    /// Process (thread group) id in the initial namespace.
    pub(crate) pid: u32,
    /// Thread id in the initial namespace; 0 for an idle task, or none.
    pub(crate) tid: u32,
    /// The tracker's note; 20 bits of it are kept, which the ids leave in a word.
    pub(crate) note: u32,
    /// Command name, padded with NUL.
    pub(crate) comm: [u64; 2],
}

impl Actor {
    /// The words of an actor.
    pub(crate) const WORDS: usize = 3;

    /// Packs it into words.
    #[inline(always)]
    pub(crate) fn to_words(self) -> [u64; Self::WORDS] {
        let ids = u64::from(self.note) << (2 * ID_BITS)
            | u64::from(self.pid & ID_MASK) << ID_BITS
            | u64::from(self.tid & ID_MASK);
        [ids, self.comm[0], self.comm[1]]
    }

    /// The inverse of [`Actor::to_words`].
    pub(crate) fn from_words(words: [u64; Self::WORDS]) -> Self {
        Self {
            pid: (words[0] >> ID_BITS) as u32 & ID_MASK,
            tid: words[0] as u32 & ID_MASK,
            note: (words[0] >> (2 * ID_BITS)) as u32,
            comm: [words[1], words[2]],
        }
    }

    /// As fields of a line, each with `role` before its name.
    pub(crate) fn named<'a>(&'a self, role: &'a str) -> impl fmt::Display + 'a {
        Named { actor: self, role }
    }
}

struct Named<'a> {
    actor: &'a Actor,
    role: &'a str,
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Actor { pid, tid, comm, .. }, role) = (self.actor, self.role);
        let comm = Quoted::words(comm);
        f.write_fmt(fmt!("{role}_pid={pid} {role}_tid={tid} {role}_comm={comm}"))
    }
}

/// Where a task is, and its priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Place {
    pub(crate) cpu: u32,
    /// The kernel's priority: below 0 deadline, 0-98 real-time, 100-139 by nice value.
    pub(crate) prio: i16,
    /// `SCHED_...`
    pub(crate) policy: u16,
}

impl Place {
    /// Packs it into a word.
    #[inline(always)]
    pub(crate) fn to_word(self) -> u64 {
        u64::from(self.policy) << 48 | u64::from(self.prio as u16) << 32 | u64::from(self.cpu)
    }

    /// The inverse of [`Place::to_word`].
    pub(crate) fn from_word(word: u64) -> Self {
        Self {
            cpu: word as u32,
            prio: (word >> 32) as i16,
            policy: (word >> 48) as u16,
        }
    }
}

/// A task that waits, and another one that is involved: the data of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Wait {
    pub(crate) owner: Owner,
    /// The task that wakes the owner, or runs instead of it.
    pub(crate) other: Actor,
    /// The place of the owner at the begin.
    pub(crate) place: Place,
}

impl Wait {
    /// The words of a wait.
    pub(crate) const WORDS: usize = Owner::WORDS + Actor::WORDS + 1;

    /// Packs it into words.
    #[inline(always)]
    pub(crate) fn to_words(self) -> [u64; Self::WORDS] {
        let [o0, o1, o2] = self.owner.to_words();
        let [a0, a1, a2] = self.other.to_words();
        [o0, o1, o2, a0, a1, a2, self.place.to_word()]
    }

    /// The inverse of [`Wait::to_words`].
    pub(crate) fn from_words([o0, o1, o2, a0, a1, a2, place]: [u64; Self::WORDS]) -> Self {
        Self {
            owner: Owner::from_words([o0, o1, o2]),
            other: Actor::from_words([a0, a1, a2]),
            place: Place::from_word(place),
        }
    }
}

/// Fields of an alert about a [`Wait`], ended or not, besides its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Waited {
    pub(crate) other: Actor,
    pub(crate) place: Place,
    /// The task that was switched out for the owner.
    pub(crate) prev: Actor,
}

impl Waited {
    /// The words of an alert that it uses.
    pub(crate) const WORDS: usize = 2 * Actor::WORDS + 1;

    /// Packs it into an alert's words.
    pub(crate) fn to_words(self) -> [u64; DETAIL] {
        let [a0, a1, a2] = self.other.to_words();
        let [p0, p1, p2] = self.prev.to_words();
        let used: [u64; Self::WORDS] = [self.place.to_word(), a0, a1, a2, p0, p1, p2];
        let mut words = [0; DETAIL];
        words[..Self::WORDS].copy_from_slice(&used);
        words
    }

    /// The inverse of [`Waited::to_words`].
    pub(crate) fn from_words(words: &[u64; DETAIL]) -> Self {
        let [place, a0, a1, a2, p0, p1, p2, ..] = *words;
        Self {
            other: Actor::from_words([a0, a1, a2]),
            place: Place::from_word(place),
            prev: Actor::from_words([p0, p1, p2]),
        }
    }
}
