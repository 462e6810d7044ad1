// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reads one stream: its files one after another, packet by packet, event by event.
//!
//! ```text
//! file     | packet | packet      | packet |  ...
//! packet     header, context (times, sizes, events lost so far), events ...
//! window                [::::::::::]        part of the packet in memory
//! batch                 [e e  e e e ]       the decoded events of a window
//! ```

mod batch;
mod fill;
mod header;
mod index;
mod lost;
mod packet;

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) use self::batch::{Batch, Record};
pub use self::index::Span;
pub(crate) use self::index::{Index, Start};
pub use self::lost::{Lost, Missing};
pub(crate) use self::packet::MAGIC;
use self::packet::Packet;
use crate::error::{Error, Result, What};
use crate::program::{FUEL, State, Stop, Window};
use crate::schema::{Clock, NodeId, Program, Schema};

/// Windows start at a multiple of this, bytes.
const PAGE: u64 = crate::metadata::field::ALIGN as u64 / 8;
/// Size of a window, bytes. With many streams, windows are smaller; for a larger event, a window grows.
pub(crate) const WINDOW: usize = 256 << 10;

/// A file of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) path: PathBuf,
    /// Size when the trace was opened.
    pub(crate) size: u64,
}

impl Part {
    /// Whether the file has grown since the trace was opened: then it is still being written.
    pub(crate) fn has_grown(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|facts| facts.len() > self.size)
    }
}

/// What does not change while a stream is read: which stream it is, and its files.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// The index of the stream among all streams.
    pub(crate) index: usize,
    /// The index of its trace.
    pub(crate) trace: usize,
    /// The index of its stream class.
    pub(crate) class: usize,
    pub(crate) parts: Arc<[Part]>,
    pub(crate) growing: bool,
}

impl Origin {
    /// Returns the bytes before this place, and the total.
    pub(crate) fn progress(&self, (part, offset): (usize, u64)) -> (u64, u64) {
        let size = |parts: &[Part]| parts.iter().map(|part| part.size).sum::<u64>();
        let before = self.parts.get(..part).map_or(0, size);
        (before + offset, size(&self.parts))
    }
}

/// What comes after a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Another window, perhaps of no event.
    Window,
    Lost(Lost),
    End,
}

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) origin: Origin,
    /// Stream ID in the packet that was opened last.
    pub(crate) id: Option<u64>,
    cpu: Option<u32>,
    /// Whether one of its files has grown since the trace was opened.
    grew: bool,
    /// Whether the class is unknown until the first packet has been read.
    any: bool,
    clock: Option<Clock>,
    /// Offset of the clock, if it counts nanoseconds.
    offset: Option<i64>,
    packet_context: Option<NodeId>,
    /// The open file, with its index among the parts.
    open: Option<(usize, File)>,
    /// Whether the file stays open between two batches.
    stays_open: bool,
    /// Start of the next packet.
    at: (usize, u64),
    pub(crate) packet: Packet,
    /// The latest time that an event of the packet may have, cycles.
    latest: u64,
    /// Whether the packet is open, and losses before it are being reported.
    ready: bool,
    /// The previous packet.
    before: Option<Packet>,
    /// The counter of discarded events before the first packet, if another trace has it.
    earlier: Option<u64>,
    /// The counter of discarded events in the packet before the previous one.
    discarded: Option<u64>,
    /// Whether a packet has been opened, and the losses at its end have not been computed yet.
    has_packet: bool,
    lost: Vec<Lost>,
    /// The unreadable rest of a damaged packet.
    rest: Option<Lost>,
    /// The bytes of the window. Between two batches, they are in the last batch.
    bytes: Vec<u8>,
    /// Number of bytes of the packet in the window, and their offset in the packet.
    filled: usize,
    base: u64,
    /// Size of the window, bytes, unless an event is larger.
    size: usize,
    /// Ends of the current event, of the packet's content, and of the part in memory, in bits of
    /// the window. `limit` is 0 while no events are read.
    pos: u64,
    limit: u64,
    end: u64,
    /// Why the last event of the window could not be decoded.
    stop: Option<Stop>,
    /// The packet's header and context.
    context: Vec<u8>,
    context_at: u64,
    state: State,
    /// The time of the last event.
    cycles: u64,
}

impl Stream {
    pub(crate) fn new(schema: &Schema, origin: Origin) -> Self {
        let stream = schema.streams.get(origin.class);
        let clock = stream
            .and_then(|s| s.clock)
            .and_then(|c| schema.clocks.get(c));
        let anchors = schema.classes.iter().map(|c| c.program.anchors).max();
        Self {
            origin,
            id: None,
            cpu: None,
            grew: false,
            any: false,
            clock: clock.cloned(),
            offset: clock.map_or(Some(0), Clock::offset),
            packet_context: stream.and_then(|s| s.packet_context),
            open: None,
            stays_open: true,
            at: (0, 0),
            packet: Packet::default(),
            latest: u64::MAX,
            ready: false,
            before: None,
            earlier: None,
            discarded: None,
            has_packet: false,
            lost: Vec::new(),
            rest: None,
            bytes: Vec::new(),
            filled: 0,
            base: 0,
            size: WINDOW,
            pos: 0,
            limit: 0,
            end: 0,
            stop: None,
            context: Vec::new(),
            context_at: 0,
            state: State {
                slots: vec![0; schema.slots as usize],
                anchors: vec![0; anchors.unwrap_or(0) as usize],
                ..State::default()
            },
            cycles: 0,
        }
    }

