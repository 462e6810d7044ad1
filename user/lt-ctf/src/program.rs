// SPDX-License-Identifier: GPL-2.0 OR MIT

//! How to get from the begin of an event's fields to their end: a short list of steps, made once for each class.
//!
//! ```text
//! sched_switch    char[16] i32 i32 i64 char[16] i32 i32     ->  Skip 448
//! block_rq_issue  u32 u64 u32 ... string(comm)              ->  Skip 352, Text, Anchor 1
//! ```
//!
//! Fields of fixed size that follow each other are one step, and each of them stands at a fixed distance from
//! an *anchor*: the begin of the event's fields, or the end of the last field whose size was not known before.
//! A step that wants more than the window holds stops with [`Stop::More`]; the caller gets more and runs it again.

use crate::bits;
use crate::schema::{Field, Int, Kind, Node, NodeId, Role, Schema, Scope, Slot, Source, within};

/// One event takes at most so many steps: arrays of arrays of nothing are cheap to write.
pub(crate) const FUEL: u32 = 1 << 22;

/// Why the end was not reached.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It would be at this bit of the window or later.
    More(u64),
    /// It cannot be.
    Bad(Box<str>),
}

impl Stop {
    #[cold]
    pub(crate) fn bad(what: impl Into<Box<str>>) -> Self {
        Self::Bad(what.into())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    /// To the next multiple of mask + 1 bits.
    Align(u32),
    Skip(u64),
    /// A field of fixed size, whose value is kept.
    Keep(Int, Slot),
    /// What follows is found from here.
    Anchor(u32),
    /// Bytes up to and with a zero.
    Text,
    /// So many bytes.
    Bytes(Slot),
    /// So many elements; each takes `stride` bits, the last one `own`.
    Array {
        slot: Slot,
        stride: u64,
        own: u64,
    },
    /// Anything else.
    Node(NodeId),
}

/// The steps of one event class.
#[derive(Debug, Default)]
pub(crate) struct Program {
    ops: Vec<Op>,
    pub(crate) anchors: u32,
}

/// What is known while a packet is read.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The values of lengths and selectors.
    pub(crate) slots: Vec<u64>,
    /// Bits of the window where the anchors of the present event are.
    pub(crate) anchors: Vec<u64>,
    pub(crate) roles: Roles,
    pub(crate) fuel: u32,
}

/// What headers say.
#[derive(Debug, Default, Clone)]
pub(crate) struct Roles {
    pub(crate) magic: Option<u64>,
    pub(crate) uuid: Option<[u8; 16]>,
    pub(crate) stream_class: Option<u64>,
    pub(crate) stream: Option<u64>,
    pub(crate) total: Option<u64>,
    pub(crate) content: Option<u64>,
    pub(crate) end: Option<u64>,
    pub(crate) number: Option<u64>,
    pub(crate) discarded: Option<u64>,
    pub(crate) event: Option<u64>,
    /// The clock, in cycles.
    pub(crate) time: u64,
    pub(crate) timed: bool,
}

/// The clock shows `value` in its lowest `len` bits, and never goes back.
#[inline]
pub(crate) fn tick(clock: u64, value: u64, len: u32) -> u64 {
    let mask = bits::mask(len);
    let new = (clock & !mask) | value;
    if new < clock && len < 64 {
        new.wrapping_add(mask.wrapping_add(1))
    } else {
        new
    }
}

impl Roles {
    fn take(&mut self, role: Role, value: u64, len: u32) {
        match role {
            Role::Magic => self.magic = Some(value),
            Role::Uuid => {}
            Role::StreamClass => self.stream_class = Some(value),
            Role::Stream => self.stream = Some(value),
            Role::PacketTotal => self.total = Some(value),
            Role::PacketContent => self.content = Some(value),
            Role::PacketEnd => self.end = Some(tick(self.time, value, len)),
            Role::PacketNumber => self.number = Some(value),
            Role::Discarded => self.discarded = Some(value),
            Role::EventClass => self.event = Some(value),
            Role::Time => {
                self.time = tick(self.time, value, len);
                self.timed = true;
            }
        }
    }
}

/// A part of a packet, from a bit that is aligned for all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window<'a> {
    pub(crate) bytes: &'a [u8],
    /// In bits; not behind the bytes.
    pub(crate) end: u64,
}

