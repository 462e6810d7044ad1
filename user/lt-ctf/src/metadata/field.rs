// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Converts field classes from JSON to nodes, and ties every length and selector to the field that
//! provides it.

mod location;
mod property;
mod scope;

use std::collections::HashMap;

use serde_json::Value;

use self::location::Selects;
use self::property::{alignment, base, encoding, fixed, length, mappings, ranges, role};
pub(super) use self::scope::{Fields, Root};
use super::json::{Object, text};
use crate::schema::{Choice, Kind, Member, Node, NodeId, Schema};

/// Maximum number of nodes. Aliases multiply them: without a limit, a few lines of metadata could
/// use all memory.
const NODES: usize = 1 << 18;
/// Maximum number of members of a structure. Names are searched linearly.
const MEMBERS: usize = 16 << 10;
/// Maximum nesting of fields.
pub(super) const DEPTH: usize = 64;
/// Maximum size of the names in all field classes, bytes. Aliases multiply them, too.
pub(super) const NAMES: usize = 64 << 20;
/// Maximum alignment, in bits. Windows onto a packet start at multiples of it (stream/fill.rs).
pub(crate) const ALIGN: u32 = 4096 * 8;
/// Maximum size of a field of fixed size, bits.
const SIZE: u64 = 1 << 32;

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
            // Names from a draft, which the first releases of LTTng with CTF 2 may have written.
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
                // The length is resolved before the element class: its location must not reach into the elements.
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
        if let Kind::Int { mappings, .. } | Kind::Leb { mappings, .. } = &kind {
            for (name, ranges) in mappings {
                self.name(name)?;
                self.schema.names += size_of_val(ranges.as_slice());
            }
        }
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
                self.name(name)?;
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

    /// Counts a stored name against the limit.
    fn name(&mut self, name: &str) -> Result<(), String> {
        self.schema.names += name.len() + size_of::<String>();
        if self.schema.names > NAMES {
            return Err(format!("names of more than {NAMES} bytes"));
        }
        Ok(())
    }

    /// Returns the size of a field of this kind in bits; `None` if it varies.
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
}
