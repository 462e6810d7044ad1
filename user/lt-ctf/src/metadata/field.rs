// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Field classes: from JSON to nodes, with every length and selector tied to the field it comes from.
//!
//! A location is a path of names. It begins at the structure around the field that needs it, or, with an
//! `origin`, at a scope read earlier; `null` goes one structure up. What it passes through (options of a
//! variant, elements of an array) is transparent: the value counts that was read last.

use std::collections::HashMap;

use serde_json::Value;

use super::{Object, text, unsigned};
use crate::bits::Order;
use crate::schema::{
    Choice, Encoding, Int, Kind, Mappings, Member, Node, NodeId, Role, Schema, Slot, Source,
};

/// Aliases can multiply: a few lines of metadata would else need all memory.
const NODES: usize = 1 << 18;
/// Names are looked up one after the other.
const MEMBERS: usize = 16 << 10;
/// How deep fields may nest.
const DEPTH: usize = 64;
/// In bits; windows onto a packet begin at multiples of it (stream.rs).
pub(crate) const ALIGN: u32 = 4096 * 8;
/// No field of a fixed size may take more, bits.
const SIZE: u64 = 1 << 32;

/// The scopes, in the order in which they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    PacketHeader,
    PacketContext,
    Header,
    Common,
    Specific,
    Payload,
}

impl Root {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "packet-header" => Self::PacketHeader,
            "packet-context" => Self::PacketContext,
            "event-record-header" => Self::Header,
            "event-record-common-context" => Self::Common,
            "event-record-specific-context" => Self::Specific,
            "event-record-payload" => Self::Payload,
            _ => return None,
        })
    }

    /// Roles mean something in headers only.
    fn has_roles(self) -> bool {
        matches!(
            self,
            Self::PacketHeader | Self::PacketContext | Self::Header
        )
    }
}

#[derive(Default)]
pub(super) struct Fields {
    aliases: HashMap<String, Value>,
    /// The scopes read so far, of the stream class at hand.
    roots: [Option<NodeId>; 6],
    /// The scopes of each stream class: packet context, header, common context.
    streams: HashMap<u64, [Option<NodeId>; 3]>,
}

impl Fields {
    pub(super) fn alias(&mut self, name: &str, class: &Value) -> Result<(), String> {
        match self.aliases.insert(name.to_string(), class.clone()) {
            None => Ok(()),
            Some(_) => Err(format!("a second alias {name:?}")),
        }
    }

    /// A stream class with these scopes is complete.
    pub(super) fn enter(&mut self, stream: u64, scopes: [Option<NodeId>; 3]) {
        self.streams.insert(stream, scopes);
    }

    /// What follows belongs to an event class of that stream class.
    pub(super) fn leave(&mut self, stream: u64) {
        if let Some(scopes) = self.streams.get(&stream) {
            self.roots[1..4].copy_from_slice(scopes);
        }
    }

    /// The nodes of a scope.
    pub(super) fn scope(
        &mut self,
        schema: &mut Schema,
        root: Root,
        class: Option<&Value>,
    ) -> Result<Option<NodeId>, String> {
        for later in &mut self.roots[root as usize..] {
            *later = None;
        }
        let Some(class) = class else {
            return Ok(None);
        };
        let mut reader = Reader {
            schema,
            aliases: &self.aliases,
            roots: &self.roots,
            root,
            around: Vec::new(),
            depth: 0,
        };
        let node = reader.class(class)?;
        if !matches!(schema.node(node).kind, Kind::Struct(_)) {
            return Err("the field class of a scope is a structure".into());
        }
        self.roots[root as usize] = Some(node);
        Ok(Some(node))
    }
}

/// A structure whose members are being read.
struct Around {
    members: Vec<Member>,
}

struct Reader<'a> {
    schema: &'a mut Schema,
    aliases: &'a HashMap<String, Value>,
    roots: &'a [Option<NodeId>; 6],
    root: Root,
    around: Vec<Around>,
    depth: usize,
}

/// Where the search for a field goes on.
enum At {
    Open(usize),
    Done(NodeId),
}

