// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A disk request whose completion woke a thread: its stages, and when it reached each.

use crate::context::Disk;
use crate::ids::ThreadId;

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Reads or writes, or the kind is not recorded.
    Plain,
    /// Makes the disk write out its cache.
    Flush,
    /// Marks blocks as unused.
    Discard,
    /// Anything else, such as writing zeroes or resetting a zone.
    Other,
}

/// A completed request. Times are ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The disk that completed the request.
    pub disk: Disk,
    /// When the request entered the block layer; with stacked devices, at the topmost one.
    pub entered: Option<u64>,
    /// When the request was submitted to the disk. A cgroup's limit holds a request back before that.
    pub queued: Option<u64>,
    /// The thread that entered the request. `None` if the thread is not recorded, if a limit held the request back
    /// until a worker submitted it, if several threads entered its parts, or if this may be a request that another
    /// thread entered for the same sectors. In the last two cases, the stages of the request are unknown, too.
    pub of: Option<ThreadId>,
    /// When the work item for bios held back by io.max submitted the request: the limit held it back until then.
    pub limited: Option<u64>,
    /// When a `struct request` of the disk was allocated. Writeback throttling, io.cost, io.latency and a lack of tags
    /// hold the request back before that.
    pub allocated: Option<u64>,
    /// When the request was last issued to the driver, before the driver completed any part of it.
    pub issued: u64,
    /// Its kind.
    pub kind: Kind,
}
