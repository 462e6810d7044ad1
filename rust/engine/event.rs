// SPDX-License-Identifier: GPL-2.0

//! One tracked event: a cell of the pool, findable by its key between its start and its end.
//!
//! ```text
//!             get                    publish                 claim (one winner)
//!   free ------------> owned, filled ---------> live(g) ------------------------> owned
//!    ^                      ^                      |                                |
//!    |                      |                      | found, compared, and           |
//!    |                      |                      v perhaps claimed                |
//!    |                      |                   readers                             |
//!    |                      +------------- changed and published as live(g+1) -----+
//!    |                                                                             |
//!    +------------------------------------- put -----------------------------------+
//! ```
//!
//! # The state word
//!
//! ```text
//!   63        15      14        13       12      11       4      3         2          1        0
//!  +------------+----------+-------+-----------+----------+----------+--------+-----------+------+
//!  | generation | labelled | found | reporting |   refs   | changing | orphan | timed_out | live |
//!  +------------+----------+-------+-----------+----------+----------+--------+-----------+------+
//! ```
//!
//! Publishing increments the generation, so generation and live bit name one *life* of one cell,
//! which never recurs (2^49 lives). Of the other bits, `timed_out`, `reporting` and `refs` change
//! within a life: when the event times out, when the report of the timeout is over, and when a
//! reference is taken or returned. Between two lives of one event, while its owner changes it,
//! `changing` distinguishes the cell from a free cell and from an ended event. `found`, if set at
//! all, is set from the first publication on: the operation was already in flight, and began no
//! later than the recorded start.
//! `labelled` never changes: it is set in all cells of an engine that counts delays by label, so
//! that an end, which checks for odd events anyway, needs no further check.
//!
//! # Why no grace period is needed
//!
//! Any number of readers may look at a cell while its event ends and is replaced by another one. A
//! reader that wants the event:
//!
//! 1. loads the state `s` (acquire) and goes on only if `s` is live: the key that is read next
//!    belongs to life `s` or a later one;
//! 2. compares the key, with relaxed loads of memory that may be changing;
//! 3. exchanges the state from `s` to not live. If that succeeds, the reader is the one winner,
//!    and this success *is* the proof that the comparison was sound: between load and exchange
//!    the cell was in life `s` all the time, because leaving it needs this very exchange, and no
//!    life comes twice. The reader cannot have read a key word of a later life: such a word is
//!    written only after a later owner got the cell, which is after the winner put the cell, which
//!    is after the winner's comparison.
//!
//! A caller that only reads ([`Event::peek`]) copies, and then checks that the cell is still in the
//! same life.
//!
//! # Timing out
//!
//! [`Event::time_out`] exchanges the state for a state that also has `timed_out` set. The exchange
//! succeeds at most once in a life, and never after the life's end, because an end exchanges the
//! same word. A caller that ends the event at that moment sees its exchange fail, finds the same
//! life, and tries again. The report is a copy, made by [`Event::peek`], of the life whose exchange
//! then succeeds: the copy was consistent, and the exchange proves that the event had not ended.
//!
//! The same exchange sets `reporting`, and [`Event::has_reported`] clears it when the report is
//! over. So an end learns from the state word that it exchanges whether a report of its event is
//! running or about to start: if the bit is clear, no report of this event starts or runs after the
//! end. The bit does not keep the cell: if the event ends meanwhile, its cell is returned at once,
//! and the searcher finds that the life is over. A change that continues the event (a new life)
//! keeps the bit, which then stays until the end.
//!
//! A search for timed-out events passes over most of the cells, and must be cheap for each:
//! [`Event::quick_check`] reads the state, and, if there is an event, the start. The start belongs
//! to the life that was seen, or to a later life with a later start. So if the start is too recent,
//! the event in the cell is too young. (An event whose start is set in the past may be passed over;
//! the next search finds it.) Only events that are old enough are copied and checked.
//!
//! # References
//!
//! A reference keeps the cell from being recycled. It does not prevent the event from ending. It is
//! taken only to a live event ([`Event::get_ref`], an exchange that proves its life as `claim`
//! does), so a claimed event gets no new references except copies of existing ones. The owner that
//! finds references leaves the cell to their holders ([`Event::abandon`] sets `orphan`); the holder
//! that returns the last one then gives the cell back ([`Event::put_ref`]). Owner and holder
//! exchange the same word, so either the owner or the holder gives the cell back, never both.
//! Without references, this costs nothing: the winner knows from its own exchange that there are
//! none.
//!
//! # Contexts
//!
//! Any, including NMI. The words are atomics, since readers look while owners write.

