// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The results of a measurement: arithmetic and formats of `latency-tracker bench`. Nothing here
//! makes a system call.
//!
//! ```text
//!   samples ---------> Record ---> Statistics, lt_proc::Histogram ---> Curve --+--> table  (text)
//!   files of rtla, cyclictest, oslat, and our own ---> read -------> Curve --+--> picture (SVG)
//!
//!   /proc/interrupts, softirqs, stat ---> Counts, twice ---> moved, Usual ---> unusual counters
//! ```
//!
//! Times are in nanoseconds.

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
