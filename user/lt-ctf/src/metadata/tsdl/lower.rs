// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Converts a TSDL type to the equivalent field class of CTF 2.
//!
//! In CTF 1.8, the name of a field determines its purpose; in CTF 2, its role does. A tag of CTF
//! 1.8 selects by the names of an enumeration, a selector of CTF 2 by ranges of values. A location
//! of CTF 2 includes the number of structures to go up.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::{Map, Value, json};

use super::types::{Int, Kind, Length, Mapping, Named, Type, shown};
use crate::bits::Order;
use crate::metadata::field::Root;

/// Maximum size of one converted scope, and the assumed size of a field class without its name,
/// bytes.
const MADE: usize = 16 << 20;
const CLASS: usize = 512;

/// Starts of absolute paths, and the CTF 2 names of their scopes, in the order of [`Root`].
const ROOTS: [(&[&str], &str); 6] = [
    (&["trace", "packet", "header"], "packet-header"),
    (&["stream", "packet", "context"], "packet-context"),
    (&["stream", "event", "header"], "event-record-header"),
    (
        &["stream", "event", "context"],
        "event-record-common-context",
    ),
    (&["event", "context"], "event-record-specific-context"),
    (&["event", "fields"], "event-record-payload"),
];

/// A structure whose members are being lowered.
#[derive(Default)]
struct Open<'t> {
    members: HashMap<&'t str, &'t Type>,
}

/// Lowers the scopes of a trace.
pub(super) struct Lower<'t> {
    pub(super) order: Option<Order>,
    /// The clock of a time that names no clock.
    pub(super) only_clock: Option<&'t str>,
    /// The clock of the first timestamp of the current stream class, if any; the caller resets it for each class.
    pub(super) clock: Option<&'t str>,
    roots: [Option<&'t Type>; 6],
    root: Root,
    open: Vec<Open<'t>>,
    /// Size of the converted current scope, bytes.
    made: usize,
}

type Lowered = Result<Value, String>;

impl<'t> Lower<'t> {
    pub(super) fn new(order: Option<Order>) -> Self {
        Self {
            order,
            only_clock: None,
            clock: None,
            roots: [None; 6],
            root: Root::PacketHeader,
            open: Vec::new(),
            made: 0,
        }
    }

    /// Adds the field class of a scope to a fragment, if the scope exists.
    pub(super) fn scope(
        &mut self,
        fragment: &mut Map<String, Value>,
        root: Root,
        key: &str,
        scope: Option<&'t Rc<Type>>,
    ) -> Result<(), String> {
        for later in &mut self.roots[root as usize..] {
            *later = None;
        }
        if let Some(scope) = scope {
            self.root = root;
            self.open.clear();
            self.made = 0;
            let class = self.class("", scope);
            let (path, _) = ROOTS[root as usize];
            fragment.insert(
                key.into(),
                class.map_err(|e| format!("{}: {e}", path.join(".")))?,
            );
            self.roots[root as usize] = Some(scope);
        }
        Ok(())
    }

    /// Enters an event class of a stream class with these scopes.
    pub(super) fn enter(&mut self, scopes: [Option<&'t Rc<Type>>; 3]) {
        for (root, scope) in self.roots[1..4].iter_mut().zip(scopes) {
            *root = scope.map(Rc::as_ref);
        }
    }

    /// Counts `bytes` against the limit. Shared types multiply: without a limit, a few lines of
    /// metadata could use all memory.
    fn spend(&mut self, bytes: usize) -> Result<(), String> {
        self.made = self.made.saturating_add(bytes);
        if self.made > MADE {
            return Err(format!("more than {MADE} bytes of field classes"));
        }
        Ok(())
    }

    /// Returns the class of a field with this name.
    fn class(&mut self, name: &'t str, of: &'t Type) -> Lowered {
        self.spend(CLASS + name.len())?;
        match &of.kind {
            Kind::Int(int) => self.int(name, int, &[]),
            Kind::Enum(int, mappings) => self.int(name, int, mappings),
            Kind::Float(float) => Ok(
                json!({"type": "fixed-length-floating-point-number", "length": float.size,
                "alignment": float.align, "byte-order": self.byte_order(float.order)?}),
            ),
            Kind::Text => Ok(json!({"type": "null-terminated-string"})),
            Kind::Struct { members, align } => {
                self.open.push(Open::default());
                let mut classes = Vec::new();
                for (name, of) in members {
                    let class = self.class(name, of).map_err(|e| format!("{name}: {e}"))?;
                    classes.push(json!({"name": shown(name), "field-class": class}));
                    if let Some(open) = self.open.last_mut()
                        && open.members.insert(name, of).is_some()
                    {
                        return Err(format!("a second member `{name}`"));
                    }
                }
                self.open.pop();
                Ok(
                    json!({"type": "structure", "minimum-alignment": align, "member-classes": classes}),
                )
            }
            Kind::Variant { tag, options } => self.variant(tag.as_deref(), options),
            Kind::Array { of, length } => self.array(name, of, length),
        }
    }

    fn byte_order(&self, own: Option<Order>) -> Result<&'static str, String> {
        match own.or(self.order) {
            Some(Order::Little) => Ok("little-endian"),
            Some(Order::Big) => Ok("big-endian"),
            None => Err("the trace has no `byte_order`".into()),
        }
    }

