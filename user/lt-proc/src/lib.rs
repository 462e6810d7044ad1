// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The contents of `/proc/latency_tracker` as types, and how to write them.
//!
//! The files are text, one record per line (`Documentation/ABI/testing/procfs-latency_tracker`):
//!
//! ```text
//!  control, trackers  ->  Instance, TrackerInfo     what runs, what could run
//!  NAME/alerts        ->  StreamLine (Alert | lost) what was late
//!  NAME/stats         ->  Stats                     what was counted
//!  NAME/histogram     ->  Histogram -> Log2Hist     how long things took
//!  NAME/pending       ->  Pending                   what is in flight now
//!  NAME/profile*      ->  Profile                   how long operations of each class took
//! ```
//!
//! Parsers are strict where the format is promised and keep, in order, what a newer module adds.
//! Every error names the line and the offending word. [`ProcRoot`] is the only part that opens files.
//! Times are `CLOCK_MONOTONIC` nanoseconds, delays are nanoseconds.

mod alert;
mod control;
mod duration;
mod error;
mod fields;
mod histogram;
mod log2hist;
mod pending;
mod profile;
mod root;
mod stats;
mod trackers;

pub use alert::{Alert, Reason, StreamLine};
pub use control::{Instance, Setting, valid_name};
pub use duration::{Nanos, parse_duration};
pub use error::{ParseError, ProcError};
pub use fields::{Field, Fields, Value};
pub use histogram::{Bucket, Histogram, PERCENTILES, Percentile};
pub use log2hist::{Log2Hist, Unit};
pub use pending::Pending;
pub use profile::{ClassCounts, Profile, Row, Span};
pub use root::{DEFAULT_ROOT, ProcRoot};
pub use stats::Stats;
pub use trackers::{ParamInfo, TrackerInfo};
