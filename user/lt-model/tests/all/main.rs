// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The state machines and the explanations from their results, tested with tables of events and with random events.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]
#![expect(unreachable_pub, reason = "shorter, and no other crate sees it")]

mod anything;
mod files;
mod limits;
mod made;
mod missing;
mod recorded;
mod states;
mod tables;
mod tiles;
mod told;
mod wakers;
mod why;
