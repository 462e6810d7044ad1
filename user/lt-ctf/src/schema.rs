// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The schema that metadata describes: field classes as nodes of one arena, clocks, stream classes, event classes.
//!
//! ```text
//! metadata (JSON) --parse--> Schema { nodes } --lower--> Program of each event class --> stream.rs runs it
//! ```
//!
//! A length or a selector is the value of an earlier field. The node of that field stores it in a *slot*, from
//! which other nodes read it, so no name is looked up while events are read.

mod class;
mod steps;

use crate::bits::Order;

pub(crate) use self::class::{Access, Events, Fast, Shape, StreamClass};
pub use self::class::{Class, Field, FieldIndex, Scope};
pub(crate) use self::steps::{Op, Program, Step};

/// Index into [`Schema::nodes`].
pub(crate) type NodeId = u32;

/// Index into the values that lengths and selectors are taken from.
pub(crate) type Slot = u32;

/// A field class at one place.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    /// Alignment in bits, a power of two.
    pub(crate) align: u32,
    /// Size in bits from an aligned start; `None` if it varies.
    pub(crate) size: Option<u64>,
    /// Whether the node must be read rather than skipped: the node or a node below it has a slot or a role.
    pub(crate) keeps: bool,
    /// The slot for its value.
    pub(crate) slot: Option<Slot>,
    pub(crate) role: Option<Role>,
}

/// Encoding of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf16(Order),
    Utf32(Order),
}

impl Encoding {
    /// Returns the size of the code units, bytes.
    pub(crate) fn unit(self) -> usize {
        match self {
            Self::Utf8 => 1,
            Self::Utf16(_) => 2,
            Self::Utf32(_) => 4,
        }
    }
}

/// An integer of a fixed number of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Int {
    /// Number of bits, 1 to 64.
    pub(crate) len: u32,
    pub(crate) order: Order,
    pub(crate) signed: bool,
}

/// Names of ranges of an integer, both ends included.
pub(crate) type Mappings = Vec<(String, Vec<(i128, i128)>)>;

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) node: NodeId,
}

/// An option of a variant, chosen if the selector is in one of these ranges.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) name: Option<String>,
    pub(crate) ranges: Vec<(i128, i128)>,
    pub(crate) node: NodeId,
}

/// Source of a length or selector.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    pub(crate) slot: Slot,
    pub(crate) signed: bool,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Int {
        int: Int,
        base: u8,
        mappings: Mappings,
    },
    Bool(Int),
    /// A bit array, or a bit map with its flags.
    Bits {
        int: Int,
        flags: Mappings,
    },
    Float(Int),
    Leb {
        signed: bool,
        base: u8,
        mappings: Mappings,
    },
    /// Text up to its terminator.
    Text(Encoding),
    StaticText {
        bytes: u64,
        encoding: Encoding,
    },
    DynamicText {
        length: Source,
        encoding: Encoding,
    },
    StaticBlob {
        bytes: u64,
    },
    DynamicBlob {
        length: Source,
    },
    Struct(Vec<Member>),
    StaticArray {
        of: NodeId,
        count: u64,
    },
    DynamicArray {
        of: NodeId,
        length: Source,
    },
    Optional {
        node: NodeId,
        selector: Source,
        /// Ranges of an integer selector; `None` for a boolean selector.
        ranges: Option<Vec<(i128, i128)>>,
    },
    Variant {
        choices: Vec<Choice>,
        selector: Source,
    },
}

/// Role of a field of a header or of the packet context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Magic,
    Uuid,
    StreamClass,
    Stream,
    PacketTotal,
    PacketContent,
    PacketEnd,
    PacketNumber,
    Discarded,
    Time,
    EventClass,
}

