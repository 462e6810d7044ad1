// SPDX-License-Identifier: GPL-2.0

//! Wakers of tasks that were woken on their way to sleep, before there was an event to note the
//! waker in.
//!
//! ```text
//!   task     state=S ------------------------- sched_switch: event, state=S ...... switched in, late
//!   waker       sched_waking: no event, on a CPU --> slot                               |
//!                                                       +---- the last one of the task? +--> alert
//! ```
//!
//! A table of slots, indexed by thread id modulo [`SLOTS`]. It is consulted when an event without a
//! waker ends late. The waking found there is the one that made the task run:
//!
//! - *It is the last one.* Wakings of a task are serialised by its `pi_lock`, and none comes
//!   between the end of a sleep and the switch-in, when the task's state is not one that a wakeup
//!   acts on. So the last waking before the switch-in is the right one.
//! - *None is left out.* A waking either finds the event of this sleep, and is noted there, or
//!   takes the slot. A task that is neither on a runqueue nor on a CPU has its event: `on_cpu` is
//!   cleared after `sched_switch`. The event of a preemption does not count: the task may be
//!   switched in at this moment, and then go to sleep. No event of an older sleep is left: wakers
//!   hide only the events of sleeps, and a sleeping task is switched in only after its waker has
//!   published the event again.
//! - *A waking that is not noted leaves no older note.* Wakings of one task are serialised, so
//!   taking the slot can fail only while the waking of another task takes it, which overwrites any
//!   older note of this task. If the task need not be reported, its waking still replaces its own
//!   note. A task that is woken while it is the current one does not go to sleep.
//! - *It is of this sleep*, since by the above no note of an older sleep is left. The note also has
//!   the task's number of switches, which the kernel may or may not have incremented yet for the
//!   switch that started the event. So a note whose number is lower by two or more is certainly of
//!   an older sleep.
//!
//! Only wakings after all probes were attached are noted; the waker is unknown for an earlier
//! waking.
//!
//! # Orderings
//!
//! The switch-in that a waking caused sees this waking and all earlier ones, through the locks of
//! the task and the runqueue. The orderings in this file are for a slot that the waking of another
//! task takes meanwhile. They form a sequence lock; its model is user/engine/tests/loom/early.rs.
//!
//! # Contexts
//!
//! Any but NMI. Nothing waits. A waking costs some 85 instructions if there is no event of a sleep,
//! and the task is on a runqueue or a CPU; otherwise it costs a few.

use crate::sys::{
    atomic::{Acquire, Atomic, Relaxed, Release},
    memory::NodeSlice,
};
use kernel::prelude::*;

/// Number of slots: a power of two.
pub(crate) const SLOTS: usize = 128;

/// Number of words of a waker, as in the data of an event.
pub(crate) const WAKER: usize = 3;

type Word = Atomic<u64>;

/// The last waking of a task.
struct Slot {
    /// Twice the number of writes; odd during a write.
    state: Word,
    /// The thread id of the wakee; 0 for none.
    tid: Word,
    /// Number of times that the wakee had been switched out.
    switches: Word,
    waker: [Word; WAKER],
}

fn word() -> Word {
    Atomic::new(0)
}

/// The table of wakings. See the head of this file.
pub(crate) struct Early {
    slots: NodeSlice<Slot>,
    is_open: Word,
}

impl Early {
    /// Creates the table. May sleep; fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        let slots = NodeSlice::try_new(SLOTS, None, |_| {
            Ok(Slot {
                state: word(),
                tid: word(),
                switches: word(),
                waker: core::array::from_fn(|_| word()),
            })
        })?;
        Ok(Self {
            slots,
            is_open: word(),
        })
    }

    /// Clears the table. No probe may be running. Nothing is noted until [`Early::open`].
    pub(crate) fn close(&self) {
        self.is_open.store(0, Relaxed);
        for slot in self.slots.iter() {
            slot.tid.store(0, Relaxed);
        }
    }

    /// Starts noting wakings, once all probes are attached.
    pub(crate) fn open(&self) {
        self.is_open.store(1, Relaxed);
    }

    fn slot(&self, tid: u32) -> Option<&Slot> {
        self.slots.get(tid as usize % SLOTS)
    }

    /// Notes the waking of a task that had been switched out `switches` times. `is_wanted`: whether
    /// the task may be reported.
    #[inline(always)]
    pub(crate) fn note(
        &self,
        tid: u32,
        switches: u64,
        is_wanted: bool,
        waker: impl FnOnce() -> [u64; WAKER],
    ) {
        let Some(slot) = self.slot(tid) else { return };
        // Only wakers of this task write its thread id, and they are serialised.
        let is_its_own = slot.tid.load(Relaxed) == u64::from(tid);
        if self.is_open.load(Relaxed) == 0 || !(is_wanted || is_its_own) {
            return;
        }
        let state = slot.state.load(Relaxed);
        // Acquire: the accesses of the last writer come before the following ones.
        if state & 1 != 0 || slot.state.cmpxchg(state, state | 1, Acquire).is_err() {
            return;
        }
        // Release: a reader that sees one of these words sees the odd state, too.
        slot.tid.store(tid.into(), Release);
        slot.switches.store(switches, Release);
        for (word, value) in slot.waker.iter().zip(waker()) {
            word.store(value, Release);
        }
        // Release: pairs with the acquire of a reader. While the state is odd, no other CPU changes
        // it.
        slot.state.store(state.wrapping_add(2), Release);
    }

    /// Returns the last waker of a task that is being switched in after a sleep, and had been
    /// switched out `switches` times; `None` if not recorded.
    pub(crate) fn waker_of(&self, tid: u32, switches: u64) -> Option<[u64; WAKER]> {
        let slot = self.slot(tid)?;
        let state = slot.state.load(Acquire);
        // Acquire: pairs with the releases of a writer. If a word is new, so is the state read
        // below.
        let is_valid = state & 1 == 0
            && slot.tid.load(Acquire) == u64::from(tid)
            && switches.wrapping_sub(slot.switches.load(Acquire)) <= 1;
        let waker = core::array::from_fn(|at| slot.waker[at].load(Acquire));
        (is_valid && slot.state.load(Relaxed) == state).then_some(waker)
    }
}
