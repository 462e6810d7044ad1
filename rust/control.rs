// SPDX-License-Identifier: GPL-2.0

//! The one-line language of instances: `NAME TRACKER [key=value ...]`, `-NAME`.
//!
//! Internally, nearly every value is a number: nanoseconds, 0 or 1, a count, the index of a word, a
//! device, the letters of a short name. A long name remains text. A [`Param`] defines the notation
//! and the valid values of a parameter. A whole line is checked before it takes effect. An error is
//! a [`Fault`], which quotes the word at fault.

use crate::{alert::record::NAME_MAX, text::Quoted};
use kernel::{
    error::Error,
    fmt,
    prelude::*, //
};

#[path = "control/comm.rs"]
mod comm;
#[path = "control/fields.rs"]
pub(crate) mod fields;
#[path = "control/lookup.rs"]
mod lookup;
#[path = "control/names.rs"]
pub(crate) mod names;
#[path = "control/number.rs"]
mod number;
#[path = "control/values.rs"]
mod values;

#[allow(
    unused_imports,
    reason = "tests include this file alone, and need less of it"
)]
pub(crate) use {
    lookup::{Disk, Lookup, LookupTarget, Point},
    values::Device,
};

/// The notation of a parameter's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// `10ms`, `500us`, `2s`; a bare number is nanoseconds. Up to [`DURATION_MAX`].
    Duration,
    /// `0` or `1`.
    Switch,
    /// A whole number within bounds.
    Count { min: u64, max: u64 },
    /// A power of two within bounds.
    Power { min: u64, max: u64 },
    /// One of several words; the value is its position.
    Word(&'static [&'static str]),
    /// A disk: `MAJOR:MINOR`, a name under /dev, or `all`. The value is [`ALL_DEVICES`] or the
    /// device in the kernel's `MKDEV` encoding.
    Disk,
    /// A whole number up to `max`, or `all`, which is [`ALL`].
    Id { max: u64 },
    /// The name of a command, at most 15 bytes, or `all`, which is 0. The value is the bytes of the
    /// name, the first byte lowest. Spaces, control characters, bytes above `~`, and `\`, `*`, `?`
    /// and `,` are written as `\xHH`, with lower-case digits.
    Comm,
    /// A list of at most [`names::MAX`] of these names, separated by commas; a leading `!` means
    /// all but the listed names, and `all` is 0. Each name has a code below 1023, which two names
    /// may share. [`names::is_listed`] checks a code against the value.
    Names(&'static [(&'static str, u16)]),
    /// The name of a network device, in the notation of [`Kind::Comm`]; the device need not exist.
    NetDevice,
    /// A cgroup of version 2: its path below the root of the hierarchy, with a leading slash, its
    /// number, or `all`. The value is the number, or [`ALL`].
    Cgroup,
    /// The name of a function of the kernel or a module. A required text.
    Function,
    /// A [`Kind::Function`], or `all`. Not required; `all` is not kept as text.
    FunctionOrAll,
    /// A point that can be hit, in the kernel or a module: `tracepoint:NAME`, `function:NAME` (the
    /// call of a function), or `return:NAME` (its return). A required text.
    Point,
    /// The values to take at a point, see [`fields`]. `empty` is the word for no values, if
    /// allowed.
    Fields { empty: Option<&'static str> },
}

impl Kind {
    /// Whether this value is the text itself, see [`Param::parse`].
    pub(crate) fn is_text(self, text: &[u8]) -> bool {
        self.is_required() || matches!(self, Kind::FunctionOrAll) && text != ALL_FUNCTIONS
    }

    /// Whether the parameter must be given at creation.
    pub(crate) fn is_required(self) -> bool {
        matches!(self, Kind::Function | Kind::Point)
    }
}

/// The word for all functions.
const ALL_FUNCTIONS: &[u8] = b"all";

/// The value of a parameter. Only names need the upper half.
pub(crate) type Number = u128;

/// The value of a [`Kind::Id`] or [`Kind::Cgroup`] parameter that is `all`.
pub(crate) const ALL: u64 = u64::MAX;

/// Maximum duration: a year, in nanoseconds.
pub(crate) const DURATION_MAX: u64 = 365 * 24 * 3600 * 1_000_000_000;

/// The value of a [`Kind::Disk`] parameter that is `all`.
pub(crate) const ALL_DEVICES: u64 = u64::MAX;

const MINOR_BITS: u32 = 20;

/// One parameter of a tracker.
#[derive(Clone, Copy)]
pub(crate) struct Param {
    /// The name in a line.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// The default value.
    pub(crate) default: u64,
    /// Whether it can only be given at creation.
    pub(crate) fixed: bool,
    /// The help text, for the `trackers` file.
    pub(crate) help: &'static str,
}

