// SPDX-License-Identifier: GPL-2.0

//! One tracked event: a cell of the pool, findable by its key between its begin and its end.
//!
//! ```text
//!             get                    publish                 claim (one winner)
//!   free ------------> owned, filled ---------> live(g) ------------------------> owned
//!    ^                      ^                      |                                |
//!    |                      |                      | found, compared, and          |
//!    |                      |                      v perhaps claimed by anybody    |
//!    |                      |                   readers                            |
//!    |                      +------------- changed and published as live(g+1) -----+
//!    |                                                                             |
//!    +------------------------------------- put -----------------------------------+
//! ```
//!
//! # The state word
//!
//! `state = generation << 2 | timed_out << 1 | live`. Publishing increments the generation, so a
//! live state word names one life of one cell, and never comes back (2^62 lives). Within a life
//! it changes once at most: when the event times out.
//!
//! # Why no grace period is needed
//!
//! Any number of readers may look at a cell whose event ends and is replaced by another one
//! under their eyes. A reader that wants the event:
//!
//! 1. loads the state `s` (acquire) and goes on only if it is live: it sees the key of that life
//!    or a later one;
//! 2. compares the key, with relaxed loads of a memory that may be changing;
//! 3. exchanges the state from `s` to not live. If that succeeds, the reader is the one winner,
//!    and this success *is* the proof that the comparison was sound: between load and exchange
//!    the cell was in life `s` all the time, because leaving it needs this very exchange, and no
//!    life comes twice. A key word of a later life can not have been read: it is written after
//!    a later owner got the cell, which is after the winner put it, which is after the winner's
//!    comparison.
//!
//! Whoever only wants to read ([`Event::peek`]) copies, and then finds the state unchanged.
//!
//! # Timing out
//!
//! [`Event::time_out`] exchanges the state for the same one with `timed_out` set: it succeeds
//! once in a life, and never after its end, because both are decided by the same word. Whoever
//! ends the event at that moment sees its exchange fail, finds the same life, and tries once
//! more. A copy by [`Event::peek`] of the life whose exchange then succeeds is what is reported:
//! it was found sound before, and the exchange tells that the event had not ended.
//!
//! # Contexts
//!
//! Any, NMI included. The words are atomics, since readers look while owners write.

use crate::{
    freelist::Cell,
    sys::atomic::{Acquire, Atomic, Relaxed, Release},
};
use core::array;

const LIVE: u64 = 1;
const TIMED_OUT: u64 = 2;
const GENERATION: u64 = 4;

/// A cell with room for a key of `K` words and `D` words of data.
#[repr(C)]
pub(crate) struct Event<const K: usize, const D: usize> {
    /// See "The state word" above.
    state: Atomic<u64>,
    /// The pool's link while free; the place in the table while live.
    link: Atomic<u64>,
    /// When the operation began, in nanoseconds.
    start: Atomic<u64>,
    key: [Atomic<u64>; K],
    data: [Atomic<u64>; D],
}

/// A life of a cell: the value of a live state word.
///
/// An event that times out goes on under another value, see [`Event::timed_out_since`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Life(u64);

impl Life {
    /// Whether the event had timed out when it was looked at.
    pub(crate) fn has_timed_out(self) -> bool {
        self.0 & TIMED_OUT != 0
    }
}

/// A copy of a live event.
pub(crate) struct Snapshot<const K: usize, const D: usize> {
    /// When it began, in nanoseconds.
    pub(crate) start: u64,
    pub(crate) key: [u64; K],
    pub(crate) data: [u64; D],
}

impl<const K: usize, const D: usize> Cell for Event<K, D> {
    fn new() -> Self {
        Self {
            state: Atomic::new(0),
            link: Atomic::new(0),
            start: Atomic::new(0),
            key: array::from_fn(|_| Atomic::new(0)),
            data: array::from_fn(|_| Atomic::new(0)),
        }
    }

    fn link(&self) -> &Atomic<u64> {
        &self.link
    }
}

impl<const K: usize, const D: usize> Event<K, D> {
    /// The life the cell is in, if it is live.
    #[inline(always)]
    pub(crate) fn life(&self) -> Option<Life> {
        // Acquire: pairs with `publish`; what is read next belongs to this life or a later one.
        let state = self.state.load(Acquire);
        (state & LIVE != 0).then_some(Life(state))
    }

    /// Whether the key is `key`. Sound only together with a later [`Event::claim`] of the life
    /// that was seen before, or with the check at the end of [`Event::peek`].
    #[inline(always)]
    pub(crate) fn has_key(&self, key: &[u64; K]) -> bool {
        // Relaxed: see "Why no grace period is needed", step 2.
        self.key
            .iter()
            .zip(key)
            .all(|(word, wanted)| word.load(Relaxed) == *wanted)
    }

