// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reports a field of any kind, part by part.

use std::borrow::Cow;

use super::{Event, Names, Part, Show, up_to_zero};
use crate::bits::Order;
use crate::program::{self, Window, align};
use crate::schema::{Encoding, FieldIndex, Int, Kind, Mappings, NodeId, Schema, within};

/// Maximum number of parts reported for one field: an array can have any number of empty elements, and no data.
const PARTS: u32 = 1 << 20;

impl<'a> Event<'a> {
    /// Reports a field of any kind, part by part. Returns false if the field could not be read to its end, or had too
    /// many parts.
    pub fn visit(&self, field: FieldIndex, told: &mut dyn FnMut(Part<'a>)) -> bool {
        let Some((field, pos)) = self.place(field) else {
            return false;
        };
        self.visitor(self.batch.window(), told)
            .node(field.node, pos)
            .is_some()
    }

    /// Reports the fields of the packet's context, such as `cpu_id`, except the fields that only the
    /// reader needs. Reports nothing if packets have no context. Returns false in the cases of
    /// [`Event::visit`].
    pub fn visit_packet(&self, told: &mut dyn FnMut(Part<'a>)) -> bool {
        let (bytes, pos, Some(context)) = self.batch.packet_fields() else {
            return true;
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
            schema: self.schema(),
            window,
            slots: Cow::Borrowed(&self.batch.slots),
            told,
            left: PARTS,
        }
    }
}

struct Visitor<'a, 'v> {
    schema: &'a Schema,
    window: Window<'a>,
    /// Copied on the first change.
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

    /// Reports the node at `pos`. Returns where it ends; `None` on an error.
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
                let choice = choices.iter().find(|c| within(&c.ranges, value))?;
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

    /// Skips a field without reporting it: a field for the reader only.
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

/// Returns text up to its terminator.
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