impl Window<'_> {
    /// `pos` + `size`, when it is inside.
    #[inline]
    pub(crate) fn after(&self, pos: u64, size: u64) -> Result<u64, Stop> {
        let end = pos.saturating_add(size);
        if end <= self.end {
            Ok(end)
        } else {
            Err(Stop::More(end))
        }
    }

    /// An integer there; `pos` + its length must be inside.
    #[inline]
    pub(crate) fn integer(&self, pos: u64, int: Int) -> Result<u64, Stop> {
        match bits::read(self.bytes, pos as usize, int.len, int.order) {
            Some(value) if int.signed => Ok(bits::sign(value, int.len) as u64),
            Some(value) => Ok(value),
            None => Err(Stop::More(pos.saturating_add(u64::from(int.len)))),
        }
    }

    /// The end of text of such units, its end mark included.
    pub(crate) fn text(&self, pos: u64, unit: usize) -> Result<u64, Stop> {
        let rest = self
            .bytes
            .get((pos >> 3) as usize..(self.end >> 3) as usize);
        let rest = rest.unwrap_or_default();
        let length = match unit {
            1 => memchr::memchr(0, rest).map(|i| i + 1),
            _ => {
                let zero = rest
                    .chunks_exact(unit)
                    .position(|c| c.iter().all(|b| *b == 0));
                zero.map(|i| (i + 1) * unit)
            }
        };
        match length {
            Some(length) => Ok(pos + 8 * length as u64),
            None => Err(Stop::More(self.end.saturating_add(8))),
        }
    }
}

#[inline]
pub(crate) fn align(pos: u64, align: u32) -> u64 {
    let mask = u64::from(align) - 1;
    (pos + mask) & !mask
}

impl Program {
    /// Runs it from `pos`; where the event ends.
    #[inline]
    pub(crate) fn run(
        &self,
        schema: &Schema,
        window: Window<'_>,
        mut pos: u64,
        state: &mut State,
    ) -> Result<u64, Stop> {
        if let Some(first) = state.anchors.first_mut() {
            *first = pos;
        }
        for op in &self.ops {
            pos = match *op {
                Op::Skip(size) => window.after(pos, size)?,
                Op::Align(mask) => align(pos, mask + 1),
                Op::Anchor(anchor) => {
                    // There are as many as the largest program has.
                    if let Some(place) = state.anchors.get_mut(anchor as usize) {
                        *place = pos;
                    }
                    pos
                }
                Op::Text => window.text(pos, 1)?,
                Op::Keep(int, slot) => {
                    let end = window.after(pos, u64::from(int.len))?;
                    keep(&mut state.slots, slot, window.integer(pos, int)?);
                    end
                }
                Op::Bytes(slot) => {
                    window.after(pos, slot_of(&state.slots, slot).saturating_mul(8))?
                }
                Op::Array { slot, stride, own } => {
                    let count = slot_of(&state.slots, slot);
                    window.after(pos, array(count, stride, own))?
                }
                Op::Node(node) => walk(schema, window, node, pos, state)?,
            };
        }
        Ok(pos)
    }
}

#[inline]
fn keep(slots: &mut [u64], slot: Slot, value: u64) {
    if let Some(place) = slots.get_mut(slot as usize) {
        *place = value;
    }
}

#[inline]
fn slot_of(slots: &[u64], slot: Slot) -> u64 {
    slots.get(slot as usize).copied().unwrap_or(0)
}

/// The value of a selector.
pub(crate) fn selected(slots: &[u64], source: Source) -> i128 {
    let value = slot_of(slots, source.slot);
    if source.signed {
        i128::from(value as i64)
    } else {
        i128::from(value)
    }
}

/// The size of `count` elements, bits.
fn array(count: u64, stride: u64, own: u64) -> u64 {
    match count {
        0 => 0,
        n => (n - 1).saturating_mul(stride).saturating_add(own),
    }
}

