// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Losses: events and packets that the tracer discarded, computed from consecutive packets of a stream, and the
//! unreadable rest of a damaged packet.

use super::Stream;

/// A kind of loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Events after the last event of a packet and before the next packet.
    Events,
    /// Packets between two other packets.
    Packets,
    /// The unreadable end of a packet, with an unknown number of events. It follows the error.
    Rest,
}

/// A loss of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// The index of the stream with the loss.
    pub stream: usize,
    /// The index of its trace, as in [`crate::Event::trace`].
    pub trace: usize,
    /// The CPU of the stream.
    pub cpu: Option<u32>,
    /// The kind of the loss.
    pub what: Missing,
    /// Number of lost items; 1 for [`Missing::Rest`].
    pub count: u64,
    /// The loss is between these times, cycles of the trace's clock, as in
    /// [`crate::Event::cycles`].
    pub cycles: (u64, u64),
    /// The times of `cycles`, in ns since the clock's origin.
    pub nanoseconds: (i64, i64),
}

impl Stream {
    /// Sets the counter of discarded events before the first packet: the stream continues a stream of another trace.
    pub(crate) fn continue_from(&mut self, discarded: u64) {
        (self.earlier, self.discarded) = (Some(discarded), Some(discarded));
    }

    /// Finds losses: compares the packet, if there is one, with its predecessor, whose last event
    /// was at `last`.
    ///
    /// A packet's counter of discarded events is stored when the packet is closed, which happens at
    /// the first event that fits again. The events that a packet counts were thus lost after its own
    /// last event, and before the next packet.
    pub(super) fn find_lost(&mut self, last: u64, is_open: bool) {
        let Some(before) = &self.before else {
            return;
        };
        let end = before.end.or(before.begin).unwrap_or(0).max(last);
        let begin = self.packet.begin.filter(|_| is_open);
        let begin = begin.unwrap_or(end).max(last);
        let owed = self.owed();
        let packets = match (before.number, self.packet.number) {
            (Some(old), Some(new)) if is_open => new.saturating_sub(old).saturating_sub(1),
            _ => 0,
        };
        // Callers pop from the end of the list, so the earliest loss goes last.
        if packets > 0 {
            let lost = self.lost(Missing::Packets, packets, (end.min(begin), begin));
            self.lost.push(lost);
        }
        if owed > 0 {
            let lost = self.lost(Missing::Events, owed, (last, begin));
            self.lost.push(lost);
        }
        self.discarded = self.before.as_ref().and_then(|before| before.discarded);
    }

    /// Returns how many events were lost at the end of the previous packet: the difference between
    /// its counter and the counter of its own predecessor. The counter before the first packet of a
    /// recording is 0.
    fn owed(&self) -> u64 {
        let before = self.before.as_ref();
        let new = before.and_then(|before| before.discarded);
        let is_first = before.is_some_and(|before| before.number == Some(0));
        let old = self.discarded.or(is_first.then_some(0));
        old.zip(new).map_or(0, |(old, new)| new.saturating_sub(old))
    }

    /// Reports that the current packet cannot be read beyond its last event.
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
            stream: self.origin.index,
            trace: self.origin.trace,
            cpu: self.cpu,
            what,
            count,
            cycles: (from, to),
            nanoseconds: (at(from), at(to)),
        }
    }
}
