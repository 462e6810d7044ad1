// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Parses metadata into a [`Schema`]: JSON fragments, each after a record separator (0x1e). CTF 1.8 metadata is first
//! converted to such fragments.

pub(crate) mod field;
mod json;
mod shape;
mod tsdl;

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use self::field::{Fields, NAMES, Root};
use self::json::{Object, text, unsigned};
use crate::error::{Error, Result};
use crate::program;
use crate::schema::{Class, Clock, Events, NodeId, Schema, StreamClass};

/// Maximum size of metadata, in bytes. The metadata of all events of a kernel takes 1 MB.
pub(crate) const LIMIT: u64 = 256 << 20;

/// Maximum number of stream classes, the channels of a session. They are searched linearly.
const STREAMS: usize = 1024;

/// Maximum number of fields of all event classes. The fields of the common context count for each
/// class, and so do fields of variable size inside others. All events of a kernel have fewer than 100,000.
const FIELDS: usize = 1 << 20;

const SEPARATOR: u8 = 0x1e;

/// Error for a file that is named `metadata` but is not the metadata of a trace.
pub(crate) const FOREIGN: &str =
    "not the metadata of a trace: it begins neither as CTF 2 nor as CTF 1.8";

/// Number of bytes of a file that [`is_metadata`] reads.
pub(crate) const BEGIN: u64 = 64;

/// Whether a file that starts like this is the metadata of a trace. An empty file may still become metadata.
pub(crate) fn is_metadata(begin: &[u8]) -> bool {
    begin.is_empty() || begin.first() == Some(&SEPARATOR) || tsdl::is_tsdl(begin)
}

/// Parses `text`, the contents of `file`. With `growing`, an unfinished last fragment is left out.
pub(crate) fn parse(file: &Path, text: &[u8], growing: bool) -> Result<Schema> {
    let mut builder = Builder::default();
    if tsdl::is_tsdl(text) {
        tsdl::fragments(text, growing, &mut |value| builder.fragment(value))
            .map_err(|(at, what)| Error::metadata(file, at, what))?;
    } else {
        builder.json(file, text, growing)?;
    }
    builder
        .finish()
        .map_err(|what| Error::metadata(file, 0, what))
}

impl Builder {
    fn json(&mut self, file: &Path, text: &[u8], growing: bool) -> Result<()> {
        let mut offset = 0;
        let mut rest = text;
        if text.first() != Some(&SEPARATOR) {
            return Err(Error::metadata(file, 0, FOREIGN));
        }
        while let Some(after) = rest.strip_prefix(&[SEPARATOR]) {
            offset += 1;
            let length = memchr::memchr(SEPARATOR, after).unwrap_or(after.len());
            let (fragment, next) = after.split_at(length);
            if !fragment.trim_ascii().is_empty() {
                match serde_json::from_slice::<Value>(fragment) {
                    Ok(value) => self
                        .fragment(value)
                        .map_err(|what| Error::metadata(file, offset, what))?,
                    Err(e) if growing && next.is_empty() && e.is_eof() => break,
                    Err(e) => return Err(Error::new(file, offset, e)),
                }
            }
            offset += length as u64;
            rest = next;
        }
        Ok(())
    }
}

#[derive(Default)]
struct Builder {
    schema: Schema,
    fields: Fields,
    clocks: HashMap<String, usize>,
    /// Event classes, lowered once all are known: a later class may need the value of a field that other classes
    /// share.
    events: Vec<Pending>,
    seen: bool,
}

struct Pending {
    name: String,
    /// The index of its stream class.
    stream: usize,
    common: Option<NodeId>,
    specific: Option<NodeId>,
    payload: Option<NodeId>,
}

