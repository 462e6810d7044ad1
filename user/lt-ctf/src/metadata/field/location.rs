// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Finds the field that provides a length or a selector. That field then stores its value in a
//! slot.
//!
//! A location is a path of names. It starts at the structure that contains the field with the
//! location or, with an `origin`, at the current scope or a scope read earlier; `null` goes one
//! structure up. Options of a variant and elements of an array on the path are transparent: the
//! value read last is used.

use serde_json::Value;

use super::{Reader, Root};
use crate::metadata::json::{Object, text};
use crate::schema::{Kind, NodeId, Slot, Source};

/// Where the search for a field continues.
enum At {
    Open(usize),
    Done(NodeId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Selects {
    Integer,
    Bool,
}

impl Reader<'_> {
    pub(super) fn length(&mut self, class: &Object) -> Result<Source, String> {
        match self.location(class, "length-field-location")? {
            (source, Selects::Integer) if !source.signed => Ok(source),
            _ => Err("a length that is not an unsigned integer".into()),
        }
    }

    /// Finds the field that `key` names, and makes it store its value.
    pub(super) fn location(
        &mut self,
        class: &Object,
        key: &str,
    ) -> Result<(Source, Selects), String> {
        let location = class.get(key).ok_or_else(|| format!("no `{key}`"))?;
        let (origin, path) = match location {
            Value::Object(location) => (
                text(location, "origin")?,
                location.get("path").and_then(Value::as_array),
            ),
            // The form of a draft of the standard, in which the scope comes first.
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
                    None => return Err(format!("`{key}`: no scope {name:?} here")),
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
                            // No member read so far has this name, so it is the name of the structure that
                            // is still being read. In it, only the members read so far can be found.
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
        // If the path leads to several options of a variant, they share a slot.
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
                return Err(format!("`{key}` has two types"));
            }
            found = Some(source);
            self.keep(id, slot)?;
        }
        for start in starts {
            self.refresh(start);
        }
        found.ok_or_else(|| format!("`{key}`: there is no field {}", Value::Array(path.to_vec())))
    }

    /// Finds the members named `name` in a structure, within any option or element.
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

    /// Finds the scalars that a path to a container refers to.
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

    /// Makes `node` store its value in `slot`.
    fn keep(&mut self, node: NodeId, slot: Slot) -> Result<(), String> {
        let target = &mut self.schema.nodes[node as usize];
        if target.slot.is_some_and(|s| s != slot) {
            return Err("fields that share part of a selector".into());
        }
        target.slot = Some(slot);
        target.keeps = true;
        Ok(())
    }

    /// Updates `keeps` of `node` and of all nodes below it. The nodes above are still being read,
    /// and are set later.
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
