// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tests every field class with bytes written by hand.

use serde_json::{Value, json};

use crate::made::*;
use crate::real::check_values;

#[test]
fn integers_of_any_length_in_both_orders_at_any_bit() {
    for big in [false, true] {
        let payload = structure(&[
            ("a", int(3, false, big)),
            ("b", int(5, true, big)),
            ("c", int(13, false, big)),
            ("d", int(64, true, big)),
            ("e", int(11, false, big)),
            ("f", int(64, false, big)),
            ("g", with(int(16, true, big), "alignment", json!(16))),
        ]);
        let text = one(payload, |bits| {
            bits.align(16)
                .put(5, 3, big)
                .put(0b11101, 5, big)
                .put(4711, 13, big);
            bits.put((-2i64) as u64, 64, big)
                .put(1025, 11, big)
                .put(u64::MAX - 1, 64, big);
            bits.align(16).put((-300i64) as u64 & 0xffff, 16, big);
        });
        assert_eq!(
            text,
            "{ a = 5, b = -3, c = 4711, d = -2, e = 1025, f = 18446744073709551614, g = -300 }"
        );
    }
}

/// The first number is read in front of another event, the second one at the end of the packet, where fewer than eight
/// bytes may be left.
#[test]
fn integers_of_whole_bytes_in_both_orders_up_to_the_end_of_a_packet() {
    let check = |len: u64, signed: bool, big: bool, numbers: [u64; 2]| {
        let bytes = packet(Packet::default(), |bits| {
            for (number, time) in numbers.into_iter().zip(1..) {
                event(bits, 0, time).put(number, len as usize, big);
            }
        });
        let payload = structure(&[("n", int(len, signed, big))]);
        let dir = Dir::new();
        write(&dir.0, &metadata(&[("e", payload)]), &[bytes]);
        let mut reader = lt_ctf::Reader::open(&dir.0).unwrap();
        let n = reader.classes().next().unwrap().field("n").unwrap();
        for number in numbers {
            let Some(lt_ctf::Item::Event(event)) = reader.next().unwrap() else {
                panic!("no event");
            };
            let extended = ((number << (64 - len)) as i64) >> (64 - len);
            let (value, as_unsigned, as_signed) = if signed {
                let value = lt_ctf::Value::Signed(extended);
                (value, u64::try_from(extended).ok(), Some(extended))
            } else {
                let value = lt_ctf::Value::Unsigned(number);
                (value, Some(number), i64::try_from(number).ok())
            };
            let mut values = Vec::new();
            event.values(|field, value| values.push((field, value)));
            let of = format!("{len} bits, signed: {signed}, big: {big}");
            assert_eq!(values, [(n, Some(value))], "{of}");
            assert_eq!(event.value(n), Some(value), "{of}");
            assert_eq!(event.unsigned(n), as_unsigned, "{of}");
            assert_eq!(event.signed(n), as_signed, "{of}");
            check_values(&event);
        }
        assert!(reader.next().unwrap().is_none());
    };
    for len in (8..=64).step_by(8) {
        let high = 0xf1e2_d3c4_b5a6_9788_u64 >> (64 - len);
        let low = 0x71e2_d3c4_b5a6_9788_u64 >> (64 - len);
        for (signed, big) in [(false, false), (false, true), (true, false), (true, true)] {
            check(len, signed, big, [high, low]);
            check(len, signed, big, [low, high]);
        }
    }
}

#[test]
fn both_byte_orders_are_read_as_named() {
    let payload = structure(&[
        ("l", int(32, false, false)),
        ("b", int(32, false, true)),
        ("s", int(16, true, true)),
    ]);
    let text = one(payload, |bits| {
        bits.raw(&[0x78, 0x56, 0x34, 0x12, 0x12, 0x34, 0x56, 0x78, 0xff, 0xfe]);
    });
    assert_eq!(text, "{ l = 305419896, b = 305419896, s = -2 }");
}

