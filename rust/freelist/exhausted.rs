// SPDX-License-Identifier: GPL-2.0

//! Whether the pool is known to be exhausted, so that it need not be searched to find out.
//!
//! ```text
//!              suspect()                confirm()
//!       no -----------------> suspected ---------> known
//!        ^    (version + 1)       |                  |
//!        |                        |                  |
//!        +------------------------+------------------+
//!                        end(), by a put
//! ```
//!
//! A search that has found every stack empty notes that it suspects so, or joins in the note of
//! another search, and searches once more. If nothing has changed then, it was so, and if no cell
//! has come back since the note (`version`), it still is. Whatever puts a cell on a stack looks
//! here *after* the cell can be found. Store, full barrier, load on both sides: of the two at
//! least one sees the other, so either the search finds the cell, or the note goes.
//! Documentation/design/engine.md has the whole argument. Any context, NMI included.

use crate::sys::atomic::{Atomic, Full, Relaxed, Release};

const SUSPECTED: u64 = 1;
const KNOWN: u64 = 2;
const STATE: u64 = SUSPECTED | KNOWN;
const VERSION: u64 = 4;

/// `{version: 62, state: 2}`, alone on its cache line: every put reads it, and it is written
/// while the pool is exhausted only.
#[repr(align(64))]
pub(super) struct Exhausted(Atomic<u64>);

/// A note that the pool may be exhausted.
#[derive(Clone, Copy)]
pub(super) struct Note(u64);

impl Exhausted {
    /// No.
    pub(super) fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Whether no cell has been free since some search.
    #[inline(always)]
    pub(super) fn is_known(&self) -> bool {
        // Relaxed: a cell whose return the caller knows of has ended an earlier note, and there is
        // a later one only if a search has seen that return.
        self.0.load(Relaxed) & STATE == KNOWN
    }

    /// Notes that it may be, or joins in the note of another search: one that many searches
    /// replaced in turn would never be confirmed. `None` if it is known, or if the word changed.
    pub(super) fn suspect(&self) -> Option<Note> {
        // Relaxed: a guess, the exchange checks it.
        let word = self.0.load(Relaxed);
        let note = match word & STATE {
            KNOWN => return None,
            SUSPECTED => word,
            _ => word.wrapping_add(VERSION) | SUSPECTED,
        };
        // Full, also for one that joins in: the stacks are looked at once more after others can
        // see the note.
        let noted = self.0.cmpxchg(word, note, Full);
        noted.is_ok().then_some(Note(note))
    }

    /// All stacks were empty, before the note and after it, with nothing in between.
    pub(super) fn confirm(&self, note: Note) {
        let known = note.0 ^ STATE;
        // Release: after the caller has looked. If it fails a cell has come back since the note,
        // or another search was faster.
        let _ = self.0.cmpxchg(note.0, known, Release);
    }

    /// It is not, any more: a cell has come back, by a full exchange just before.
    #[inline(always)]
    pub(super) fn end(&self) {
        // Relaxed: after the exchange, which was full.
        let word = self.0.load(Relaxed);
        if word & STATE != 0 {
            self.end_note(word);
        }
    }

    #[cold]
    #[inline(never)]
    fn end_note(&self, mut word: u64) {
        while word & STATE != 0 {
            // Relaxed: a get that finds no note searches, and needs nothing from here.
            match self.0.cmpxchg(word, word & !STATE, Relaxed) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }
}
