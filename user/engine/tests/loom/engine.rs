// SPDX-License-Identifier: GPL-2.0

// The engine's files that are modelled, for `include!`, as src/engine.rs.

#[path = "../../../../rust/alert.rs"]
mod alert;
#[path = "../../../../rust/event.rs"]
mod event;
#[allow(unsafe_code)]
#[path = "../../../../rust/freelist.rs"]
mod freelist;
#[path = "../../../../rust/hash.rs"]
mod hash;
#[allow(unsafe_code)]
#[path = "../../../../rust/platform.rs"]
mod platform;
#[allow(unsafe_code)]
#[path = "../../../../rust/rcu_ht.rs"]
mod rcu_ht;
#[path = "../../../../rust/stats.rs"]
mod stats;
#[path = "../../../../rust/tracker.rs"]
mod tracker;