#[test]
fn numbers_are_shown_in_their_base_and_with_their_names() {
    let base = |class, base: u64| with(class, "preferred-display-base", json!(base));
    let names = json!({"one": [[1, 1]], "few": [[2, 4], [6, 7]], "minus": [[-5, -1]]});
    let payload = structure(&[
        ("x", base(int(16, true, false), 16)),
        ("o", base(int(8, false, false), 8)),
        ("b", base(int(4, false, false), 2)),
        ("pad", int(4, false, false)),
        ("n", with(int(8, true, false), "mappings", names.clone())),
        ("m", with(int(8, true, false), "mappings", names.clone())),
        ("u", with(int(8, true, false), "mappings", names)),
    ]);
    let text = one(payload, |bits| {
        bits.put(0xfffe, 16, false)
            .put(9, 8, false)
            .put(5, 4, false)
            .put(0, 4, false);
        bits.u8(6).u8(0xfd).u8(5);
    });
    let names = "n = ( \"few\" : container = 6 ), m = ( \"minus\" : container = -3 ), u = ( <unknown> : container = 5 )";
    assert_eq!(
        text,
        format!("{{ x = 0xFFFE, o = 011, b = 0b0101, pad = 0, {names} }}")
    );
}

#[test]
fn booleans_bits_and_floating_point() {
    let fixed = |kind: &str, len: u64, big: bool| {
        let order = if big { "big-endian" } else { "little-endian" };
        json!({"type": format!("fixed-length-{kind}"), "length": len, "byte-order": order})
    };
    let payload = structure(&[
        ("t", fixed("boolean", 1, false)),
        ("f", fixed("boolean", 7, false)),
        ("bits", fixed("bit-array", 12, false)),
        (
            "map",
            with(fixed("bit-map", 4, false), "flags", json!({"a": [[0, 0]]})),
        ),
        ("s", fixed("floating-point-number", 32, false)),
        ("d", fixed("floating-point-number", 64, true)),
    ]);
    let text = one(payload, |bits| {
        bits.put(1, 1, false)
            .put(0, 7, false)
            .put(0xabc, 12, false)
            .put(3, 4, false);
        bits.raw(&1.5f32.to_le_bytes())
            .raw(&(-0.25f64).to_be_bytes());
    });
    assert_eq!(
        text,
        "{ t = true, f = false, bits = 0xABC, map = 0x3, s = 1.5, d = -0.25 }"
    );
}

#[test]
fn integers_of_variable_length() {
    let unsigned = json!({"type": "variable-length-unsigned-integer"});
    let signed = json!({"type": "variable-length-signed-integer"});
    let payload = structure(&[
        ("odd", int(3, false, false)),
        ("u", unsigned.clone()),
        ("s", signed),
        ("max", unsigned),
    ]);
    let text = one(payload, |bits| {
        bits.put(1, 3, false)
            .raw(&[0xe5, 0x8e, 0x26, 0xc0, 0xbb, 0x78])
            .raw(&[0xff; 9])
            .u8(1);
    });
    assert_eq!(
        text,
        "{ odd = 1, u = 624485, s = -123456, max = 18446744073709551615 }"
    );
}

#[test]
fn text_of_all_kinds() {
    let coded = |kind: &str, encoding: &str| json!({"type": kind, "encoding": encoding});
    let payload = structure(&[
        ("odd", int(1, false, false)),
        ("z", json!({"type": "null-terminated-string"})),
        (
            "fixed",
            json!({"type": "static-length-string", "length": 6}),
        ),
        ("full", json!({"type": "static-length-string", "length": 2})),
        ("n", int(8, false, false)),
        (
            "dynamic",
            json!({"type": "dynamic-length-string", "length-field-location": path(&["n"])}),
        ),
        ("w", coded("null-terminated-string", "utf-16le")),
        (
            "x",
            with(
                coded("static-length-string", "utf-32be"),
                "length",
                json!(8),
            ),
        ),
    ]);
    let text = one(payload, |bits| {
        bits.put(1, 1, false)
            .raw(b"zero\0")
            .raw(b"ab\0cde")
            .raw(b"xy");
        bits.u8(4).raw("gr\u{fc}".as_bytes());
        bits.u16(0x48)
            .u16(0xe9)
            .u16(0)
            .raw(&[0, 0, 0, 0x41, 0, 1, 0xf6, 0]);
    });
    assert_eq!(
        text,
        "{ odd = 1, z = \"zero\", fixed = \"ab\", full = \"xy\", n = 4, dynamic = \"gr\u{fc}\", w = \"H\u{e9}\", x = \"A\u{1f600}\" }"
    );
}

