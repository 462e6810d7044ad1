// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Recognizes LTTng's two event headers and the header that babeltrace2 writes, which have a fast
//! path: almost every event has one of these headers.

use crate::bits::Order;
use crate::schema::{Choice, Fast, Int, Kind, Member, Node, NodeId, Role, Schema, Shape, Slot};

/// Returns the shape of the header if its fast path gives the same result as reading node by node.
pub(super) fn fast(schema: &Schema, header: NodeId) -> Option<Fast> {
    let node = schema.node(header);
    let Kind::Struct(members) = &node.kind else {
        return None;
    };
    let [id, v] = members.as_slice() else {
        return None;
    };
    let (id_int, id_align) = integer(schema, id.node, Role::EventClass)?;
    if let Some((time, time_align)) = integer(schema, v.node, Role::Time) {
        let wide = |int: Int| int.len == 64 && int.order == Order::Little && !int.signed;
        let kept = [id, v]
            .into_iter()
            .any(|m| schema.node(m.node).slot.is_some());
        let fits = id_align >= 8 && (8..=64).contains(&time_align);
        return (wide(id_int) && wide(time) && fits && !kept).then_some(Fast {
            align: node.align,
            order: Order::Little,
            shape: Shape::Wide,
            extended: (node.align, id_align, time_align),
        });
    }
    let Kind::Variant { choices, selector } = &schema.node(v.node).kind else {
        return None;
    };
    let [compact, extended] = choices.as_slice() else {
        return None;
    };
    // The selector is the event class number itself.
    let last = (1i128 << id_int.len) - 1;
    let by_id = schema.node(id.node).slot == Some(selector.slot);
    let ranges = compact.ranges == [(0, last - 1)] && extended.ranges == [(last, last)];
    if !by_id || !ranges {
        return None;
    }
    let [time] = members_of(schema, compact)? else {
        return None;
    };
    let [long_id, long_time] = members_of(schema, extended)? else {
        return None;
    };
    // The fast path stores no values for lengths and selectors.
    let kept = |member: &Member| schema.node(member.node).slot.is_some();
    if [time, long_id, long_time].into_iter().any(kept) || takers(schema, selector.slot) != 1 {
        return None;
    }
    let (time, time_align) = integer(schema, time.node, Role::Time)?;
    let (long_id, long_id_align) = integer(schema, long_id.node, Role::EventClass)?;
    let (long_time, long_time_align) = integer(schema, long_time.node, Role::Time)?;
    let order = id_int.order;
    let plain = |int: Int, len| int.len == len && int.order == order && !int.signed;
    if !plain(long_id, 32) || !plain(long_time, 64) {
        return None;
    }
    // The fast path does not handle a compact option that is aligned more strictly than its time.
    if schema.node(compact.node).align != time_align {
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

/// Returns the number of fields that take a length or a selector from `slot`.
fn takers(schema: &Schema, slot: Slot) -> usize {
    let source = |node: &Node| match &node.kind {
        Kind::DynamicText { length, .. }
        | Kind::DynamicBlob { length }
        | Kind::DynamicArray { length, .. } => Some(length.slot),
        Kind::Optional { selector, .. } | Kind::Variant { selector, .. } => Some(selector.slot),
        _ => None,
    };
    let takes = |node: &&Node| source(node) == Some(slot);
    schema.nodes.iter().filter(takes).count()
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use serde_json::{Value, json};

    fn integer(length: u32, align: u32, role: &str) -> Value {
        json!({"type": "fixed-length-unsigned-integer", "length": length, "alignment": align,
            "byte-order": "little-endian", "roles": [role]})
    }

    /// Returns the shape of LTTng's header, with one event of that payload.
    fn shape(id: u32, time: u32, align: u32, payload: &Value) -> Option<Shape> {
        shape_of(id, time, align, 1, payload)
    }

    /// Returns the shape of LTTng's header when its options have at least the alignment `option`.
    fn shape_of(id: u32, time: u32, align: u32, option: u32, payload: &Value) -> Option<Shape> {
        let least = option;
        let last = (1u64 << id) - 1;
        let option = |ranges: [u64; 2], members: Value| {
            json!({"selector-field-ranges": [ranges],
                "field-class": {"type": "structure", "minimum-alignment": least, "member-classes": members}})
        };
        let number = |length, align| integer(length, align, "event-record-class-id");
        let clock = |length, align| integer(length, align, "default-clock-timestamp");
        let header = json!({"type": "structure", "minimum-alignment": 8, "member-classes": [
            {"name": "id", "field-class": number(id, align)},
            {"name": "v", "field-class": {"type": "variant", "selector-field-location": {"path": ["id"]}, "options": [
                option([0, last - 1], json!([{"name": "timestamp", "field-class": clock(time, align)}])),
                option([last, last], json!([{"name": "id", "field-class": number(32, 8)},
                    {"name": "timestamp", "field-class": clock(64, 8)}])),
            ]}},
        ]});
        parse(&header, payload)
    }

    /// Returns the shape of `header`, with one event of this payload.
    fn parse(header: &Value, payload: &Value) -> Option<Shape> {
        let fragments = [
            json!({"type": "preamble", "version": 2}),
            json!({"type": "data-stream-class", "event-record-header-field-class": header}),
            json!({"type": "event-record-class", "payload-field-class": payload}),
        ];
        let text: String = fragments.iter().map(|f| format!("\x1e{f}\n")).collect();
        let schema = crate::metadata::parse(Path::new("made"), text.as_bytes(), false).unwrap();
        schema.streams[0].fast.map(|f| f.shape)
    }

    /// Returns the shape of a header of two integers, with one event of that payload.
    fn pair(id: Value, time: Value, payload: &Value) -> Option<Shape> {
        let header = json!({"type": "structure", "minimum-alignment": 8, "member-classes": [
            {"name": "id", "field-class": id}, {"name": "timestamp", "field-class": time}]});
        parse(&header, payload)
    }

    #[test]
    fn the_header_of_babeltrace2_is_recognized() {
        let id = |length, align| integer(length, align, "event-record-class-id");
        let time = |length, align| integer(length, align, "default-clock-timestamp");
        let payload = json!({"type": "structure"});
        assert_eq!(pair(id(64, 8), time(64, 8), &payload), Some(Shape::Wide));
        assert_eq!(pair(id(64, 64), time(64, 64), &payload), Some(Shape::Wide));
        assert_eq!(pair(id(32, 8), time(64, 8), &payload), None);
        assert_eq!(pair(id(64, 8), time(32, 8), &payload), None);
        assert_eq!(pair(id(64, 1), time(64, 8), &payload), None);
        assert_eq!(pair(id(64, 8), time(64, 128), &payload), None);
        let mut big = time(64, 8);
        big["byte-order"] = json!("big-endian");
        assert_eq!(pair(id(64, 8), big, &payload), None);
        for path in [json!(["id"]), json!(["timestamp"])] {
            let length = json!({"origin": "event-record-header", "path": path});
            let payload = json!({"type": "structure", "member-classes": [{"name": "x",
                "field-class": {"type": "dynamic-length-blob", "length-field-location": length}}]});
            assert_eq!(pair(id(64, 8), time(64, 8), &payload), None, "{path}");
        }
    }

    #[test]
    fn the_headers_of_lttng_are_recognized() {
        let payload = json!({"type": "structure"});
        assert_eq!(shape(5, 27, 1, &payload), Some(Shape::Compact));
        let large = Shape::Large { time_align: 8 };
        assert_eq!(shape(16, 32, 8, &payload), Some(large));
        assert_eq!(shape(16, 27, 8, &payload), None);
    }

    #[test]
    fn a_header_with_an_aligned_option_is_read_node_by_node() {
        let payload = json!({"type": "structure"});
        assert_eq!(shape_of(5, 27, 1, 8, &payload), None);
        assert_eq!(shape_of(16, 32, 8, 64, &payload), None);
        let large = Shape::Large { time_align: 8 };
        assert_eq!(shape_of(16, 32, 8, 8, &payload), Some(large));
    }

    #[test]
    fn a_header_whose_values_are_needed_later_is_read_node_by_node() {
        for path in [json!(["id"]), json!(["v", "timestamp"])] {
            let length = json!({"origin": "event-record-header", "path": path});
            let payload = json!({"type": "structure", "member-classes": [{"name": "x",
                "field-class": {"type": "dynamic-length-blob", "length-field-location": length}}]});
            assert_eq!(shape(16, 32, 8, &payload), None, "{path}");
        }
    }
}