use crate::{
    engine::freelist::{Cell, Link},
    sys::atomic::{Acquire, Atomic, Full, Relaxed, Release},
};
use core::array;

const LIVE: u64 = 1;
const TIMED_OUT: u64 = 2;
/// The event has ended, and the last reference gives the cell back.
const ORPHAN: u64 = 4;
/// The event is claimed by an owner that will publish it again.
const CHANGING: u64 = 8;
/// One reference.
const REF: u64 = 16;
/// All references.
const REFS: u64 = 0xff * REF;
/// The timeout is being reported, or is about to be.
const REPORTING: u64 = 1 << 12;
/// The operation was found in flight: its start is when it was first seen.
const FOUND: u64 = 1 << 13;
/// The engine counts delays by label.
const LABELLED: u64 = 1 << 14;
const GENERATION: u64 = 1 << 15;

/// Bits that are set when an event times out.
const IN_REPORT: u64 = TIMED_OUT | REPORTING;

/// Bits that a new event does not take over from its predecessor in the cell.
const OF_ONE_EVENT: u64 = IN_REPORT | FOUND;

/// Bits that identify a life.
const LIFE: u64 = !(GENERATION - 1) | LIVE;

/// A cell with room for a key of `K` words and `D` words of data.
#[repr(C)]
pub(crate) struct Event<const K: usize, const D: usize> {
    /// See "The state word" at the head of this file.
    state: Atomic<u64>,
    /// The pool's link while free; the place in the table while live.
    link: Link,
    /// When the operation began, in nanoseconds.
    start: Atomic<u64>,
    key: [Atomic<u64>; K],
    data: [Atomic<u64>; D],
}

/// A life of a cell, and the state word at the time it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Life(u64);

impl Life {
    /// Whether the event had timed out when the state was read.
    #[inline(always)]
    pub(crate) fn has_timed_out(self) -> bool {
        self.0 & TIMED_OUT != 0
    }

    /// Whether the operation was found in flight: the measured delay is a lower bound.
    #[inline(always)]
    pub(crate) fn was_found(self) -> bool {
        self.0 & FOUND != 0
    }

    /// Whether the end requires more than counting a delay: the event had timed out, was found in
    /// flight, or is counted by label.
    #[inline(always)]
    pub(crate) fn is_odd(self) -> bool {
        self.0 & (TIMED_OUT | FOUND | LABELLED) != 0
    }

    /// Whether a report of the timeout was running or about to start when the state was read.
    #[inline(always)]
    pub(crate) fn is_reported_now(self) -> bool {
        self.0 & REPORTING != 0
    }

    /// Whether there was a reference when the state was read.
    #[inline(always)]
    pub(crate) fn is_held(self) -> bool {
        self.0 & REFS != 0
    }

    /// Whether `state` belongs to this life: the life is not over.
    #[inline(always)]
    fn is_that_of(self, state: u64) -> bool {
        (self.0 ^ state) & LIFE == 0
    }
}

/// The result of [`Event::get_ref`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GetRef {
    /// The caller has one more reference.
    Taken,
    /// The life is over.
    Over,
    /// There are [`HOLDERS_MAX`] references already.
    TooMany,
}

/// The result of [`Event::quick_check`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum QuickCheck {
    /// No event, or an event that has timed out.
    Nothing,
    /// An event that its owner is changing: it was live, and will be live again.
    Changing,
    /// A live event that has not timed out, and its start, or the start of a later event in its
    /// cell.
    Live(Life, u64),
}

/// The maximum number of references to one event.
#[allow(dead_code, reason = "for tests")]
pub(crate) const HOLDERS_MAX: u64 = REFS / REF;

