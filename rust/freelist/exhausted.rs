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
//! A search that has found every stack empty notes a suspicion, or joins the note of another
//! search, and searches once more. If nothing has changed, the pool was exhausted. If no cell has
//! come back since the note (`version`), the pool is still exhausted. A CPU that puts a cell on a
//! stack reads the note *after* the cell can be found. Both sides store, pass a full barrier, and
//! load. So at least one side sees the other: either the search finds the cell, or the note is
//! cleared.
//! Documentation/design/engine.md has the whole argument. Any context, NMI included.

use crate::sys::atomic::{Atomic, Full, Relaxed, Release};

const SUSPECTED: u64 = 1;
const KNOWN: u64 = 2;
const STATE: u64 = SUSPECTED | KNOWN;
const VERSION: u64 = 4;

/// The note: `{version: 62, state: 2}`, alone on its cache line, as every put reads it. It is
/// written only by searches that find no cell, and cleared when a cell comes back.
#[repr(align(64))]
pub(super) struct Exhausted(Atomic<u64>);

/// A search's note that the pool may be exhausted.
#[derive(Clone, Copy)]
pub(super) struct Note(u64);

impl Exhausted {
    /// Creates the state of a pool that is not known to be exhausted.
    pub(super) fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Whether no cell has come back since a search proved the pool exhausted.
    #[inline(always)]
    pub(super) fn is_known(&self) -> bool {
        // Relaxed: if the caller knows that a cell was returned, that return has ended any earlier
        // note, and a later note exists only if a search has seen the return.
        self.0.load(Relaxed) & STATE == KNOWN
    }

    /// Leaves a note that the pool may be exhausted, or joins the note of another search: a note
    /// that several searches kept replacing would never be confirmed. `None` if the pool is already
    /// known to be exhausted, or if the word changed meanwhile.
    pub(super) fn suspect(&self) -> Option<Note> {
        // Relaxed: a guess, which the exchange checks.
        let word = self.0.load(Relaxed);
        let note = match word & STATE {
            KNOWN => return None,
            SUSPECTED => word,
            _ => word.wrapping_add(VERSION) | SUSPECTED,
        };
        // Full, even when joining: the second search follows after other CPUs can see the note.
        let noted = self.0.cmpxchg(word, note, Full);
        noted.is_ok().then_some(Note(note))
    }

    /// Confirms that all stacks were empty, before the note and after it, with no change in
    /// between.
    pub(super) fn confirm(&self, note: Note) {
        let known = note.0 ^ STATE;
        // Release: the caller's search comes before the exchange. If the exchange fails, a cell has
        // come back since the note, or another search was faster.
        let _ = self.0.cmpxchg(note.0, known, Release);
    }

    /// Ends the note: a cell has come back, by a full exchange just before.
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
            // Relaxed: a get that finds no note searches, and relies on nothing from here.
            match self.0.cmpxchg(word, word & !STATE, Relaxed) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }
}
