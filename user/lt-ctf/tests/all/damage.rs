// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reads thousands of damaged traces: errors are fine, a panic or an endless loop is not.

use std::fs;

use serde_json::json;

use crate::made::*;
use crate::tsdl;

/// An xorshift generator, for identical damage in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

fn damage(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..=random.below(3) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len());
        match random.below(7) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.below(256) as u8,
            2 => bytes.truncate(at),
            3 => bytes.insert(at, random.below(256) as u8),
            4 => {
                bytes.remove(at);
            }
            5 => {
                let to = (at + 1 + random.below(16)).min(bytes.len());
                bytes[at..to].fill([0, 0xff][random.below(2)]);
            }
            _ => {
                let to = (at + random.below(64)).min(bytes.len());
                let piece = bytes[at..to].to_vec();
                let at = random.below(bytes.len());
                bytes.splice(at..at, piece);
            }
        }
    }
}

/// Changes a few digits, which does the most harm in metadata.
fn damage_number(random: &mut Random, bytes: &mut [u8]) {
    let digits: Vec<usize> = (0..bytes.len())
        .filter(|i| bytes[*i].is_ascii_digit())
        .collect();
    for _ in 0..=random.below(3) {
        bytes[digits[random.below(digits.len())]] = b'0' + random.below(10) as u8;
    }
}

fn victim() -> (String, Vec<u8>) {
    let text = json!({"type": "null-terminated-string"});
    let array = |length: &str| json!({"type": "dynamic-length-array", "element-field-class": int(16, false, true), "length-field-location": path(&[length])});
    let row = structure(&[
        ("m", int(8, false, false)),
        ("t", text.clone()),
        ("in", array("m")),
    ]);
    let variant = json!({"type": "variant", "selector-field-location": path(&["k"]), "options": [
        {"selector-field-ranges": [[0, 3]], "field-class": int(64, true, true)},
        {"selector-field-ranges": [[4, 9]], "field-class": text.clone()},
    ]});
    let optional = json!({"type": "optional", "selector-field-location": path(&["k"]), "selector-field-ranges": [[2, 5]], "field-class": row.clone()});
    let rows = json!({"type": "dynamic-length-array", "element-field-class": row, "length-field-location": path(&["n"])});
    let payload = structure(&[
        ("n", int(8, false, false)),
        ("rows", rows),
        ("k", int(4, false, false)),
        ("v", variant),
        ("o", optional),
        ("u", json!({"type": "variable-length-signed-integer"})),
        (
            "blob",
            json!({"type": "dynamic-length-blob", "length-field-location": path(&["n"])}),
        ),
        (
            "fixed",
            json!({"type": "static-length-string", "length": 7}),
        ),
    ]);
    let plain = structure(&[
        ("a", int(32, false, false)),
        ("b", with(int(64, true, false), "alignment", json!(32))),
    ]);
    let packets = (0..6u64).map(|p| {
        let facts = Packet {
            number: p as u32,
            begin: 100 * p,
            end: 100 * p + 99,
            lost: p as u32,
            padding: 3,
            ..Packet::default()
        };
        packet(facts, |bits| {
            for i in 0..8u64 {
                event(bits, 1, 100 * p + 2 * i).u32(7).align(32).u64(9);
                let k = (p + i) % 8;
                event(bits, 0, 100 * p + 2 * i + 1)
                    .u8(2)
                    .raw(&[1])
                    .raw(b"x\0")
                    .raw(&[0, 1, 0])
                    .raw(b"\0");
                bits.put(k, 4, false);
                match k < 4 {
                    true => bits.put(5, 64, true),
                    false => bits.raw(b"why\0"),
                };
                if (2..6).contains(&k) {
                    bits.raw(&[0]).raw(b"z\0");
                }
                bits.raw(&[0x7f, 1, 2]).raw(b"sixteen");
            }
        })
    });
    let stream = packets.collect::<Vec<_>>().concat();
    (metadata(&[("every", payload), ("plain", plain)]), stream)
}

#[test]
fn the_victim_is_sound() {
    let (metadata, stream) = victim();
    let dir = Dir::new();
    write(&dir.0, &metadata, &[stream]);
    let told = told(&dir.0, false).unwrap();
    assert_eq!(
        told.iter().filter(|t| t.starts_with('[')).count(),
        96,
        "{told:#?}"
    );
    assert_eq!(
        told.iter().filter(|t| t.starts_with("error")).count(),
        0,
        "{told:#?}"
    );
}

#[test]
fn four_thousand_damaged_traces_are_read_to_their_end() {
    let (metadata, stream) = victim();
    damage_all(metadata.as_bytes(), &stream);
}

#[test]
fn four_thousand_damaged_traces_of_the_older_format_are_read_to_their_end() {
    damage_all(tsdl::MANY.as_bytes(), &tsdl::stream());
}

#[test]
fn four_thousand_traces_with_damaged_packets_of_metadata_are_read_to_their_end() {
    damage_all(&tsdl::packets(tsdl::MANY, true, 50), &tsdl::stream());
}

fn damage_all(metadata: &[u8], stream: &[u8]) {
    let dir = Dir::new();
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let (mut refused, mut wrong, mut whole) = (0, 0, 0);
    for round in 0..4000 {
        let mut text = metadata.to_vec();
        let mut bytes = stream.to_vec();
        match round % 4 {
            0 => damage(&mut random, &mut text),
            1 => damage_number(&mut random, &mut text),
            _ => damage(&mut random, &mut bytes),
        }
        for (name, content) in [("metadata", &text), ("stream_0", &bytes)] {
            // Creates a new file, since ext4 writes a truncated and rewritten file to the disk at
            // once.
            let _ = fs::remove_file(dir.0.join(name));
            fs::write(dir.0.join(name), content).unwrap();
        }
        match told(&dir.0, round % 8 > 4) {
            Err(_) => refused += 1,
            Ok(told) => {
                // No event is invented from nothing. Intact events have nine bytes or more, and damaged
                // metadata may make them smaller.
                assert!(
                    told.len() < 2 * bytes.len() + 10,
                    "round {round}: {} lines",
                    told.len()
                );
                match told.iter().any(|t| t.starts_with("error")) {
                    true => wrong += 1,
                    false => whole += 1,
                }
            }
        }
        if round % 4 == 3
            && let Ok(mut reader) = lt_ctf::Reader::open(&dir.0)
        {
            let _ = reader.spans();
            let _ = reader.seek(random.below(700) as i64 + 5_000_000_000);
            let _ = reader.next();
        }
    }
    println!("{refused} refused, {wrong} with errors, {whole} without");
    // The damage must have an effect, and each outcome must be frequent.
    assert!(
        refused > 300 && wrong > 500 && whole > 300,
        "{refused} refused, {wrong} with errors, {whole} without"
    );
}