/// Goes over one field of any kind.
pub(crate) fn walk(
    schema: &Schema,
    window: Window<'_>,
    id: NodeId,
    pos: u64,
    state: &mut State,
) -> Result<u64, Stop> {
    state.fuel = state
        .fuel
        .checked_sub(1)
        .ok_or_else(|| Stop::bad("one event with millions of fields"))?;
    let node = schema.node(id);
    let pos = align(pos, node.align);
    if let (Some(size), false) = (node.size, node.keeps) {
        return window.after(pos, size);
    }
    match &node.kind {
        Kind::Int { int, .. } | Kind::Bool(int) | Kind::Bits { int, .. } | Kind::Float(int) => {
            let end = window.after(pos, u64::from(int.len))?;
            let value = window.integer(pos, *int)?;
            note(state, node, value, int.len);
            Ok(end)
        }
        Kind::Leb { signed, .. } => {
            let (value, end) = leb(window, pos, *signed)?;
            note(state, node, value, 64);
            Ok(end)
        }
        Kind::Text(encoding) => window.text(pos, encoding.unit()),
        Kind::StaticText { bytes, .. } | Kind::StaticBlob { bytes } => {
            let end = window.after(pos, bytes.saturating_mul(8))?;
            if node.role == Some(Role::Uuid) {
                let uuid = window.bytes.get((pos >> 3) as usize..(end >> 3) as usize);
                state.roles.uuid = uuid.and_then(|b| b.try_into().ok());
            }
            Ok(end)
        }
        Kind::DynamicText { length, .. } | Kind::DynamicBlob { length } => {
            window.after(pos, slot_of(&state.slots, length.slot).saturating_mul(8))
        }
        Kind::Struct(members) => members.iter().try_fold(pos, |pos, member| {
            walk(schema, window, member.node, pos, state)
        }),
        Kind::StaticArray { of, count } => elements(schema, window, *of, *count, pos, state),
        Kind::DynamicArray { of, length } => {
            let count = slot_of(&state.slots, length.slot);
            let element = schema.node(*of);
            match element.size {
                Some(own) if !element.keeps => {
                    let stride = own.next_multiple_of(u64::from(element.align));
                    window.after(pos, array(count, stride, own))
                }
                _ => elements(schema, window, *of, count, pos, state),
            }
        }
        Kind::Optional {
            node,
            selector,
            ranges,
        } => {
            if is_there(&state.slots, *selector, ranges.as_deref()) {
                walk(schema, window, *node, pos, state)
            } else {
                Ok(pos)
            }
        }
        Kind::Variant { choices, selector } => {
            let value = selected(&state.slots, *selector);
            let chosen = choices.iter().find(|c| within(&c.ranges, value));
            let chosen =
                chosen.ok_or_else(|| Stop::bad(format!("no option of a variant for {value}")))?;
            walk(schema, window, chosen.node, pos, state)
        }
    }
}

fn elements(
    schema: &Schema,
    window: Window<'_>,
    of: NodeId,
    count: u64,
    mut pos: u64,
    state: &mut State,
) -> Result<u64, Stop> {
    for _ in 0..count {
        pos = walk(schema, window, of, pos, state)?;
    }
    Ok(pos)
}

/// Whether an optional field is there.
pub(crate) fn is_there(slots: &[u64], selector: Source, ranges: Option<&[(i128, i128)]>) -> bool {
    let value = selected(slots, selector);
    ranges.map_or(value != 0, |ranges| within(ranges, value))
}

/// A LEB128 number and where it ends.
pub(crate) fn leb(window: Window<'_>, pos: u64, signed: bool) -> Result<(u64, u64), Stop> {
    let bytes = window
        .bytes
        .get(..(window.end >> 3) as usize)
        .unwrap_or_default();
    match bits::leb128(bytes, (pos >> 3) as usize, signed) {
        Some(Some((value, length))) => Ok((value, pos + 8 * length as u64)),
        Some(None) => Err(Stop::bad("an integer of more than 64 bits")),
        None => Err(Stop::More(window.end.saturating_add(8))),
    }
}

fn note(state: &mut State, node: &Node, value: u64, len: u32) {
    if let Some(slot) = node.slot {
        keep(&mut state.slots, slot, value);
    }
    if let Some(role) = node.role {
        state.roles.take(role, value, len);
    }
}