/// A copy of a live event.
pub(crate) struct EventCopy<const K: usize, const D: usize> {
    /// When the operation began, in nanoseconds.
    pub(crate) start: u64,
    /// Whether the operation was found in flight: it began at `start` or before.
    pub(crate) found: bool,
    pub(crate) key: [u64; K],
    pub(crate) data: [u64; D],
}

impl<const K: usize, const D: usize> Cell for Event<K, D> {
    fn new() -> Self {
        Self::with_state(0)
    }

    /// Makes a cell of an engine that counts delays by label.
    fn marked() -> Self {
        Self::with_state(LABELLED)
    }

    #[inline(always)]
    fn link(&self) -> &Link {
        &self.link
    }
}

impl<const K: usize, const D: usize> Event<K, D> {
    fn with_state(state: u64) -> Self {
        Self {
            state: Atomic::new(state),
            link: Link::new(),
            start: Atomic::new(0),
            key: array::from_fn(|_| Atomic::new(0)),
            data: array::from_fn(|_| Atomic::new(0)),
        }
    }

    /// Returns the life of the cell, if it is live.
    #[inline(always)]
    pub(crate) fn life(&self) -> Option<Life> {
        // Acquire: pairs with `publish`; what is read next belongs to this life or a later one.
        let state = self.state.load(Acquire);
        (state & LIVE != 0).then_some(Life(state))
    }

    /// Takes a first look at the cell, in a search for timed-out events.
    #[inline(always)]
    pub(crate) fn quick_check(&self) -> QuickCheck {
        // Acquire: as in `life`.
        let seen = self.state.load(Acquire);
        match seen & (LIVE | CHANGING | TIMED_OUT) {
            // Relaxed: the start belongs to this life or a later one. `peek_at` checks which, if it
            // matters.
            LIVE => QuickCheck::Live(Life(seen), self.start.load(Relaxed)),
            CHANGING => QuickCheck::Changing,
            _ => QuickCheck::Nothing,
        }
    }

    /// Whether the event has this key. Sound only together with a later [`Event::claim`] of the
    /// life that was seen before, or with the check at the end of [`Event::peek`].
    #[inline(always)]
    pub(crate) fn has_key(&self, key: &[u64; K]) -> bool {
        // Relaxed: see "Why no grace period is needed", step 2.
        self.key
            .iter()
            .zip(key)
            .all(|(word, wanted)| word.load(Relaxed) == *wanted)
    }

    /// Marks the event as timed out, and as being reported until [`Event::has_reported`]. At most
    /// one caller gets `true` for a life, and none after its end.
    pub(crate) fn time_out(&self, life: Life) -> bool {
        let mut now = life.0;
        while now & TIMED_OUT == 0 && life.is_that_of(now) {
            // Release: all earlier reads of the event and of its task happened while the event was
            // pending. The exchange publishes no writes of ours, and as a read-modify-write it
            // continues the release of `publish`.
            match self.state.cmpxchg(now, now | IN_REPORT, Release) {
                Ok(_) => return true,
                Err(found) => now = found,
            }
        }
        false
    }

    /// Marks the report of the timeout of this life as over. For the caller that got `true` from
    /// [`Event::time_out`].
    ///
    /// If the event has ended meanwhile, or was changed, there is nothing to do: the cell may hold
    /// another event, and a changed event keeps the mark until its end.
    pub(crate) fn has_reported(&self, life: Life) {
        // Relaxed: a guess, which the exchange checks.
        let mut now = self.state.load(Relaxed);
        while life.is_that_of(now) {
            // Release: the accesses of the report come before the next accesses of an end that
            // finds the mark cleared. As a read-modify-write it continues the release of `publish`.
            match self.state.cmpxchg(now, now & !REPORTING, Release) {
                Ok(_) => return,
                Err(found) => now = found,
            }
        }
    }

    /// Ends this life. Exactly one caller gets `Some` for a life, with its last state, and owns
    /// the cell.
    #[inline(always)]
    pub(crate) fn claim(&self, life: Life) -> Option<Life> {
        self.take(life, 0)
    }

    /// Claims the event for a caller that will publish it again ([`Event::republish`]) or end it
    /// ([`Event::has_ended`]). See [`Event::claim`].
    #[inline(always)]
    pub(crate) fn claim_to_change(&self, life: Life) -> Option<Life> {
        self.take(life, CHANGING)
    }

