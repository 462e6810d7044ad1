// SPDX-License-Identifier: GPL-2.0 OR MIT

//! One stream: its files one after the other, packet by packet, event by event.
//!
//! ```text
//! file     | packet | packet      | packet |  ...
//! packet     header, context (times, sizes, events lost so far), events ...
//! window                [::::::::::]        what is in memory of the packet
//! ```
//!
//! A window is read, not mapped: mapping is unsafe, for the file may shrink (a recording that goes on may well
//! do that) and then the process dies of SIGBUS; reading 256 KiB costs 20 us, decoding it 200 us or more.
//! It begins at a multiple of 4096 bytes of its packet, so that alignment within it is alignment within the packet,
//! and grows only when one single event does not fit.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::bits::{self, Order};
use crate::error::{Error, Result, What};
use crate::program::{FUEL, Roles, State, Stop, Window, align, tick, walk};
use crate::schema::{Clock, Fast, Kind, NodeId, Schema, Shape, StreamClass};

/// Windows begin at a multiple of this, bytes.
const PAGE: u64 = crate::metadata::field::ALIGN as u64 / 8;
/// The size of a window, bytes; with many streams, less.
pub(crate) const WINDOW: usize = 256 << 10;
/// One event, or the begin of a packet, has to fit into so much, bytes.
const LARGEST: usize = 16 << 20;
const MAGIC: u64 = 0xc1fc_1fc1;

/// A file of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) path: PathBuf,
    /// As it was when the trace was opened.
    pub(crate) size: u64,
}

/// Where a packet is and what it says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Packet {
    /// Which file of the stream, and where in it, bytes.
    pub(crate) part: usize,
    pub(crate) offset: u64,
    /// With what follows the events, bytes; without, bits.
    pub(crate) total: u64,
    pub(crate) content: u64,
    /// Where the events begin, bits.
    pub(crate) events: u64,
    /// Cycles.
    pub(crate) begin: Option<u64>,
    pub(crate) end: Option<u64>,
    pub(crate) number: Option<u64>,
    pub(crate) discarded: Option<u64>,
}

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

/// What a stream has next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Event,
    Lost(Lost),
    End,
}

pub(crate) struct Stream {
    pub(crate) index: usize,
    pub(crate) trace: usize,
    /// Its place among the stream classes.
    pub(crate) class: usize,
    /// What its last packet says which stream it is.
    pub(crate) id: Option<u64>,
    pub(crate) parts: Vec<Part>,
    pub(crate) cpu: Option<u32>,
    growing: bool,
    /// Takes the class that its first packet names.
    any: bool,
    clock: Option<Clock>,
    /// What to add to a clock that counts nanoseconds.
    offset: Option<i64>,
    packet_context: Option<NodeId>,
    /// The file that is open, and its number among the parts.
    open: Option<(usize, File)>,
    /// Where the next packet begins.
    pub(crate) at: (usize, u64),
    pub(crate) packet: Packet,
    /// Its events are being read; or it is open, and what was lost before it is being told.
    inside: bool,
    ready: bool,
    /// Before the present one.
    before: Option<Packet>,
    lost: Vec<Lost>,
    /// What it has next is no event, but this.
    pub(crate) told: Option<Lost>,
    bytes: Vec<u8>,
    /// How much of `bytes` is of the packet, and where in the packet it begins, bytes.
    filled: usize,
    base: u64,
    size: usize,
    /// The end of the present event in the window, bits.
    pos: u64,
    /// The packet's header and context.
    context: Vec<u8>,
    context_at: u64,
    pub(crate) state: State,
    /// Of the present event.
    pub(crate) event: u32,
    pub(crate) cycles: u64,
}

impl Stream {
    pub(crate) fn new(schema: &Schema, class: usize, parts: Vec<Part>, growing: bool) -> Self {
        let stream = schema.streams.get(class);
        let clock = stream
            .and_then(|s| s.clock)
            .and_then(|c| schema.clocks.get(c));
        let anchors = schema.classes.iter().map(|c| c.program.anchors).max();
        Self {
            index: 0,
            trace: 0,
            class,
            id: None,
            parts,
            cpu: None,
            growing,
            any: false,
            clock: clock.cloned(),
            offset: clock.map_or(Some(0), Clock::offset),
            packet_context: stream.and_then(|s| s.packet_context),
            open: None,
            at: (0, 0),
            packet: Packet::default(),
            inside: false,
            ready: false,
            before: None,
            lost: Vec::new(),
            told: None,
            bytes: Vec::new(),
            filled: 0,
            base: 0,
            size: WINDOW,
            pos: 0,
            context: Vec::new(),
            context_at: 0,
            state: State {
                slots: vec![0; schema.slots as usize],
                anchors: vec![0; anchors.unwrap_or(0) as usize],
                ..State::default()
            },
            event: 0,
            cycles: 0,
        }
    }

