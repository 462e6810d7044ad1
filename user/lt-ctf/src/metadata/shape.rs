// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Recognizes LTTng's two event headers, which stand before nearly every event that is ever read.

use crate::bits::Order;
use crate::schema::{Choice, Fast, Int, Kind, Member, NodeId, Role, Schema, Shape};

/// `Some` when reading by the way for that shape gives the same as reading node by node.
pub(super) fn fast(schema: &Schema, header: NodeId) -> Option<Fast> {
    let node = schema.node(header);
    let Kind::Struct(members) = &node.kind else {
        return None;
    };
    let [id, v] = members.as_slice() else {
        return None;
    };
    let (id_int, id_align) = integer(schema, id.node, Role::EventClass)?;
    let Kind::Variant { choices, selector } = &schema.node(v.node).kind else {
        return None;
    };
    let [compact, extended] = choices.as_slice() else {
        return None;
    };
    // The selector is the number itself, and nothing else is kept.
    let last = (1i128 << id_int.len) - 1;
    let by_id = schema.node(id.node).slot == Some(selector.slot);
    let ranges = compact.ranges == [(0, last - 1)] && extended.ranges == [(last, last)];
    if !by_id
        || !ranges
        || [compact, extended]
            .iter()
            .any(|c| schema.node(c.node).keeps)
    {
        return None;
    }
    let [time] = members_of(schema, compact)? else {
        return None;
    };
    let (time, time_align) = integer(schema, time.node, Role::Time)?;
    let [long_id, long_time] = members_of(schema, extended)? else {
        return None;
    };
    let (long_id, long_id_align) = integer(schema, long_id.node, Role::EventClass)?;
    let (long_time, long_time_align) = integer(schema, long_time.node, Role::Time)?;
    let order = id_int.order;
    let plain = |int: Int, len| int.len == len && int.order == order && !int.signed;
    if !plain(long_id, 32) || !plain(long_time, 64) {
        return None;
    }
    let align = node.align;
    let shape = match id_int.len {
        5 if id_align == 1 && plain(time, 27) && time_align == 1 && align >= 8 => Shape::Compact,
        16 if id_align >= 8 && plain(time, 32) && time_align >= 8 => Shape::Large { time_align },
        _ => return None,
    };
    let whole = schema.node(extended.node).align;
    let fits = long_id_align >= 8 && long_time_align >= 8;
    (plain(id_int, id_int.len) && order == Order::Little && fits).then_some(Fast {
        align,
        order,
        shape,
        extended: (whole, long_id_align, long_time_align),
    })
}

fn members_of<'a>(schema: &'a Schema, choice: &Choice) -> Option<&'a [Member]> {
    match &schema.node(choice.node).kind {
        Kind::Struct(members) => Some(members),
        _ => None,
    }
}

fn integer(schema: &Schema, node: NodeId, role: Role) -> Option<(Int, u32)> {
    let node = schema.node(node);
    match node.kind {
        Kind::Int { int, .. } if node.role == Some(role) => Some((int, node.align)),
        _ => None,
    }
}