    #[inline(always)]
    fn take(&self, life: Life, with: u64) -> Option<Life> {
        let taken = (life.0 & !LIVE) | with;
        // Acquire: the winner's reads and writes of the cell come after the exchange. Its earlier
        // reads need no order, see step 3 above.
        if self.state.cmpxchg(life.0, taken, Acquire).is_ok() {
            return Some(life);
        }
        self.take_again(life, with)
    }

    /// Retries a claim whose exchange has failed: the life is over, or only its other bits have
    /// changed.
    #[cold]
    fn take_again(&self, life: Life, with: u64) -> Option<Life> {
        loop {
            // Relaxed: if it is the same life, all of it was acquired when `life` was loaded.
            let last = self.state.load(Relaxed);
            if !life.is_that_of(last) {
                return None;
            }
            let taken = (last & !LIVE) | with;
            // Acquire: as in `take`.
            if self.state.cmpxchg(last, taken, Acquire).is_ok() {
                return Some(Life(last));
            }
        }
    }

    /// Marks an event that was claimed for a change as ended: it will not be published again. Only
    /// for the owner, which has claimed `life`.
    #[inline(always)]
    pub(crate) fn has_ended(&self, life: Life) {
        if life.is_held() {
            return self.has_ended_held();
        }
        // Relaxed: it orders nothing. Only the owner writes a state that is neither live nor held.
        self.state.store(life.0 & !LIVE, Relaxed);
    }

    /// Clears the mark of a change while holders may return their references.
    #[cold]
    fn has_ended_held(&self) {
        // Relaxed, both: it orders nothing.
        let mut now = self.state.load(Relaxed);
        while let Err(found) = self.state.cmpxchg(now, now & !CHANGING, Relaxed) {
            now = found;
        }
    }

    /// Takes a reference to the event of this life.
    pub(crate) fn get_ref(&self, life: Life) -> GetRef {
        let mut now = life.0;
        while life.is_that_of(now) {
            if now & REFS == REFS {
                return GetRef::TooMany;
            }
            // Acquire: as in `take`, the holder's reads come after the exchange.
            match self.state.cmpxchg(now, now.wrapping_add(REF), Acquire) {
                Ok(_) => return GetRef::Taken,
                Err(found) => now = found,
            }
        }
        GetRef::Over
    }

    /// Takes one more reference. The caller already holds one; the event may have ended.
    pub(crate) fn get_ref_again(&self) -> GetRef {
        // Relaxed, both: the caller's own reference keeps the cell, and orders its reads.
        let mut now = self.state.load(Relaxed);
        while now & REFS != REFS {
            match self.state.cmpxchg(now, now.wrapping_add(REF), Relaxed) {
                Ok(_) => return GetRef::Taken,
                Err(found) => now = found,
            }
        }
        GetRef::TooMany
    }

    /// Gives back a reference. If the result is `true`, the caller must return the cell.
    #[must_use]
    pub(crate) fn put_ref(&self) -> bool {
        // Relaxed: a guess, which the exchange checks.
        let mut now = self.state.load(Relaxed);
        loop {
            if now & REFS == 0 {
                // Returned once too often: the cell no longer belongs to this event.
                return false;
            }
            let left = now.wrapping_sub(REF);
            let is_last = left & (REFS | ORPHAN) == ORPHAN;
            let next = if is_last { left & !ORPHAN } else { left };
            // Full: our reads of the cell precede its recycling by any CPU (Release), and the
            // reads of other holders precede recycling by us (Acquire).
            match self.state.cmpxchg(now, next, Full) {
                Ok(_) => return is_last,
                Err(found) => now = found,
            }
        }
    }

    /// Leaves the cell to the holders of references. Returns `true` if there are none: the caller
    /// must return the cell. Only for the owner.
    #[cold]
    #[must_use]
    pub(crate) fn abandon(&self) -> bool {
        // Acquire: if the last reference was returned meanwhile, the reads of its holder come
        // before the writes of the next owner.
        let mut now = self.state.load(Acquire);
        while now & REFS != 0 {
            // Release: the owner's accesses to the cell come before the accesses of its next owner.
            if self.state.cmpxchg(now, now | ORPHAN, Release).is_ok() {
                return false;
            }
            // Acquire: as for the first load.
            now = self.state.load(Acquire);
        }
        true
    }

