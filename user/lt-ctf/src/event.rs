// SPDX-License-Identifier: GPL-2.0 OR MIT

//! An event in its packet. Its fields are decoded on request.

mod part;
mod visit;

use std::borrow::Cow;
use std::fmt;

pub use self::part::{Names, Part, Show};
use crate::bits::{self, Order};
use crate::program;
use crate::schema::{Class, Encoding, FieldIndex, Int, Kind, Schema};
use crate::stream::{Batch, Record};
use crate::trace::Trace;

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// An unsigned integer, a boolean or a bit array.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
    /// The bytes of a blob, or of UTF-8 text up to its terminator.
    Bytes(&'a [u8]),
}

/// An event. It is valid until the next one is read.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) batch: &'a Batch,
    pub(crate) class: &'a Class,
    pub(crate) record: Record,
}

impl fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Event");
        debug.field("name", &self.name());
        debug
            .field("cycles", &self.cycles())
            .field("cpu", &self.cpu());
        debug.finish_non_exhaustive()
    }
}

impl<'a> Event<'a> {
    /// Returns the class of the event.
    #[must_use]
    pub fn class(&self) -> &'a Class {
        self.class
    }

    /// Returns the index of the event's class in [`crate::Reader::classes`].
    #[must_use]
    pub fn class_index(&self) -> usize {
        self.trace.first + self.record.class as usize
    }

    /// Returns the metadata of the event's trace.
    #[must_use]
    pub fn schema(&self) -> &'a Schema {
        &self.trace.schema
    }

    /// Returns the name of the event, such as `sched_switch`.
    #[must_use]
    pub fn name(&self) -> &'a str {
        &self.class.name
    }

    /// Returns the time of the event as the value of the trace's clock: for LTTng,
    /// `CLOCK_MONOTONIC` in ns, as in the module's alerts.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.record.cycles
    }

    /// Returns the time of the event since the clock's origin (1970), ns. Events are in the order
    /// of this time. If several traces have the same clock, its offset in the first trace is used.
    #[must_use]
    pub fn nanoseconds(&self) -> i64 {
        self.record.nanoseconds
    }

    /// Returns the CPU that recorded the event, if packets have a `cpu_id`.
    #[must_use]
    pub fn cpu(&self) -> Option<u32> {
        self.batch.cpu
    }

    /// Returns the index of the event's stream.
    #[must_use]
    pub fn stream(&self) -> usize {
        self.batch.stream
    }

    /// Returns the index of the event's trace in [`crate::Reader::traces`].
    #[must_use]
    pub fn trace(&self) -> usize {
        self.batch.trace
    }

    /// Returns a field, and the position of its first bit in the window.
    #[inline]
    fn place(&self, field: FieldIndex) -> Option<(&'a crate::Field, u64)> {
        let field = self.class.fields.get(field.0 as usize)?;
        let anchor = self.batch.anchor(self.record, field.anchor)?;
        Some((field, anchor + u64::from(field.delta)))
    }

    /// Returns the bits of an integer, a boolean or a bit array, and whether they are signed.
    #[inline]
    fn integer(&self, field: FieldIndex) -> Option<(u64, bool)> {
        let (field, pos) = self.place(field)?;
        if let Some(int) = field.quick {
            return Some((
                quick(self.batch.window().bytes, (pos >> 3) as usize, int)?,
                int.signed,
            ));
        }
        match self.schema().node(field.node).kind {
            Kind::Int { int, .. } | Kind::Bool(int) | Kind::Bits { int, .. } => {
                Some((self.batch.window().integer(pos, int).ok()?, int.signed))
            }
            Kind::Leb { signed, .. } => Some((
                program::leb(self.batch.window(), pos, signed).ok()?.0,
                signed,
            )),
            _ => None,
        }
    }

    /// Returns an integer, unless it is negative.
    #[inline]
    #[must_use]
    pub fn unsigned(&self, field: FieldIndex) -> Option<u64> {
        let (value, signed) = self.integer(field)?;
        (!signed || value as i64 >= 0).then_some(value)
    }

    /// Returns an integer, unless it is unsigned and too large.
    #[inline]
    #[must_use]
    pub fn signed(&self, field: FieldIndex) -> Option<i64> {
        let (value, signed) = self.integer(field)?;
        (signed || value as i64 >= 0).then_some(value as i64)
    }

    /// Returns a floating-point number.
    #[must_use]
    pub fn float(&self, field: FieldIndex) -> Option<f64> {
        let (field, pos) = self.place(field)?;
        match self.schema().node(field.node).kind {
            Kind::Float(int) => {
                let bits = self.batch.window().integer(pos, int).ok()?;
                Some(if int.len == 32 {
                    f64::from(f32::from_bits(bits as u32))
                } else {
                    f64::from_bits(bits)
                })
            }
            _ => None,
        }
    }

    /// Returns the bytes of a blob, or of UTF-8 text up to its terminator.
    #[inline]
    #[must_use]
    pub fn bytes(&self, field: FieldIndex) -> Option<&'a [u8]> {
        let (field, pos) = self.place(field)?;
        let start = (pos >> 3) as usize;
        let rest = self.batch.window().bytes.get(start..)?;
        let length = |source: crate::schema::Source| {
            let length = self.batch.slots.get(source.slot as usize)?;
            usize::try_from(*length).ok()
        };
        match self.schema().node(field.node).kind {
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

    /// Returns UTF-8 text; invalid UTF-8 is replaced.
    #[must_use]
    pub fn text(&self, field: FieldIndex) -> Option<Cow<'a, str>> {
        self.bytes(field).map(String::from_utf8_lossy)
    }

    /// Calls `each` with every field, in the order of [`Class::fields`], and its value. Faster than one call for each
    /// field. The value is `None` for a structure, an array or text in UTF-16 or UTF-32, for example: [`Event::visit`]
    /// reports these.
    #[inline]
    pub fn values(&self, mut each: impl FnMut(FieldIndex, Option<Value<'a>>)) {
        let bytes = self.batch.window().bytes;
        let anchors = self.batch.anchors(self.record);
        for (index, field) in (0..).map(FieldIndex).zip(&self.class.fields) {
            let anchor = anchors.get(field.anchor as usize);
            let value = match (field.quick, anchor) {
                (Some(int), Some(anchor)) => {
                    let at = (anchor + u64::from(field.delta)) >> 3;
                    quick(bytes, at as usize, int).map(|value| Value::of(value, int.signed))
                }
                _ => self.value(index),
            };
            each(index, value);
        }
    }

    /// Returns the value of a field; `None` where [`Event::values`] has none.
    #[must_use]
    pub fn value(&self, field: FieldIndex) -> Option<Value<'a>> {
        let node = self.class.fields.get(field.0 as usize)?.node;
        match self.schema().node(node).kind {
            Kind::Float(_) => self.float(field).map(Value::Float),
            Kind::Int { .. } | Kind::Bool(_) | Kind::Bits { .. } | Kind::Leb { .. } => {
                let (value, signed) = self.integer(field)?;
                Some(Value::of(value, signed))
            }
            _ => self.bytes(field).map(Value::Bytes),
        }
    }
}

impl Value<'_> {
    #[inline]
    fn of(value: u64, signed: bool) -> Self {
        match signed {
            true => Self::Signed(value as i64),
            false => Self::Unsigned(value),
        }
    }
}

/// Reads a byte-aligned integer of whole bytes.
#[inline]
fn quick(bytes: &[u8], at: usize, int: Int) -> Option<u64> {
    let rest = bytes.get(at..)?;
    // Usually the window has eight bytes from here on, the last ones of other fields.
    if let (Some(eight), Order::Little) = (rest.first_chunk(), int.order) {
        let unused = u64::BITS - int.len;
        let value = u64::from_le_bytes(*eight) << unused;
        return Some(match int.signed {
            true => ((value as i64) >> unused) as u64,
            false => value >> unused,
        });
    }
    let value = bits::read(bytes, 8 * at, int.len, int.order)?;
    Some(if int.signed {
        bits::sign(value, int.len) as u64
    } else {
        value
    })
}

fn up_to_zero(bytes: &[u8]) -> &[u8] {
    memchr::memchr(0, bytes).map_or(bytes, |end| &bytes[..end])
}
