// SPDX-License-Identifier: GPL-2.0

// The engine's own files, for `include!` at the root of a crate, since they call each other
// `crate::...`. A separate crate would cost seconds for each test program; the modules stay private.

#[path = "../../../rust/alert.rs"]
mod alert;
#[path = "../../../rust/control.rs"]
mod control;
#[path = "../../../rust/event.rs"]
mod event;
#[allow(unsafe_code)]
#[path = "../../../rust/freelist.rs"]
mod freelist;
#[path = "../../../rust/hash.rs"]
mod hash;
#[path = "../../../rust/histogram.rs"]
mod histogram;
#[allow(unsafe_code)]
#[path = "../../../rust/platform.rs"]
mod platform;
#[path = "../../../rust/profile.rs"]
mod profile;
#[allow(unsafe_code)]
#[path = "../../../rust/rcu_ht.rs"]
mod rcu_ht;
#[path = "../../../rust/record.rs"]
mod record;
#[path = "../../../rust/stats.rs"]
mod stats;
#[path = "../../../rust/text.rs"]
mod text;
#[path = "../../../rust/tracker.rs"]
mod tracker;
