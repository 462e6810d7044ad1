// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Parquet files with the results of analyses: one row for each duration, edge, alert and gap, and for each kind of
//! operation that an analysis covers.
//!
//! ```text
//! DIR/intervals/host=web3/4fd49bd2-21758899616-5e0a913c.wakeups.wakeup.parquet
//!     |         |         |                             |       `- part: one kind of operation
//!     |         |         |                             `--------- scope: the analysis
//!     |         |         `--------------------------------------- trace
//!     |         `------------------------------------------------- partition, in the style of Hive
//!     `----------------------------------------------------------- table
//! ```
//!
//! `rows.rs` has the tables and their columns. A [`Sheet`] is a file in the making: at most one row group is in memory,
//! and the file has a name that readers ignore. [`Batch::finish`] gives all files of a run their names, and removes the
//! files of an earlier run for the same trace and scope. [`remove_left`] removes what a killed run has left.

mod batch;
mod covered;
mod part;
mod rows;
mod sheet;

pub use self::batch::{Batch, Done, host, remove_left};
pub use self::covered::{Covered, covered};
pub use self::rows::{Alert, Cell, Column, Coverage, Edge, Gap, Interval, Row, TABLES, Type};
pub use self::sheet::Sheet;