impl Reader<'_> {
    fn class(&mut self, class: &Value) -> Result<NodeId, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(format!("fields nest more than {DEPTH} deep"));
        }
        let aliases = self.aliases;
        let node = match class {
            Value::String(name) => {
                let class = aliases
                    .get(name)
                    .ok_or_else(|| format!("no alias {name:?}"))?;
                self.class(class)?
            }
            Value::Object(class) => self.object(class)?,
            _ => return Err("a field class is an object or the name of an alias".into()),
        };
        self.depth -= 1;
        Ok(node)
    }

    fn object(&mut self, class: &Object) -> Result<NodeId, String> {
        let kind = text(class, "type")?.ok_or("a field class without a type")?;
        let mut align = 1;
        let mut keeps = false;
        let kind = match kind {
            "fixed-length-unsigned-integer" | "fixed-length-signed-integer"
            // Names of a draft, which the first releases of LTTng with CTF 2 may have written.
            | "fixed-length-unsigned-enumeration" | "fixed-length-signed-enumeration" => Kind::Int {
                int: fixed(class, kind.contains("-signed-"), &mut align)?,
                base: base(class)?,
                mappings: mappings(class, "mappings")?,
            },
            "fixed-length-boolean" => Kind::Bool(fixed(class, false, &mut align)?),
            "fixed-length-bit-array" => Kind::Bits {
                int: fixed(class, false, &mut align)?,
                flags: Vec::new(),
            },
            "fixed-length-bit-map" => Kind::Bits {
                int: fixed(class, false, &mut align)?,
                flags: mappings(class, "flags")?,
            },
            "fixed-length-floating-point-number" => {
                let int = fixed(class, false, &mut align)?;
                if !matches!(int.len, 32 | 64) {
                    return Err(format!("a floating-point number of {} bits", int.len));
                }
                Kind::Float(int)
            }
            "variable-length-unsigned-integer" | "variable-length-signed-integer" => {
                align = 8;
                Kind::Leb {
                    signed: kind.contains("-signed-"),
                    base: base(class)?,
                    mappings: mappings(class, "mappings")?,
                }
            }
            "null-terminated-string" => {
                align = 8;
                Kind::Text(encoding(class)?)
            }
            "static-length-string" => {
                align = 8;
                Kind::StaticText {
                    bytes: length(class)?,
                    encoding: encoding(class)?,
                }
            }
            "dynamic-length-string" => {
                align = 8;
                Kind::DynamicText {
                    length: self.length(class)?,
                    encoding: encoding(class)?,
                }
            }
            "static-length-blob" => {
                align = 8;
                Kind::StaticBlob {
                    bytes: length(class)?,
                }
            }
            "dynamic-length-blob" => {
                align = 8;
                Kind::DynamicBlob {
                    length: self.length(class)?,
                }
            }
            "structure" => {
                align = alignment(class, "minimum-alignment")?;
                let members = self.members(class)?;
                for member in &members {
                    let node = self.schema.node(member.node);
                    align = align.max(node.align);
                    keeps |= node.keeps;
                }
                Kind::Struct(members)
            }
            "static-length-array" | "dynamic-length-array" => {
                align = alignment(class, "minimum-alignment")?;
                // Before the element: its location must not reach into the elements.
                let source = match kind {
                    "dynamic-length-array" => Some(self.length(class)?),
                    _ => None,
                };
                let of = class.get("element-field-class").ok_or("an array without an element class")?;
                let of = self.class(of)?;
                align = align.max(self.schema.node(of).align);
                keeps = self.schema.node(of).keeps;
                match source {
                    Some(length) => Kind::DynamicArray { of, length },
                    None => Kind::StaticArray {
                        of,
                        count: length(class)?,
                    },
                }
            }
            "optional" => {
                let (selector, kind) = self.location(class, "selector-field-location")?;
                let ranges = class.get("selector-field-ranges").map(ranges).transpose()?;
                if (kind == Selects::Bool) == ranges.is_some() {
                    return Err("an optional needs ranges if its selector is an integer, and only then".into());
                }
                let node = class.get("field-class").ok_or("an optional without a field class")?;
                let node = self.class(node)?;
                keeps = self.schema.node(node).keeps;
                Kind::Optional {
                    node,
                    selector,
                    ranges,
                }
            }
            "variant" => {
                let (selector, _) = self.location(class, "selector-field-location")?;
                let options = class.get("options").and_then(Value::as_array);
                let mut choices = Vec::new();
                for option in options.ok_or("a variant without options")? {
                    let option = option.as_object().ok_or("an option is an object")?;
                    let ranges = ranges(option.get("selector-field-ranges").ok_or("an option without ranges")?)?;
                    let node = self.class(option.get("field-class").ok_or("an option without a field class")?)?;
                    keeps |= self.schema.node(node).keeps;
                    choices.push(Choice {
                        name: text(option, "name")?.map(str::to_string),
                        ranges,
                        node,
                    });
                }
                Kind::Variant { choices, selector }
            }
            other => return Err(format!("unknown field class {other:?}")),
        };
        let role = if self.root.has_roles() {
            role(class)?
        } else {
            None
        };
        let node = Node {
            size: self.size(&kind)?,
            kind,
            align,
            keeps: keeps || role.is_some(),
            slot: None,
            role,
        };
        if self.schema.nodes.len() >= NODES {
            return Err(format!("more than {NODES} fields"));
        }
        let id = NodeId::try_from(self.schema.nodes.len()).map_err(|_| "too many fields")?;
        self.schema.nodes.push(node);
        Ok(id)
    }

    fn members(&mut self, class: &Object) -> Result<Vec<Member>, String> {
        self.around.push(Around {
            members: Vec::new(),
        });
        if let Some(members) = class.get("member-classes") {
            let members = members
                .as_array()
                .ok_or("`member-classes` is not an array")?;
            if members.len() > MEMBERS {
                return Err(format!("a structure of more than {MEMBERS} members"));
            }
            for member in members {
                let member = member.as_object().ok_or("a member is an object")?;
                let name = text(member, "name")?.ok_or("a member without a name")?;
                let class = member
                    .get("field-class")
                    .ok_or("a member without a field class")?;
                let node = self.class(class).map_err(|e| format!("{name}: {e}"))?;
                if let Some(around) = self.around.last_mut() {
                    around.members.push(Member {
                        name: name.to_string(),
                        node,
                    });
                }
            }
        }
        Ok(self.around.pop().map(|a| a.members).unwrap_or_default())
    }

    /// The size of such a field, if it has one, bits.
    fn size(&self, kind: &Kind) -> Result<Option<u64>, String> {
        let size = match kind {
            Kind::Int { int, .. } | Kind::Bool(int) | Kind::Bits { int, .. } | Kind::Float(int) => {
                Some(u64::from(int.len))
            }
            Kind::StaticText { bytes, .. } | Kind::StaticBlob { bytes } => bytes.checked_mul(8),
            Kind::Struct(members) => {
                let mut size = 0u64;
                for member in members {
                    let node = self.schema.node(member.node);
                    let Some(own) = node.size else {
                        return Ok(None);
                    };
                    size = size.next_multiple_of(u64::from(node.align)) + own;
                }
                Some(size)
            }
            Kind::StaticArray { of, count } => {
                let node = self.schema.node(*of);
                match (node.size, count) {
                    (_, 0) => Some(0),
                    (None, _) => return Ok(None),
                    (Some(own), _) => {
                        let stride = own.next_multiple_of(u64::from(node.align));
                        stride
                            .checked_mul(count - 1)
                            .and_then(|s| s.checked_add(own))
                    }
                }
            }
            _ => return Ok(None),
        };
        match size {
            Some(size) if size <= SIZE => Ok(Some(size)),
            _ => Err(format!("a field of more than {} bytes", SIZE / 8)),
        }
    }

    fn length(&mut self, class: &Object) -> Result<Source, String> {
        match self.location(class, "length-field-location")? {
            (source, Selects::Integer) if !source.signed => Ok(source),
            _ => Err("a length that is not an unsigned integer".into()),
        }
    }

    /// Finds the field that `key` names, and has its value kept.
    fn location(&mut self, class: &Object, key: &str) -> Result<(Source, Selects), String> {
        let location = class.get(key).ok_or_else(|| format!("no `{key}`"))?;
        let (origin, path) = match location {
            Value::Object(location) => (
                text(location, "origin")?,
                location.get("path").and_then(Value::as_array),
            ),
            // As a draft had it: the scope comes first.
            Value::Array(path) => (path.first().and_then(Value::as_str), Some(path)),
            _ => (None, None),
        };
        let path = path.ok_or_else(|| format!("`{key}` without a path"))?;
        let path = &path[usize::from(location.is_array() && !path.is_empty())..];
        let mut starts = Vec::new();
        let mut at = match origin {
            None => vec![At::Open(self.around.len())],
            Some(name) => {
                let root = Root::parse(name).ok_or_else(|| format!("no scope {name:?}"))?;
                match self.roots[root as usize] {
                    _ if root == self.root => vec![At::Open(1)],
                    Some(node) => {
                        starts.push(node);
                        vec![At::Done(node)]
                    }
                    None => return Err(format!("`{key}`: the scope {name:?} is not there")),
                }
            }
        };
        for step in path {
            let mut next = Vec::new();
            for place in at {
                match (step, place) {
                    (Value::Null, At::Open(n)) if n > 1 => next.push(At::Open(n - 1)),
                    (Value::String(name), At::Open(n)) => {
                        let around = n.checked_sub(1).and_then(|i| self.around.get(i));
                        let found = around.and_then(|a| a.members.iter().find(|m| m.name == *name));
                        match found {
                            Some(member) => {
                                starts.push(member.node);
                                next.push(At::Done(member.node));
                            }
                            // A structure that is still being read, around this field: its members so far.
                            None => next.extend((n < self.around.len()).then_some(At::Open(n + 1))),
                        }
                    }
                    (Value::String(name), At::Done(node)) => self.inside(node, name, &mut next),
                    _ => {}
                }
            }
            at = next;
        }
        let mut found = None;
        let mut nodes = Vec::new();
        for place in at {
            if let At::Done(node) = place {
                self.leaves(node, &mut nodes);
            }
        }
        // Options of one variant share a slot, if there are several.
        let slot = nodes.iter().find_map(|n| self.schema.node(*n).slot);
        let slot = match slot {
            Some(slot) => slot,
            None => {
                self.schema.slots += 1;
                self.schema.slots - 1
            }
        };
        for id in nodes {
            let (selects, signed) = match &self.schema.node(id).kind {
                Kind::Int { int, .. } => (Selects::Integer, int.signed),
                Kind::Leb { signed, .. } => (Selects::Integer, *signed),
                Kind::Bool(_) => (Selects::Bool, false),
                _ => return Err(format!("`{key}` is neither an integer nor a boolean")),
            };
            let source = (Source { slot, signed }, selects);
            if found.is_some_and(|(s, k): (Source, Selects)| (s.signed, k) != (signed, selects)) {
                return Err(format!("`{key}` is now of one type, now of another"));
            }
            found = Some(source);
            self.keep(id, slot)?;
        }
        for start in starts {
            self.refresh(start);
        }
        found.ok_or_else(|| format!("`{key}`: there is no field {}", Value::Array(path.to_vec())))
    }

    /// The members of that name: of a structure, whatever option or element it stands in.
    fn inside(&self, node: NodeId, name: &str, found: &mut Vec<At>) {
        match &self.schema.node(node).kind {
            Kind::Struct(members) => {
                let member = members.iter().find(|m| m.name == name);
                found.extend(member.map(|m| At::Done(m.node)));
            }
            Kind::StaticArray { of, .. } | Kind::DynamicArray { of, .. } => {
                self.inside(*of, name, found)
            }
            Kind::Optional { node, .. } => self.inside(*node, name, found),
            Kind::Variant { choices, .. } => choices
                .iter()
                .for_each(|c| self.inside(c.node, name, found)),
            _ => {}
        }
    }

    /// The scalar that a path which ends at a container means.
    fn leaves(&self, node: NodeId, found: &mut Vec<NodeId>) {
        match &self.schema.node(node).kind {
            Kind::StaticArray { of, .. } | Kind::DynamicArray { of, .. } => self.leaves(*of, found),
            Kind::Optional { node, .. } => self.leaves(*node, found),
            Kind::Variant { choices, .. } => {
                choices.iter().for_each(|c| self.leaves(c.node, found))
            }
            _ => found.push(node),
        }
    }

    /// Has `node` keep its value in `slot`.
    fn keep(&mut self, node: NodeId, slot: Slot) -> Result<(), String> {
        let target = &mut self.schema.nodes[node as usize];
        if target.slot.is_some_and(|s| s != slot) {
            return Err("fields that share a selector in part".into());
        }
        target.slot = Some(slot);
        target.keeps = true;
        Ok(())
    }

    /// Has all from `node` down know again whether something below them keeps a value. Those above are still
    /// being read, and will see.
    fn refresh(&mut self, node: NodeId) -> bool {
        let below: Vec<NodeId> = match &self.schema.node(node).kind {
            Kind::Struct(members) => members.iter().map(|m| m.node).collect(),
            Kind::StaticArray { of, .. } | Kind::DynamicArray { of, .. } => vec![*of],
            Kind::Optional { node, .. } => vec![*node],
            Kind::Variant { choices, .. } => choices.iter().map(|c| c.node).collect(),
            _ => return self.schema.node(node).keeps,
        };
        let keeps = below
            .into_iter()
            .fold(false, |keeps, n| self.refresh(n) | keeps);
        self.schema.nodes[node as usize].keeps |= keeps;
        keeps
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Selects {
    Integer,
    Bool,
}

fn fixed(class: &Object, signed: bool, align: &mut u32) -> Result<Int, String> {
    let len = length(class)?;
    let len = u32::try_from(len).ok().filter(|len| (1..=64).contains(len));
    let order = match text(class, "byte-order")? {
        Some("little-endian") => Order::Little,
        Some("big-endian") => Order::Big,
        other => return Err(format!("byte order {other:?}")),
    };
    match (text(class, "bit-order")?, order) {
        (None, _)
        | (Some("first-to-last"), Order::Little)
        | (Some("last-to-first"), Order::Big) => {}
        (other, _) => {
            return Err(format!(
                "bit order {other:?} with this byte order is not supported"
            ));
        }
    }
    *align = alignment(class, "alignment")?;
    Ok(Int {
        len: len.ok_or("a length of no, or of more than 64 bits")?,
        order,
        signed,
    })
}

fn alignment(class: &Object, key: &str) -> Result<u32, String> {
    let align = unsigned(class, key)?.unwrap_or(1);
    let fits = |a: &u32| a.is_power_of_two() && *a <= ALIGN;
    let align = u32::try_from(align).ok().filter(fits);
    align.ok_or_else(|| format!("`{key}` is not a power of two up to {ALIGN}"))
}

fn base(class: &Object) -> Result<u8, String> {
    match unsigned(class, "preferred-display-base")?.unwrap_or(10) {
        base @ (2 | 8 | 10 | 16) => Ok(base as u8),
        other => Err(format!("display base {other}")),
    }
}

fn length(class: &Object) -> Result<u64, String> {
    unsigned(class, "length")?.ok_or_else(|| "no `length`".into())
}

fn encoding(class: &Object) -> Result<Encoding, String> {
    Ok(match text(class, "encoding")?.unwrap_or("utf-8") {
        "utf-8" => Encoding::Utf8,
        "utf-16le" => Encoding::Utf16(Order::Little),
        "utf-16be" => Encoding::Utf16(Order::Big),
        "utf-32le" => Encoding::Utf32(Order::Little),
        "utf-32be" => Encoding::Utf32(Order::Big),
        other => return Err(format!("encoding {other:?}")),
    })
}

fn mappings(class: &Object, key: &str) -> Result<Mappings, String> {
    let Some(mappings) = class.get(key) else {
        return Ok(Vec::new());
    };
    let mappings = mappings
        .as_object()
        .ok_or_else(|| format!("`{key}` is not an object"))?;
    let pair = |(name, value): (&String, &Value)| Ok((name.clone(), ranges(value)?));
    mappings.iter().map(pair).collect()
}

/// `[[low, high], ...]`, or a number for both.
fn ranges(value: &Value) -> Result<Vec<(i128, i128)>, String> {
    let wrong = || format!("{value} is not a set of integer ranges");
    let number = |v: &Value| {
        let signed = v.as_i64().map(i128::from);
        signed
            .or_else(|| v.as_u64().map(i128::from))
            .ok_or_else(wrong)
    };
    let range = |v: &Value| match v.as_array().map(Vec::as_slice) {
        Some([low, high]) => Ok((number(low)?, number(high)?)),
        Some(_) => Err(wrong()),
        None => Ok((number(v)?, number(v)?)),
    };
    value
        .as_array()
        .ok_or_else(wrong)?
        .iter()
        .map(range)
        .collect()
}

/// The first role that is known.
fn role(class: &Object) -> Result<Option<Role>, String> {
    let Some(roles) = class.get("roles") else {
        return Ok(None);
    };
    let roles = roles.as_array().ok_or("`roles` is not an array")?;
    Ok(roles.iter().filter_map(Value::as_str).find_map(|role| {
        Some(match role {
            "packet-magic-number" => Role::Magic,
            "metadata-stream-uuid" => Role::Uuid,
            "data-stream-class-id" => Role::StreamClass,
            "data-stream-id" => Role::Stream,
            "packet-total-length" => Role::PacketTotal,
            "packet-content-length" => Role::PacketContent,
            "packet-end-default-clock-timestamp" => Role::PacketEnd,
            "packet-sequence-number" => Role::PacketNumber,
            "discarded-event-record-counter-snapshot" => Role::Discarded,
            "default-clock-timestamp" => Role::Time,
            "event-record-class-id" => Role::EventClass,
            _ => return None,
        })
    }))
}