    /// Whether the event is live, perhaps in a later life than when the reference was taken; false
    /// while it is being changed. For holders of a reference.
    pub(crate) fn is_live(&self) -> bool {
        self.life().is_some()
    }

    /// Whether the event has not ended, even if it is being changed. Any caller may ask, but the
    /// answer may already be stale.
    pub(crate) fn is_live_or_changing(&self) -> bool {
        // Acquire: as in `life`.
        self.state.load(Acquire) & (LIVE | CHANGING) != 0
    }

    /// Whether the operation was found in flight. For the owner and holders of a reference.
    pub(crate) fn was_found(&self) -> bool {
        // Relaxed: the bit does not change until the cell has another event.
        Life(self.state.load(Relaxed)).was_found()
    }

    /// Number of references; a snapshot.
    pub(crate) fn holders(&self) -> u64 {
        // Relaxed: only the number is used.
        (self.state.load(Relaxed) & REFS) / REF
    }

    /// Makes a new event findable. Only for the owner, after it has filled the cell.
    #[inline(always)]
    pub(crate) fn publish(&self) {
        self.go_live(self.next_life(OF_ONE_EVENT));
    }

    #[inline(always)]
    fn go_live(&self, next: u64) {
        // Release: readers that see this life see its key, start, data and place.
        self.state.store(next, Release);
    }

    /// Publishes the event with a full barrier: of any two callers that publish concurrently and
    /// then look for each other's event, at least one finds it. See [`Event::publish`].
    #[inline(always)]
    pub(crate) fn publish_and_order(&self) -> Life {
        self.publish_fully(self.next_life(OF_ONE_EVENT))
    }

    /// Publishes the event with a reference for the caller. See [`Event::publish_and_order`].
    pub(crate) fn publish_held(&self) -> Life {
        self.publish_fully(self.next_life(OF_ONE_EVENT) | REF)
    }

    /// Publishes the event of an operation that was found in flight. See [`Event::publish_held`].
    pub(crate) fn publish_found(&self) -> Life {
        self.publish_fully(self.next_life(OF_ONE_EVENT) | REF | FOUND)
    }

    #[inline(always)]
    fn publish_fully(&self, next: u64) -> Life {
        // Full: Release as in `publish`; and the caller's next reads come after other CPUs can see
        // this life.
        self.state.xchg(next, Full);
        Life(next)
    }

    /// Makes an event findable again after a change; as a new event if `renewed`. Only for the
    /// owner, which has claimed `life`.
    #[inline(always)]
    pub(crate) fn republish(&self, life: Life, renewed: bool) {
        let forget = if renewed { OF_ONE_EVENT } else { 0 };
        if life.is_held() {
            return self.republish_held(forget);
        }
        self.go_live(self.next_life(forget));
    }

    /// Publishes a changed event while holders may return their references.
    #[cold]
    fn republish_held(&self, forget: u64) {
        loop {
            // Relaxed: a guess, which the exchange checks.
            let now = self.state.load(Relaxed);
            let next = (now & !(forget | CHANGING)).wrapping_add(GENERATION) | LIVE;
            // Release: as in `publish`.
            if self.state.cmpxchg(now, next, Release).is_ok() {
                return;
            }
        }
    }

    /// Returns the state of the next life, with the bits in `forget` cleared: a new event has not
    /// timed out and is not reported, whatever its predecessor in this cell left.
    #[inline(always)]
    fn next_life(&self, forget: u64) -> u64 {
        // Relaxed: only owners write a state that is not live and not held, and ownership was
        // handed over by `claim` or by the pool, both with acquire.
        let state = self.state.load(Relaxed) & !(forget | CHANGING);
        // The live bit is clear, so the addition sets it.
        state.wrapping_add(GENERATION | LIVE)
    }

    /// Fills the cell; data words beyond those given keep their old values. Only for the owner.
    #[inline(always)]
    pub(crate) fn fill(&self, key: &[u64; K], start: u64, data: &[u64]) {
        self.set_key(key);
        self.set_start(start);
        self.set_words(0, data);
    }

