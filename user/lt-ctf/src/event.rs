// SPDX-License-Identifier: GPL-2.0 OR MIT

//! One event, as it lies in the packet: its fields are read when they are asked for.

use std::borrow::Cow;

use crate::bits::{self, Order};
use crate::program::{self, State, Window, align};
use crate::schema::{Class, Encoding, FieldIndex, Int, Kind, Mappings, NodeId, Schema, labels};

/// What [`Event::visit`] tells of one field at most; more are arrays of arrays of nothing.
const PARTS: u32 = 1 << 20;

/// An event; it is valid until the next one is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) class: &'a Class,
    pub(crate) class_index: usize,
    pub(crate) window: Window<'a>,
    pub(crate) state: &'a State,
    /// The context of the packet, from the packet's begin to the context's end, and its class.
    pub(crate) packet: (&'a [u8], u64, Option<NodeId>),
    pub(crate) stream: usize,
    pub(crate) trace: usize,
    pub(crate) cpu: Option<u32>,
    pub(crate) cycles: u64,
    pub(crate) nanoseconds: i64,
}

/// A part of a field, as [`Event::visit`] tells them: members and elements come between begin and end.
#[derive(Debug, Clone, PartialEq)]
pub enum Part<'a> {
    /// The name of the member that follows.
    Member(&'a str),
    /// An unsigned integer, how to show it, and the names of its values.
    Unsigned(u64, Show, Names<'a>),
    /// A signed one.
    Signed(i64, Show, Names<'a>),
    /// A boolean.
    Bool(bool),
    /// A bit array; of a bit map, with the names of its bits.
    Bits(u64, Names<'a>),
    /// A number of single precision.
    Single(f32),
    /// A number of double precision.
    Double(f64),
    /// Text, up to its end mark: UTF-8, if it is as it should be.
    Text(Cow<'a, [u8]>),
    /// Bytes.
    Blob(&'a [u8]),
    /// A structure begins.
    Struct,
    /// An array of so many elements begins.
    Array(u64),
    /// The option that was taken begins, and its name.
    Variant(Option<&'a str>),
    /// An optional field begins, which is there or not.
    Optional(bool),
    /// The last one that began ends.
    End,
}

/// How an integer is best shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Show {
    /// 2, 8, 10 or 16.
    pub base: u8,
    /// How many bits it has, 1 to 64.
    pub bits: u32,
}

/// Names of an integer's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names<'a>(&'a Mappings);

impl<'a> Names<'a> {
    /// Whether the class of the field has any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of `value`.
    pub fn of(&self, value: i128) -> impl Iterator<Item = &'a str> + use<'a> {
        labels(self.0, value)
    }

    /// All names, with their ranges.
    pub fn all(&self) -> impl Iterator<Item = (&'a str, &'a [(i128, i128)])> + use<'a> {
        self.0
            .iter()
            .map(|(name, ranges)| (name.as_str(), ranges.as_slice()))
    }
}

impl<'a> Event<'a> {
    /// What kind of event it is.
    #[must_use]
    pub fn class(&self) -> &'a Class {
        self.class
    }

    /// The number of its class, among those of [`crate::Reader::classes`].
    #[must_use]
    pub fn class_index(&self) -> usize {
        self.class_index
    }

    /// The metadata of its trace.
    #[must_use]
    pub fn schema(&self) -> &'a Schema {
        self.schema
    }

    /// `sched_switch`, ...
    #[must_use]
    pub fn name(&self) -> &'a str {
        &self.class.name
    }

    /// The value of the trace's clock; for LTTng ns of `CLOCK_MONOTONIC`, as in an alert.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Since the clock's origin (1970), ns; events come in the order of this.
    #[must_use]
    pub fn nanoseconds(&self) -> i64 {
        self.nanoseconds
    }

    /// The CPU that recorded it, when packets have a `cpu_id`.
    #[must_use]
    pub fn cpu(&self) -> Option<u32> {
        self.cpu
    }

    /// The number of its stream.
    #[must_use]
    pub fn stream(&self) -> usize {
        self.stream
    }

    /// The number of its trace, among those of [`crate::Reader::traces`].
    #[must_use]
    pub fn trace(&self) -> usize {
        self.trace
    }

    /// The node and the first bit of a field.
    #[inline]
    fn place(&self, field: FieldIndex) -> Option<(&'a crate::Field, u64)> {
        let field = self.class.fields.get(field.0 as usize)?;
        let anchor = self.state.anchors.get(field.anchor as usize)?;
        Some((field, anchor + u64::from(field.delta)))
    }

    /// The bits of an integer, a boolean or a bit array, and whether they are signed.
    #[inline]
    fn integer(&self, field: FieldIndex) -> Option<(u64, bool)> {
        let (field, pos) = self.place(field)?;
        if let Some(int) = field.quick {
            return Some((
                quick(self.window.bytes, (pos >> 3) as usize, int)?,
                int.signed,
            ));
        }
        match self.schema.node(field.node).kind {
            Kind::Int { int, .. } | Kind::Bool(int) | Kind::Bits { int, .. } => {
                Some((self.window.integer(pos, int).ok()?, int.signed))
            }
            Kind::Leb { signed, .. } => {
                Some((program::leb(self.window, pos, signed).ok()?.0, signed))
            }
            _ => None,
        }
    }

    /// An integer that is not negative.
    #[inline]
    #[must_use]
    pub fn unsigned(&self, field: FieldIndex) -> Option<u64> {
        let (value, signed) = self.integer(field)?;
        (!signed || value as i64 >= 0).then_some(value)
    }

    /// An integer, unless it is unsigned and too large.
    #[inline]
    #[must_use]
    pub fn signed(&self, field: FieldIndex) -> Option<i64> {
        let (value, signed) = self.integer(field)?;
        (signed || value as i64 >= 0).then_some(value as i64)
    }

    /// A floating-point number.
    #[must_use]
    pub fn float(&self, field: FieldIndex) -> Option<f64> {
        let (field, pos) = self.place(field)?;
        match self.schema.node(field.node).kind {
            Kind::Float(int) => {
                let bits = self.window.integer(pos, int).ok()?;
                Some(if int.len == 32 {
                    f64::from(f32::from_bits(bits as u32))
                } else {
                    f64::from_bits(bits)
                })
            }
            _ => None,
        }
    }

    /// The bytes of text in UTF-8, up to its end mark, or of a blob.
    #[inline]
    #[must_use]
    pub fn bytes(&self, field: FieldIndex) -> Option<&'a [u8]> {
        let (field, pos) = self.place(field)?;
        let start = (pos >> 3) as usize;
        let rest = self.window.bytes.get(start..)?;
        let length = |source: crate::schema::Source| {
            let length = self.state.slots.get(source.slot as usize)?;
            usize::try_from(*length).ok()
        };
        match self.schema.node(field.node).kind {
            Kind::Text(Encoding::Utf8) => Some(&rest[..memchr::memchr(0, rest)?]),
            Kind::StaticText {
                bytes,
                encoding: Encoding::Utf8,
            } => Some(up_to_zero(rest.get(..bytes as usize)?)),
            Kind::DynamicText {
                length: l,
                encoding: Encoding::Utf8,
            } => Some(up_to_zero(rest.get(..length(l)?)?)),
            Kind::StaticBlob { bytes } => rest.get(..bytes as usize),
            Kind::DynamicBlob { length: l } => rest.get(..length(l)?),
            _ => None,
        }
    }

    /// Text in UTF-8; what is not UTF-8 is replaced.
    #[must_use]
    pub fn text(&self, field: FieldIndex) -> Option<Cow<'a, str>> {
        self.bytes(field).map(String::from_utf8_lossy)
    }

    /// Tells of a field of any kind, part by part. False when there were too many.
    pub fn visit(&self, field: FieldIndex, told: &mut dyn FnMut(Part<'a>)) -> bool {
        let Some((field, pos)) = self.place(field) else {
            return false;
        };
        self.visitor(self.window, told)
            .node(field.node, pos)
            .is_some()
    }

    /// Tells of the fields of the packet's context that are not for the reader alone, `cpu_id` for one. False
    /// when there are none.
    pub fn visit_packet(&self, told: &mut dyn FnMut(Part<'a>)) -> bool {
        let (bytes, pos, Some(context)) = self.packet else {
            return false;
        };
        let window = Window {
            bytes,
            end: 8 * bytes.len() as u64,
        };
        self.visitor(window, told).node(context, pos).is_some()
    }

    fn visitor<'v>(
        &self,
        window: Window<'a>,
        told: &'v mut dyn FnMut(Part<'a>),
    ) -> Visitor<'a, 'v> {
        Visitor {
            schema: self.schema,
            window,
            slots: Cow::Borrowed(&self.state.slots),
            told,
            left: PARTS,
        }
    }
}

