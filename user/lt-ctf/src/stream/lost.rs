// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What the tracer could not keep: two packets of a stream, one after the other, tell.

use super::Stream;

/// What was lost between two packets of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// The stream it was lost from, and its CPU.
    pub stream: usize,
    /// The CPU of the stream.
    pub cpu: Option<u32>,
    /// Whole packets, or single events.
    pub packets: bool,
    /// How many.
    pub count: u64,
    /// Between these times: cycles of the trace's clock, as of [`crate::Event::cycles`].
    pub cycles: (u64, u64),
    /// The same in ns since the clock's origin.
    pub nanoseconds: (i64, i64),
}

impl Stream {
    /// Compares the packet with the one before it.
    pub(super) fn find_lost(&mut self) {
        let Some(before) = &self.before else {
            return;
        };
        let from = before.end.or(before.begin).unwrap_or(0);
        let begin = self.packet.begin.unwrap_or(from).max(from);
        let end = self.packet.end.unwrap_or(begin).max(begin);
        let mut lost = |packets, count, to| {
            self.lost.push(Lost {
                stream: self.index,
                cpu: self.cpu,
                packets,
                count,
                cycles: (from, to),
                nanoseconds: (
                    self.clock
                        .as_ref()
                        .map_or(from as i64, |c| c.nanoseconds(from)),
                    self.clock.as_ref().map_or(to as i64, |c| c.nanoseconds(to)),
                ),
            });
        };
        if let (Some(old), Some(new)) = (before.discarded, self.packet.discarded)
            && new > old
        {
            lost(false, new - old, end);
        }
        if let (Some(old), Some(new)) = (before.number, self.packet.number)
            && new > old.saturating_add(1)
        {
            lost(true, new - old - 1, begin);
        }
    }
}
