// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Builds traces: metadata as JSON, streams bit by bit.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use lt_ctf::{Error, Item, Missing, Options, Reader};
use serde_json::{Value, json};

/// A directory that is removed on drop.
pub struct Dir(pub PathBuf);

impl Dir {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("lt-ctf-test-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A bit buffer. Each field has its own byte order.
#[derive(Default, Clone)]
pub struct Bits {
    pub bytes: Vec<u8>,
    pub bits: usize,
}

impl Bits {
    pub fn align(&mut self, align: usize) -> &mut Self {
        while !self.bits.is_multiple_of(align) {
            self.bit(0, false);
        }
        self
    }

    fn bit(&mut self, bit: u64, big: bool) {
        if self.bits.is_multiple_of(8) {
            self.bytes.push(0);
        }
        let place = if big {
            7 - self.bits % 8
        } else {
            self.bits % 8
        };
        *self.bytes.last_mut().unwrap() |= (bit as u8 & 1) << place;
        self.bits += 1;
    }

    pub fn put(&mut self, value: u64, len: usize, big: bool) -> &mut Self {
        for i in 0..len {
            let i = if big { len - 1 - i } else { i };
            self.bit(value >> i, big);
        }
        self
    }

    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.align(8).put(value.into(), 8, false)
    }

    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.align(8).put(value.into(), 16, false)
    }

    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.align(8).put(value.into(), 32, false)
    }

    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.align(8).put(value, 64, false)
    }

    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        for byte in bytes {
            self.u8(*byte);
        }
        self
    }
}

pub fn int(len: u64, signed: bool, big: bool) -> Value {
    let sign = if signed { "signed" } else { "unsigned" };
    let order = if big { "big-endian" } else { "little-endian" };
    json!({"type": format!("fixed-length-{sign}-integer"), "length": len, "byte-order": order})
}

pub fn byte_aligned(len: u64) -> Value {
    with(int(len, false, false), "alignment", json!(8))
}

pub fn with(mut class: Value, key: &str, value: Value) -> Value {
    class[key] = value;
    class
}

pub fn role(class: Value, role: &str) -> Value {
    with(class, "roles", json!([role]))
}

pub fn structure(members: &[(&str, Value)]) -> Value {
    let member = |(name, class): &(&str, Value)| json!({"name": name, "field-class": class});
    json!({"type": "structure", "member-classes": members.iter().map(member).collect::<Vec<_>>()})
}

pub fn path(names: &[&str]) -> Value {
    json!({"path": names})
}

/// Returns the metadata of a trace with one stream class. Events have a number of 8 bits, a time of
/// 64 bits in ns, and the payload. Packets have the same fields as LTTng's, without the UUID.
pub fn metadata(events: &[(&str, Value)]) -> String {
    let header = structure(&[
        ("id", role(byte_aligned(8), "event-record-class-id")),
        ("t", role(byte_aligned(64), "default-clock-timestamp")),
    ]);
    metadata_with(header, events)
}

pub fn metadata_with(header: Value, events: &[(&str, Value)]) -> String {
    let packet_header = structure(&[
        ("magic", role(byte_aligned(32), "packet-magic-number")),
        ("stream", role(byte_aligned(8), "data-stream-class-id")),
        ("instance", role(byte_aligned(8), "data-stream-id")),
    ]);
    let context = structure(&[
        ("begin", role(byte_aligned(64), "default-clock-timestamp")),
        (
            "end",
            role(byte_aligned(64), "packet-end-default-clock-timestamp"),
        ),
        ("content", role(byte_aligned(32), "packet-content-length")),
        ("total", role(byte_aligned(32), "packet-total-length")),
        ("number", role(byte_aligned(32), "packet-sequence-number")),
        (
            "lost",
            role(byte_aligned(32), "discarded-event-record-counter-snapshot"),
        ),
        ("cpu_id", byte_aligned(32)),
    ]);
    let mut fragments = vec![
        json!({"type": "preamble", "version": 2}),
        json!({"type": "trace-class", "packet-header-field-class": packet_header, "environment": {"hostname": "made"}}),
        json!({"type": "clock-class", "id": "c", "name": "c", "frequency": 1_000_000_000,
            "origin": "unix-epoch", "offset-from-origin": {"seconds": 5, "cycles": 7}}),
        json!({"type": "data-stream-class", "id": 0, "default-clock-class-id": "c", "packet-context-field-class": context,
            "event-record-header-field-class": header}),
    ];
    for (id, (name, payload)) in events.iter().enumerate() {
        fragments.push(json!({"type": "event-record-class", "id": id, "data-stream-class-id": 0, "name": name, "payload-field-class": payload}));
    }
    fragments.iter().map(|f| format!("\x1e{f}\n")).collect()
}

