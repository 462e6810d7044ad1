// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The state machines, and the answers from what they give: by tables of events, and by any events at all.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]
#![expect(unreachable_pub, reason = "shorter, and no other crate sees it")]

mod anything;
mod limits;
mod made;
mod missing;
mod recorded;
mod states;
mod tiles;
mod told;
mod wakers;
mod why;
