// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Walks a field of any kind, node by node. Used for headers, and for the fields of an event for
//! which there is no simpler step ([`crate::schema::Op`]).

use super::state::State;
use super::window::{Stop, Window, align};
use crate::bits;
use crate::schema::{Kind, Node, NodeId, Role, Schema, Slot, Source, within};

#[inline]
pub(crate) fn keep(slots: &mut [u64], slot: Slot, value: u64) {
    if let Some(place) = slots.get_mut(slot as usize) {
        *place = value;
    }
}

#[inline]
pub(crate) fn slot_of(slots: &[u64], slot: Slot) -> u64 {
    slots.get(slot as usize).copied().unwrap_or(0)
}

/// Returns the value of a selector.
pub(crate) fn selected(slots: &[u64], source: Source) -> i128 {
    let value = slot_of(slots, source.slot);
    if source.signed {
        i128::from(value as i64)
    } else {
        i128::from(value)
    }
}

/// Returns the size of `count` elements, in bits: the last element takes `own`, every other element `stride`.
pub(super) fn array(count: u64, stride: u64, own: u64) -> u64 {
    match count {
        0 => 0,
        n => (n - 1).saturating_mul(stride).saturating_add(own),
    }
}

/// Walks one field of any kind; returns where it ends.
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

/// Whether an optional field is present.
pub(crate) fn is_there(slots: &[u64], selector: Source, ranges: Option<&[(i128, i128)]>) -> bool {
    let value = selected(slots, selector);
    ranges.map_or(value != 0, |ranges| within(ranges, value))
}

/// Reads a LEB128 number; also returns where it ends.
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
