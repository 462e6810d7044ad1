// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What a measurement gave: the arithmetic and the formats of `latency-tracker bench`, without a system call.
//!
//! ```text
//!   samples ---------> Record ---> Statistics, lt_proc::Histogram ---> Curve --+--> table  (text)
//!   files of rtla, cyclictest, oslat, and our own ---> read -------> Curve --+--> picture (SVG)
//!
//!   /proc/interrupts, softirqs, stat ---> Counts, twice ---> moved, Usual ---> what was unusual
//! ```
//!
//! Times are nanoseconds.

mod counts;
mod curve;
mod picture;
mod read;
mod record;
mod table;
mod unusual;

pub use counts::{Counter, Counts};
pub use curve::Curve;
pub use picture::picture;
pub use read::{Unreadable, read};
pub use record::{BINS, Record, Statistics};
pub use table::table;
pub use unusual::{Moved, Usual, moved};