#[test]
fn blobs() {
    let payload = structure(&[
        ("s", json!({"type": "static-length-blob", "length": 3})),
        ("n", int(8, false, false)),
        (
            "d",
            json!({"type": "dynamic-length-blob", "length-field-location": path(&["n"])}),
        ),
        ("after", int(8, false, false)),
    ]);
    let text = one(payload, |bits| {
        bits.raw(&[1, 2, 0xff, 2, 9, 8, 7]);
    });
    assert_eq!(
        text,
        "{ s = { 01 02 ff }, n = 2, d = { 09 08 }, after = 7 }"
    );
}

fn dynamic(element: Value, length: &[&str]) -> Value {
    json!({"type": "dynamic-length-array", "element-field-class": element, "length-field-location": path(length)})
}

#[test]
fn arrays_of_numbers_structures_and_arrays() {
    let pair = structure(&[
        ("p", int(8, false, false)),
        ("q", with(int(8, true, false), "alignment", json!(16))),
    ]);
    let payload = structure(&[
        (
            "s",
            json!({"type": "static-length-array", "length": 3, "element-field-class": int(4, false, false)}),
        ),
        ("n", int(4, false, false)),
        ("none", dynamic(int(32, false, false), &["n"])),
        ("m", int(8, false, false)),
        ("pairs", dynamic(pair, &["m"])),
        (
            "aligned",
            json!({"type": "static-length-array", "minimum-alignment": 32, "length": 1, "element-field-class": int(8, false, false)}),
        ),
    ]);
    let text = one(payload, |bits| {
        bits.align(32).put(0x321, 12, false).put(0, 4, false).u8(2);
        bits.align(16).u8(10).align(16).u8(0xff);
        bits.align(16).u8(11).align(16).u8(1);
        bits.align(32).u8(42);
    });
    let pairs = "pairs = [ [0] = { p = 10, q = -1 }, [1] = { p = 11, q = 1 } ]";
    assert_eq!(
        text,
        format!(
            "{{ s = [ [0] = 1, [1] = 2, [2] = 3 ], n = 0, none = [ ], m = 2, {pairs}, aligned = [ [0] = 42 ] }}"
        )
    );
}

#[test]
fn the_length_that_was_read_last_counts() {
    // An array of structures, each with a length of its own, and with text whose size is not known
    // in advance.
    let row = structure(&[
        ("n", int(8, false, false)),
        ("of", dynamic(int(8, false, false), &["n"])),
        ("t", json!({"type": "null-terminated-string"})),
    ]);
    let payload = structure(&[
        ("m", int(8, false, false)),
        ("rows", dynamic(row, &["m"])),
        ("after", int(8, false, false)),
    ]);
    let text = one(payload, |bits| {
        bits.raw(&[2, 1, 7])
            .raw(b"a\0")
            .raw(&[3, 4, 5, 6])
            .raw(b"\0")
            .u8(99);
    });
    let rows = "{ n = 1, of = [ [0] = 7 ], t = \"a\" }, [1] = { n = 3, of = [ [0] = 4, [1] = 5, [2] = 6 ], t = \"\" }";
    assert_eq!(
        text,
        format!("{{ m = 2, rows = [ [0] = {rows} ], after = 99 }}")
    );
}

