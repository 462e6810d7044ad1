// SPDX-License-Identifier: GPL-2.0

//! Starts events for tasks that are already waiting when an instance starts.
//!
//! ```text
//!                 probes attached    looked at                        switched in
//!   ...-- waits ------|----------------->|----------- waits ------------->|
//!                                        |<-- delay: it took at least --->|
//! ```
//!
//! An event that is started here starts when its task is found waiting, so its delay is a lower
//! bound. sys/waiting.rs shows why its findings hold until the task is switched in. The engine
//! ensures:
//!
//! - *No two events of one task.* An event that a probe has started for the task is exact, so it is
//!   preferred: if there is one, no event is started here. An event that a probe starts after this
//!   check has a later start, because the task must run first. So [`Engine::event_in_found`] leaves
//!   only the later event.
//! - *No event of a task that has run.* A runnable task may run before its event is started here,
//!   and then that event's end is missed. So we keep a reference to the event, and drop exactly
//!   this event if the task has run.
//!
//! # Contexts
//!
//! Tasks that may sleep. `what` runs with a lock held, see sys/waiting.rs.
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

/// Returns the kernel feature that taking stock needs and this kernel lacks, if any.
pub(super) fn missing() -> Option<&'static CStr> {
    assumptions::missing(&[&assumptions::QUEUED])
}

/// Starts events for waiting tasks that the task filter accepts and for which `what` returns a key
/// and data. Must be called after the probes are attached.
///
/// Leaves out the process that `tree=1` starts from while a signal has stopped it. So a command
/// whose process is created stopped counts from the moment it continues.
pub(super) fn take<const K: usize, const D: usize>(
    core: &Core<K, D>,
    mut what: impl FnMut(&Waiting<'_>) -> Option<Found<K, D>>,
) {
    let engine = core.engine();
    let mut doubtful = KVVec::new();
    let note = |guard: &Guard, waiting: &Waiting<'_>| {
        let task = waiting.task();
        if waiting.state().is_stopped() && core.follows_from(task.pid()) {
            return None;
        }
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
            // Out of memory: the event cannot be checked later, so it is dropped now.
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
