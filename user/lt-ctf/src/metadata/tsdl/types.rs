// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Types of TSDL, as declared. A length or a tag is still the path of names from the text.

use std::rc::Rc;

use crate::bits::Order;

/// A type. It is shared by all its uses, so that the parsed form grows no faster than the text.
#[derive(Debug)]
pub(super) struct Type {
    pub(super) kind: Kind,
    /// Depth of nesting.
    pub(super) depth: usize,
}

/// A member or an option: its name and its type.
pub(super) type Named = (String, Rc<Type>);

/// Names from the outside to the inside: `stream.event.header.id`.
pub(super) type Names = Vec<String>;

#[derive(Debug)]
pub(super) enum Kind {
    Int(Int),
    Enum(Int, Vec<Mapping>),
    Float(Float),
    Text,
    Struct {
        members: Vec<Named>,
        align: u64,
    },
    Variant {
        /// `None` until the variant is used.
        tag: Option<Names>,
        options: Rc<Vec<Named>>,
    },
    Array {
        of: Rc<Type>,
        length: Length,
    },
}

/// Number of elements.
#[derive(Debug)]
pub(super) enum Length {
    Fixed(u64),
    Of(Names),
}

/// A name of an enumeration, and its first and last value.
#[derive(Debug)]
pub(super) struct Mapping {
    pub(super) label: String,
    pub(super) low: i128,
    pub(super) high: i128,
}

#[derive(Debug, Clone)]
pub(super) struct Int {
    pub(super) size: u64,
    pub(super) align: u64,
    pub(super) signed: bool,
    /// `None`: the byte order of the trace.
    pub(super) order: Option<Order>,
    pub(super) base: u64,
    /// Whether an array of these integers is text.
    pub(super) is_text: bool,
    /// Clock, if the integer is a timestamp.
    pub(super) clock: Option<String>,
}

#[derive(Debug)]
pub(super) struct Float {
    pub(super) size: u64,
    pub(super) align: u64,
    pub(super) order: Option<Order>,
}

impl Type {
    pub(super) fn new(kind: Kind, limit: usize) -> Result<Rc<Self>, String> {
        let deepest = |members: &[Named]| members.iter().map(|(_, t)| t.depth).max();
        let below = match &kind {
            Kind::Struct { members, .. } => deepest(members),
            Kind::Variant { options, .. } => deepest(options),
            Kind::Array { of, .. } => Some(of.depth),
            _ => None,
        };
        let depth = below.unwrap_or(0) + 1;
        if depth > limit {
            return Err(format!("fields nest more than {limit} deep"));
        }
        Ok(Rc::new(Self { kind, depth }))
    }

    /// Returns the integer type itself; for an enumeration, the integer type that it is based on.
    pub(super) fn int(&self) -> Option<&Int> {
        match &self.kind {
            Kind::Int(int) | Kind::Enum(int, _) => Some(int),
            _ => None,
        }
    }
}

/// Returns the name of a field, as it is shown. LTTng prefixes each name with an underscore, so that none is a keyword.
pub(super) fn shown(name: &str) -> &str {
    name.strip_prefix('_').unwrap_or(name)
}
