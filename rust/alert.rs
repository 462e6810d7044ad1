// SPDX-License-Identifier: GPL-2.0

//! Late events, from the probe to a reader.
//!
//! ```text
//!   probe, worker --> record --> ring --> stream --> the files `alerts` and `wakeup`
//!                                  |         ^
//!                                  +-- notify: irq_work, wait queue
//! ```

pub(crate) mod notify;
pub(crate) mod readers;
pub(crate) mod record;
pub(crate) mod ring;
pub(crate) mod stream;
