// SPDX-License-Identifier: GPL-2.0 OR MIT

//! For tests: reads a Perfetto trace, relying only on the published schema and the wire format of protocol buffers.

use std::collections::HashMap;

/// Contents of a trace.
#[derive(Debug, Default)]
pub(crate) struct Pftrace {
    /// Tracks by number: the name, and the parent.
    pub(crate) tracks: HashMap<u64, (String, Option<u64>)>,
    /// Slices by start; an inner slice comes after the slice that contains it.
    pub(crate) slices: Vec<Slice>,
}

/// A slice, or an instant, which ends at its start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) track: u64,
    pub(crate) name: String,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) depth: usize,
    pub(crate) arrow_from: Option<u64>,
    pub(crate) arrow_to: Option<u64>,
    pub(crate) values: HashMap<String, String>,
}

/// Value of a field.
enum Value<'a> {
    Varint(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn number(&self) -> u64 {
        match self {
            Self::Varint(n) | Self::Fixed(n) => *n,
            Self::Bytes(_) => panic!("not a number"),
        }
    }

    fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            _ => panic!("not a message"),
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return value;
        }
        shift += 7;
    }
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Varint(varint(&mut bytes)),
            1 => {
                let (value, rest) = bytes.split_first_chunk::<8>().unwrap();
                bytes = rest;
                Value::Fixed(u64::from_le_bytes(*value))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(value)
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

/// The number and the text of an interned name.
fn interned(bytes: &[u8]) -> (u64, String) {
    let all = fields(bytes);
    let of = |n| &all.iter().find(|(number, _)| *number == n).unwrap().1;
    (of(1).number(), of(2).text())
}

/// An event, before the events of all tracks are sorted.
#[derive(Default)]
struct Event {
    time: u64,
    kind: u64,
    slice: Slice,
}

#[derive(Default)]
struct Names {
    events: HashMap<u64, String>,
    annotations: HashMap<u64, String>,
}

impl Pftrace {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let (mut trace, mut events, mut names) = (Self::default(), Vec::new(), Names::default());
        for (i, (number, packet)) in fields(bytes).into_iter().enumerate() {
            assert_eq!(number, 1, "Trace.packet");
            let packet = fields(packet.bytes());
            let mut event = None;
            let mut time = None;
            for (number, value) in &packet {
                match number {
                    8 => time = Some(value.number()),
                    10 => assert_eq!(value.number(), 1),
                    // Names are valid from the first packet on.
                    13 => assert_eq!(value.number(), if i == 0 { 1 } else { 2 }),
                    12 => {
                        for (number, value) in fields(value.bytes()) {
                            let (iid, name) = interned(value.bytes());
                            let before = match number {
                                2 => names.events.insert(iid, name),
                                3 => names.annotations.insert(iid, name),
                                other => panic!("InternedData.{other}"),
                            };
                            assert_eq!(before, None);
                        }
                    }
                    11 | 60 => {}
                    other => panic!("TracePacket.{other}"),
                }
            }
            // The names of a packet are valid in the packet itself.
            for (number, value) in &packet {
                match number {
                    11 => event = Some(read_event(value.bytes(), &names)),
                    60 => trace.read_track(value.bytes()),
                    _ => {}
                }
            }
            if let Some(mut event) = event {
                event.time = time.unwrap();
                assert!(trace.tracks.contains_key(&event.slice.track));
                events.push(event);
            }
        }
        trace.place(events);
        trace
    }

    fn read_track(&mut self, bytes: &[u8]) {
        let (mut uuid, mut name, mut parent) = (None, String::new(), None);
        for (number, value) in fields(bytes) {
            match number {
                1 => uuid = Some(value.number()),
                2 => name = value.text(),
                5 => parent = Some(value.number()),
                // Sorted by rank; tracks with the same name are not merged.
                11 => assert_eq!(value.number(), 3),
                12 => assert!(value.number() > 0),
                15 => assert_eq!(value.number(), 2),
                other => panic!("TrackDescriptor.{other}"),
            }
        }
        assert!(parent.is_none_or(|p| self.tracks.contains_key(&p)));
        let before = self.tracks.insert(uuid.unwrap(), (name, parent));
        assert_eq!(before, None);
    }

    /// Orders events as trace_processor does: by time, then by their order in the trace; an end closes the last open
    /// slice of its track.
    fn place(&mut self, mut events: Vec<Event>) {
        events.sort_by_key(|event| event.time);
        let mut open: HashMap<u64, Vec<usize>> = HashMap::new();
        for event in events {
            let stack = open.entry(event.slice.track).or_default();
            let slice = Slice {
                begin: event.time,
                end: event.time,
                depth: stack.len(),
                ..event.slice
            };
            match event.kind {
                1 => {
                    stack.push(self.slices.len());
                    self.slices.push(slice);
                }
                2 => self.slices[stack.pop().expect("an end without a begin")].end = event.time,
                3 => self.slices.push(slice),
                other => panic!("TrackEvent.type {other}"),
            }
        }
        assert!(open.values().all(Vec::is_empty), "a begin without an end");
    }

    /// The first track with that name.
    pub(crate) fn track(&self, name: &str) -> Option<u64> {
        let named = self.tracks.iter().filter(|(_, (n, _))| n == name);
        named.map(|(uuid, _)| *uuid).min()
    }

    /// The slices of a track, without instants.
    pub(crate) fn on(&self, track: u64) -> Vec<&Slice> {
        let on = |s: &&Slice| s.track == track && s.begin < s.end;
        self.slices.iter().filter(on).collect()
    }

    /// Both ends of each arrow.
    pub(crate) fn arrows(&self) -> Vec<(&Slice, &Slice)> {
        let mut from: HashMap<u64, &Slice> = HashMap::new();
        let mut arrows = Vec::new();
        for slice in &self.slices {
            if let Some(arrow) = slice.arrow_from {
                assert!(from.insert(arrow, slice).is_none());
            }
            if let Some(arrow) = slice.arrow_to {
                arrows.push((from.remove(&arrow).expect("it begins nowhere"), slice));
            }
        }
        assert!(from.is_empty(), "they end nowhere: {from:?}");
        arrows
    }
}

fn read_event(bytes: &[u8], names: &Names) -> Event {
    let mut event = Event::default();
    for (number, value) in fields(bytes) {
        let slice = &mut event.slice;
        match number {
            4 => {
                let all = fields(value.bytes());
                let key = all[0].1.number();
                assert_eq!((all[0].0, all.len()), (1, 2));
                let value = match all[1].0 {
                    3 => all[1].1.number().to_string(),
                    6 => all[1].1.text(),
                    other => panic!("DebugAnnotation.{other}"),
                };
                slice.values.insert(names.annotations[&key].clone(), value);
            }
            9 => event.kind = value.number(),
            10 => slice.name = names.events[&value.number()].clone(),
            11 => slice.track = value.number(),
            47 => slice.arrow_from = Some(value.number()),
            48 => slice.arrow_to = Some(value.number()),
            other => panic!("TrackEvent.{other}"),
        }
    }
    event
}
