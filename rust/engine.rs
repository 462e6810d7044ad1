// SPDX-License-Identifier: GPL-2.0

//! The engine: pairs the start and the end of operations by key.
//!
//! ```text
//!   tracker     event_in, event_out, update, expire
//!    |    |
//!    |   rcu_ht      finds an event by its key
//!    |    |
//!   freelist         cells, the memory of events
//!         |
//!       event        one cell: key, start, data, and the word that decides who ends it
//!
//!   stats, histogram, profile      counters, for each CPU
//! ```
//!
//! One module, so that each crate includes the engine with one line, and a new file changes none
//! of them: the kernel module, its tests and benchmarks (tests/module, tests/bench/module), and
//! user/engine and user/bench on the host. It uses nothing of the kernel but its error codes and
//! allocation flags; the rest is behind [`platform`], `crate::sys::atomic` and
//! `crate::sys::memory`, which each crate supplies.
//!
//! A file that is compiled by its path looks for its children next to itself: hence the paths
//! here, and in the files of rust/engine that have children.
//!
//! Documentation/design/engine.md has the argument that it is correct.

#[path = "engine/event.rs"]
pub(crate) mod event;
#[allow(unsafe_code, reason = "denied on the host; inside the fence")]
#[path = "freelist.rs"]
pub(crate) mod freelist;
#[path = "engine/hash.rs"]
pub(crate) mod hash;
// The models do not look at it, and an array of loom's atomics does not fit on a thread's stack.
#[cfg_attr(loom, path = "../user/engine/tests/loom/histogram.rs")]
#[cfg_attr(not(loom), path = "engine/histogram.rs")]
pub(crate) mod histogram;
#[allow(unsafe_code, reason = "an unsafe trait")]
#[path = "engine/platform.rs"]
pub(crate) mod platform;
#[path = "engine/profile.rs"]
pub(crate) mod profile;
#[allow(unsafe_code, reason = "denied on the host; inside the fence")]
#[path = "rcu_ht.rs"]
pub(crate) mod rcu_ht;
#[path = "engine/schedule.rs"]
pub(crate) mod schedule;
#[path = "engine/stats.rs"]
pub(crate) mod stats;
#[path = "engine/tracker.rs"]
pub(crate) mod tracker;