    fn int(&mut self, name: &str, int: &'t Int, mappings: &[Mapping]) -> Lowered {
        let sign = if int.signed { "signed" } else { "unsigned" };
        let mut class = json!({"type": format!("fixed-length-{sign}-integer"), "length": int.size,
            "alignment": int.align, "byte-order": self.byte_order(int.order)?, "preferred-display-base": int.base});
        if !mappings.is_empty() {
            let mut ranges: Map<String, Value> = Map::new();
            for mapping in mappings {
                self.spend(64 + mapping.label.len())?;
                let list = ranges.entry(mapping.label.clone());
                if let Some(list) = list.or_insert_with(|| json!([])).as_array_mut() {
                    list.push(json!([number(mapping.low)?, number(mapping.high)?]));
                }
            }
            class["mappings"] = ranges.into();
        }
        if let Some(role) = self.role(shown(name), int) {
            class["roles"] = json!([role]);
        }
        Ok(class)
    }

    /// Returns the role of a field with this name in this scope.
    fn role(&mut self, name: &str, int: &'t Int) -> Option<&'static str> {
        if int.signed {
            return None;
        }
        let clock = int.clock.as_deref().or(self.only_clock);
        let is_mapped = int.clock.is_some();
        let role = match (self.root, name) {
            (Root::PacketHeader, "magic") => "packet-magic-number",
            (Root::PacketHeader, "stream_id") => "data-stream-class-id",
            (Root::PacketHeader, "stream_instance_id") => "data-stream-id",
            (Root::PacketContext, "timestamp_begin") => "default-clock-timestamp",
            (Root::PacketContext, "timestamp_end") => "packet-end-default-clock-timestamp",
            (Root::PacketContext, "content_size") => "packet-content-length",
            (Root::PacketContext, "packet_size") => "packet-total-length",
            (Root::PacketContext, "packet_seq_num") => "packet-sequence-number",
            (Root::PacketContext, "events_discarded") => "discarded-event-record-counter-snapshot",
            (Root::Header, "id") => "event-record-class-id",
            (Root::Header, "timestamp") => "default-clock-timestamp",
            (Root::Header, _) if is_mapped => "default-clock-timestamp",
            _ => return None,
        };
        if role.ends_with("timestamp") {
            // A time without a clock is an ordinary number.
            clock?;
            self.clock = self.clock.or(clock);
        }
        Some(role)
    }

    fn array(&mut self, name: &'t str, of: &'t Type, length: &'t Length) -> Lowered {
        let byte = of.int().filter(|int| int.size == 8 && int.align == 8);
        let is_text = matches!(&of.kind, Kind::Int(int) if int.is_text) && byte.is_some();
        let is_uuid = matches!((self.root, name), (Root::PacketHeader, "uuid")) && byte.is_some();
        match length {
            Length::Fixed(16) if is_uuid => Ok(
                json!({"type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"]}),
            ),
            Length::Fixed(length) if is_text => {
                Ok(json!({"type": "static-length-string", "length": length}))
            }
            Length::Fixed(length) => {
                let of = self.class("", of)?;
                Ok(
                    json!({"type": "static-length-array", "length": length, "element-field-class": of}),
                )
            }
            Length::Of(path) => {
                let (location, _) = self.location(path)?;
                if is_text {
                    return Ok(
                        json!({"type": "dynamic-length-string", "length-field-location": location}),
                    );
                }
                let of = self.class("", of)?;
                Ok(
                    json!({"type": "dynamic-length-array", "length-field-location": location, "element-field-class": of}),
                )
            }
        }
    }

