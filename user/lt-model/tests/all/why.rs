// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Paths: graphs with known ones, from events, and of any events at all.

mod any;
mod delays;
mod events;
mod graphs;
mod limits;
mod locks;
mod missing;
mod requests;
