// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Metadata of CTF 1.8: TSDL, as plain text or in packets. It is converted to the CTF 2 fragments
//! of the same trace, so that readers handle only one format.
//!
//! ```text
//! packets --unpack--> text --token.rs, parser.rs--> types --lower.rs--> fragments of CTF 2 (JSON)
//! ```

mod lower;
mod parser;
mod token;
mod types;

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use self::lower::Lower;
use self::parser::{Assigned, Block, Parser};
use self::token::Token;
use super::field::Root;
use crate::bits::Order;

/// Magic number at the start of each packet of metadata.
const MAGIC: u32 = 0x75d1_1d57;
/// Number of bytes before the text of a packet: magic, UUID, checksum, sizes, schemes, version.
const HEADER: usize = 37;

/// A fault, with its byte offset in the file.
pub(super) type Fault = (u64, String);

/// Returns the byte order of metadata in packets.
fn packets(begin: &[u8]) -> Option<Order> {
    let magic = begin.first_chunk::<4>()?;
    if u32::from_le_bytes(*magic) == MAGIC {
        Some(Order::Little)
    } else if u32::from_be_bytes(*magic) == MAGIC {
        Some(Order::Big)
    } else {
        None
    }
}

/// Whether a file that starts like this is metadata of CTF 1.8. Plain text should start with a
/// signature, but LTTng has not written it since 2.14.
pub(crate) fn is_tsdl(begin: &[u8]) -> bool {
    let text = begin.trim_ascii_start();
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let word = text.iter().position(|b| !is_word(b));
    let word = word.and_then(|end| text.get(..end)).unwrap_or_default();
    let starts: [&[u8]; 9] = [
        b"typealias",
        b"typedef",
        b"trace",
        b"env",
        b"clock",
        b"stream",
        b"struct",
        b"enum",
        b"event",
    ];
    packets(begin).is_some() || text.starts_with(b"/* CTF 1.") || starts.contains(&word)
}

/// The text, and the place of each of its pieces: offset in the text, offset in the file.
type Unpacked<'a> = (Cow<'a, [u8]>, Vec<(usize, usize)>);

/// Extracts the text from its packets. With `growing`, an unfinished last packet is left out.
fn unpack(file: &[u8], growing: bool) -> Result<Unpacked<'_>, Fault> {
    let Some(order) = packets(file) else {
        return Ok((Cow::Borrowed(file), vec![(0, 0)]));
    };
    let (mut text, mut places) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < file.len() {
        let packet = file.get(at..).unwrap_or_default();
        let wrong = |what: &str| (at as u64, format!("metadata packet: {what}"));
        if packet.len() < HEADER {
            if growing {
                break;
            }
            return Err(wrong("the file ends within its header"));
        }
        if packets(packet) != Some(order) {
            return Err(wrong("it has no magic number"));
        }
        let word = |at: usize| {
            let bytes = packet.get(at..).and_then(<[u8]>::first_chunk::<4>);
            let bytes = bytes.copied().unwrap_or_default();
            let word = match order {
                Order::Little => u32::from_le_bytes(bytes),
                Order::Big => u32::from_be_bytes(bytes),
            };
            word as usize / 8
        };
        let (content, total) = (word(24), word(28));
        if packet.get(32..34) != Some(&[0, 0]) {
            return Err(wrong("it is compressed or encrypted"));
        }
        if content < HEADER || total < content {
            return Err(wrong(&format!("{content} of {total} bytes are used")));
        }
        let Some(own) = packet.get(HEADER..content) else {
            if growing {
                break;
            }
            return Err(wrong(&format!(
                "it has {content} bytes, and the file ends after {} of them",
                packet.len()
            )));
        };
        places.push((text.len(), at + HEADER));
        text.extend_from_slice(own);
        at += total;
    }
    Ok((Cow::Owned(text), places))
}

/// A block at the top level, and where it starts.
struct Found {
    at: usize,
    block: Block,
}

#[derive(Default)]
struct Trace {
    trace: Option<Found>,
    environment: Vec<Found>,
    clocks: Vec<Found>,
    streams: Vec<Found>,
    events: Vec<Found>,
}

