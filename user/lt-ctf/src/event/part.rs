// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The parts of a field that [`crate::Event::visit`] reports, and how to show them.

use std::borrow::Cow;

use crate::schema::{Mappings, labels};

/// A part of a field, as [`Event::visit`](super::Event::visit) reports it. Members and elements come between the start
/// and the end of their container.
#[derive(Debug, Clone, PartialEq)]
pub enum Part<'a> {
    /// The name of the member that follows.
    Member(&'a str),
    /// An unsigned integer, its display format, and the names of its values.
    Unsigned(u64, Show, Names<'a>),
    /// A signed integer, its display format, and the names of its values.
    Signed(i64, Show, Names<'a>),
    /// A boolean.
    Bool(bool),
    /// A bit array, or a bit map with the names of its bits.
    Bits(u64, Names<'a>),
    /// A number of single precision.
    Single(f32),
    /// A number of double precision.
    Double(f64),
    /// Text, up to its terminator: UTF-8, if it is valid.
    Text(Cow<'a, [u8]>),
    /// Bytes.
    Blob(&'a [u8]),
    /// The start of a structure.
    Struct,
    /// The start of an array with this many elements.
    Array(u64),
    /// The start of the selected option of a variant, with its name.
    Variant(Option<&'a str>),
    /// The start of an optional field, and whether it is present.
    Optional(bool),
    /// The end of the innermost open container.
    End,
}

/// Preferred display of an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Show {
    /// Base: 2, 8, 10 or 16.
    pub base: u8,
    /// Number of bits, 1 to 64.
    pub bits: u32,
}

/// Names of an integer's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names<'a>(pub(super) &'a Mappings);

impl<'a> Names<'a> {
    /// Whether the field class names no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names of `value`.
    pub fn of(&self, value: i128) -> impl Iterator<Item = &'a str> + use<'a> {
        labels(self.0, value)
    }

    /// Returns all names, with their ranges.
    pub fn all(&self) -> impl Iterator<Item = (&'a str, &'a [(i128, i128)])> + use<'a> {
        self.0
            .iter()
            .map(|(name, ranges)| (name.as_str(), ranges.as_slice()))
    }
}