#[test]
fn variants_and_optional_fields() {
    let option = |name: &str, ranges: Value, class: Value| json!({"name": name, "selector-field-ranges": ranges, "field-class": class});
    let variant = json!({"type": "variant", "selector-field-location": path(&["k"]), "options": [
        option("number", json!([[0, 0], [5, 9]]), int(16, false, false)),
        option("text", json!([[-3, -1]]), json!({"type": "null-terminated-string"})),
    ]});
    let optional = |selector: &str, ranges: Option<Value>| {
        let class = json!({"type": "optional", "selector-field-location": path(&[selector]), "field-class": int(8, false, false)});
        ranges.map_or(class.clone(), |r| with(class, "selector-field-ranges", r))
    };
    let boolean =
        json!({"type": "fixed-length-boolean", "length": 8, "byte-order": "little-endian"});
    let payload = structure(&[
        ("k", int(8, true, false)),
        ("v", variant),
        ("b", boolean),
        ("yes", optional("b", None)),
        ("no", optional("k", Some(json!([[100, 120]])))),
        ("end", int(8, false, false)),
    ]);
    let text = one(payload.clone(), |bits| {
        bits.u8(0xfe).raw(b"hi\0").raw(&[1, 17, 3]);
    });
    assert_eq!(
        text,
        "{ k = -2, v = { \"hi\" }, b = true, yes = { 17 }, no = <none>, end = 3 }"
    );
    let text = one(payload.clone(), |bits| {
        bits.u8(7).u16(513).raw(&[0, 3]);
    });
    assert_eq!(
        text,
        "{ k = 7, v = { 513 }, b = false, yes = <none>, no = <none>, end = 3 }"
    );
    let text = one(payload, |bits| {
        bits.u8(50).raw(&[0; 8]);
    });
    assert!(text.contains("no option of a variant for 50"), "{text}");
}

#[test]
fn lengths_come_from_other_scopes_and_from_above() {
    let blob =
        |location: Value| json!({"type": "dynamic-length-blob", "length-field-location": location});
    let inner = structure(&[
        ("up", blob(json!({"path": [null, "n"]}))),
        (
            "outer",
            blob(json!({"origin": "event-record-payload", "path": ["n"]})),
        ),
        (
            "packet",
            blob(json!({"origin": "packet-context", "path": ["cpu_id"]})),
        ),
    ]);
    let payload = structure(&[("n", int(8, false, false)), ("inner", inner)]);
    let dir = Dir::new();
    let facts = Packet {
        cpu: 3,
        ..Packet::default()
    };
    let bytes = packet(facts, |bits| {
        event(bits, 0, 1).raw(&[2, 1, 2, 3, 4, 5, 6, 7]);
    });
    write(&dir.0, &metadata(&[("e", payload)]), &[bytes]);
    let told = told(&dir.0, false).unwrap();
    assert!(
        told[0].ends_with(
            "{ n = 2, inner = { up = { 01 02 }, outer = { 03 04 }, packet = { 05 06 07 } } }"
        ),
        "{told:?}"
    );
}

#[test]
fn fields_are_found_by_number() {
    let payload = structure(&[
        ("u", int(8, false, false)),
        ("s", int(8, true, false)),
        ("text", json!({"type": "null-terminated-string"})),
        (
            "d",
            json!({"type": "fixed-length-floating-point-number", "length": 64, "byte-order": "little-endian"}),
        ),
    ]);
    let dir = Dir::new();
    let bytes = packet(
        Packet {
            cpu: 9,
            ..Packet::default()
        },
        |bits| {
            event(bits, 0, 11)
                .raw(&[200, 0xff])
                .raw(b"name\0")
                .raw(&2.5f64.to_le_bytes());
        },
    );
    write(&dir.0, &metadata(&[("e", payload)]), &[bytes]);
    let mut reader = lt_ctf::Reader::open(&dir.0).unwrap();
    let class = reader.classes().next().unwrap();
    let [u, s, text, d] = ["u", "s", "text", "d"].map(|name| class.field(name).unwrap());
    assert_eq!(class.field("x"), None);
    let Some(lt_ctf::Item::Event(event)) = reader.next().unwrap() else {
        panic!("no event");
    };
    assert_eq!(
        (
            event.name(),
            event.class_index(),
            event.cpu(),
            event.cycles()
        ),
        ("e", 0, Some(9), 11)
    );
    assert_eq!(event.nanoseconds(), 5_000_000_018);
    assert_eq!((event.unsigned(u), event.signed(u)), (Some(200), Some(200)));
    assert_eq!((event.unsigned(s), event.signed(s)), (None, Some(-1)));
    assert_eq!(
        (event.bytes(text), event.unsigned(text)),
        (Some(&b"name"[..]), None)
    );
    assert_eq!((event.float(d), event.bytes(d)), (Some(2.5), None));
}