/// Makes the steps and the fields of an event class from its scopes: common, specific, payload.
pub(crate) fn lower(
    schema: &Schema,
    scopes: [Option<NodeId>; 3],
) -> Result<(Program, Vec<Field>), String> {
    let mut lower = Lower {
        schema,
        ops: Vec::new(),
        fields: Vec::new(),
        anchor: 0,
        delta: 0,
        skip: 0,
        modulus: 1,
        residue: 0,
    };
    for (scope, id) in [Scope::Common, Scope::Specific, Scope::Payload]
        .into_iter()
        .zip(scopes)
    {
        let Some(id) = id else {
            continue;
        };
        let node = schema.node(id);
        lower.align(node.align);
        if let Kind::Struct(members) = &node.kind {
            for member in members {
                lower.member(scope, &member.name, member.node)?;
            }
        }
    }
    lower.flush();
    let program = Program {
        ops: lower.ops,
        anchors: lower.anchor + 1,
    };
    Ok((program, lower.fields))
}

struct Lower<'a> {
    schema: &'a Schema,
    ops: Vec<Op>,
    fields: Vec<Field>,
    /// The last anchor, and how far behind it the next field stands, bits.
    anchor: u32,
    delta: u64,
    /// What of that is not yet a step.
    skip: u64,
    /// What is known of the place of the anchor plus delta: it is `residue` modulo `modulus` bits.
    modulus: u64,
    residue: u64,
}

impl Lower<'_> {
    fn flush(&mut self) {
        if self.skip > 0 {
            self.ops.push(Op::Skip(self.skip));
            self.skip = 0;
        }
    }

    /// Begins anew at a place of which this is known.
    fn anchor(&mut self, modulus: u64) {
        self.anchor += 1;
        self.ops.push(Op::Anchor(self.anchor));
        self.delta = 0;
        self.modulus = modulus;
        self.residue = 0;
    }

    fn forward(&mut self, size: u64) {
        self.skip += size;
        self.delta += size;
        self.residue = (self.residue + size) % self.modulus;
    }

    fn align(&mut self, align: u32) {
        let align = u64::from(align);
        if align <= self.modulus {
            // Both are powers of two.
            self.forward((align - self.residue % align) % align);
        } else {
            self.flush();
            self.ops.push(Op::Align((align - 1) as u32));
            self.anchor(align);
        }
    }

    fn member(&mut self, scope: Scope, name: &str, id: NodeId) -> Result<(), String> {
        let node = self.schema.node(id);
        self.align(node.align);
        let delta = u32::try_from(self.delta);
        let quick = match node.kind {
            Kind::Int { int, .. }
                if self.modulus >= 8
                    && self.residue.is_multiple_of(8)
                    && int.len.is_multiple_of(8) =>
            {
                Some(int)
            }
            _ => None,
        };
        self.fields.push(Field {
            name: name.to_string(),
            scope,
            node: id,
            anchor: self.anchor,
            delta: delta.map_err(|_| "an event of gigabytes")?,
            quick,
        });
        if let (Some(size), false) = (node.size, node.keeps) {
            self.forward(size);
            return Ok(());
        }
        match node.kind {
            Kind::Int { int, .. } | Kind::Bool(int) => {
                if let Some(slot) = node.slot {
                    self.flush();
                    self.ops.push(Op::Keep(int, slot));
                    self.forward(u64::from(int.len));
                    // The step itself goes over it.
                    self.skip -= u64::from(int.len);
                    return Ok(());
                }
            }
            _ => {}
        }
        self.flush();
        let modulus = match node.kind {
            Kind::Text(encoding) if encoding.unit() == 1 => {
                self.ops.push(Op::Text);
                8
            }
            Kind::DynamicText { length, .. } | Kind::DynamicBlob { length } => {
                self.ops.push(Op::Bytes(length.slot));
                8
            }
            Kind::DynamicArray { of, length } => {
                let element = self.schema.node(of);
                match element.size {
                    Some(own) if !element.keeps => {
                        let stride = own.next_multiple_of(u64::from(element.align));
                        self.ops.push(Op::Array {
                            slot: length.slot,
                            stride,
                            own,
                        });
                        // The largest power of two that divides the begin and all it can add to it.
                        let begin = u64::from(node.align).trailing_zeros();
                        let steps = stride.trailing_zeros().min(own.trailing_zeros());
                        1 << begin.min(steps)
                    }
                    _ => {
                        self.ops.push(Op::Node(id));
                        1
                    }
                }
            }
            _ => {
                self.ops.push(Op::Node(id));
                1
            }
        };
        self.anchor(modulus);
        Ok(())
    }
}