impl Builder {
    fn fragment(&mut self, value: Value) -> Result<(), String> {
        let Value::Object(fragment) = value else {
            return Err("a fragment is an object".into());
        };
        let kind = text(&fragment, "type")?.ok_or("a fragment without a type")?;
        if !self.seen && kind != "preamble" {
            return Err("the first fragment is not a preamble".into());
        }
        if fragment.contains_key("extensions") {
            return Err("the trace needs an extension of CTF 2: none is supported".into());
        }
        match kind {
            "preamble" => self.preamble(&fragment),
            "field-class-alias" => {
                let name = text(&fragment, "name")?.ok_or("an alias without a name")?;
                let class = fragment
                    .get("field-class")
                    .ok_or("an alias without a field class")?;
                self.fields.alias(name, class)
            }
            "trace-class" => self.trace(&fragment),
            "clock-class" => self.clock(&fragment),
            "data-stream-class" => self.stream(&fragment),
            "event-record-class" => self.event(&fragment),
            // A later version may have other fragments.
            _ => Ok(()),
        }
    }

    fn preamble(&mut self, fragment: &Object) -> Result<(), String> {
        if std::mem::replace(&mut self.seen, true) {
            return Err("a second preamble".into());
        }
        let version = unsigned(fragment, "version")?;
        if version != Some(2) {
            return Err(format!("a preamble of version {version:?}, not 2"));
        }
        if let Some(uuid) = fragment.get("uuid") {
            let bytes: Option<Vec<u8>> = uuid.as_array().and_then(|a| {
                let byte = |v: &Value| v.as_u64().and_then(|v| u8::try_from(v).ok());
                a.iter().map(byte).collect()
            });
            let bytes = bytes.and_then(|b| b.try_into().ok());
            self.schema.uuid = Some(bytes.ok_or("a UUID is an array of 16 bytes")?);
        }
        Ok(())
    }

