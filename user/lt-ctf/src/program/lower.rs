// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Generates the steps of an event class from its field classes, and the place of each field.
//! The distance of each field from the last anchor is tracked, and so is its position modulo a power of two. The
//! padding that most alignments need is therefore known beforehand, and they need no step.

use crate::bits::Order;
use crate::schema::{
    Access, Encoding, Field, Kind, NodeId, Op, Program, Schema, Scope, Slot, Step,
};

/// Generates the steps and the fields of an event class from its scopes: common, specific, payload.
/// The fields start at a multiple of `modulus` bits, a power of two. Also returns how many nodes were searched for
/// lengths and selectors.
pub(crate) fn lower(
    schema: &Schema,
    modulus: u64,
    scopes: [Option<NodeId>; 3],
) -> Result<(Program, Vec<Field>, usize), String> {
    let mut lower = Lower {
        schema,
        program: Program::default(),
        fields: Vec::new(),
        anchor: 0,
        delta: 0,
        modulus,
        residue: 0,
        searched: 0,
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
        lower.sources(id);
        if let Kind::Struct(members) = &node.kind {
            for member in members {
                lower.member(scope, &member.name, member.node)?;
            }
        }
    }
    lower.program.anchors = lower.anchor + 1;
    lower.program.slots.sort_unstable();
    lower.program.slots.dedup();
    Ok((lower.program, lower.fields, lower.searched))
}

struct Lower<'a> {
    schema: &'a Schema,
    program: Program,
    fields: Vec<Field>,
    /// The last anchor, and the distance from it to the next field, bits.
    anchor: u32,
    delta: u64,
    /// The position of the anchor plus delta is `residue` modulo `modulus` bits.
    modulus: u64,
    residue: u64,
    /// Number of nodes that `sources` has searched.
    searched: usize,
}

impl Lower<'_> {
    /// Adds a step after which the next field is only known to be at a multiple of `modulus` bits.
    fn step(&mut self, op: Op, modulus: u64) {
        self.anchor += 1;
        self.program.steps.push(Step {
            op,
            anchor: self.anchor,
            skip: 0,
        });
        self.delta = 0;
        self.modulus = modulus;
        self.residue = 0;
    }

    /// Moves the next field by `size`, without extending the current step.
    fn pass(&mut self, size: u64) {
        self.delta += size;
        self.residue = (self.residue + size) % self.modulus;
    }

    fn forward(&mut self, size: u64) {
        match self.program.steps.last_mut() {
            Some(step) => step.skip += size,
            None => self.program.head += size,
        }
        self.pass(size);
    }

    fn align(&mut self, align: u32) {
        let align = u64::from(align);
        if align <= self.modulus {
            // `align` and `modulus` are powers of two.
            self.forward((align - self.residue % align) % align);
        } else {
            self.step(Op::Align((align - 1) as u32), align);
        }
    }

    /// Collects the slots from which the lengths and the selectors in a field are taken.
    fn sources(&mut self, id: NodeId) {
        let schema = self.schema;
        let node = schema.node(id);
        if node.size.is_some() {
            return;
        }
        self.searched += 1;
        match &node.kind {
            Kind::DynamicText { length, .. } | Kind::DynamicBlob { length } => {
                self.program.slots.push(length.slot);
            }
            Kind::Struct(members) => members.iter().for_each(|m| self.sources(m.node)),
            Kind::StaticArray { of, .. } => self.sources(*of),
            Kind::DynamicArray { of, length } => {
                self.program.slots.push(length.slot);
                self.sources(*of);
            }
            Kind::Optional { node, selector, .. } => {
                self.program.slots.push(selector.slot);
                self.sources(*node);
            }
            Kind::Variant { choices, selector } => {
                self.program.slots.push(selector.slot);
                choices.iter().for_each(|c| self.sources(c.node));
            }
            _ => {}
        }
    }

    fn member(&mut self, scope: Scope, name: &str, id: NodeId) -> Result<(), String> {
        let node = self.schema.node(id);
        self.align(node.align);
        let delta = u32::try_from(self.delta);
        let access = self.access(&node.kind);
        self.fields.push(Field {
            name: name.to_string(),
            scope,
            node: id,
            anchor: self.anchor,
            delta: delta.map_err(|_| "more than 512 MiB of fixed-size fields")?,
            access,
        });
        if let (Some(size), false) = (node.size, node.keeps) {
            self.forward(size);
            return Ok(());
        }
        match node.kind {
            Kind::Int { int, .. } | Kind::Bool(int) => {
                if let Some(slot) = node.slot {
                    self.program.steps.push(Step {
                        op: Op::Keep(int, slot),
                        anchor: 0,
                        skip: 0,
                    });
                    self.pass(u64::from(int.len));
                    return Ok(());
                }
            }
            _ => {}
        }
        let (op, modulus) = match node.kind {
            Kind::Text(encoding) if encoding.unit() == 1 => (Op::Text, 8),
            Kind::DynamicText { length, .. } | Kind::DynamicBlob { length } => {
                (Op::Bytes(length.slot), 8)
            }
            Kind::DynamicArray { of, length } => self.array(id, of, length.slot),
            _ => (Op::Node(id), 1),
        };
        self.step(op, modulus);
        Ok(())
    }

    /// Returns how the value of the next field is read.
    fn access(&self, kind: &Kind) -> Access {
        let is_whole = self.modulus >= 8 && self.residue.is_multiple_of(8);
        match *kind {
            Kind::Int { int, .. }
                if is_whole && int.len.is_multiple_of(8) && int.order == Order::Little =>
            {
                let unused = u64::BITS - int.len;
                match int.signed {
                    true => Access::Signed(unused),
                    false => Access::Unsigned(unused),
                }
            }
            Kind::StaticText {
                bytes,
                encoding: Encoding::Utf8,
            } => u32::try_from(bytes).map_or(Access::Node, Access::Text),
            _ => Access::Node,
        }
    }

    /// Returns the step of an array, and the largest power of two known to divide the position of its end.
    fn array(&self, id: NodeId, of: NodeId, slot: Slot) -> (Op, u64) {
        let element = self.schema.node(of);
        match element.size {
            Some(own) if !element.keeps => {
                let stride = own.next_multiple_of(u64::from(element.align));
                // The largest power of two that divides the start and every possible length.
                let begin = u64::from(self.schema.node(id).align).trailing_zeros();
                let steps = stride.trailing_zeros().min(own.trailing_zeros());
                (Op::Array { slot, stride, own }, 1 << begin.min(steps))
            }
            _ => (Op::Node(id), 1),
        }
    }
}
