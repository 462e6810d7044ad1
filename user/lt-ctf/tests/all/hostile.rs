// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Hostile traces: each must be rejected or read quickly, without the memory that it pretends to need.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::made::*;

/// Returns the result of opening and reading a trace with this payload and one event with these
/// bytes.
fn read(payload: Value, put: impl FnOnce(&mut Bits)) -> Result<Vec<String>, String> {
    let dir = Dir::new();
    let bytes = packet(Packet::default(), |bits| put(event(bits, 0, 1)));
    write(&dir.0, &metadata(&[("e", payload)]), &[bytes]);
    let begin = Instant::now();
    let told = told(&dir.0, false).map_err(|e| e.to_string());
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "took {:?}",
        begin.elapsed()
    );
    told
}

fn refused(payload: Value, why: &str) {
    let error = read(payload, |_| {}).unwrap_err();
    assert!(error.contains(why), "{error}");
}

#[test]
fn lengths_that_no_memory_holds() {
    let array = |length: Value| json!({"type": "static-length-array", "length": length, "element-field-class": int(8, false, false)});
    refused(
        structure(&[("a", array(json!(u64::MAX)))]),
        "a field of more than",
    );
    refused(
        structure(&[(
            "a",
            json!({"type": "static-length-blob", "length": u64::MAX}),
        )]),
        "a field of more than",
    );
    refused(
        structure(&[("a", array(json!(-1)))]),
        "`length` is not an unsigned integer",
    );
    let dynamic = |kind: &str| {
        let class = json!({"type": kind, "length-field-location": path(&["n"]), "element-field-class": int(64, false, false)});
        structure(&[("n", int(64, false, false)), ("a", class)])
    };
    for kind in [
        "dynamic-length-array",
        "dynamic-length-blob",
        "dynamic-length-string",
    ] {
        for length in [u64::MAX, u64::MAX / 8, 1 << 60, 1000] {
            let told = read(dynamic(kind), |bits| {
                bits.u64(length);
            });
            let told = told.unwrap();
            assert!(told[0].contains("passes the end of its packet"), "{told:?}");
        }
    }
}

#[test]
fn arrays_of_nothing() {
    let nothing = structure(&[]);
    let array = |of: Value| json!({"type": "static-length-array", "length": 1_000_000_000_000u64, "element-field-class": of});
    let told = read(structure(&[("a", array(array(nothing.clone())))]), |_| {}).unwrap();
    assert!(told.len() <= 2, "{} lines", told.len());
    let dynamic = json!({"type": "dynamic-length-array", "length-field-location": path(&["n"]), "element-field-class": nothing});
    let payload = structure(&[("n", int(64, false, false)), ("a", dynamic)]);
    read(payload, |bits| {
        bits.u64(u64::MAX);
    })
    .unwrap();
    // An optional field that is never present takes no space, but this is not known in advance.
    let optional = json!({"type": "optional", "selector-field-location": {"origin": "event-record-payload", "path": ["n"]},
        "selector-field-ranges": [[0, 0]], "field-class": int(8, false, false)});
    let dynamic = json!({"type": "dynamic-length-array", "length-field-location": path(&["n"]), "element-field-class": optional});
    let payload = structure(&[("n", int(64, false, false)), ("a", dynamic)]);
    let told = read(payload, |bits| {
        bits.u64(u64::MAX);
    });
    assert!(told.unwrap()[0].contains("millions of fields"));
}

#[test]
fn events_of_no_size() {
    let dir = Dir::new();
    let header = structure(&[]);
    let bytes = packet(Packet::default(), |bits| {
        bits.u8(0);
    });
    write(
        &dir.0,
        &metadata_with(header, &[("e", structure(&[]))]),
        &[bytes],
    );
    let told = told(&dir.0, false).unwrap();
    assert_eq!(
        told,
        [
            format!("error stream_0:{HEADER}: an event of no size"),
            "lost rest 0..0 cpu Some(0)".into()
        ]
    );
}

/// The fields of the common context count for each event class.
#[test]
fn classes_that_multiply_the_common_context() {
    let names: Vec<_> = (0..16_000).map(|i| format!("f{i}")).collect();
    let members: Vec<_> = names
        .iter()
        .map(|n| (n.as_str(), int(8, false, false)))
        .collect();
    let context = structure(&members);
    let mut all = vec![
        json!({"type": "data-stream-class", "event-record-common-context-field-class": context}),
    ];
    all.extend((0..200).map(|id| json!({"type": "event-record-class", "id": id})));
    let error = open(&fragments(&all)).unwrap_err();
    assert!(error.contains("fields of all events"), "{error}");
}

/// An empty array whose aligned start is beyond the end of the file.
#[test]
fn a_packet_context_that_ends_beyond_the_packet() {
    let element = role(byte_aligned(8), "packet-sequence-number");
    let nothing = json!({"type": "static-length-array", "length": 0, "minimum-alignment": 4096 * 8,
        "element-field-class": element});
    let context = structure(&[("n", byte_aligned(8)), ("a", nothing)]);
    let metadata = fragments(&[
        json!({"type": "data-stream-class", "packet-context-field-class": context}),
        json!({"type": "event-record-class", "name": "e"}),
    ]);
    let dir = Dir::new();
    write(&dir.0, &metadata, &[vec![0; 100]]);
    let told = told(&dir.0, false).unwrap();
    assert_eq!(
        told,
        ["error stream_0:0: the packet has 4096 bytes, and the file ends after 100 of them"]
    );
}

