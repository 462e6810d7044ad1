// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A disk request whose completion has woken a thread: its stages, and when each ended.

use crate::context::Disk;
use crate::ids::ThreadId;

/// The kind of a request, besides reading and writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Reads or writes; or that is not recorded.
    Plain,
    /// Has the disk write its cache out.
    Flush,
    /// Gives blocks back to the disk.
    Discard,
    /// Neither reads nor writes nor is one of these: such as writing zeroes, or resetting a zone.
    Other,
}

/// A completed request. Times are ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The disk that has completed it.
    pub disk: Disk,
    /// When it entered the block layer: of a stacked device, that one.
    pub entered: Option<u64>,
    /// When it was submitted to the disk. A cgroup's limit holds it back before.
    pub queued: Option<u64>,
    /// The thread whose request it is: the one that entered it. `None` if that is not recorded, if a limit held it back,
    /// which leaves it to a worker, or if it has parts of several threads; then its places
    /// are not known either.
    pub of: Option<ThreadId>,
    /// When it was submitted by the work that io.max of a cgroup leaves it to: until then, that has held it back.
    pub limited: Option<u64>,
    /// When it got one of the disk's requests. Writeback throttling, io.cost and tags hold it back before.
    pub allocated: Option<u64>,
    /// When the driver got it, the last time.
    pub issued: u64,
    /// Its kind.
    pub kind: Kind,
}