    /// Sets the size of the window, and whether the file stays open between two batches: with many streams, windows
    /// are smaller, and not all files can be open.
    pub(crate) fn limit(&mut self, window: usize, stays_open: bool) {
        (self.size, self.stays_open) = (window, stays_open);
    }

    /// Starts reading events from this window.
    fn enter(&mut self) {
        self.limit = self.packet.content.saturating_sub(8 * self.base);
        self.end = self.limit.min(8 * self.filled as u64);
    }

    #[inline]
    fn nanoseconds(&self, cycles: u64) -> i64 {
        match (self.offset, &self.clock) {
            (Some(offset), _) => offset.wrapping_add(cycles as i64),
            (None, Some(clock)) => clock.nanoseconds(cycles),
            (None, None) => cycles as i64,
        }
    }

    /// Creates an error at `bit` of the current packet.
    #[cold]
    fn fault(&self, bit: u64, what: impl Into<What>) -> Error {
        let part = self.origin.parts.get(self.packet.part);
        let path = part.map(|p| p.path.clone());
        Error {
            file: path.unwrap_or_default(),
            offset: self.packet.offset + bit / 8,
            packet: Some(self.packet.offset),
            what: what.into(),
        }
    }

    /// Advances to more of the packet, to a loss, to the next packet, or to the end. After an error, continues past
    /// the fault.
    #[cold]
    fn proceed(&mut self, schema: &Schema) -> Result<Next> {
        let stop = self.stop.take();
        if stop.is_none() && self.pos >= self.limit {
            return self.between(schema);
        }
        self.again(stop)?;
        Ok(Next::Window)
    }

    /// Reads more of the packet into the window, if decoding stopped because the window ended or the batch was full.
    #[cold]
    fn again(&mut self, stop: Option<Stop>) -> Result<()> {
        self.limit = 0;
        if let (Some(_), Some(Stop::More(want))) = (self.packet.cut, &stop)
            && self.is_beyond(want.saturating_add(8 * self.base))
        {
            return Ok(());
        }
        if let Err(error) = self.more(stop) {
            // Report only one error per packet.
            self.packet.cut = None;
            self.lose_rest();
            return Err(error);
        }
        self.enter();
        Ok(())
    }

    /// Advances between packets: to a loss, the next packet, or the end.
    #[cold]
    fn between(&mut self, schema: &Schema) -> Result<Next> {
        self.limit = 0;
        // If losses before a packet are being reported, the packet has not been read yet.
        if !self.ready {
            self.end_cut()?;
        }
        if let Some(lost) = self.rest.take() {
            return Ok(Next::Lost(lost));
        }
        if !self.ready {
            // The time of the last event, or the start of the packet.
            let last = self.cycles;
            self.ready = self.next_packet(schema)?;
            if self.ready || self.has_packet {
                self.find_lost(last, self.ready);
            }
            self.has_packet = self.ready;
        }
        if let Some(lost) = self.lost.pop() {
            return Ok(Next::Lost(lost));
        }
        if !self.ready {
            return Ok(Next::End);
        }
        self.ready = false;
        self.enter();
        Ok(Next::Window)
    }

    /// Decodes the event at `pos`, and returns its class and the program of the class. If decoding stops early, the
    /// position and the clock are unchanged.
    #[inline]
    fn decode<'s>(&mut self, schema: &'s Schema) -> Result<(u32, &'s Program), Stop> {
        let Some(class) = schema.streams.get(self.origin.class) else {
            return Err(Stop::bad("no such data stream class"));
        };
        let begin = self.pos;
        let window = Window {
            bytes: &self.bytes[..self.filled],
            end: self.end,
        };
        self.state.fuel = FUEL;
        let (number, cycles, pos) = match class.fast {
            Some(fast) => header::fast(window, begin, fast, self.cycles)?,
            None => header::any(schema, class, window, begin, &mut self.state, self.cycles)?,
        };
        if cycles > self.latest {
            return Err(Stop::bad(
                "an event that is later than the end of its packet",
            ));
        }
        let index = class.events.get(number);
        let Some((index, event)) = index.and_then(|i| Some((i, schema.classes.get(i as usize)?)))
        else {
            return Err(unknown(number));
        };
        let end = event.program.run(schema, window, pos, &mut self.state)?;
        if end == begin {
            return Err(Stop::bad("an event of no size"));
        }
        self.cycles = cycles;
        self.pos = end;
        Ok((index, &event.program))
    }

    /// Opens a file of an unknown stream, and reads the header of its first packet.
    pub(crate) fn probe(schema: &Schema, part: Part, growing: bool) -> Result<Option<Self>> {
        let origin = Origin {
            index: 0,
            trace: 0,
            class: 0,
            parts: Arc::from([part]),
            growing,
        };
        let mut stream = Self::new(schema, origin);
        stream.any = true;
        stream.size = PAGE as usize;
        let there = stream.open_packet(schema)?;
        // All files of a trace are probed before they are read.
        stream.open = None;
        Ok(there.then_some(stream))
    }
}

#[cold]
fn unknown(number: u64) -> Stop {
    Stop::bad(format!(
        "an event of class {number}, which is not in the metadata"
    ))
}
