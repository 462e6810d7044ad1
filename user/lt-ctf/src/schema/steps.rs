// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The steps from the start of an event's fields to their end, as data. `program` makes and runs them.

use super::{Int, NodeId, Slot};

/// What goes over a field whose size or place is not known beforehand, or keeps its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    /// To the next multiple of mask + 1 bits.
    Align(u32),
    /// A field of fixed size, whose value is kept.
    Keep(Int, Slot),
    /// Bytes up to and with a zero.
    Text,
    /// As many bytes as the slot says.
    Bytes(Slot),
    /// As many elements as the slot says; each takes `stride` bits, the last one `own`.
    Array { slot: Slot, stride: u64, own: u64 },
    /// Anything else.
    Node(NodeId),
}

/// One such field, and what is known of those behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) op: Op,
    /// What follows is found from its end: that is this anchor. Not if 0.
    pub(crate) anchor: u32,
    /// The size of the fields of fixed size that follow, bits.
    pub(crate) skip: u64,
}

/// The steps of one event class.
#[derive(Debug, Default)]
pub(crate) struct Program {
    /// The size of the fields of fixed size before the first step, bits. Often these are all fields.
    pub(crate) head: u64,
    pub(crate) steps: Vec<Step>,
    pub(crate) anchors: u32,
}
