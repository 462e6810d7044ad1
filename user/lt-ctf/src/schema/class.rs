// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Stream classes, and their event classes, whose fields are accessed by index.

use std::collections::HashMap;

use super::NodeId;
use super::steps::Program;
use crate::bits::Order;

/// A stream class: the common properties of its streams.
#[derive(Debug)]
pub(crate) struct StreamClass {
    pub(crate) id: u64,
    pub(crate) clock: Option<usize>,
    pub(crate) packet_context: Option<NodeId>,
    pub(crate) header: Option<NodeId>,
    pub(crate) context: Option<NodeId>,
    pub(crate) fast: Option<Fast>,
    pub(crate) events: Events,
}

/// The event classes of a stream class, by number. Small numbers are array indices.
#[derive(Debug, Default)]
pub(crate) struct Events {
    dense: Vec<u32>,
    other: HashMap<u64, u32>,
}

const NONE: u32 = u32::MAX;
const DENSE: usize = 1 << 16;

impl Events {
    /// Adds a class. Returns false if the number is already in use.
    pub(crate) fn insert(&mut self, id: u64, class: u32) -> bool {
        match usize::try_from(id) {
            Ok(id) if id < DENSE => {
                if self.dense.len() <= id {
                    self.dense.resize(id + 1, NONE);
                }
                std::mem::replace(&mut self.dense[id], class) == NONE
            }
            _ => self.other.insert(id, class).is_none(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: u64) -> Option<u32> {
        let dense = usize::try_from(id).ok().and_then(|id| self.dense.get(id));
        match dense {
            Some(class) => (*class != NONE).then_some(*class),
            None => self.other.get(&id).copied(),
        }
    }

    /// Returns all classes; classes with small numbers come first, in order.
    pub(crate) fn classes(&self) -> impl Iterator<Item = u32> {
        let dense = self.dense.iter().filter(|class| **class != NONE);
        dense.chain(self.other.values()).copied()
    }
}

/// The event headers of LTTng and of babeltrace2, which have a fast path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fast {
    /// Alignment of the header, in bits.
    pub(crate) align: u32,
    pub(crate) order: Order,
    pub(crate) shape: Shape,
    /// Alignments in bits after an escape: of the extended header, of its number (32 bits), of its
    /// time (64 bits).
    pub(crate) extended: (u32, u32, u32),
}

impl Fast {
    /// Returns an alignment that the end of the header always has, in bits: a power of two.
    pub(crate) fn end(&self) -> u64 {
        let short = match self.shape {
            Shape::Compact | Shape::Wide => self.align,
            Shape::Large { time_align } => time_align,
        };
        u64::from(short.min(self.extended.2).min(32))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// 5 bits of class, 27 bits of time; class 31 is the escape.
    Compact,
    /// 16 bits of class, 32 bits of time with this alignment; class 65535 is the escape.
    Large { time_align: u32 },
    /// 64 bits of class, 64 bits of time, without an escape: the header of babeltrace2.
    Wide,
}

/// An event class.
#[derive(Debug)]
pub struct Class {
    /// Name: `sched_switch`, `provider:event`, ...
    pub name: String,
    pub(crate) fields: Vec<Field>,
    pub(crate) program: Program,
    /// Which of the three scopes the class has, by [`Scope`].
    pub(crate) scopes: [bool; 3],
}

/// The scope of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Context of all events of the stream (`lttng add-context`).
    Common,
    /// Context of this class of events.
    Specific,
    /// The event's own fields.
    Payload,
}

/// A field of an event class: one member of a scope.
#[derive(Debug)]
pub struct Field {
    /// Name in the metadata.
    pub name: String,
    /// Its scope.
    pub scope: Scope,
    pub(crate) node: NodeId,
    /// The field starts `delta` bits after this anchor of the event.
    pub(crate) anchor: u32,
    pub(crate) delta: u32,
    pub(crate) access: Access,
}

/// How the value of a field is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// An unsigned little-endian integer of whole bytes that always starts on a byte boundary; it is this many bits
    /// shorter than 64.
    Unsigned(u32),
    /// A signed little-endian integer of whole bytes that always starts on a byte boundary; it is this many bits
    /// shorter than 64.
    Signed(u32),
    /// UTF-8 text of fixed size, in bytes.
    Text(u32),
    /// As the kind of the field's node requires.
    Node,
}

/// The index of a field in its class; looked up once with [`Class::field`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldIndex(pub(crate) u32);

impl Class {
    /// Returns the field named `name`: a payload field takes precedence over a context field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<FieldIndex> {
        let named = |(_, f): &(usize, &Field)| f.name == name;
        let fields = self.fields.iter().enumerate().filter(named);
        let (index, _) = fields.max_by_key(|(i, f)| (f.scope, std::cmp::Reverse(*i)))?;
        u32::try_from(index).ok().map(FieldIndex)
    }

    /// Whether the class has this scope, even without fields.
    #[must_use]
    pub fn has(&self, scope: Scope) -> bool {
        self.scopes[scope as usize]
    }

    /// Returns all fields, in the order of the metadata.
    pub fn fields(&self) -> impl Iterator<Item = (FieldIndex, &Field)> {
        (0u32..).map(FieldIndex).zip(&self.fields)
    }
}