    /// With many streams the windows are smaller.
    pub(crate) fn limit_window(&mut self, size: usize) {
        self.size = size;
    }

    #[inline]
    pub(crate) fn window(&self) -> Window<'_> {
        let filled = 8 * self.filled as u64;
        let content = self.packet.content.saturating_sub(8 * self.base);
        Window {
            bytes: &self.bytes[..self.filled],
            end: content.min(filled),
        }
    }

    pub(crate) fn packet_fields(&self) -> (&[u8], u64, Option<NodeId>) {
        (&self.context, self.context_at, self.packet_context)
    }

    #[inline]
    pub(crate) fn nanoseconds(&self, cycles: u64) -> i64 {
        match (self.offset, &self.clock) {
            (Some(offset), _) => offset.wrapping_add(cycles as i64),
            (None, Some(clock)) => clock.nanoseconds(cycles),
            (None, None) => cycles as i64,
        }
    }

    /// An error at `bit` of the present packet.
    #[cold]
    fn fault(&self, bit: u64, what: impl Into<What>) -> Error {
        let path = self.parts.get(self.packet.part).map(|p| p.path.clone());
        Error {
            file: path.unwrap_or_default(),
            offset: self.packet.offset + bit / 8,
            what: what.into(),
        }
    }

    /// Goes to the next event, or to what was lost before it. After an error it goes on behind what was wrong.
    #[inline]
    pub(crate) fn advance(&mut self, schema: &Schema) -> Result<Next> {
        loop {
            if self.inside && 8 * self.base + self.pos < self.packet.content {
                return match self.decode(schema) {
                    Ok(()) => Ok(Next::Event),
                    Err(error) => {
                        self.inside = false;
                        Err(error)
                    }
                };
            }
            if let Some(next) = self.between(schema)? {
                return Ok(next);
            }
        }
    }

    /// Between packets: what was lost, the next packet, or the end.
    #[cold]
    fn between(&mut self, schema: &Schema) -> Result<Option<Next>> {
        self.inside = false;
        if !self.ready {
            if !self.next_packet(schema)? {
                return Ok(Some(Next::End));
            }
            self.ready = true;
            self.find_lost();
        }
        self.told = self.lost.pop();
        if let Some(lost) = self.told {
            return Ok(Some(Next::Lost(lost)));
        }
        self.ready = false;
        self.inside = true;
        Ok(None)
    }

    /// Decodes the event at `pos`, with as much of the packet in the window as it takes.
    #[inline]
    fn decode(&mut self, schema: &Schema) -> Result<()> {
        loop {
            let (begin, cycles) = (self.pos, self.cycles);
            match self.try_decode(schema) {
                Ok(()) => return Ok(()),
                Err(stop) => {
                    (self.pos, self.cycles) = (begin, cycles);
                    self.more(stop)?;
                }
            }
        }
    }

    #[inline]
    fn try_decode(&mut self, schema: &Schema) -> Result<(), Stop> {
        let Some(class) = schema.streams.get(self.class) else {
            return Err(Stop::bad("no such data stream class"));
        };
        let begin = self.pos;
        let filled = 8 * self.filled as u64;
        let content = self.packet.content.saturating_sub(8 * self.base);
        let window = Window {
            bytes: &self.bytes[..self.filled],
            end: content.min(filled),
        };
        let (number, cycles, pos) = match class.fast {
            Some(fast) => header(window, begin, fast, self.cycles)?,
            None => slow_header(schema, class, window, begin, &mut self.state, self.cycles)?,
        };
        let found = class.events.get(number);
        let index = found.ok_or_else(|| {
            Stop::bad(format!(
                "an event of class {number}, which is not in the metadata"
            ))
        })?;
        let Some(event) = schema.classes.get(index as usize) else {
            return Err(Stop::bad("no such event class"));
        };
        self.state.fuel = FUEL;
        let end = event.program.run(schema, window, pos, &mut self.state)?;
        if end == begin {
            return Err(Stop::bad("an event of no size"));
        }
        self.event = index;
        self.cycles = cycles;
        self.pos = end;
        Ok(())
    }

    /// Gets more of the packet, if that is why it stopped.
    #[cold]
    fn more(&mut self, stop: Stop) -> Result<()> {
        let at = 8 * self.base + self.pos;
        let want = match stop {
            Stop::Bad(what) => return Err(self.fault(at, What::Data(what.into()))),
            Stop::More(want) => want.saturating_add(8 * self.base),
        };
        if want > self.packet.content
            || self.base + self.filled as u64 >= self.packet.content.div_ceil(8)
        {
            let what = format!(
                "an event that passes the end of its packet at bit {}",
                self.packet.content
            );
            return Err(self.fault(at, What::Data(what)));
        }
        // From the page of this event's begin; twice as large when that is where it begins now.
        let base = at / 8 / PAGE * PAGE;
        let mut size = self.size.max(self.bytes.len());
        if base == self.base {
            size = (2 * self.filled).max(self.size);
        }
        let need = usize::try_from(want.div_ceil(8) - base).unwrap_or(usize::MAX);
        if size.max(need) > LARGEST {
            return Err(self.fault(
                at,
                What::Data(format!("an event of more than {LARGEST} bytes")),
            ));
        }
        self.fill(base, size.max(need))?;
        self.pos = at - 8 * base;
        Ok(())
    }

    /// Has the window hold `size` bytes of the packet from byte `base` on, or all that there is.
    fn fill(&mut self, base: u64, size: usize) -> Result<()> {
        let left = self.packet.content.div_ceil(8).saturating_sub(base);
        let size = size.min(usize::try_from(left).unwrap_or(usize::MAX));
        if self.bytes.len() < size {
            self.bytes.resize(size, 0);
        }
        let (part, offset) = (self.packet.part, self.packet.offset + base);
        self.base = base;
        self.filled = 0;
        let mut bytes = std::mem::take(&mut self.bytes);
        let got = self.read(part, offset, &mut bytes[..size]);
        self.bytes = bytes;
        let got = got?;
        if got < size {
            // It has become shorter since.
            let there = base + got as u64;
            return Err(self.fault(
                8 * base,
                What::Truncated {
                    packet: self.packet.total,
                    there,
                },
            ));
        }
        self.filled = size;
        Ok(())
    }

    /// Reads until the buffer is full or the file ends.
    fn read(&mut self, part: usize, offset: u64, into: &mut [u8]) -> Result<usize> {
        let path = &self.parts[part].path;
        let wrong = |e| Error::new(path, offset, What::Io(e));
        if self.open.as_ref().is_none_or(|(open, _)| *open != part) {
            self.open = Some((part, File::open(path).map_err(wrong)?));
        }
        let Some((_, file)) = &self.open else {
            return Ok(0);
        };
        let mut got = 0;
        while got < into.len() {
            match file.read_at(&mut into[got..], offset + got as u64) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(wrong(e)),
            }
        }
        Ok(got)
    }

    /// Goes to the packet at `at`; false at the end of the last file.
    fn next_packet(&mut self, schema: &Schema) -> Result<bool> {
        let before = std::mem::take(&mut self.packet);
        if before.events > 0 || before.total > 0 {
            self.before = Some(before);
        }
        while self
            .parts
            .get(self.at.0)
            .is_some_and(|p| p.size <= self.at.1)
        {
            self.at = (self.at.0 + 1, 0);
        }
        if self.at.0 >= self.parts.len() {
            self.close();
            return Ok(false);
        }
        let result = self.open_packet(schema);
        match result {
            Ok(true) => {
                self.at.1 = self.packet.offset + self.packet.total;
                Ok(true)
            }
            // What follows in this file cannot be found.
            stopped => {
                self.packet = Packet::default();
                self.at = (self.at.0 + 1, 0);
                match stopped {
                    Ok(_) => self.next_packet(schema),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Nothing more will be read: gives the memory and the file back.
    fn close(&mut self) {
        self.open = None;
        self.bytes = Vec::new();
        self.filled = 0;
    }

    /// Reads the begin of the packet at `at`. False when it is not there yet.
    pub(crate) fn open_packet(&mut self, schema: &Schema) -> Result<bool> {
        let (part, offset) = self.at;
        let left = self.parts[part].size - offset;
        // Until it says more, it may reach to the end of the file.
        self.packet = Packet {
            part,
            offset,
            total: left,
            content: left.saturating_mul(8),
            ..Packet::default()
        };
        self.pos = 0;
        self.fill(0, self.size)?;
        loop {
            match self.packet_header(schema) {
                Ok(()) => break,
                Err(stop @ Stop::More(_))
                    if self.growing && self.base + self.filled as u64 >= left =>
                {
                    let _ = stop;
                    return Ok(false);
                }
                Err(Stop::More(want)) if want > self.packet.content => {
                    return Err(self.fault(
                        0,
                        What::Truncated {
                            packet: want.div_ceil(8),
                            there: left,
                        },
                    ));
                }
                Err(stop) => self.more(stop)?,
            }
        }
        let roles = std::mem::take(&mut self.state.roles);
        self.id = roles.stream;
        let (total, content) = match (roles.total, roles.content) {
            (None, None) => (8 * left, 8 * left),
            (Some(total), None) => (total, total),
            (None, Some(content)) => (content, content),
            (Some(total), Some(content)) => (total, content),
        };
        let events = self.pos;
        if total % 8 != 0 || content > total || content < events || total == 0 {
            let what =
                format!("a packet of {total} bits, {content} of them used, {events} by its header");
            return Err(self.fault(0, What::Data(what)));
        }
        if total / 8 > left {
            if self.growing {
                return Ok(false);
            }
            return Err(self.fault(
                0,
                What::Truncated {
                    packet: total / 8,
                    there: left,
                },
            ));
        }
        let begin = roles.timed.then_some(roles.time);
        self.packet = Packet {
            part,
            offset,
            total: total / 8,
            content,
            events,
            begin,
            end: roles.end,
            number: roles.number,
            discarded: roles.discarded,
        };
        self.filled = self.filled.min(content.div_ceil(8) as usize);
        if let Some(begin) = begin {
            self.cycles = begin;
        }
        Ok(true)
    }

    /// The header and the context of the packet in the window; `pos` is behind them then.
    fn packet_header(&mut self, schema: &Schema) -> Result<(), Stop> {
        self.state.roles = Roles {
            time: self.cycles,
            ..Roles::default()
        };
        self.state.fuel = FUEL;
        let window = Window {
            bytes: &self.bytes[..self.filled],
            end: 8 * self.filled as u64,
        };
        let mut pos = 0;
        if let Some(header) = schema.packet_header {
            pos = walk(schema, window, header, pos, &mut self.state)?;
        }
        let roles = &self.state.roles;
        if let Some(magic) = roles.magic.filter(|m| *m != MAGIC) {
            return Err(Stop::bad(format!(
                "no packet begins here: {magic:#x} is not {MAGIC:#x}"
            )));
        }
        if roles.uuid.is_some() && schema.uuid.is_some() && roles.uuid != schema.uuid {
            return Err(Stop::bad(
                "a packet of another trace: its UUID is not that of the metadata",
            ));
        }
        let number = roles.stream_class.unwrap_or(0);
        let class = schema
            .stream(number)
            .and_then(|class| Some((class, schema.streams.get(class)?)));
        let Some((class, stream)) = class else {
            return Err(Stop::bad(format!(
                "a packet of data stream class {number}, which is not in the metadata"
            )));
        };
        if self.any {
            self.class = class;
            self.packet_context = stream.packet_context;
        }
        if class != self.class {
            return Err(Stop::bad(format!(
                "a packet of data stream class {number} in a stream of another"
            )));
        }
        let context_at = pos;
        if let Some(context) = self.packet_context {
            pos = walk(schema, window, context, pos, &mut self.state)?;
            self.cpu = cpu(schema, window, context, context_at).or(self.cpu);
        }
        self.context_at = context_at;
        self.context.clear();
        self.context
            .extend_from_slice(&self.bytes[..pos.div_ceil(8) as usize]);
        self.pos = pos;
        Ok(())
    }

    /// Compares the packet with the one before it.
    fn find_lost(&mut self) {
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

    /// What its packets are: for a file of which nothing is known.
    pub(crate) fn probe(schema: &Schema, part: Part, growing: bool) -> Result<Option<Self>> {
        let mut stream = Self::new(schema, 0, vec![part], growing);
        stream.any = true;
        stream.size = PAGE as usize;
        let there = stream.open_packet(schema)?;
        Ok(there.then_some(stream))
    }

    /// The packets of this stream, in order, up to the first that cannot be read.
    pub(crate) fn index(&self, schema: &Schema) -> Index {
        let mut index = Index::default();
        let mut walker = Self::new(schema, self.class, self.parts.clone(), true);
        walker.size = PAGE as usize;
        while let Ok(true) = walker.next_packet(schema) {
            if let Some(begin) = walker.packet.begin {
                index.push(
                    walker.nanoseconds(begin),
                    (walker.packet.part, walker.packet.offset),
                );
            }
            walker.cycles = 0;
        }
        index
    }

    /// Begins at this packet again.
    pub(crate) fn rewind(&mut self, at: (usize, u64)) {
        self.at = at;
        self.inside = false;
        self.ready = false;
        self.packet = Packet::default();
        self.before = None;
        self.lost.clear();
        self.told = None;
        self.cycles = 0;
    }
}

/// LTTng's own headers: the number of the class, the clock, and where the fields begin.
#[inline]
fn header(window: Window<'_>, pos: u64, fast: Fast, clock: u64) -> Result<(u64, u64, u64), Stop> {
    let pos = align(pos, fast.align);
    let (number, time, len, escape, after) = match fast.shape {
        Shape::Compact => {
            let after = window.after(pos, 32)?;
            let word = word(window.bytes, pos);
            (word & 31, word >> 5, 27, 31, after)
        }
        Shape::Large { time_align } => {
            let at = align(pos + 16, time_align);
            // An extended one takes more anyway.
            let after = window.after(at, 32)?;
            (
                word(window.bytes, pos) & 0xffff,
                word(window.bytes, at),
                32,
                65535,
                after,
            )
        }
    };
    if number != escape {
        return Ok((number, tick(clock, time, len), after));
    }
    extended(window, pos + if escape == 31 { 5 } else { 16 }, fast)
}

#[cold]
fn extended(window: Window<'_>, pos: u64, fast: Fast) -> Result<(u64, u64, u64), Stop> {
    let (whole, number_align, time_align) = fast.extended;
    let pos = align(align(pos, whole), number_align);
    let time_at = align(window.after(pos, 32)?, time_align);
    let after = window.after(time_at, 64)?;
    let read = |at, len| bits::read(window.bytes, at as usize, len, Order::Little).unwrap_or(0);
    Ok((read(pos, 32), read(time_at, 64), after))
}

/// 32 bits on a byte, which are there.
#[inline]
fn word(bytes: &[u8], pos: u64) -> u64 {
    let four = bytes
        .get((pos >> 3) as usize..)
        .and_then(<[u8]>::first_chunk::<4>);
    four.map_or(0, |b| u64::from(u32::from_le_bytes(*b)))
}

/// Any header.
fn slow_header(
    schema: &Schema,
    class: &StreamClass,
    window: Window<'_>,
    pos: u64,
    state: &mut State,
    clock: u64,
) -> Result<(u64, u64, u64), Stop> {
    state.roles = Roles {
        time: clock,
        ..Roles::default()
    };
    state.fuel = FUEL;
    let pos = match class.header {
        Some(header) => walk(schema, window, header, pos, state)?,
        None => pos,
    };
    Ok((state.roles.event.unwrap_or(0), state.roles.time, pos))
}

/// The member `cpu_id` of the packet's context.
fn cpu(schema: &Schema, window: Window<'_>, context: NodeId, pos: u64) -> Option<u32> {
    let node = schema.node(context);
    let Kind::Struct(members) = &node.kind else {
        return None;
    };
    let mut pos = align(pos, node.align);
    for member in members {
        let node = schema.node(member.node);
        pos = align(pos, node.align);
        if let (Kind::Int { int, .. }, "cpu_id") = (&node.kind, member.name.as_str()) {
            return u32::try_from(window.integer(pos, *int).ok()?).ok();
        }
        pos += node.size?;
    }
    None
}

/// Where packets begin, by time: all, or every second, every fourth, ... of a stream with very many.
#[derive(Debug, Default)]
pub(crate) struct Index {
    entries: Vec<(i64, (usize, u64))>,
    every: u64,
    seen: u64,
}

impl Index {
    /// More would be memory for nothing: a stretch between two of them is read in no time.
    const MOST: usize = 16 << 10;

    fn push(&mut self, begin: i64, at: (usize, u64)) {
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
                self.entries.push((begin, at));
            }
        }
        self.seen += 1;
    }

    /// The last packet known that begins at `time` or before.
    pub(crate) fn before(&self, time: i64) -> Option<(usize, u64)> {
        let after = self.entries.partition_point(|(begin, _)| *begin <= time);
        let entry = self.entries.get(after.checked_sub(1)?)?;
        Some(entry.1)
    }
}
