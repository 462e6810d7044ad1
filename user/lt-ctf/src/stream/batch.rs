// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Decodes a stream batch by batch: a batch has the events of one window, and the places of their fields. It borrows
//! nothing, so a thread can decode the next batch while the events of the current batch are read.
//!
//! ```text
//! head      losses and errors before the first event
//! records   time, class  | time, class    | ...
//! values    anchor       | anchors, slots | ...
//! bytes     ::::::::::::::::::::::::::::::::::   the window, in one packet
//! ```
//!
//! The events, losses and errors depend on the files of the stream alone. The size of its window decides only where one
//! batch ends and the next one starts.

use std::collections::VecDeque;

use super::{Lost, Next, Stream};
use crate::error::{Error, Result};
use crate::program::{FUEL, State, Window, keep, slot_of};
use crate::schema::{NodeId, Program, Schema};

/// Maximum number of steps to the first event of a batch: a stream may have any number of losses, errors and empty
/// packets.
const STEPS: usize = 64;
/// A batch has at most one value for this many bytes of its window. LTTng's events usually have fewer values.
const VALUE: usize = 8;

/// An event of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    pub(crate) nanoseconds: i64,
    pub(crate) cycles: u64,
    /// The index of its class in the schema.
    pub(crate) class: u32,
    /// The index of its first value.
    values: u32,
}

/// A part of a stream.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The index of the stream, and of its trace.
    pub(crate) stream: usize,
    pub(crate) trace: usize,
    pub(crate) head: VecDeque<Result<Lost>>,
    pub(crate) records: Vec<Record>,
    /// For each event its anchors, in bits of the window, and then the values of the slots that its class reads.
    values: Vec<u64>,
    /// The window: `filled` bytes, and the end of the events, in bits.
    bytes: Vec<u8>,
    filled: usize,
    end: u64,
    /// The values of lengths and selectors, for the packet's fields and for the event that was restored last.
    pub(crate) slots: Vec<u64>,
    pub(crate) cpu: Option<u32>,
    /// The packet's header and context, where the context starts, and its node.
    context: Vec<u8>,
    context_at: u64,
    packet_context: Option<NodeId>,
    /// Start of the next packet.
    pub(crate) at: (usize, u64),
    /// Whether a file of the stream has grown since the trace was opened.
    pub(crate) grew: bool,
    /// Whether the stream ends here; such a batch has no event.
    pub(crate) last: bool,
}

impl Batch {
    pub(crate) fn clear(&mut self) {
        self.head.clear();
        self.records.clear();
        self.values.clear();
        self.last = false;
    }

    /// Makes this the last batch, which has only this error.
    pub(crate) fn fail(&mut self, error: Error) {
        self.clear();
        self.head.push_back(Err(error));
        self.last = true;
    }

    #[inline]
    pub(crate) fn window(&self) -> Window<'_> {
        Window {
            bytes: self.bytes.get(..self.filled).unwrap_or_default(),
            end: self.end,
        }
    }

    /// Returns the header and the context of the packet, where the context starts, and the node of the context.
    pub(crate) fn packet_fields(&self) -> (&[u8], u64, Option<NodeId>) {
        (&self.context, self.context_at, self.packet_context)
    }

    /// Returns the positions of the anchors of an event, and other values after them.
    #[inline]
    pub(crate) fn anchors(&self, record: Record) -> &[u64] {
        self.values
            .get(record.values as usize..)
            .unwrap_or_default()
    }

    /// Returns the position of an anchor of an event.
    #[inline]
    pub(crate) fn anchor(&self, record: Record, anchor: u32) -> Option<u64> {
        self.anchors(record).get(anchor as usize).copied()
    }

    /// Sets the slots that the class of an event reads to their values in this event.
    pub(crate) fn restore(&mut self, record: Record, program: &Program) {
        let from = record.values as usize + program.anchors as usize;
        let values = self.values.get(from..).unwrap_or_default();
        for (slot, value) in program.slots.iter().zip(values) {
            keep(&mut self.slots, *slot, *value);
        }
    }

    #[inline]
    fn push(&mut self, class: u32, times: (i64, u64), program: &Program, state: &State) {
        self.records.push(Record {
            nanoseconds: times.0,
            cycles: times.1,
            class,
            values: self.values.len() as u32,
        });
        // There are as many anchors as in the largest program.
        match state.anchors.get(..program.anchors as usize) {
            Some([anchor]) => self.values.push(*anchor),
            anchors => self.values.extend_from_slice(anchors.unwrap_or_default()),
        }
        for slot in &program.slots {
            self.values.push(slot_of(&state.slots, *slot));
        }
    }
}

impl Stream {
    /// Replaces `batch` with the next batch, in the same memory.
    pub(crate) fn next_batch(&mut self, schema: &Schema, batch: &mut Batch) {
        batch.clear();
        self.bytes = std::mem::take(&mut batch.bytes);
        let mut steps = 0;
        // The window has the next packet while losses before that packet are reported.
        while batch.records.is_empty() && !batch.last && (steps < STEPS || self.ready) {
            match self.proceed(schema) {
                Ok(Next::Window) => self.decode_window(schema, batch),
                Ok(Next::Lost(lost)) => batch.head.push_back(Ok(lost)),
                Ok(Next::End) => batch.last = true,
                Err(error) => batch.head.push_back(Err(error)),
            }
            steps += 1;
        }
        if !self.stays_open {
            self.open = None;
        }
        if batch.last {
            // Nothing more will be read.
            batch.records = Vec::new();
            batch.values = Vec::new();
        }
        batch.bytes = std::mem::take(&mut self.bytes);
        batch.stream = self.origin.index;
        batch.trace = self.origin.trace;
        batch.filled = self.filled;
        batch.end = self.end;
        batch.slots.clone_from(&self.state.slots);
        batch.cpu = self.cpu;
        batch.context.clone_from(&self.context);
        batch.context_at = self.context_at;
        batch.packet_context = self.packet_context;
        batch.at = self.at;
        batch.grew = self.grew;
    }

    /// Decodes events to the end of the window, or until the batch is full: it has as many values as fit, or the fields
    /// walked are as many as one event may have. So a batch takes a limited amount of memory and of time.
    fn decode_window(&mut self, schema: &Schema, batch: &mut Batch) {
        let most = self.size / VALUE;
        let mut walked = 0;
        while self.pos < self.limit && batch.values.len() < most && walked < FUEL {
            match self.decode(schema) {
                Ok((class, program)) => {
                    let nanoseconds = self.nanoseconds(self.cycles);
                    batch.push(class, (nanoseconds, self.cycles), program, &self.state);
                    walked += FUEL - self.state.fuel;
                }
                Err(stop) => {
                    self.stop = Some(stop);
                    return;
                }
            }
        }
    }
}