/// A fault in a line.
#[derive(Debug)]
pub(crate) struct Fault<'a> {
    /// The error code for the writer.
    pub(crate) error: Error,
    /// The expected input.
    pub(crate) expected: &'static str,
    /// The word at fault.
    pub(crate) word: &'a [u8],
    /// The parameter with this value, and its kind.
    pub(crate) param: Option<(&'static str, Kind)>,
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 48;
        let shown = &self.word[..self.word.len().min(SHOWN)];
        let more = if shown.len() < self.word.len() {
            "..."
        } else {
            ""
        };
        if let Some((name, _)) = self.param {
            f.write_fmt(fmt!("{name}: "))?;
        }
        let expected = self.expected;
        match self.param.map(|(_, kind)| kind) {
            Some(Kind::Count { min, max }) => {
                f.write_fmt(fmt!("expected a whole number from {min} to {max}"))?;
            }
            Some(Kind::Power { min, max }) => {
                f.write_fmt(fmt!("expected a power of two from {min} to {max}"))?;
            }
            Some(Kind::Id { max }) => {
                f.write_fmt(fmt!("expected a whole number from 0 to {max}, or all"))?;
            }
            Some(kind @ Kind::Word(_)) => {
                f.write_fmt(fmt!("expected one of {}", values::KindName(kind)))?;
            }
            Some(Kind::Fields { empty: Some(empty) }) => {
                f.write_fmt(fmt!("{expected}, or {empty}"))?;
            }
            _ => f.write_str(expected)?,
        }
        f.write_fmt(fmt!(": {}{more}", Quoted::bytes(shown)))
    }
}

/// Reports a fault of a word that is not the value of a parameter.
pub(crate) fn fault<'a>(error: Error, expected: &'static str, word: &'a [u8]) -> Fault<'a> {
    Fault {
        error,
        expected,
        word,
        param: None,
    }
}

/// A well-formed line; its names need not exist.
#[derive(Debug)]
pub(crate) enum Line<'a> {
    /// Nothing, or a comment that starts with `#`.
    Empty,
    /// `-NAME`
    Remove(&'a [u8]),
    /// `NAME TRACKER [key=value ...]`
    Set {
        name: &'a [u8],
        tracker: &'a [u8],
        settings: Settings<'a>,
    },
}

/// The `key=value` words of a line.
#[derive(Clone, Debug)]
pub(crate) struct Settings<'a>(&'a [u8]);

impl<'a> Settings<'a> {
    /// Returns the first value of a key.
    pub(crate) fn value_of(&self, key: &str) -> Option<&'a [u8]> {
        let mut words = self.clone().flatten();
        let (_, value) = words.find(|(name, _)| *name == key.as_bytes())?;
        Some(value)
    }
}

impl<'a> Iterator for Settings<'a> {
    /// The key and the value.
    type Item = core::result::Result<(&'a [u8], &'a [u8]), Fault<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let word = next_word(&mut self.0)?;
        Some(match word.iter().position(|&b| b == b'=') {
            Some(at) if at > 0 => Ok((&word[..at], &word[at + 1..])),
            _ => Err(fault(EINVAL, "expected key=value", word)),
        })
    }
}

fn is_space(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Cuts off the next word, if there is one.
fn next_word<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let start = rest.iter().position(|&b| !is_space(b))?;
    let tail = &rest[start..];
    let len = tail.iter().position(|&b| is_space(b)).unwrap_or(tail.len());
    *rest = &tail[len..];
    Some(&tail[..len])
}

/// Names that are reserved for files of the /proc folder.
const RESERVED: [&str; 10] = [
    "trackers",
    "control",
    "wakeup",
    "alerts",
    "version",
    "stats",
    "hwnoise",
    "work_begin",
    "work_done",
    "measure",
];

/// Checks the name of an instance.
pub(crate) fn check_name(name: &[u8]) -> core::result::Result<&[u8], Fault<'_>> {
    const EXPECTED: &str =
        "expected a name of at most 31 letters, digits, '_' or '-', starting with a letter or '_'";
    let first = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    let other = |b: u8| first(b) || b.is_ascii_digit() || b == b'-';
    match name {
        [head, tail @ ..]
            if first(*head) && tail.iter().all(|&b| other(b)) && name.len() <= NAME_MAX => {}
        _ => return Err(fault(EINVAL, EXPECTED, name)),
    }
    if RESERVED.iter().any(|reserved| reserved.as_bytes() == name) {
        return Err(fault(EINVAL, "this name is reserved", name));
    }
    Ok(name)
}

/// Parses one line, without its newline.
pub(crate) fn parse_line(line: &[u8]) -> core::result::Result<Line<'_>, Fault<'_>> {
    if let Some(at) = line.iter().position(|&b| b == 0) {
        return Err(fault(EINVAL, "expected text, not NUL", &line[at..=at]));
    }
    let mut rest = line;
    let Some(first) = next_word(&mut rest) else {
        return Ok(Line::Empty);
    };
    if first[0] == b'#' {
        return Ok(Line::Empty);
    }
    if let [b'-', name @ ..] = first {
        let name = check_name(name)?;
        return match next_word(&mut rest) {
            None => Ok(Line::Remove(name)),
            Some(word) => Err(fault(EINVAL, "expected nothing after -NAME", word)),
        };
    }
    let name = check_name(first)?;
    let Some(tracker) = next_word(&mut rest) else {
        return Err(fault(EINVAL, "expected a tracker after the name", name));
    };
    Ok(Line::Set {
        name,
        tracker,
        settings: Settings(rest),
    })
}

/// Reports a count that is less than another parameter allows.
pub(crate) fn below<'a>(param: &Param, min: u64, word: &'a [u8]) -> Fault<'a> {
    let kind = match param.kind {
        Kind::Count { max, .. } => Kind::Count { min, max },
        kind => kind,
    };
    Fault {
        param: Some((param.name, kind)),
        ..fault(EINVAL, "expected more", word)
    }
}