    /// Returns a consistent copy and its life, if the event is live and stays so while it is
    /// copied. The life has the state word as read after the copy.
    pub(crate) fn peek(&self) -> Option<(Life, EventCopy<K, D>)> {
        self.peek_at(self.life()?)
    }

    /// Copies an event if it is still in the life that was seen before. See [`Event::peek`].
    #[inline(always)]
    pub(crate) fn peek_at(&self, life: Life) -> Option<(Life, EventCopy<K, D>)> {
        // Acquire, for each word: if it is of a later life, the end of this life is seen below.
        let copy = EventCopy {
            start: self.start.load(Acquire),
            // Set once, when the event was published for the first time.
            found: life.was_found(),
            key: array::from_fn(|i| self.key[i].load(Acquire)),
            data: array::from_fn(|i| self.data[i].load(Acquire)),
        };
        // Relaxed: ordered by the acquire loads above.
        let now = self.state.load(Relaxed);
        life.is_that_of(now).then_some((Life(now), copy))
    }

    /// Returns the start of the event. For the owner and holders of a reference; for other callers
    /// as sound as [`Event::has_key`].
    #[inline(always)]
    pub(crate) fn start(&self) -> u64 {
        self.start.load(Relaxed)
    }

    /// Sets the start of the event. Only for the owner.
    #[inline(always)]
    pub(crate) fn set_start(&self, start: u64) {
        // Release: as in `set_key`.
        self.start.store(start, Release);
    }

    /// Sets the key. Only for the owner, and not while the event is in the table.
    #[inline(always)]
    pub(crate) fn set_key(&self, key: &[u64; K]) {
        // Release, for each word of a cell: a reader of an older life that sees a new word also
        // sees that its life is over (`peek`). Free on x86.
        for (word, value) in self.key.iter().zip(key) {
            word.store(*value, Release);
        }
    }

    /// Returns the key. For the owner and holders of a reference.
    #[inline(always)]
    pub(crate) fn key(&self) -> [u64; K] {
        array::from_fn(|i| self.key[i].load(Relaxed))
    }

    /// Returns the data. For the owner and holders of a reference; a holder may see a mixture of
    /// the words before and after a change.
    #[inline(always)]
    pub(crate) fn data(&self) -> [u64; D] {
        array::from_fn(|i| self.data[i].load(Relaxed))
    }

    /// Returns one word of the data, see [`Event::data`]; 0 if there is no such word.
    #[inline(always)]
    pub(crate) fn word(&self, at: usize) -> u64 {
        self.data.get(at).map_or(0, |one| one.load(Relaxed))
    }

    /// Returns a word by its position, among the words of the key and then of the data; 0 if there
    /// is no such word. For the owner.
    #[inline(always)]
    pub(crate) fn kept(&self, at: usize) -> u64 {
        // The data first, since most labels are there.
        match self.data.get(at.wrapping_sub(K)) {
            Some(word) => word.load(Relaxed),
            None => self.key.get(at).map_or(0, |word| word.load(Relaxed)),
        }
    }

    /// Copies key and data. For the owner.
    pub(crate) fn copy_to(&self, key: &mut [u64; K], data: &mut [u64; D]) {
        for (to, word) in key.iter_mut().zip(&self.key) {
            *to = word.load(Relaxed);
        }
        for (to, word) in data.iter_mut().zip(&self.data) {
            *to = word.load(Relaxed);
        }
    }

    /// Replaces the data. Only for the owner.
    #[inline(always)]
    pub(crate) fn set_data(&self, data: &[u64; D]) {
        self.set_words(0, data);
    }

    /// Replaces a word of the data, if there is one. Only for the owner.
    #[inline(always)]
    pub(crate) fn set_word(&self, at: usize, word: u64) {
        if let Some(one) = self.data.get(at) {
            // Release: as in `set_key`.
            one.store(word, Release);
        }
    }

    /// Replaces words of the data from word `at` on; ignores words beyond its end. Only for the
    /// owner.
    #[inline(always)]
    pub(crate) fn set_words(&self, at: usize, words: &[u64]) {
        for (word, value) in self.data.iter().skip(at).zip(words) {
            // Release: as in `set_key`.
            word.store(*value, Release);
        }
    }
}