/// A clock: the properties that times need.
#[derive(Debug, Clone)]
pub struct Clock {
    /// Name: `monotonic` in a trace by LTTng.
    pub name: String,
    /// Distinguishes the clock from other clocks of the same name: for LTTng, the boot of the machine.
    pub uid: Option<String>,
    /// Cycles per second.
    pub frequency: u64,
    /// Whole seconds of the offset of the clock's value from its origin.
    pub offset_seconds: i64,
    /// The part of the offset that is less than a second, in cycles.
    pub offset_cycles: u64,
}

impl Clock {
    /// Returns the offset of the clock's value in ns, if the clock counts nanoseconds.
    pub(crate) fn offset(&self) -> Option<i64> {
        let seconds = self.offset_seconds.saturating_mul(SECOND as i64);
        (self.frequency == SECOND).then(|| seconds.wrapping_add(self.offset_cycles as i64))
    }

    /// Converts `cycles` of this clock to nanoseconds since its origin (for LTTng: since 1970).
    #[must_use]
    pub fn nanoseconds(&self, cycles: u64) -> i64 {
        let all = u128::from(cycles) + u128::from(self.offset_cycles);
        let ns = all * u128::from(SECOND) / u128::from(self.frequency.max(1));
        let seconds = self.offset_seconds.saturating_mul(SECOND as i64);
        seconds.wrapping_add(ns as i64)
    }
}

const SECOND: u64 = 1_000_000_000;

/// The metadata of a trace.
#[derive(Debug, Default)]
pub struct Schema {
    pub(crate) nodes: Vec<Node>,
    pub(crate) slots: u32,
    /// Size of all names in field classes, bytes.
    pub(crate) names: usize,
    pub(crate) uuid: Option<[u8; 16]>,
    pub(crate) packet_header: Option<NodeId>,
    pub(crate) clocks: Vec<Clock>,
    pub(crate) streams: Vec<StreamClass>,
    pub(crate) classes: Vec<Class>,
    /// Environment in which the trace was made: `hostname`, `kernel_release`, ...
    pub(crate) environment: Vec<(String, String)>,
}

impl Schema {
    #[inline]
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        // Every NodeId is the index of a node that was pushed to `nodes`, which never shrinks.
        &self.nodes[id as usize]
    }

    /// Returns the index of the data stream class with this number.
    pub(crate) fn stream(&self, id: u64) -> Option<usize> {
        self.streams.iter().position(|s| s.id == id)
    }

    /// Returns the UUID of the trace. LTTng uses the same UUID for all snapshots of a session, and
    /// for all chunks of a rotated session.
    #[must_use]
    pub fn uuid(&self) -> Option<[u8; 16]> {
        self.uuid
    }

    /// Returns a value of the environment: `hostname`, `kernel_release`, `tracer_name`, `domain`,
    /// ...
    #[must_use]
    pub fn environment(&self, key: &str) -> Option<&str> {
        let found = self.environment.iter().find(|(k, _)| k == key);
        found.map(|(_, v)| v.as_str())
    }

    /// Returns all event classes.
    pub fn classes(&self) -> impl Iterator<Item = &Class> {
        self.classes.iter()
    }

    /// Returns the event classes of a stream class, given the number in [`crate::Span::stream`].
    pub fn classes_of(&self, stream: usize) -> impl Iterator<Item = &Class> {
        let events = self.streams.get(stream).map(|stream| &stream.events);
        let places = events.into_iter().flat_map(Events::classes);
        places.filter_map(|place| self.classes.get(place as usize))
    }

    /// Returns the clocks of the trace.
    #[must_use]
    pub fn clocks(&self) -> &[Clock] {
        &self.clocks
    }
}

/// Returns the names whose ranges contain `value`.
pub(crate) fn labels(mappings: &Mappings, value: i128) -> impl Iterator<Item = &str> {
    let holds = move |(_, ranges): &&(String, Vec<(i128, i128)>)| within(ranges, value);
    mappings.iter().filter(holds).map(|(name, _)| name.as_str())
}

pub(crate) fn within(ranges: &[(i128, i128)], value: i128) -> bool {
    ranges
        .iter()
        .any(|(low, high)| (*low..=*high).contains(&value))
}