    fn variant(&mut self, tag: Option<&'t [String]>, options: &'t [(String, Rc<Type>)]) -> Lowered {
        let (location, tag) = self.location(tag.ok_or("a variant without a tag")?)?;
        let Kind::Enum(_, mappings) = &tag.kind else {
            return Err("the tag of a variant is not an enumeration".into());
        };
        let mut by_label: HashMap<&str, Vec<Value>> = HashMap::new();
        for mapping in mappings {
            let ranges = by_label.entry(&mapping.label).or_default();
            ranges.push(json!([number(mapping.low)?, number(mapping.high)?]));
        }
        let mut classes = Vec::new();
        for (name, of) in options {
            let ranges = by_label.get(name.as_str());
            let ranges = ranges.or_else(|| by_label.get(shown(name)));
            let ranges = ranges.ok_or_else(|| format!("no value selects the option `{name}`"))?;
            self.spend(64 * ranges.len())?;
            let class = self.class(name, of).map_err(|e| format!("{name}: {e}"))?;
            classes.push(
                json!({"name": shown(name), "selector-field-ranges": ranges, "field-class": class}),
            );
        }
        Ok(json!({"type": "variant", "selector-field-location": location, "options": classes}))
    }

    /// Returns the location of the field that a path refers to, and its type. A path that does not
    /// start at a scope starts at the innermost open structure that has such a member, or else at
    /// the latest scope that has such a member.
    fn location(&self, path: &[String]) -> Result<(Value, &'t Type), String> {
        let found = self.absolute(path).or_else(|| self.relative(path));
        found.ok_or_else(|| format!("there is no field `{}` before", path.join(".")))
    }

    fn absolute(&self, path: &[String]) -> Option<(Value, &'t Type)> {
        let begins = |(start, _): &&(&[&str], _)| {
            let begin = path.iter().take(start.len());
            path.len() > start.len() && begin.eq(start.iter())
        };
        let root = ROOTS.iter().position(|root| begins(&root))?;
        self.in_root(root, path.get(ROOTS[root].0.len()..)?)
    }

    fn in_root(&self, root: usize, path: &[String]) -> Option<(Value, &'t Type)> {
        let mut names = Vec::new();
        let found = if root == self.root as usize {
            let members = &self.open.first()?.members;
            member(members, path, &mut names)?
        } else {
            inside(self.roots[root]?, path, &mut names)?
        };
        Some((json!({"origin": ROOTS[root].1, "path": names}), found))
    }

    fn relative(&self, path: &[String]) -> Option<(Value, &'t Type)> {
        for (up, open) in self.open.iter().rev().enumerate() {
            let mut names = vec![Value::Null; up];
            if let Some(found) = member(&open.members, path, &mut names) {
                return Some((json!({"path": names}), found));
            }
        }
        let earlier = (0..self.root as usize).rev();
        earlier
            .into_iter()
            .find_map(|root| self.in_root(root, path))
    }
}

/// Returns the type at the end of a path that starts at one of these members.
fn member<'t>(
    members: &HashMap<&'t str, &'t Type>,
    path: &[String],
    names: &mut Vec<Value>,
) -> Option<&'t Type> {
    let (first, rest) = path.split_first()?;
    let of = members.get(first.as_str())?;
    names.push(shown(first).into());
    inside(of, rest, names)
}

/// Returns the type at the end of a path within `of`. A path in CTF 2 does not name the options and
/// elements that it passes through.
fn inside<'t>(of: &'t Type, path: &[String], names: &mut Vec<Value>) -> Option<&'t Type> {
    let Some((first, rest)) = path.split_first() else {
        return Some(of);
    };
    let named = |(name, _): &&Named| name == first;
    match &of.kind {
        Kind::Struct { members, .. } => {
            let (_, of) = members.iter().find(named)?;
            names.push(shown(first).into());
            inside(of, rest, names)
        }
        Kind::Variant { options, .. } => {
            let (_, of) = options.iter().find(named)?;
            inside(of, rest, names)
        }
        Kind::Array { of, .. } => inside(of, path, names),
        _ => None,
    }
}

/// Returns the integer as JSON.
fn number(value: i128) -> Lowered {
    let signed = i64::try_from(value).map(Value::from);
    let unsigned = || u64::try_from(value).map(Value::from);
    signed
        .or_else(|_| unsigned())
        .map_err(|_| format!("{value} has more than 64 bits"))
}