/// The fields of a packet's header and context.
#[derive(Clone, Copy, Default)]
pub struct Packet {
    pub instance: u8,
    pub begin: u64,
    pub end: u64,
    pub number: u32,
    pub lost: u32,
    pub cpu: u32,
    /// Number of bytes after the content.
    pub padding: usize,
}

pub const HEADER: usize = 6 + 36;

/// Returns a packet with the events that `events` writes.
pub fn packet(facts: Packet, events: impl FnOnce(&mut Bits)) -> Vec<u8> {
    let mut body = Bits {
        bytes: vec![0; HEADER],
        bits: 8 * HEADER,
    };
    events(&mut body);
    let content = body.bits;
    let mut bytes = body.bytes;
    bytes.resize(bytes.len() + facts.padding, 0xaa);
    let mut head = Bits::default();
    head.u32(0xc1fc_1fc1)
        .u8(0)
        .u8(facts.instance)
        .u64(facts.begin)
        .u64(facts.end);
    head.u32(content as u32)
        .u32(8 * bytes.len() as u32)
        .u32(facts.number)
        .u32(facts.lost)
        .u32(facts.cpu);
    bytes[..HEADER].copy_from_slice(&head.bytes);
    bytes
}

/// Writes the header of event `id` at `time`.
pub fn event(bits: &mut Bits, id: u8, time: u64) -> &mut Bits {
    bits.u8(id).u64(time)
}

pub fn write(to: &Path, metadata: &str, streams: &[Vec<u8>]) {
    fs::create_dir_all(to).unwrap();
    fs::write(to.join("metadata"), metadata).unwrap();
    for (i, stream) in streams.iter().enumerate() {
        fs::write(to.join(format!("stream_{i}")), stream).unwrap();
    }
}

/// Returns everything that the reader reports, as text: events, losses, and a limited number of
/// errors.
pub fn told(at: &Path, growing: bool) -> Result<Vec<String>, Error> {
    let mut reader = Options::default().growing(growing).open(at)?;
    Ok(rest(&mut reader))
}

pub fn rest(reader: &mut Reader) -> Vec<String> {
    some(reader, usize::MAX)
}

/// Returns the next items and errors that the reader reports, at most `count`.
pub fn some(reader: &mut Reader, count: usize) -> Vec<String> {
    let mut told = Vec::new();
    let mut errors = 0;
    while told.len() < count {
        match reader.next() {
            Ok(None) => return told,
            Ok(Some(Item::Event(event))) => {
                let mut line = Vec::new();
                lt_ctf::text::line(&event, &mut line);
                told.push(String::from_utf8_lossy(&line).trim_end().to_string());
            }
            Ok(Some(Item::Lost(lost))) => {
                let what = match lost.what {
                    Missing::Events => format!("{} events", lost.count),
                    Missing::Packets => format!("{} packets", lost.count),
                    Missing::Rest => "rest".into(),
                };
                told.push(format!(
                    "lost {what} {}..{} cpu {:?}",
                    lost.cycles.0, lost.cycles.1, lost.cpu
                ));
            }
            Err(error) => {
                errors += 1;
                if errors > 1000 {
                    return told;
                }
                let file = error
                    .file
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                told.push(format!("error {file}:{}: {}", error.offset, error.what));
            }
        }
    }
    told
}

/// Returns the times of the remaining events.
pub fn times(reader: &mut Reader) -> Vec<u64> {
    let mut times = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        if let Item::Event(event) = item {
            times.push(event.cycles());
        }
    }
    times
}

/// Reads a trace with one event of this payload, and returns the text after `{ cpu_id = 0 }, `.
pub fn one(payload: Value, put: impl FnOnce(&mut Bits)) -> String {
    let dir = Dir::new();
    let bytes = packet(Packet::default(), |bits| put(event(bits, 0, 1)));
    write(&dir.0, &metadata(&[("e", payload)]), &[bytes]);
    let mut told = told(&dir.0, false).unwrap();
    // An error is followed by the loss of the rest of the packet.
    told.retain(|t| !t.starts_with("lost rest "));
    assert_eq!(told.len(), 1, "{told:?}");
    let line = &told[0];
    line.strip_prefix("[00000000000000000001] made e: { cpu_id = 0 }, ")
        .unwrap_or(line)
        .to_string()
}
