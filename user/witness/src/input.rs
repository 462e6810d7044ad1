// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Events of the block layer, in one form for ftrace and LTTng.

use crate::babeltrace::Dev;

/// A step of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Entered the I/O scheduler.
    Insert,
    /// Issued to the driver.
    Issue,
    /// Returned by the driver, unfinished.
    Requeue,
    /// Merged into the preceding request.
    Merge,
    /// Completed, in whole or in part.
    Complete,
}

impl Kind {
    /// Returns the kind by the name of the tracepoint.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "block_rq_insert" => Some(Kind::Insert),
            "block_rq_issue" => Some(Kind::Issue),
            "block_rq_requeue" => Some(Kind::Requeue),
            "block_rq_merge" => Some(Kind::Merge),
            "block_rq_complete" => Some(Kind::Complete),
            _ => None,
        }
    }
}

/// An event of the block layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockEvent {
    /// `CLOCK_MONOTONIC`, ns.
    pub(crate) time: u64,
    pub(crate) kind: Kind,
    pub(crate) dev: Dev,
    /// The first sector; requests without one (a flush) have 0.
    pub(crate) sector: u64,
    /// Number of sectors.
    pub(crate) sectors: u64,
    /// Operation and flags, comparable only within one trace.
    pub(crate) op: String,
}

/// Converts the position of a request without one, which a completion reports as -1, to 0 as in other events.
pub(crate) fn position(sector: u64) -> u64 {
    if sector == u64::MAX { 0 } else { sector }
}
