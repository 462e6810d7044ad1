// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Packets: their places, headers and contexts.

use super::{PAGE, Part, Stream};
use crate::error::{Result, What};
use crate::program::{FUEL, Roles, Stop, Window, align, walk};
use crate::schema::{Kind, NodeId, Schema};

/// Magic number at the start of each packet, if packets have one.
pub(crate) const MAGIC: u64 = 0xc1fc_1fc1;

/// Place of a packet, and the contents of its header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Packet {
    /// Index of its file in the stream.
    pub(crate) part: usize,
    /// Offset in the file, in bytes.
    pub(crate) offset: u64,
    /// Total size, in bytes.
    pub(crate) total: u64,
    /// Size of the content, without the padding, in bits.
    pub(crate) content: u64,
    /// Start of the events, in bits.
    pub(crate) events: u64,
    /// Start and end times, cycles.
    pub(crate) begin: Option<u64>,
    pub(crate) end: Option<u64>,
    pub(crate) number: Option<u64>,
    pub(crate) discarded: Option<u64>,
    /// Set if the file ends within this packet: the size according to its header, bytes. The sizes above are limited to
    /// the file.
    pub(crate) cut: Option<u64>,
}

impl Stream {
    /// Advances to the packet at `at`; returns false at the end of the last file.
    pub(super) fn next_packet(&mut self, schema: &Schema) -> Result<bool> {
        let before = std::mem::take(&mut self.packet);
        if before.events > 0 || before.total > 0 {
            self.before = Some(before);
        }
        while let Some(part) = self.origin.parts.get(self.at.0) {
            let rest = part.size > self.at.1;
            let opened = if rest {
                self.open_packet(schema)
            } else {
                Ok(false)
            };
            if let Ok(true) = opened {
                self.at.1 = self.packet.offset + self.packet.total;
                return Ok(true);
            }
            // This file has no further packet, or none that can be found.
            self.packet = Packet::default();
            self.at = (self.at.0 + 1, 0);
            opened?;
        }
        self.grew |= self.grows(self.origin.parts.len().wrapping_sub(1));
        self.close();
        Ok(false)
    }

    /// Whether a file has grown since the trace was opened: then it is still being written.
    fn grows(&self, part: usize) -> bool {
        self.origin.parts.get(part).is_some_and(Part::has_grown)
    }

    /// Whether a packet whose end is missing is still being written, rather than cut off.
    #[cold]
    fn is_incomplete(&mut self, part: usize) -> bool {
        self.grew |= self.grows(part);
        self.origin.growing || self.grew
    }

    /// Called after each packet. Fails if the file ends within the packet, unless the file is still being written or
    /// the packet has had an error already.
    pub(super) fn end_cut(&mut self) -> Result<()> {
        let Some(packet) = self.packet.cut.take() else {
            return Ok(());
        };
        if self.is_incomplete(self.packet.part) {
            return Ok(());
        }
        self.lose_rest();
        let there = self.packet.total;
        Err(self.fault(0, What::Truncated { packet, there }))
    }

    /// Reads the header of the packet at `at`. Returns false if the packet has not been written completely yet.
    pub(crate) fn open_packet(&mut self, schema: &Schema) -> Result<bool> {
        let (part, offset) = self.at;
        let left = self.origin.parts[part].size - offset;
        // Until its size is known, the packet may extend to the end of the file.
        self.packet = Packet {
            part,
            offset,
            total: left,
            content: left.saturating_mul(8),
            ..Packet::default()
        };
        self.pos = 0;
        // The packets of a stream usually have one size. Bytes beyond this size are read with the next packet.
        let usual = self.before.as_ref().map_or(u64::MAX, |before| before.total);
        let usual = usize::try_from(usual.max(PAGE)).unwrap_or(usize::MAX);
        self.fill(0, self.size.min(usual))?;
        loop {
            match self.packet_header(schema) {
                Ok(()) => break,
                Err(Stop::More(want))
                    if (want > self.packet.content || self.base + self.filled as u64 >= left)
                        && self.is_incomplete(part) =>
                {
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
                Err(stop) => self.more(Some(stop))?,
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
        let cut = (total / 8 > left).then_some(total / 8);
        if cut.is_some() && self.is_incomplete(part) {
            return Ok(false);
        }
        let content = content.min(left.saturating_mul(8));
        let begin = roles.timed.then_some(roles.time);
        self.packet = Packet {
            part,
            offset,
            total: left.min(total / 8),
            content,
            events,
            begin,
            end: roles.end,
            number: roles.number,
            discarded: roles.discarded,
            cut,
        };
        // In a cut packet, an event later than its end time shows that the sizes in the header are wrong.
        self.latest = cut.and(roles.end).unwrap_or(u64::MAX);
        self.filled = self.filled.min(content.div_ceil(8) as usize);
        if let Some(begin) = begin {
            self.cycles = begin;
        }
        Ok(true)
    }

    /// Reads the header and the context of the packet in the window, and moves `pos` to their end.
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
            self.origin.class = class;
            self.packet_context = stream.packet_context;
        }
        if class != self.origin.class {
            return Err(Stop::bad(format!(
                "a packet of data stream class {number} in a stream of another"
            )));
        }
        let context_at = pos;
        if let Some(context) = self.packet_context {
            pos = walk(schema, window, context, pos, &mut self.state)?;
            self.cpu = cpu(schema, window, context, context_at).or(self.cpu);
        }
        // The alignment of an empty field may still be beyond the end.
        let pos = window.after(pos, 0)?;
        self.context_at = context_at;
        self.context.clear();
        self.context
            .extend_from_slice(&self.bytes[..pos.div_ceil(8) as usize]);
        self.pos = pos;
        Ok(())
    }
}

/// Returns the member `cpu_id` of the packet's context.
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
