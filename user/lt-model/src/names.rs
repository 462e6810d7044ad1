// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Names of threads, interrupts, system calls and files, each with a number.

use foldhash::HashMap;

/// The number of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(pub(crate) u32);

/// All names.
#[derive(Debug, Clone, Default)]
pub struct Names {
    texts: Vec<String>,
    numbers: HashMap<Box<[u8]>, Name>,
    /// Memory in use, in bytes.
    bytes: usize,
}

impl Names {
    /// The number of this name. Bytes that are not UTF-8 are replaced.
    pub fn number(&mut self, name: &[u8]) -> Name {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        // More than 2^32 names would not fit into memory.
        let number = Name(self.texts.len() as u32);
        self.texts.push(String::from_utf8_lossy(name).into_owned());
        self.numbers.insert(name.into(), number);
        // Each name is stored twice: in a list, and in a table with room for twice as many names. A replacement
        // character takes more room than the byte that it replaces.
        self.bytes += 192 + 4 * name.len();
        number
    }

    /// The number of this name, if it is stored.
    pub(crate) fn find(&self, name: &[u8]) -> Option<Name> {
        self.numbers.get(name).copied()
    }

    /// Memory in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The name with this number; empty if there is none.
    #[must_use]
    pub fn text(&self, name: Name) -> &str {
        self.texts.get(name.0 as usize).map_or("", String::as_str)
    }
}
