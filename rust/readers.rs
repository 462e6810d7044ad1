// SPDX-License-Identifier: GPL-2.0

//! Who reads alerts: so that trackers of tasks raise none about those who are told of them.
//!
//! A reader sleeps until there is an alert. Were that sleep, or the wake-up that ends it, late
//! itself, it would raise the next alert, which wakes the reader: a loop that runs by itself for
//! ever. So whoever reads or polls a file of alerts is noted here, before it sleeps, and a
//! tracker asks before it raises an alert, which is seldom. What it measures it measures of
//! readers, too.
//!
//! The last [`SLOTS`] readers are known, each by its ids and its birth. A slot is one word, and
//! orders nothing. Any context.

use crate::{
    record::Owner,
    sys::{
        atomic::{Atomic, Relaxed},
        task, //
    },
};

/// How many readers are known.
const SLOTS: usize = 64;

/// The readers of all alerts.
static READERS: Readers = Readers::new();

/// A set that forgets whoever was added first.
struct Readers {
    /// The first word of each [`Owner`], which has its ids and its birth; 0 for nobody.
    slots: [Atomic<u64>; SLOTS],
    /// Where the next one goes.
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
        // Relaxed, here and below: each slot is a value of its own.
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

/// The current task reads alerts, or is about to wait for them.
pub(crate) fn note_current() {
    if let Some(task) = task::current() {
        READERS.add(word(&Owner::from(&task)));
    }
}

/// Whether a task is known to read alerts.
pub(crate) fn is_known(owner: &Owner) -> bool {
    let task = word(owner);
    // Interrupts belong to nobody, who does not read either.
    task != 0 && READERS.has(task)
}