    fn trace(&mut self, fragment: &Object) -> Result<(), String> {
        if let Some(environment) = fragment.get("environment").and_then(Value::as_object) {
            let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_string);
            let pairs = environment.iter().map(|(k, v)| (k.clone(), text(v)));
            self.schema.environment = pairs.collect();
        }
        let header = fragment.get("packet-header-field-class");
        self.schema.packet_header =
            self.fields
                .scope(&mut self.schema, Root::PacketHeader, header)?;
        Ok(())
    }

    fn clock(&mut self, fragment: &Object) -> Result<(), String> {
        let name = text(fragment, "name")?.map(str::to_string);
        let id = text(fragment, "id")?.map(str::to_string);
        let frequency = unsigned(fragment, "frequency")?.ok_or("a clock without a frequency")?;
        if frequency == 0 {
            return Err("a clock of frequency 0".into());
        }
        let offset = fragment
            .get("offset-from-origin")
            .or_else(|| fragment.get("offset"));
        let (mut offset_seconds, mut offset_cycles) = (0, 0);
        if let Some(offset) = offset {
            let offset = offset
                .as_object()
                .ok_or("the offset of a clock is an object")?;
            if let Some(value) = offset.get("seconds") {
                offset_seconds = value.as_i64().ok_or("`seconds` is not an integer")?;
            }
            offset_cycles = unsigned(offset, "cycles")?.unwrap_or(0);
            if offset_cycles >= frequency {
                return Err(format!(
                    "a clock offset of {offset_cycles} cycles, a second or more"
                ));
            }
        }
        let clock = Clock {
            name: name.clone().or_else(|| id.clone()).unwrap_or_default(),
            // A draft of CTF 2 called it `uuid`, and used bytes instead of text.
            uid: fragment
                .get("uid")
                .or_else(|| fragment.get("uuid"))
                .map(Value::to_string),
            frequency,
            offset_seconds,
            offset_cycles,
        };
        let id = id.or(name).ok_or("a clock without an id")?;
        if self
            .clocks
            .insert(id.clone(), self.schema.clocks.len())
            .is_some()
        {
            return Err(format!("a second clock {id:?}"));
        }
        self.schema.clocks.push(clock);
        Ok(())
    }

    fn stream(&mut self, fragment: &Object) -> Result<(), String> {
        let id = unsigned(fragment, "id")?.unwrap_or(0);
        if self.schema.stream(id).is_some() {
            return Err(format!("a second data stream class {id}"));
        }
        let clock = match text(fragment, "default-clock-class-id")? {
            None => text(fragment, "default-clock-class-name")?,
            some => some,
        };
        let clock = match clock {
            None => None,
            Some(name) => {
                let clock = self.clocks.get(name).copied();
                Some(clock.ok_or_else(|| format!("no clock {name:?}"))?)
            }
        };
        if self.schema.streams.len() >= STREAMS {
            return Err(format!("more than {STREAMS} data stream classes"));
        }
        let mut scope = |root, key| {
            self.fields
                .scope(&mut self.schema, root, fragment.get(key))
                .map_err(|e| format!("{key}: {e}"))
        };
        let packet_context = scope(Root::PacketContext, "packet-context-field-class")?;
        let header = scope(Root::Header, "event-record-header-field-class")?;
        let context = scope(Root::Common, "event-record-common-context-field-class")?;
        self.fields.enter(id, [packet_context, header, context]);
        let class = StreamClass {
            id,
            clock,
            packet_context,
            header,
            context,
            fast: None,
            events: Events::default(),
        };
        self.schema.streams.push(class);
        Ok(())
    }

    fn event(&mut self, fragment: &Object) -> Result<(), String> {
        let id = unsigned(fragment, "id")?.unwrap_or(0);
        let stream = unsigned(fragment, "data-stream-class-id")?.unwrap_or(0);
        let name = text(fragment, "name")?.unwrap_or_default().to_string();
        let at = self.schema.stream(stream);
        let found = at.and_then(|at| Some((at, self.schema.streams.get(at)?.context)));
        let Some((at, common)) = found else {
            return Err(format!(
                "event {name:?} of data stream class {stream}, which does not exist"
            ));
        };
        self.fields.leave(stream);
        let mut scope = |root, key| {
            self.fields
                .scope(&mut self.schema, root, fragment.get(key))
                .map_err(|e| format!("event {name:?}: {e}"))
        };
        let specific = scope(Root::Specific, "specific-context-field-class")?;
        let payload = scope(Root::Payload, "payload-field-class")?;
        let index = u32::try_from(self.events.len()).map_err(|_| "too many event classes")?;
        let class = self.schema.streams.get_mut(at);
        if !class.is_some_and(|c| c.events.insert(id, index)) {
            return Err(format!(
                "a second event class {id} of data stream class {stream}"
            ));
        }
        self.events.push(Pending {
            name,
            stream: at,
            common,
            specific,
            payload,
        });
        Ok(())
    }

    fn finish(mut self) -> Result<Schema, String> {
        if !self.seen {
            return Err("no preamble".into());
        }
        let fast = |s: &StreamClass| s.header.and_then(|h| shape::fast(&self.schema, h));
        let fast: Vec<_> = self.schema.streams.iter().map(fast).collect();
        for (stream, fast) in self.schema.streams.iter_mut().zip(fast) {
            stream.fast = fast;
        }
        let (mut count, mut names) = (0, 0);
        for event in self.events {
            let scopes = [event.common, event.specific, event.payload];
            let stream = self.schema.streams.get(event.stream);
            let modulus = stream.and_then(|s| s.fast).map_or(1, |f| f.end());
            let (program, fields, searched) = program::lower(&self.schema, modulus, scopes)
                .map_err(|e| format!("event {:?}: {e}", event.name))?;
            count += fields.len() + searched;
            names += fields.iter().map(|f| f.name.len()).sum::<usize>();
            if count > FIELDS || names > NAMES {
                return Err(format!(
                    "more than {FIELDS} fields of all events, or {NAMES} bytes of names"
                ));
            }
            self.schema.classes.push(Class {
                name: event.name,
                fields,
                program,
                scopes: scopes.map(|s| s.is_some()),
            });
        }
        Ok(self.schema)
    }
}
