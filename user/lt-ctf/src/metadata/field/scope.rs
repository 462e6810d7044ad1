// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The scopes of a trace, a stream class and an event class. A field can refer to the scopes read before it.

use std::collections::HashMap;

use serde_json::Value;

use super::Reader;
use crate::schema::{Kind, NodeId, Schema};

/// The scopes, in the order in which they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    PacketHeader,
    PacketContext,
    Header,
    Common,
    Specific,
    Payload,
}

impl Root {
    pub(super) fn parse(name: &str) -> Option<Self> {
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

    /// Whether roles have a meaning in the scope: only in the two headers and the packet context.
    pub(super) fn has_roles(self) -> bool {
        matches!(
            self,
            Self::PacketHeader | Self::PacketContext | Self::Header
        )
    }
}

#[derive(Default)]
pub(crate) struct Fields {
    aliases: HashMap<String, Value>,
    /// The scopes of the current stream class that have been read so far.
    roots: [Option<NodeId>; 6],
    /// The scopes of each stream class: packet context, header, common context.
    streams: HashMap<u64, [Option<NodeId>; 3]>,
}

impl Fields {
    pub(crate) fn alias(&mut self, name: &str, class: &Value) -> Result<(), String> {
        match self.aliases.insert(name.to_string(), class.clone()) {
            None => Ok(()),
            Some(_) => Err(format!("a second alias {name:?}")),
        }
    }

    /// Records the scopes of a complete stream class.
    pub(crate) fn enter(&mut self, stream: u64, scopes: [Option<NodeId>; 3]) {
        self.streams.insert(stream, scopes);
    }

    /// Restores the scopes of a stream class, for one of its event classes.
    pub(crate) fn leave(&mut self, stream: u64) {
        if let Some(scopes) = self.streams.get(&stream) {
            self.roots[1..4].copy_from_slice(scopes);
        }
    }

    /// Creates the nodes of a scope.
    pub(crate) fn scope(
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