/// An integer of whole bytes on a byte.
#[inline]
fn quick(bytes: &[u8], at: usize, int: Int) -> Option<u64> {
    let rest = bytes.get(at..)?;
    let value = match (int.len, int.order) {
        (8, _) => u64::from(*rest.first()?),
        (16, Order::Little) => u64::from(u16::from_le_bytes(*rest.first_chunk()?)),
        (32, Order::Little) => u64::from(u32::from_le_bytes(*rest.first_chunk()?)),
        (64, Order::Little) => u64::from_le_bytes(*rest.first_chunk()?),
        _ => bits::read(bytes, 8 * at, int.len, int.order)?,
    };
    Some(if int.signed {
        bits::sign(value, int.len) as u64
    } else {
        value
    })
}

fn up_to_zero(bytes: &[u8]) -> &[u8] {
    memchr::memchr(0, bytes).map_or(bytes, |end| &bytes[..end])
}

struct Visitor<'a, 'v> {
    schema: &'a Schema,
    window: Window<'a>,
    /// Its own as soon as it changes them.
    slots: Cow<'a, [u64]>,
    told: &'v mut dyn FnMut(Part<'a>),
    left: u32,
}

impl<'a> Visitor<'a, '_> {
    fn tell(&mut self, part: Part<'a>) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        (self.told)(part);
        Some(())
    }

    /// Tells of the node at `pos`; where it ends, if all went well.
    fn node(&mut self, id: NodeId, pos: u64) -> Option<u64> {
        let schema = self.schema;
        let node = schema.node(id);
        let pos = align(pos, node.align);
        let fixed = |int: Int| pos + u64::from(int.len);
        Some(match &node.kind {
            Kind::Int {
                int,
                base,
                mappings,
            } => {
                let value = self.window.integer(pos, *int).ok()?;
                let show = Show {
                    base: *base,
                    bits: int.len,
                };
                self.number(node.slot, value, int.signed, show, mappings)?;
                fixed(*int)
            }
            Kind::Leb {
                signed,
                base,
                mappings,
            } => {
                let (value, end) = program::leb(self.window, pos, *signed).ok()?;
                let show = Show {
                    base: *base,
                    bits: 64,
                };
                self.number(node.slot, value, *signed, show, mappings)?;
                end
            }
            Kind::Bool(int) => {
                let value = self.window.integer(pos, *int).ok()?;
                self.keep(node.slot, value);
                self.tell(Part::Bool(value != 0))?;
                fixed(*int)
            }
            Kind::Bits { int, flags } => {
                let value = self.window.integer(pos, *int).ok()?;
                self.tell(Part::Bits(value, Names(flags)))?;
                fixed(*int)
            }
            Kind::Float(int) => {
                let value = self.window.integer(pos, *int).ok()?;
                self.tell(match int.len {
                    32 => Part::Single(f32::from_bits(value as u32)),
                    _ => Part::Double(f64::from_bits(value)),
                })?;
                fixed(*int)
            }
            Kind::Text(encoding) => {
                let end = self.window.text(pos, encoding.unit()).ok()?;
                self.text(pos, end, *encoding)?
            }
            Kind::StaticText { bytes, encoding } => self.text(pos, pos + 8 * bytes, *encoding)?,
            Kind::DynamicText { length, encoding } => {
                let length = self.length(length.slot)?.checked_mul(8)?;
                self.text(pos, pos.checked_add(length)?, *encoding)?
            }
            Kind::StaticBlob { bytes } => self.blob(pos, pos + 8 * bytes)?,
            Kind::DynamicBlob { length } => {
                let length = self.length(length.slot)?.checked_mul(8)?;
                self.blob(pos, pos.checked_add(length)?)?
            }
            Kind::Struct(members) => {
                self.tell(Part::Struct)?;
                let mut pos = pos;
                for member in members {
                    if schema.node(member.node).role.is_some() {
                        pos = self.pass(member.node, pos)?;
                        continue;
                    }
                    self.tell(Part::Member(&member.name))?;
                    pos = self.node(member.node, pos)?;
                }
                self.tell(Part::End)?;
                pos
            }
            Kind::StaticArray { of, count } => self.array(*of, *count, pos)?,
            Kind::DynamicArray { of, length } => {
                let count = self.length(length.slot)?;
                self.array(*of, count, pos)?
            }
            Kind::Optional {
                node,
                selector,
                ranges,
            } => {
                let there = program::is_there(&self.slots, *selector, ranges.as_deref());
                self.tell(Part::Optional(there))?;
                let end = if there { self.node(*node, pos)? } else { pos };
                self.tell(Part::End)?;
                end
            }
            Kind::Variant { choices, selector } => {
                let value = program::selected(&self.slots, *selector);
                let choice = choices
                    .iter()
                    .find(|c| crate::schema::within(&c.ranges, value))?;
                self.tell(Part::Variant(choice.name.as_deref()))?;
                let end = self.node(choice.node, pos)?;
                self.tell(Part::End)?;
                end
            }
        })
    }

    fn array(&mut self, of: NodeId, count: u64, mut pos: u64) -> Option<u64> {
        self.tell(Part::Array(count))?;
        for _ in 0..count {
            pos = self.node(of, pos)?;
        }
        self.tell(Part::End)?;
        Some(pos)
    }

    /// Goes over a field without telling of it: those for the reader.
    fn pass(&mut self, id: NodeId, pos: u64) -> Option<u64> {
        let node = self.schema.node(id);
        let pos = align(pos, node.align);
        match node.kind {
            Kind::Leb { signed, .. } => Some(program::leb(self.window, pos, signed).ok()?.1),
            _ => Some(pos + node.size?),
        }
    }

    fn length(&self, slot: u32) -> Option<u64> {
        self.slots.get(slot as usize).copied()
    }

    fn keep(&mut self, slot: Option<u32>, value: u64) {
        let Some(slot) = slot else {
            return;
        };
        if self.length(slot) != Some(value)
            && let Some(place) = self.slots.to_mut().get_mut(slot as usize)
        {
            *place = value;
        }
    }

    fn number(
        &mut self,
        slot: Option<u32>,
        value: u64,
        signed: bool,
        show: Show,
        mappings: &'a Mappings,
    ) -> Option<()> {
        self.keep(slot, value);
        self.tell(if signed {
            Part::Signed(value as i64, show, Names(mappings))
        } else {
            Part::Unsigned(value, show, Names(mappings))
        })
    }

    fn slice(&self, pos: u64, end: u64) -> Option<&'a [u8]> {
        self.window
            .bytes
            .get((pos >> 3) as usize..(end >> 3) as usize)
    }

    fn blob(&mut self, pos: u64, end: u64) -> Option<u64> {
        let bytes = self.slice(pos, end)?;
        self.tell(Part::Blob(bytes))?;
        Some(end)
    }

    fn text(&mut self, pos: u64, end: u64, encoding: Encoding) -> Option<u64> {
        let bytes = self.slice(pos, end)?;
        let text = decode(bytes, encoding);
        self.tell(Part::Text(text))?;
        Some(end)
    }
}

/// Text up to its end mark.
fn decode(bytes: &[u8], encoding: Encoding) -> Cow<'_, [u8]> {
    match encoding {
        Encoding::Utf8 => Cow::Borrowed(up_to_zero(bytes)),
        Encoding::Utf16(order) => {
            let unit = |c: &[u8; 2]| match order {
                Order::Little => u16::from_le_bytes(*c),
                Order::Big => u16::from_be_bytes(*c),
            };
            let units = bytes.as_chunks().0.iter().map(unit).take_while(|u| *u != 0);
            let chars = char::decode_utf16(units);
            let text: String = chars
                .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect();
            Cow::Owned(text.into_bytes())
        }
        Encoding::Utf32(order) => {
            let unit = |c: &[u8; 4]| match order {
                Order::Little => u32::from_le_bytes(*c),
                Order::Big => u32::from_be_bytes(*c),
            };
            let units = bytes.as_chunks().0.iter().map(unit).take_while(|u| *u != 0);
            let text: String = units
                .map(|u| char::from_u32(u).unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect();
            Cow::Owned(text.into_bytes())
        }
    }
}
