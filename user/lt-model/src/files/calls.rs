// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The calls whose file is known.

use super::FileName;
use crate::ids::ThreadId;
use crate::tiles::{push, with_room};

/// All calls whose file is known.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// The thread, the end, the start and the file; sorted once complete.
    all: Vec<(ThreadId, u64, u64, FileName)>,
}

impl Calls {
    /// Adds a call.
    pub(crate) fn push(&mut self, thread: ThreadId, (begin, end): (u64, u64), file: FileName) {
        push(&mut self.all, (thread, end, begin, file));
    }

    /// Drops all calls.
    pub(crate) fn clear(&mut self) {
        self.all = Vec::new();
    }

    /// Sorts the calls, once all are stored.
    pub(crate) fn finish(&mut self) {
        self.all.sort_unstable();
    }

    /// The file of the call in which `thread` was from `begin` to `end`.
    pub(crate) fn file(&self, thread: ThreadId, begin: u64, end: u64) -> Option<FileName> {
        let all = &self.all;
        let first = all.partition_point(|(of, ends, ..)| (*of, *ends) < (thread, end));
        let (of, _, begins, file) = all.get(first)?;
        (*of == thread && *begins <= begin).then_some(*file)
    }

    /// Memory in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self.all.len() {
            0 => 0,
            calls => with_room(calls * size_of::<(ThreadId, u64, u64, FileName)>()),
        }
    }
}
