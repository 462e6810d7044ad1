// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Index of the packets of a stream by time, so that reading can start anywhere.

use super::{Origin, PAGE, Packet, Stream};
use crate::schema::Schema;

/// The start of a packet, by default of the first one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Start {
    /// The index of its file in the stream, and its offset in the file, in bytes.
    pub(crate) at: (usize, u64),
    /// The counter of discarded events in the packet before it.
    discarded: Option<u64>,
}

/// Starts of packets, by time: all packets, or every second, fourth, ... if the stream has very
/// many.
#[derive(Debug, Default)]
pub(crate) struct Index {
    entries: Vec<(i64, Start)>,
    every: u64,
    seen: u64,
}

impl Index {
    /// Maximum number of entries. More would waste memory: the packets between two entries are read
    /// quickly.
    const MOST: usize = 16 << 10;

    fn push(&mut self, begin: i64, start: Start) {
        self.every = self.every.max(1);
        if self.seen.is_multiple_of(self.every) {
            if self.entries.len() >= Self::MOST {
                let mut odd = false;
                self.entries.retain(|_| {
                    odd = !odd;
                    odd
                });
                self.every *= 2;
            }
            if self.seen.is_multiple_of(self.every) {
                self.entries.push((begin, start));
            }
        }
        self.seen += 1;
    }

    /// Returns the last known packet that starts before `time`. If a packet starts at `time`, the last event of the
    /// packet before it may have the same time.
    pub(crate) fn before(&self, time: i64) -> Option<Start> {
        let next = self.entries.partition_point(|(begin, _)| *begin < time);
        let entry = self.entries.get(next.checked_sub(1)?)?;
        Some(entry.1)
    }
}

/// The range of a stream, from its first to its last packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The index of its trace, as in [`crate::Event::trace`].
    pub trace: usize,
    /// The stream within its trace: the index of its class, and its own ID, if packets have one.
    pub stream: (usize, Option<u64>),
    /// The CPU of the stream.
    pub cpu: Option<u32>,
    /// From the start of the first packet to the end of the last, in cycles of the trace's clock.
    pub cycles: (u64, u64),
    /// The sequence numbers of the first and the last packet, if all packets have one.
    pub numbers: Option<(u64, u64)>,
    /// The counter of discarded events in the last packet, if packets have one.
    pub discarded: Option<u64>,
}

impl Origin {
    /// Returns a stream that reads the headers of the packets.
    fn walker(&self, schema: &Schema) -> Stream {
        let mut walker = Stream::new(schema, self.clone());
        walker.size = PAGE as usize;
        walker
    }

    /// Returns the range of the stream; `None` if no packet can be read. Reads the header of each
    /// packet.
    pub(crate) fn span(&self, schema: &Schema) -> Option<Span> {
        let mut walker = self.walker(schema);
        let mut span: Option<Span> = None;
        loop {
            match walker.next_packet(schema) {
                Ok(true) => {}
                Ok(false) => return span,
                // The next file may be readable.
                Err(_) => continue,
            }
            let packet = walker.packet.clone();
            let begin = packet.begin.unwrap_or(walker.cycles);
            let mut end = packet.end.unwrap_or(begin);
            if packet.cut.is_some() {
                // The packet ends at its last event.
                match walker.last(schema) {
                    Some(last) => end = last,
                    None => continue,
                }
            }
            let span = span.get_or_insert(Span {
                trace: self.trace,
                stream: (self.class, walker.id),
                cpu: walker.cpu,
                cycles: (begin, end),
                numbers: packet.number.map(|number| (number, number)),
                discarded: None,
            });
            span.cycles.1 = span.cycles.1.max(end);
            span.discarded = packet.discarded;
            span.numbers = span
                .numbers
                .zip(packet.number)
                .map(|((first, _), last)| (first, last));
        }
    }

    /// Returns an index of the readable packets of this stream.
    pub(crate) fn packets(&self, schema: &Schema) -> Index {
        let mut index = Index::default();
        let mut walker = self.walker(schema);
        loop {
            match walker.next_packet(schema) {
                Ok(true) => {}
                Ok(false) => return index,
                // The next file may be readable.
                Err(_) => continue,
            }
            if let Some(begin) = walker.packet.begin {
                let before = walker.before.as_ref();
                let start = Start {
                    at: (walker.packet.part, walker.packet.offset),
                    discarded: before.and_then(|before| before.discarded),
                };
                index.push(walker.nanoseconds(begin), start);
            }
            walker.cycles = 0;
        }
    }
}

impl Stream {
    /// Returns the time of the last readable event of the packet that has just been opened.
    fn last(&mut self, schema: &Schema) -> Option<u64> {
        let mut last = None;
        self.enter();
        while self.pos < self.limit {
            match self.decode(schema) {
                Ok(_) => last = Some(self.cycles),
                Err(stop) => {
                    if self.again(Some(stop)).is_err() {
                        break;
                    }
                }
            }
        }
        self.limit = 0;
        last
    }

    /// Restarts reading at this packet.
    pub(crate) fn rewind(&mut self, start: Start) {
        self.at = start.at;
        self.limit = 0;
        self.ready = false;
        self.packet = Packet::default();
        self.before = None;
        self.discarded = match start.at {
            (0, 0) => self.earlier,
            _ => start.discarded,
        };
        self.has_packet = false;
        self.lost.clear();
        self.rest = None;
        self.stop = None;
        // Values of what was read before, perhaps ahead of the reader, must not show.
        self.cpu = None;
        self.state.slots.fill(0);
        self.cycles = 0;
    }
}