    /// The life the cell is in, if it is still `life` and has timed out since.
    #[cold]
    pub(crate) fn timed_out_since(&self, life: Life) -> Option<Life> {
        let now = self.life()?;
        (now.0 == life.0 | TIMED_OUT && now != life).then_some(now)
    }

    /// Notes that the event has timed out. Exactly one caller gets `true` for a life, and none
    /// after its end.
    pub(crate) fn time_out(&self, life: Life) -> bool {
        // Relaxed: it publishes nothing, and as a read-modify-write it goes on with the release
        // of `publish`; what was copied before was checked by `peek`.
        life.0 & TIMED_OUT == 0
            && self
                .state
                .cmpxchg(life.0, life.0 | TIMED_OUT, Relaxed)
                .is_ok()
    }

    /// Whether the event had timed out. Only for the owner, before it publishes again.
    #[inline(always)]
    pub(crate) fn had_timed_out(&self) -> bool {
        // Relaxed: only owners write a state that is not live.
        self.state.load(Relaxed) & TIMED_OUT != 0
    }

    /// Ends this life. Exactly one caller gets `true` for a life, and owns the cell.
    #[inline(always)]
    pub(crate) fn claim(&self, life: Life) -> bool {
        // Acquire: the winner's reads and writes of the cell stay behind the exchange. What it
        // read before needs no order, see step 3 above.
        self.state.cmpxchg(life.0, life.0 & !LIVE, Acquire).is_ok()
    }

    /// Forgets that an earlier event in this cell had timed out. Only for the owner.
    #[inline(always)]
    pub(crate) fn renew(&self) {
        // Relaxed: only owners look at a state that is not live; readers only see that it is not.
        let state = self.state.load(Relaxed);
        self.state.store(state & !TIMED_OUT, Relaxed);
    }

    /// Makes the event findable. Only for the owner, after it has filled the cell.
    #[inline(always)]
    pub(crate) fn publish(&self) {
        // Relaxed: only owners write a state that is not live, and ownership was handed over by
        // `claim` or by the pool, both with acquire.
        let state = self.state.load(Relaxed);
        // Release: readers that see this life see its key, start, data and place.
        self.state
            .store(state.wrapping_add(GENERATION) | LIVE, Release);
    }

    /// Fills the cell. Only for the owner.
    #[inline(always)]
    pub(crate) fn fill(&self, key: &[u64; K], start: u64, data: &[u64; D]) {
        // Release, each: a reader of an older life that sees one of these words also sees that
        // its life is over (`peek`). Free on x86.
        for (word, value) in self.key.iter().zip(key) {
            word.store(*value, Release);
        }
        self.set_start(start);
        for (word, value) in self.data.iter().zip(data) {
            word.store(*value, Release);
        }
    }

    /// A consistent copy with its life, if the event is live and stays so while it is copied.
    pub(crate) fn peek(&self) -> Option<(Life, Snapshot<K, D>)> {
        let life = self.life()?;
        // Acquire, each: if a word is of a later life, the end of this one is seen below.
        let copy = Snapshot {
            start: self.start.load(Acquire),
            key: array::from_fn(|i| self.key[i].load(Acquire)),
            data: array::from_fn(|i| self.data[i].load(Acquire)),
        };
        // Relaxed: ordered by the acquire loads above.
        (self.state.load(Relaxed) == life.0).then_some((life, copy))
    }

    /// When the event began. Only for the owner.
    #[inline(always)]
    pub(crate) fn start(&self) -> u64 {
        self.start.load(Relaxed)
    }

    /// Sets when the event began. Only for the owner.
    #[inline(always)]
    pub(crate) fn set_start(&self, start: u64) {
        // Release: as in `fill`.
        self.start.store(start, Release);
    }

    /// The key. Only for the owner.
    #[inline(always)]
    pub(crate) fn key(&self) -> [u64; K] {
        array::from_fn(|i| self.key[i].load(Relaxed))
    }

    /// The data. Only for the owner.
    #[inline(always)]
    pub(crate) fn data(&self) -> [u64; D] {
        array::from_fn(|i| self.data[i].load(Relaxed))
    }

    /// Replaces the data. Only for the owner.
    #[inline(always)]
    pub(crate) fn set_data(&self, data: &[u64; D]) {
        for (word, value) in self.data.iter().zip(data) {
            // Release: as in `fill`.
            word.store(*value, Release);
        }
    }
}