/// Parses a metadata file, and passes the CTF 2 fragments to `fragment`, one after another. With
/// `growing`, an unfinished last block is left out.
pub(super) fn fragments(
    file: &[u8],
    growing: bool,
    fragment: &mut dyn FnMut(Value) -> Result<(), String>,
) -> Result<(), Fault> {
    let (text, places) = unpack(file, growing)?;
    // Returns the offset in the file of this byte of the text.
    let place = |at: usize| {
        let after = places.partition_point(|(begin, _)| *begin <= at);
        let (begin, byte) = places
            .get(after.saturating_sub(1))
            .copied()
            .unwrap_or_default();
        (byte + (at - begin.min(at))) as u64
    };
    let mut trace = Trace::default();
    let mut parser = Parser::new(&text);
    if let Err(what) = trace.parse(&mut parser)
        && !(growing && parser.is_at_end())
    {
        return Err((place(parser.at), what));
    }
    trace
        .lower(fragment)
        .map_err(|(at, what)| (place(at), what))
}

impl Trace {
    fn parse(&mut self, parser: &mut Parser<'_>) -> Result<(), String> {
        parser.advance()?;
        while parser.token != Token::End {
            if parser.takes(";")? || parser.declaration()? {
                continue;
            }
            let at = parser.at;
            let kind = parser.word()?;
            let block = parser.block()?;
            parser.expect(";")?;
            let found = Found { at, block };
            match kind.as_str() {
                "trace" if self.trace.is_some() => return Err("a second block `trace`".into()),
                "trace" => self.trace = Some(found),
                "env" => self.environment.push(found),
                "clock" => self.clocks.push(found),
                "stream" => self.streams.push(found),
                "event" => self.events.push(found),
                "callsite" => {}
                other => return Err(format!("a block `{other}`, which CTF 1.8 does not have")),
            }
        }
        Ok(())
    }

    fn lower(
        &self,
        fragment: &mut dyn FnMut(Value) -> Result<(), String>,
    ) -> Result<(), (usize, String)> {
        let mut made = Map::new();
        let trace = self.trace.as_ref();
        let order = match trace {
            Some(Found { at, block }) => {
                if let Some(uuid) = block.text("uuid") {
                    made.insert("uuid".into(), uuid_bytes(uuid).map_err(|e| (*at, e))?);
                }
                block.order().map_err(|e| (*at, e))?
            }
            None => None,
        };
        let mut emit = |at, kind: &str, mut made: Map<String, Value>| {
            made.insert("type".into(), kind.into());
            fragment(made.into()).map_err(|e| (at, e))
        };
        made.insert("version".into(), 2.into());
        emit(0, "preamble", made)?;
        let mut lower = Lower::new(order);
        let mut made = Map::new();
        let scope = trace.and_then(|trace| trace.block.scope("packet.header"));
        let at = trace.map_or(0, |trace| trace.at);
        lower
            .scope(
                &mut made,
                Root::PacketHeader,
                "packet-header-field-class",
                scope,
            )
            .map_err(|e| (at, e))?;
        let pairs = self.environment.iter().flat_map(|env| env.block.values());
        let environment: Map<_, _> = pairs.map(|(k, v)| (k.clone(), json_of(v))).collect();
        made.insert("environment".into(), environment.into());
        emit(at, "trace-class", made)?;
        for Found { at, block } in &self.clocks {
            emit(*at, "clock-class", clock(block).map_err(|e| (*at, e))?)?;
        }
        // A time that names no clock belongs to the only clock. If there is no clock, it
        // counts nanoseconds.
        lower.only_clock = match self.clocks.as_slice() {
            [] => {
                let clock = json!({"id": "default", "frequency": 1_000_000_000});
                emit(
                    0,
                    "clock-class",
                    clock.as_object().cloned().unwrap_or_default(),
                )?;
                Some("default")
            }
            [only] => only.block.text("name"),
            _ => None,
        };
        self.streams(&mut lower, &mut emit)?;
        self.events(&mut lower, &mut emit)
    }

