// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What the tracer could not keep: two packets of a stream, one after the other, tell. And what it has kept, but cannot
//! be read: the rest of a damaged packet.

use super::Stream;

/// What was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Events, between two packets.
    Events,
    /// Packets, between two others.
    Packets,
    /// The rest of a packet that cannot be read; how many events it has, nothing tells. The error came before.
    Rest,
}

/// What was lost of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// The stream it was lost from, and its CPU.
    pub stream: usize,
    /// The number of its trace, as of [`crate::Event::trace`].
    pub trace: usize,
    /// The CPU of the stream.
    pub cpu: Option<u32>,
    /// Events, packets, or the rest of one.
    pub what: Missing,
    /// How many of them.
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
        let (old, new) = (before.discarded, self.packet.discarded);
        let events = old.zip(new).map_or(0, |(old, new)| new.saturating_sub(old));
        let (old, new) = (before.number, self.packet.number);
        let packets = old
            .zip(new)
            .map_or(0, |(old, new)| new.saturating_sub(old).saturating_sub(1));
        if events > 0 {
            self.lost
                .push(self.lost(Missing::Events, events, (from, end)));
        }
        if packets > 0 {
            self.lost
                .push(self.lost(Missing::Packets, packets, (from, begin)));
        }
    }

    /// The rest of the present packet cannot be read: what comes after the last event of it.
    pub(super) fn lose_rest(&mut self) {
        let from = self.cycles;
        let to = self.packet.end.unwrap_or(from).max(from);
        self.rest = Some(self.lost(Missing::Rest, 1, (from, to)));
    }

    fn lost(&self, what: Missing, count: u64, (from, to): (u64, u64)) -> Lost {
        let at = |cycles| {
            let clock = self.clock.as_ref();
            clock.map_or(cycles as i64, |c| c.nanoseconds(cycles))
        };
        Lost {
            stream: self.index,
            trace: self.trace,
            cpu: self.cpu,
            what,
            count,
            cycles: (from, to),
            nanoseconds: (at(from), at(to)),
        }
    }
}
