// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Writes traces that Perfetto shows (<https://ui.perfetto.dev>, trace_processor): tracks below tracks, slices on them,
//! and arrows from one to another.
//!
//! ```text
//! thread 7   | runs |  waits for 8      | runs  |
//!                                      ^ arrow
//! thread 8   | ... runs                |' wakes 7
//! ```
//!
//! Times are in ns of one clock, and written unchanged. Slices of a track nest: the last slice to begin is the first to
//! end. Packets are written one by one, so memory does not grow with the trace; each distinct name is stored once.

mod schema;

use std::collections::HashMap;
use std::io::{self, Write};

use prost::Message;

use self::schema::{
    CLEARED, ChildOrdering, DebugAnnotation, InternedData, InternedName, NEEDS,
    SiblingMergeBehavior, Trace, TracePacket, TrackDescriptor, TrackEvent, Type,
};

/// ID of the only packet sequence.
const SEQUENCE: u32 = 1;
/// Size of a write, bytes.
const CHUNK: usize = 64 << 10;

/// A track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Track(u64);

/// An arrow between two events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Arrow(u64);

/// The value of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// A number.
    Number(u64),
    /// A text.
    Text(String),
}

/// Arguments of an event, besides its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Details {
    /// Names with values.
    pub(crate) values: Vec<(&'static str, Value)>,
    /// The arrow that starts here.
    pub(crate) from: Option<Arrow>,
    /// The arrow that ends here.
    pub(crate) to: Option<Arrow>,
}

/// Writes one trace.
#[derive(Debug)]
pub(crate) struct Writer<W: Write> {
    out: W,
    /// Encoded packets that are not written yet.
    buffer: Vec<u8>,
    /// The packet buffer, reused.
    trace: Trace,
    events: Names,
    annotations: Names,
    tracks: u64,
    arrows: u64,
    begun: bool,
}

/// Interned names, with their numbers.
#[derive(Debug, Default)]
struct Names {
    numbers: HashMap<String, u64>,
    /// Names not yet written in a packet.
    fresh: Vec<InternedName>,
}

impl Names {
    fn number(&mut self, name: &str) -> u64 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        // 0 means no name.
        let number = self.numbers.len() as u64 + 1;
        self.numbers.insert(name.to_string(), number);
        self.fresh.push(InternedName {
            iid: Some(number),
            name: Some(name.to_string()),
        });
        number
    }
}

impl<W: Write> Writer<W> {
    /// Creates a writer of a trace.
    pub(crate) fn new(out: W) -> Self {
        Self {
            out,
            buffer: Vec::with_capacity(CHUNK + CHUNK / 8),
            trace: Trace::default(),
            events: Names::default(),
            annotations: Names::default(),
            tracks: 0,
            arrows: 0,
            begun: false,
        }
    }

