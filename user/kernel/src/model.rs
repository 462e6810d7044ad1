// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Mutations of atomics for loom models, and atomics that are not modelled.
//!
//! A model is useful only if it fails without the protection that it is about. A [`Mutation`]
//! removes a protection at one place in the source. The place is found by its text, so the engine's
//! files need no hooks. All settings are per thread; loom runs all threads of a model on one
//! thread.

use std::{cell::RefCell, collections::HashMap, panic::Location};

/// Change of the operation at a mutated place.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// Makes the operation relaxed.
    Relax,
    /// Makes a full operation only acquire.
    Acquire,
    /// Makes a full operation only release.
    Release,
    /// Splits a compare-and-swap, an addition or a subtraction into a load and a store.
    Split,
    /// Skips a store, an addition, a subtraction, or a compare-and-swap, which then seems to succeed.
    Skip,
    /// Applies this function to the value that a store, an exchange or a compare-and-swap writes.
    Write(fn(u64) -> u64),
    /// Applies this function to the value that a load returns.
    Read(fn(u64) -> u64),
    /// Makes a load return the value that the thread loaded from this atomic before, as if nothing had changed.
    Again,
}

/// A mutation: a change at a place.
#[derive(Clone, Copy, Debug)]
pub struct Mutation {
    /// The end of the path of the source file.
    pub file: &'static str,
    /// The text of that file.
    pub source: &'static str,
    /// A text that occurs once in the file; the operation is in the line in which the text ends.
    pub text: &'static str,
    /// The change.
    pub change: Change,
}

/// Decides whether an atomic is modelled, from the file that creates it and the number of atomics that the same line
/// has created before. Loom does not switch threads at an atomic that is not modelled.
pub type Selection = fn(file: &str, nth: usize) -> bool;

struct Settings {
    mutations: Vec<(&'static str, u32, Change)>,
    selection: Option<Selection>,
    made: Vec<(&'static str, u32, usize)>,
    loaded: HashMap<(usize, loom::thread::ThreadId), u64>,
    barriers: Option<fn(&str) -> bool>,
}

thread_local! {
    static SETTINGS: RefCell<Settings> = RefCell::new(Settings {
        mutations: Vec::new(),
        selection: None,
        made: Vec::new(),
        loaded: HashMap::new(),
        barriers: None,
    });
}

/// Applies mutations, on this thread, from now on. Returns the mutations whose places were not found exactly once.
pub fn mutate(mutations: &[Mutation]) -> Vec<Mutation> {
    let mut unfit = Vec::new();
    SETTINGS.with_borrow_mut(|settings| {
        settings.mutations.clear();
        for mutation in mutations {
            let mut hits = mutation.source.match_indices(mutation.text);
            match (hits.next(), hits.next()) {
                (Some((at, text)), None) => {
                    let line = mutation.source[..at + text.len()].lines().count();
                    let place = (mutation.file, line as u32, mutation.change);
                    settings.mutations.push(place);
                }
                _ => unfit.push(*mutation),
            }
        }
    });
    unfit
}

/// Selects, on this thread, which atomics are modelled.
pub fn select(selection: Selection) {
    SETTINGS.with_borrow_mut(|settings| settings.selection = Some(selection));
}

/// Resets the counts of created atomics, the loaded values and the barriers, at the start of a run of the model.
pub fn begin() {
    SETTINGS.with_borrow_mut(|settings| {
        settings.barriers = None;
        settings.made.clear();
        settings.loaded.clear();
    });
}

/// Declares, on this thread and for this run of the model, in which files a successful full compare-and-swap is also a
/// barrier after it. Each barrier is a place for a switch of threads, so a model declares this only if it relies on the
/// barrier.
pub fn barriers(files: fn(&str) -> bool) {
    SETTINGS.with_borrow_mut(|settings| settings.barriers = Some(files));
}

/// Whether a compare-and-swap at this place is also a barrier.
pub(crate) fn is_barrier(place: &Location<'_>) -> bool {
    SETTINGS.with_borrow(|settings| settings.barriers.is_some_and(|files| files(place.file())))
}

/// Returns the change to make at a place, if any.
pub(crate) fn change(place: &Location<'_>) -> Option<Change> {
    SETTINGS.with_borrow(|settings| {
        let mut all = settings.mutations.iter();
        all.find(|(file, line, _)| *line == place.line() && place.file().ends_with(file))
            .map(|(_, _, change)| *change)
    })
}

/// Stores the value that this thread of the model has just loaded, and returns the value that it loaded from this
/// atomic the time before.
pub(crate) fn reload(atomic: usize, value: u64) -> Option<u64> {
    SETTINGS.with_borrow_mut(|settings| {
        let key = (atomic, loom::thread::current().id());
        settings.loaded.insert(key, value)
    })
}

/// Whether there are mutations.
pub(crate) fn is_mutated() -> bool {
    SETTINGS.with_borrow(|settings| !settings.mutations.is_empty())
}

/// Whether the atomic created at this place now is modelled.
pub(crate) fn is_modelled(place: &'static Location<'static>) -> bool {
    SETTINGS.with_borrow_mut(|settings| {
        let Some(selection) = settings.selection else {
            return true;
        };
        // There are only a handful of places, looked up millions of times: a linear search is faster than a hash map.
        let (file, line) = (place.file(), place.line());
        let here = |made: &(&str, u32, usize)| made.1 == line && made.0 == file;
        let at = settings.made.iter().position(here).unwrap_or_else(|| {
            settings.made.push((file, line, 0));
            settings.made.len() - 1
        });
        let nth = settings.made[at].2;
        settings.made[at].2 += 1;
        selection(file, nth)
    })
}
