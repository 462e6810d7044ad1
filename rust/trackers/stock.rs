// SPDX-License-Identifier: GPL-2.0

//! What tasks already wait for when an instance starts: an event for each that a tracker follows.
//!
//! ```text
//!                 probes attached    looked at                        switched in
//!   ...-- waits ------|----------------->|----------- waits ------------->|
//!                                        |<-- delay: it took at least --->|
//! ```
//!
//! The start of such an event is when the task was seen to wait, so no event claims more than is
//! known. That the notes are true is argued in sys/waiting.rs; what remains is the engine's part:
//!
//! - *No two events of one task.* What it has begun since the probes were attached is exact, and is
//!   preferred: nothing is noted if there is an event. One that begins after this was checked begins
//!   later, because the task must run first, so [`Engine::event_in_found`] leaves only that one.
//! - *No event of a task that has run.* Its end may have come before the note, if it was runnable:
//!   we keep a reference to the event, and drop this very event if the task has run.
//!
//! # Contexts
//!
//! A task that may sleep. The functions that are passed are called with a lock held, see
//! sys/waiting.rs.
//!
//! [`Engine::event_in_found`]: crate::engine::Engine::event_in_found

use super::tasks::{self, Guard};
use crate::{
    engine::platform::Platform,
    instance::Core,
    sys::{
        assumptions,
        platform::Kernel,
        tracepoint,
        waiting::{self, Waiting}, //
    }, //
};
use core::ffi::CStr;
use kernel::prelude::*;

/// What a task waits for: the key and the data of an event.
pub(super) type Found<const K: usize, const D: usize> = ([u64; K], [u64; D]);

/// What this kernel lacks to take stock, if anything.
pub(super) fn missing() -> Option<&'static CStr> {
    assumptions::missing(&[&assumptions::QUEUED])
}

/// Notes what tasks wait for that the filter of tasks accepts, if `what` knows it. To be called once
/// the probes are attached.
pub(super) fn take<const K: usize, const D: usize>(
    core: &Core<K, D>,
    mut what: impl FnMut(&Waiting<'_>) -> Option<Found<K, D>>,
) {
    let engine = core.engine();
    let mut doubtful = KVVec::new();
    let note = |guard: &Guard, waiting: &Waiting<'_>| {
        let task = waiting.task();
        if !tasks::may_be_wanted(core, &task) || !tasks::is_wanted(core, &task, task.cpu()) {
            return None;
        }
        let (key, data) = what(waiting)?;
        if engine.is_known(guard, &key) {
            return None;
        }
        engine
            .event_in_found(guard, &key, Kernel::now(), &data)
            .ok()
    };
    waiting::each(note, |event, watched| {
        match watched {
            None => engine.put_ref(&Kernel::guard(), event),
            // Without memory it cannot be checked.
            Some(_) if doubtful.reserve(1, GFP_KERNEL).is_err() => engine.drop_held(event),
            Some(watched) => {
                let _ = doubtful.push_within_capacity((watched, event));
            }
        }
        if engine.wants_to_grow() {
            core.maintain();
        }
    });
    if !doubtful.is_empty() {
        tracepoint::synchronize();
    }
    for (watched, event) in doubtful {
        if watched.has_run() {
            engine.drop_held(event);
        } else {
            engine.put_ref(&Kernel::guard(), event);
        }
    }
}
