// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The steps from the start of an event's fields to their end, as data. `program` makes and runs them.

use super::{Int, NodeId, Slot};

/// An operation on padding, on a field of variable size, or on a field whose value is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    /// Skip to the next multiple of mask + 1 bits.
    Align(u32),
    /// A field of fixed size, whose value is stored in the slot.
    Keep(Int, Slot),
    /// Bytes up to and including a zero byte.
    Text,
    /// Bytes, whose number is in the slot.
    Bytes(Slot),
    /// Elements, whose number is in the slot. The last element takes `own` bits, every other element `stride` bits.
    Array { slot: Slot, stride: u64, own: u64 },
    /// Anything else.
    Node(NodeId),
}

/// An operation on one field, and the distance over the fixed-size fields after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) op: Op,
    /// Anchor set at the end of the field, for the fields after it; 0 for none.
    pub(crate) anchor: u32,
    /// The size of the fields of fixed size that follow, bits.
    pub(crate) skip: u64,
}

/// The steps of one event class.
#[derive(Debug, Default)]
pub(crate) struct Program {
    /// The size of the fields of fixed size before the first step, bits. Often these are all the fields.
    pub(crate) head: u64,
    pub(crate) steps: Vec<Step>,
    pub(crate) anchors: u32,
    /// The slots from which the lengths and the selectors in the fields are taken.
    pub(crate) slots: Vec<Slot>,
}
