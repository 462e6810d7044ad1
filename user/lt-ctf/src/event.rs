// SPDX-License-Identifier: GPL-2.0 OR MIT

//! An event in its packet. Its fields are decoded on request.

mod part;
mod visit;

use std::borrow::Cow;
use std::fmt;

pub use self::part::{Names, Part, Show};
use crate::program;
use crate::schema::{Access, Class, Encoding, Field, FieldIndex, Kind, Schema};
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
    fn place(&self, field: FieldIndex) -> Option<(&'a Field, u64)> {
        let field = self.class.fields.get(field.0 as usize)?;
        let anchor = self.batch.anchor(self.record, field.anchor)?;
        Some((field, anchor + u64::from(field.delta)))
    }

    /// Returns the bits of an integer, a boolean or a bit array, and whether they are signed.
    #[inline]
    fn integer(&self, field: FieldIndex) -> Option<(u64, bool)> {
        let (field, pos) = self.place(field)?;
        self.integer_at(field, pos)
    }

    #[inline]
    fn integer_at(&self, field: &Field, pos: u64) -> Option<(u64, bool)> {
        match (field.access, eight(self.batch.window().bytes, pos)) {
            (Access::Unsigned(unused), Some(eight)) => Some((unsigned(eight, unused), false)),
            (Access::Signed(unused), Some(eight)) => Some((signed(eight, unused) as u64, true)),
            _ => self.integer_of_node(field, pos),
        }
    }

    fn integer_of_node(&self, field: &Field, pos: u64) -> Option<(u64, bool)> {
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
        self.float_at(field, pos)
    }

    fn float_at(&self, field: &Field, pos: u64) -> Option<f64> {
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
        self.bytes_at(field, pos)
    }

    #[inline]
    fn bytes_at(&self, field: &Field, pos: u64) -> Option<&'a [u8]> {
        let rest = self.batch.window().bytes.get((pos >> 3) as usize..)?;
        if let Access::Text(bytes) = field.access {
            return rest.get(..bytes as usize).map(up_to_zero);
        }
        let length = |source: crate::schema::Source| {
            let length = self.batch.slots.get(source.slot as usize)?;
            usize::try_from(*length).ok()
        };
        match self.schema().node(field.node).kind {
            Kind::Text(Encoding::Utf8) => Some(&rest[..zero(rest)?]),
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
            let Some(anchor) = anchors.get(field.anchor as usize) else {
                each(index, None);
                continue;
            };
            let pos = anchor + u64::from(field.delta);
            // Each kind of value has its own call of `each`, so that the compiler can drop the caller's code for other
            // kinds there.
            match (field.access, eight(bytes, pos)) {
                (Access::Unsigned(unused), Some(eight)) => {
                    each(index, Some(Value::Unsigned(unsigned(eight, unused))));
                }
                (Access::Signed(unused), Some(eight)) => {
                    each(index, Some(Value::Signed(signed(eight, unused))));
                }
                (Access::Text(_), _) => each(index, self.bytes_at(field, pos).map(Value::Bytes)),
                _ => each(index, self.value_at(field, pos)),
            }
        }
    }

    /// Returns the value of a field; `None` where [`Event::values`] has none.
    #[must_use]
    pub fn value(&self, field: FieldIndex) -> Option<Value<'a>> {
        let (field, pos) = self.place(field)?;
        self.value_at(field, pos)
    }

    fn value_at(&self, field: &Field, pos: u64) -> Option<Value<'a>> {
        match self.schema().node(field.node).kind {
            Kind::Float(_) => self.float_at(field, pos).map(Value::Float),
            Kind::Int { .. } | Kind::Bool(_) | Kind::Bits { .. } | Kind::Leb { .. } => {
                let (value, signed) = self.integer_at(field, pos)?;
                Some(Value::of(value, signed))
            }
            _ => self.bytes_at(field, pos).map(Value::Bytes),
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

/// Returns the eight bytes from a byte boundary on, as a little-endian integer; `None` if the window ends before.
#[inline]
fn eight(bytes: &[u8], pos: u64) -> Option<u64> {
    let rest = bytes.get((pos >> 3) as usize..)?;
    rest.first_chunk().map(|eight| u64::from_le_bytes(*eight))
}

/// Returns an unsigned integer at the start of eight bytes, without the bits that it does not use.
#[inline]
fn unsigned(eight: u64, unused: u32) -> u64 {
    eight << unused >> unused
}

/// Returns a signed integer at the start of eight bytes, without the bits that it does not use.
#[inline]
fn signed(eight: u64, unused: u32) -> i64 {
    (eight << unused) as i64 >> unused
}

#[inline]
fn up_to_zero(bytes: &[u8]) -> &[u8] {
    zero(bytes).map_or(bytes, |end| &bytes[..end])
}

/// Returns the index of the first byte that is 0. The name of a thread has sixteen bytes, which are searched at once.
#[inline]
fn zero(bytes: &[u8]) -> Option<usize> {
    const LOWEST: u128 = u128::from_le_bytes([1; 16]);
    const HIGHEST: u128 = LOWEST << 7;
    let Some((first, rest)) = bytes.split_first_chunk::<16>() else {
        return memchr::memchr(0, bytes);
    };
    let first = u128::from_le_bytes(*first);
    // The lowest of these bits is in the first byte that is 0. A higher one may be in a byte that is 1, by the borrow.
    let zeros = first.wrapping_sub(LOWEST) & !first & HIGHEST;
    match zeros {
        0 => memchr::memchr(0, rest).map(|at| at + 16),
        _ => Some(zeros.trailing_zeros() as usize / 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_the_first_zero() {
        for length in 0..40 {
            for at in 0..=length {
                // The bytes after the zero are those that a borrow could be mistaken for.
                let mut bytes = vec![1u8; length];
                bytes[..at].fill(0x80);
                if at < length {
                    bytes[at] = 0;
                }
                assert_eq!(zero(&bytes), (at < length).then_some(at), "{bytes:?}");
            }
        }
        assert_eq!(zero(&[1; 20]), None);
        assert_eq!(zero(&[0xff; 20]), None);
    }
}