    /// Adds a track, `below` another track if given. The tracks below one track are shown in the
    /// order of their creation.
    pub(crate) fn track(&mut self, name: &str, below: Option<Track>) -> io::Result<Track> {
        // 0 is the track of events without a track.
        self.tracks += 1;
        let track = Track(self.tracks);
        let packet = TracePacket {
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(track.0),
                name: Some(name.to_string()),
                parent_uuid: below.map(|parent| parent.0),
                child_ordering: Some(ChildOrdering::Explicit.into()),
                sibling_order_rank: Some(i32::try_from(self.tracks).unwrap_or(i32::MAX)),
                sibling_merge_behavior: Some(SiblingMergeBehavior::None.into()),
            }),
            ..TracePacket::default()
        };
        self.packet(packet)?;
        Ok(track)
    }

    /// Creates an arrow. Its start event must be written before its end event: the order determines
    /// the direction if both have the same time.
    pub(crate) fn arrow(&mut self) -> Arrow {
        self.arrows += 1;
        Arrow(self.arrows)
    }

    /// Starts a slice.
    pub(crate) fn begin(
        &mut self,
        track: Track,
        time: u64,
        name: &str,
        details: Details,
    ) -> io::Result<()> {
        self.event(track, time, Type::SliceBegin, Some(name), details)
    }

    /// Ends the innermost open slice of a track.
    pub(crate) fn end(&mut self, track: Track, time: u64) -> io::Result<()> {
        self.event(track, time, Type::SliceEnd, None, Details::default())
    }

    /// Adds an event without a duration.
    pub(crate) fn instant(
        &mut self,
        track: Track,
        time: u64,
        name: &str,
        details: Details,
    ) -> io::Result<()> {
        self.event(track, time, Type::Instant, Some(name), details)
    }

    /// Writes the remaining packets.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.write()?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn event(
        &mut self,
        track: Track,
        time: u64,
        kind: Type,
        name: Option<&str>,
        details: Details,
    ) -> io::Result<()> {
        let mut annotations = Vec::with_capacity(details.values.len());
        for (name, value) in details.values {
            let (number, text) = match value {
                Value::Number(number) => (Some(number), None),
                Value::Text(text) => (None, Some(text)),
            };
            annotations.push(DebugAnnotation {
                name_iid: Some(self.annotations.number(name)),
                uint_value: number,
                string_value: text,
            });
        }
        let event = TrackEvent {
            debug_annotations: annotations,
            r#type: Some(kind.into()),
            name_iid: name.map(|name| self.events.number(name)),
            track_uuid: Some(track.0),
            flow_ids: details.from.iter().map(|arrow| arrow.0).collect(),
            terminating_flow_ids: details.to.iter().map(|arrow| arrow.0).collect(),
        };
        self.packet(TracePacket {
            timestamp: Some(time),
            track_event: Some(event),
            ..TracePacket::default()
        })
    }

    fn packet(&mut self, mut packet: TracePacket) -> io::Result<()> {
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        let first = !std::mem::replace(&mut self.begun, true);
        packet.sequence_flags = Some(if first { CLEARED } else { NEEDS });
        let event_names = std::mem::take(&mut self.events.fresh);
        let debug_annotation_names = std::mem::take(&mut self.annotations.fresh);
        if !event_names.is_empty() || !debug_annotation_names.is_empty() {
            packet.interned_data = Some(InternedData {
                event_names,
                debug_annotation_names,
            });
        }
        self.trace.packet.clear();
        self.trace.packet.push(packet);
        // This cannot run out of room, since the buffer grows.
        self.trace.encode(&mut self.buffer)?;
        if self.buffer.len() >= CHUNK {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes equal the bytes that Google's Python library writes for the same messages.
    #[test]
    fn a_trace_follows_the_schema() {
        let mut writer = Writer::new(Vec::new());
        let top = writer.track("t", None).unwrap();
        let below = writer.track("b", Some(top)).unwrap();
        let arrow = writer.arrow();
        let from = Details {
            from: Some(arrow),
            ..Details::default()
        };
        writer.instant(top, 5, "w", from).unwrap();
        let to = Details {
            to: Some(arrow),
            values: vec![("n", Value::Number(300)), ("s", Value::Text("x".into()))],
            ..Details::default()
        };
        writer.begin(below, u64::MAX >> 1, "w", to).unwrap();
        writer.end(below, u64::MAX >> 1).unwrap();
        let bytes = writer.finish().unwrap();
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        let expected = concat!(
            "0a1250016801e2030b0801120174580360017802",
            "0a1450016802e2030d08021201622801580360027802",
            "0a21400550015a10480350015801f90201000000000000006207120508011201776802",
            "0a3e40ffffffffffffffff7f50015a1e2205080118ac022205080232017848015001580281030100",
            "000000000000620e1a05080112016e1a0508021201736802",
            "0a1440ffffffffffffffff7f50015a04480258026802",
        );
        assert_eq!(hex, expected);
    }

    #[test]
    fn what_cannot_be_written_is_an_error() {
        let mut small = [0u8; 8];
        let mut writer = Writer::new(&mut small[..]);
        writer.track("a name that is longer", None).unwrap();
        assert!(writer.finish().is_err());
    }
}
