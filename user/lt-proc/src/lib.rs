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
//!  NAME/labels        ->  Labels                    how long things took, by a field
//!  NAME/pending       ->  Pending                   what is in flight now
//!  hwnoise            ->  Hwnoise, Slice            gaps of a loop with interrupts off
//!  measure            ->  Measure                   what the probes themselves cost
//!  NAME/profile*      ->  Profile                   how long operations of each class took
//!  NAME/steps         ->  StepTime                  how long the steps of wake chains took, by their kind
//! ```
//!
//! Parsers are strict where the format is promised. What a newer module adds is kept, in order, or skipped.
//! Every error names the line and the offending word. Only [`ProcRoot`] and [`Hwnoise`] open files. Times are
//! `CLOCK_MONOTONIC` nanoseconds, delays are nanoseconds.
//!
//! # Examples
//!
//! ```
//! use lt_proc::{Nanos, StreamLine};
//!
//! let line = r#"seq=7 time=900 instance=slow tracker=block reason=threshold delay=20000 threshold=10000 cpu=1 pid=4 tid=5 comm="dd" dev=8:0 sector=64"#;
//! let Ok(StreamLine::Alert(alert)) = StreamLine::parse(line) else {
//!     panic!("an alert, not a line lost=N");
//! };
//! assert_eq!(Nanos(alert.delay).to_string(), "20.00us");
//! assert_eq!(alert.fields.text("sector").as_deref(), Some("64"));
//! ```

mod alert;
mod chain;
mod control;
mod duration;
mod error;
pub mod evidence;
mod fields;
mod histogram;
mod hwnoise;
mod labels;
mod log2hist;
mod measure;
mod pending;
mod profile;
mod root;
mod stats;
mod steps;
mod trackers;
mod user_stack;

pub use alert::{Alert, Reason, StreamLine};
pub use chain::{ChainStep, Rival, WaitParts, before, chain, chain_so_far};
pub use control::{Instance, Setting, valid_name};
pub use duration::{Nanos, parse_duration};
pub use error::{ParseError, ProcError};
pub use fields::{Field, Fields, Value};
pub use histogram::{Bucket, Histogram, PERCENTILES, Percentile};
pub use hwnoise::{Hwnoise, LONGEST_SLICE, Slice};
pub use labels::{Delays, Label, Labels};
pub use log2hist::{Log2Hist, Unit};
pub use measure::{Counter, CycleBucket, Measure, MeasuredProbe, Outliers, Taken};
pub use pending::Pending;
pub use profile::{ClassCounts, Profile, Row, Span};
pub use root::{DEFAULT_ROOT, ProcRoot};
pub use stats::Stats;
pub use steps::StepTime;
pub use trackers::{ParamInfo, TrackerInfo};
pub use user_stack::{UserEnd, UserFrame, UserNames, UserStack};
