// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Paths: graphs with known ones, from events, and of any events at all.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::panic)]

mod any;
#[path = "../../../lt-model/tests/all/anything.rs"]
mod anything;
mod events;
mod graphs;
mod limits;
mod missing;
mod requests;