    fn streams<'t>(
        &'t self,
        lower: &mut Lower<'t>,
        emit: &mut impl FnMut(usize, &str, Map<String, Value>) -> Result<(), (usize, String)>,
    ) -> Result<(), (usize, String)> {
        const SCOPES: [(Root, &str, &str); 3] = [
            (
                Root::PacketContext,
                "packet.context",
                "packet-context-field-class",
            ),
            (
                Root::Header,
                "event.header",
                "event-record-header-field-class",
            ),
            (
                Root::Common,
                "event.context",
                "event-record-common-context-field-class",
            ),
        ];
        for Found { at, block } in &self.streams {
            let wrong = |e| (*at, e);
            let mut made = Map::new();
            let id = block.unsigned("id").map_err(wrong)?.unwrap_or(0);
            made.insert("id".into(), id.into());
            lower.clock = None;
            for (root, key, name) in SCOPES {
                lower
                    .scope(&mut made, root, name, block.scope(key))
                    .map_err(wrong)?;
            }
            if let Some(clock) = lower.clock {
                made.insert("default-clock-class-id".into(), clock.into());
            }
            emit(*at, "data-stream-class", made)?;
        }
        if self.streams.is_empty() && !self.events.is_empty() {
            emit(0, "data-stream-class", Map::new())?;
        }
        Ok(())
    }

    fn events<'t>(
        &'t self,
        lower: &mut Lower<'t>,
        emit: &mut impl FnMut(usize, &str, Map<String, Value>) -> Result<(), (usize, String)>,
    ) -> Result<(), (usize, String)> {
        let id = |block: &Block| block.unsigned("id").ok().flatten().unwrap_or(0);
        let only = match self.streams.as_slice() {
            [only] => id(&only.block),
            _ => 0,
        };
        for Found { at, block } in &self.events {
            let name = block.text("name").unwrap_or_default();
            let wrong = |e| (*at, format!("event {name:?}: {e}"));
            let stream = block.unsigned("stream_id").map_err(wrong)?.unwrap_or(only);
            let around = self.streams.iter().find(|s| id(&s.block) == stream);
            let of = |key| around.and_then(|s| s.block.scope(key));
            lower.enter(["packet.context", "event.header", "event.context"].map(of));
            let mut made = Map::new();
            for (root, key, scope) in [
                (Root::Specific, "specific-context-field-class", "context"),
                (Root::Payload, "payload-field-class", "fields"),
            ] {
                lower
                    .scope(&mut made, root, key, block.scope(scope))
                    .map_err(wrong)?;
            }
            made.insert("name".into(), name.into());
            let number = block.unsigned("id").map_err(wrong)?.unwrap_or(0);
            made.insert("id".into(), number.into());
            made.insert("data-stream-class-id".into(), stream.into());
            emit(*at, "event-record-class", made)?;
        }
        Ok(())
    }
}

fn json_of(value: &Assigned) -> Value {
    match value {
        // The schema stores entries of the environment as text, so a number that does not fit in an i64 can already
        // become text here.
        Assigned::Number(number) => match i64::try_from(*number) {
            Ok(number) => number.into(),
            Err(_) => number.to_string().into(),
        },
        Assigned::Text(text) => text.as_str().into(),
        Assigned::Names(names) => names.join(".").into(),
    }
}

fn uuid_bytes(text: &str) -> Result<Value, String> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let number = u128::from_str_radix(&digits, 16).ok();
    let number = number.filter(|_| digits.len() == 32);
    let number = number.ok_or_else(|| format!("{text:?} is not a UUID"))?;
    Ok(json!(number.to_be_bytes()))
}

fn clock(block: &Block) -> Result<Map<String, Value>, String> {
    const SECOND: u64 = 1_000_000_000;
    let name = block.text("name").ok_or("a clock without a name")?;
    let frequency = block.unsigned("freq")?.unwrap_or(SECOND);
    let integer = |key| match block.value(key) {
        None => Ok(0),
        Some(Assigned::Number(number)) => Ok(*number),
        Some(_) => Err(format!("`{key}` is not an integer")),
    };
    // LTTng writes the whole offset in cycles; in CTF 2, the cycles are less than a second.
    let cycles = integer("offset")?;
    let each = i128::from(frequency.max(1));
    let seconds = i64::try_from(integer("offset_s")? + cycles.div_euclid(each));
    let seconds = seconds.map_err(|_| "a clock whose offset has more than 64 bits")?;
    let cycles = cycles.rem_euclid(each) as u64;
    let mut made = Map::new();
    made.insert("id".into(), name.into());
    made.insert("name".into(), name.into());
    made.insert("frequency".into(), frequency.into());
    made.insert(
        "offset-from-origin".into(),
        json!({"seconds": seconds, "cycles": cycles}),
    );
    if let Some(uuid) = block.text("uuid") {
        made.insert("uid".into(), uuid.into());
    }
    Ok(made)
}
