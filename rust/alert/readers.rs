// SPDX-License-Identifier: GPL-2.0

//! Tracks which tasks read alerts, so that trackers of tasks raise no alerts about these readers.
//!
//! A reader sleeps until there is an alert. If that sleep, or the wakeup that ends it, were itself
//! late, it would raise the next alert, which wakes the reader: an endless loop. So a task that
//! reads or polls a file of alerts is noted here before it sleeps. A tracker checks this only when
//! it is about to raise an alert, which is rare. Readers are still measured.
//!
//! The last [`SLOTS`] readers are remembered, each by its ids and its start mark
//! ([`Owner::start_mark_of`]). A slot is one independent word. Any context.

use crate::{
    alert::record::Owner,
    sys::{
        atomic::{Atomic, Relaxed},
        task, //
    },
};

/// Maximum number of remembered readers.
const SLOTS: usize = 64;

/// The known readers of alerts.
static READERS: Readers = Readers::new();

/// A set that drops its oldest entry when it is full.
struct Readers {
    /// The first word of each reader's [`Owner`], with its ids and its start mark; 0 if unused.
    slots: [Atomic<u64>; SLOTS],
    /// The slot to replace next.
    next: Atomic<u64>,
}

impl Readers {
    const fn new() -> Self {
        Self {
            slots: [const { Atomic::new(0) }; SLOTS],
            next: Atomic::new(0),
        }
    }

    fn has(&self, reader: u64) -> bool {
        // Relaxed, here and below: each slot is an independent value.
        self.slots.iter().any(|slot| slot.load(Relaxed) == reader)
    }

    fn add(&self, reader: u64) {
        if !self.has(reader) {
            let at = self.next.fetch_add(1, Relaxed) as usize % SLOTS;
            self.slots[at].store(reader, Relaxed);
        }
    }
}

fn word(owner: &Owner) -> u64 {
    let [ids, ..] = owner.to_words();
    ids
}

/// Records that the current task reads alerts, or is about to wait for them.
pub(crate) fn note_current() {
    if let Some(task) = task::current() {
        READERS.add(word(&Owner::from(&task)));
    }
}

/// Whether a task is known to read alerts.
pub(crate) fn is_known(owner: &Owner) -> bool {
    let task = word(owner);
    // An operation of an interrupt has no owner.
    task != 0 && READERS.has(task)
}
