// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Traces made by hand, byte by byte; real ones, compared with babeltrace2; damaged and hostile ones.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::panic)]

mod damage;
mod fields;
mod hostile;
mod kinds;
mod made;
mod real;
mod streams;
mod tsdl;
