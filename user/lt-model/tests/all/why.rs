// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Critical paths, and the time of a thread by state: in graphs with known paths, from known events, and from random
//! events.

mod any;
mod delays;
mod events;
mod graphs;
mod limits;
mod locks;
mod missing;
mod requests;