fn fragments(more: &[Value]) -> String {
    let fragments = [&[json!({"type": "preamble", "version": 2})], more].concat();
    fragments.iter().map(|f| format!("\x1e{f}\n")).collect()
}

fn open(metadata: &str) -> Result<(), String> {
    let dir = Dir::new();
    write(&dir.0, metadata, &[]);
    let begin = Instant::now();
    let opened = lt_ctf::Reader::open(&dir.0)
        .map(|_| ())
        .map_err(|e| e.to_string());
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "took {:?}",
        begin.elapsed()
    );
    opened
}

#[test]
fn aliases_that_multiply_nest_or_go_in_circles() {
    let alias = |name: String, class: Value| json!({"type": "field-class-alias", "name": name, "field-class": class});
    let class = |of: &str| json!({"type": "data-stream-class", "packet-context-field-class": of});
    let mut bomb = vec![alias("a0".into(), int(8, false, false))];
    for i in 1..40 {
        let below = format!("a{}", i - 1);
        bomb.push(alias(
            format!("a{i}"),
            structure(&[("x", json!(below)), ("y", json!(below))]),
        ));
    }
    bomb.push(class("a39"));
    assert!(open(&fragments(&bomb)).unwrap_err().contains("more than"));

    let mut deep = vec![alias("a0".into(), int(8, false, false))];
    for i in 1..1000 {
        deep.push(alias(
            format!("a{i}"),
            structure(&[("x", json!(format!("a{}", i - 1)))]),
        ));
    }
    deep.push(class("a999"));
    assert!(
        open(&fragments(&deep))
            .unwrap_err()
            .contains("nest more than")
    );

    let circle = [
        alias("a".into(), json!("b")),
        alias("b".into(), json!("a")),
        class("a"),
    ];
    assert!(
        open(&fragments(&circle))
            .unwrap_err()
            .contains("nest more than")
    );
    let open_brackets = format!("\x1e{}", "[".repeat(1 << 20));
    assert!(
        open(&open_brackets)
            .unwrap_err()
            .contains("recursion limit")
    );
}

#[test]
fn metadata_that_makes_no_sense() {
    let clock = |frequency: u64, cycles: u64| json!({"type": "clock-class", "id": "c", "frequency": frequency, "offset-from-origin": {"seconds": i64::MIN, "cycles": cycles}});
    for (metadata, why) in [
        (String::new(), "neither as CTF 2"),
        ("\x1e".into(), "no preamble"),
        ("\x1e{}".into(), "a fragment without a type"),
        ("\x1e[1]".into(), "a fragment is an object"),
        ("\x1e{\"type\": \"trace-class\"}".into(), "not a preamble"),
        (
            "\x1e{\"type\": \"preamble\", \"version\": 3}".into(),
            "not 2",
        ),
        (
            "\x1e{\"type\": \"preamble\", \"version\": 2, \"uuid\": [1]}".into(),
            "16 bytes",
        ),
        (fragments(&[clock(0, 0)]), "a clock of frequency 0"),
        (fragments(&[clock(10, 10)]), "a second or more"),
        (
            fragments(&[json!({"type": "data-stream-class", "default-clock-class-id": "x"})]),
            "no clock \"x\"",
        ),
        (
            fragments(&[json!({"type": "event-record-class", "name": "e"})]),
            "which does not exist",
        ),
        (
            fragments(&[
                json!({"type": "trace-class", "packet-header-field-class": int(8, false, false)}),
            ]),
            "is a structure",
        ),
        (
            fragments(&[json!({"type": "trace-class", "packet-header-field-class": "none"})]),
            "no alias \"none\"",
        ),
    ] {
        let error = open(&metadata).unwrap_err();
        assert!(error.contains(why), "{error:?} does not say {why:?}");
    }
    assert_eq!(open(&fragments(&[clock(u64::MAX, 5)])), Ok(()));
}

#[test]
fn locations_that_lead_nowhere() {
    let at = |location: Value| {
        let blob = json!({"type": "dynamic-length-blob", "length-field-location": location});
        structure(&[
            ("n", int(8, false, false)),
            ("s", int(8, true, false)),
            ("t", json!({"type": "null-terminated-string"})),
            ("b", blob),
            ("later", int(8, false, false)),
        ])
    };
    for (location, why) in [
        (path(&["x"]), "there is no field"),
        (path(&["later"]), "there is no field"),
        (path(&["b"]), "there is no field"),
        (path(&[]), "there is no field"),
        (path(&["n", "x"]), "there is no field"),
        (path(&["s"]), "not an unsigned integer"),
        (path(&["t"]), "neither an integer nor"),
        (json!({"path": [null, null, "n"]}), "there is no field"),
        (
            json!({"origin": "event-record-common-context", "path": ["n"]}),
            "common-context\" here",
        ),
        (json!({"origin": "moon", "path": ["n"]}), "no scope"),
        (json!(7), "without a path"),
    ] {
        refused(at(location), why);
    }
}
