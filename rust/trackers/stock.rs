// SPDX-License-Identifier: GPL-2.0

//! Starts events for tasks that already wait when an instance starts, if the tracker follows them.
//!
//! ```text
//!                 probes attached    looked at                        switched in
//!   ...-- waits ------|----------------->|----------- waits ------------->|
//!                                        |<-- delay: it took at least --->|
//! ```
//!
//! Such an event starts at the time when the task was seen to wait, so its delay is a lower bound.
//! sys/waiting.rs shows why the notes are true. The engine ensures:
//!
//! - *No two events of one task.* An event that the task has started since the probes were attached
//!   is exact, and is preferred: nothing is noted if there is an event. An event that starts after
//!   this check has a later start, because the task must run first, so
//!   [`Engine::event_in_found`] leaves only that one.
//! - *No event of a task that has run.* Its end may have come before the note, if it was runnable:
//!   we keep a reference to the event, and drop exactly this event if the task has run.
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

/// The key and the data of an event for a task that waits.
pub(super) type Found<const K: usize, const D: usize> = ([u64; K], [u64; D]);

/// Returns what this kernel lacks to take stock, if anything.
pub(super) fn missing() -> Option<&'static CStr> {
    assumptions::missing(&[&assumptions::QUEUED])
}

/// Starts events for waiting tasks that the filter of tasks accepts and for which `what` returns a
/// key and data. Must be called after the probes are attached.
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
            // Without memory the event cannot be checked later.
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
