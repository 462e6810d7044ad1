// SPDX-License-Identifier: GPL-2.0

//! The one-line language of instances: `NAME TRACKER [key=value ...]`, `-NAME`.
//!
//! Nearly every parameter is a number inside: nanoseconds, 0 or 1, a count, the index of a word, a
//! device, the letters of a short name; a long name stays the text that it is. A [`Param`] says how it is written and which values it takes; a
//! whole line is checked before anything is done, and what is wrong is a [`Fault`] that quotes
//! the word.

use crate::{record::NAME_MAX, text::Quoted};
use kernel::{
    error::Error,
    fmt::{self, Write},
    prelude::*, //
};

#[path = "control/fields.rs"]
pub(crate) mod fields;

#[path = "control/names.rs"]
pub(crate) mod names;

/// How the values of a parameter are written.
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
    /// The name of a command, at most 15 bytes, or `all`, which is 0. The value is its bytes, the
    /// first the lowest. What can not be typed in a line is written as `\xHH`.
    Comm,
    /// Some of these names, with commas in between, `!` before them for all but these, or `all`,
    /// which is 0; at most [`names::MAX`] of them. Each name has a code below 1023, and two may
    /// have the same one. The value is asked by [`names::is_listed`].
    Names(&'static [(&'static str, u16)]),
    /// The name of a network device, in the same way, which need not be there.
    NetDevice,
    /// A cgroup of version 2: its path below the root of the hierarchy, with a slash first, its
    /// number, or `all`. The value is the number, or [`ALL`].
    Cgroup,
    /// The name of a function of the kernel or a module. It is a text, and has to be given.
    Function,
    /// A point that is passed: `tracepoint:NAME`, of the kernel proper, `function:NAME`, which is
    /// called, or `return:NAME`, which returns. As [`Kind::Function`].
    Point,
    /// What is taken of a point, see [`fields`]. `empty` is the word for nothing, if that may be.
    Fields { empty: Option<&'static str> },
}

impl Kind {
    /// Whether the value is the text itself, see [`Param::parse`]. It has to be given, at creation.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Kind::Function | Kind::Point)
    }
}

/// The value of a parameter. Only that of a name needs the upper half.
pub(crate) type Number = u128;

/// The value of a [`Kind::Id`] or [`Kind::Cgroup`] parameter that is not limited to one.
pub(crate) const ALL: u64 = u64::MAX;

/// The longest duration, a year in nanoseconds.
pub(crate) const DURATION_MAX: u64 = 365 * 24 * 3600 * 1_000_000_000;

/// The value of a [`Kind::Disk`] parameter that is not limited to one.
pub(crate) const ALL_DEVICES: u64 = u64::MAX;

const MINOR_BITS: u32 = 20;

/// One parameter of a tracker.
#[derive(Clone, Copy)]
pub(crate) struct Param {
    /// As it is written.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// What it is when it is not given.
    pub(crate) default: u64,
    /// Whether it can only be given at creation.
    pub(crate) fixed: bool,
    /// What it does, for the `trackers` file.
    pub(crate) help: &'static str,
}

/// What is wrong with a line.
#[derive(Debug)]
pub(crate) struct Fault<'a> {
    /// For the writer.
    pub(crate) error: Error,
    /// What was expected instead.
    pub(crate) expected: &'static str,
    /// The word at fault.
    pub(crate) word: &'a [u8],
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
        f.write_fmt(fmt!("{}: {}{more}", self.expected, Quoted::bytes(shown)))
    }
}

fn fault<'a>(error: Error, expected: &'static str, word: &'a [u8]) -> Fault<'a> {
    Fault {
        error,
        expected,
        word,
    }
}

/// A line that is well-formed; whether its names exist is not known yet.
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

impl<'a> Iterator for Settings<'a> {
    /// The key, the value, and both as one word.
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

/// Cuts the next word off, if there is one.
fn next_word<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let start = rest.iter().position(|&b| !is_space(b))?;
    let tail = &rest[start..];
    let len = tail.iter().position(|&b| is_space(b)).unwrap_or(tail.len());
    *rest = &tail[len..];
    Some(&tail[..len])
}

/// Names that the /proc folder needs for itself.
const RESERVED: [&str; 7] = [
    "trackers",
    "control",
    "wakeup",
    "alerts",
    "version",
    "work_begin",
    "work_done",
];

/// Checks the name of an instance.
pub(crate) fn check_name(name: &[u8]) -> core::result::Result<&[u8], Fault<'_>> {
    const EXPECTED: &str =
        "expected a name of at most 31 letters, digits, '_' or '-', not starting with a digit";
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

/// Parses digits only; `ERANGE` when they do not fit.
fn parse_number<'a>(
    text: &'a [u8],
    word: &'a [u8],
    expected: &'static str,
) -> core::result::Result<u64, Fault<'a>> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(fault(EINVAL, expected, word));
    }
    text.iter()
        .try_fold(0u64, |number, digit| {
            number
                .checked_mul(10)?
                .checked_add(u64::from(*digit - b'0'))
        })
        .ok_or_else(|| fault(ERANGE, "this number is too large", word))
}

const UNITS: [(&str, u64); 4] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
];

fn parse_duration(text: &[u8]) -> core::result::Result<u64, Fault<'_>> {
    const EXPECTED: &str = "expected a duration such as 10ms, 500us, 2s or nanoseconds";
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    let scale = if unit.is_empty() {
        1
    } else {
        let found = UNITS.iter().find(|(name, _)| name.as_bytes() == unit);
        found.ok_or_else(|| fault(EINVAL, EXPECTED, text))?.1
    };
    parse_number(number, text, EXPECTED)?
        .checked_mul(scale)
        .filter(|&ns| ns <= DURATION_MAX)
        .ok_or_else(|| fault(ERANGE, "expected a duration of at most a year", text))
}

fn in_range(number: u64, min: u64, max: u64, text: &[u8]) -> core::result::Result<u64, Fault<'_>> {
    if number < min || number > max {
        return Err(fault(ERANGE, "this number is out of range", text));
    }
    Ok(number)
}

/// What only the kernel can find.
#[derive(Clone, Copy)]
pub(crate) enum Sought<'a> {
    /// A disk: its number in the `MKDEV` encoding. `ENOTBLK` for a partition. A number is only
    /// looked at, and need not be there yet.
    Disk(Disk<'a>),
    /// A cgroup by its path: its number.
    Cgroup(&'a [u8]),
    /// A function by its name: whether it can be followed; the number means nothing. `ENOENT` if
    /// there is none, `EBUSY` if it is one of ours, any other error if it can not be traced.
    Function(&'a [u8]),
    /// A tracepoint by its name: whether there is one; the number means nothing. `ENOENT`.
    Tracepoint(&'a [u8]),
}

/// How a disk is written.
#[derive(Clone, Copy)]
pub(crate) enum Disk<'a> {
    /// Its name under /dev.
    Name(&'a [u8]),
    /// In the kernel's `MKDEV` encoding.
    Number(u32),
}

/// Finds it.
pub(crate) type Lookup<'d> = &'d dyn Fn(Sought<'_>) -> Result<u64>;

fn parse_disk<'a>(text: &'a [u8], lookup: Lookup<'_>) -> core::result::Result<u64, Fault<'a>> {
    const EXPECTED: &str = "expected a whole disk: its name under /dev, MAJOR:MINOR, or all";
    if text == b"all" {
        return Ok(ALL_DEVICES);
    }
    if let Some(at) = text.iter().position(|&b| b == b':') {
        let major = parse_number(&text[..at], text, EXPECTED)?;
        let minor = parse_number(&text[at + 1..], text, EXPECTED)?;
        in_range(major, 0, (1 << (32 - MINOR_BITS)) - 1, text)?;
        in_range(minor, 0, (1 << MINOR_BITS) - 1, text)?;
        let number = major << MINOR_BITS | minor;
        return match lookup(Sought::Disk(Disk::Number(number as u32))) {
            Err(error) if error == ENOTBLK => {
                let expected = "expected a whole disk, not a partition";
                Err(fault(EINVAL, expected, text))
            }
            _ => Ok(number),
        };
    }
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_-.".contains(b);
    if text.is_empty() || text.len() > 31 || text[0] == b'.' || !text.iter().all(plain) {
        return Err(fault(EINVAL, EXPECTED, text));
    }
    match lookup(Sought::Disk(Disk::Name(text))) {
        Ok(dev) => Ok(dev),
        Err(error) if error == ENOENT || error == ENXIO || error == ENODEV => {
            Err(fault(ENOENT, "no such disk under /dev", text))
        }
        Err(error) if error == EINVAL || error == ENOTBLK => Err(fault(EINVAL, EXPECTED, text)),
        Err(error) => Err(fault(error, "this disk can not be opened", text)),
    }
}

fn parse_id(text: &[u8], max: u64) -> core::result::Result<u64, Fault<'_>> {
    if text == b"all" {
        return Ok(ALL);
    }
    let number = parse_number(text, text, "expected a whole number, or all")?;
    in_range(number, 0, max, text)
}

fn parse_cgroup<'a>(text: &'a [u8], lookup: Lookup<'_>) -> core::result::Result<u64, Fault<'a>> {
    const EXPECTED: &str = "expected a cgroup: its path with a slash first, its number, or all";
    if text == b"all" {
        return Ok(ALL);
    }
    if text.first() != Some(&b'/') {
        let number = parse_number(text, text, EXPECTED)?;
        return in_range(number, 1, ALL - 1, text);
    }
    match lookup(Sought::Cgroup(text)) {
        Ok(number) => Ok(number),
        Err(error) if error == ENOENT => Err(fault(ENOENT, "no such cgroup of version 2", text)),
        Err(error) => Err(fault(error, EXPECTED, text)),
    }
}

/// The longest name of a function or a tracepoint.
const SYMBOL_MAX: usize = 127;

/// Whether it may be the name of a function or a tracepoint.
fn is_symbol(text: &[u8]) -> bool {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_.$".contains(b);
    !text.is_empty() && text.len() <= SYMBOL_MAX && text.iter().all(plain)
}

fn check_function<'a>(
    name: &'a [u8],
    text: &'a [u8],
    lookup: Lookup<'_>,
) -> core::result::Result<(), Fault<'a>> {
    if !is_symbol(name) {
        return Err(fault(EINVAL, "expected the name of a function", text));
    }
    let why = match lookup(Sought::Function(name)) {
        Ok(_) => return Ok(()),
        Err(error) if error == ENOENT => return Err(fault(error, "no such function", text)),
        Err(error) if error == EBUSY => "functions of this module can not be followed",
        Err(_) => "this function can not be traced",
    };
    Err(fault(EINVAL, why, text))
}

/// What is before the name of a point.
const POINTS: [(&str, Point); 3] = [
    ("tracepoint:", Point::Tracepoint),
    ("function:", Point::Entry),
    ("return:", Point::Return),
];

/// What a point is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Point {
    Tracepoint,
    Entry,
    Return,
}

impl Point {
    /// What a point is, and its name.
    pub(crate) fn split(text: &[u8]) -> Option<(Self, &[u8])> {
        let found = POINTS.iter().find_map(|(start, point)| {
            let name = text.strip_prefix(start.as_bytes())?;
            Some((*point, name))
        });
        found.filter(|(_, name)| is_symbol(name))
    }
}

fn check_point<'a>(text: &'a [u8], lookup: Lookup<'_>) -> core::result::Result<(), Fault<'a>> {
    const EXPECTED: &str = "expected tracepoint:NAME, function:NAME or return:NAME";
    match Point::split(text).ok_or_else(|| fault(EINVAL, EXPECTED, text))? {
        (Point::Tracepoint, name) => lookup(Sought::Tracepoint(name))
            .map(|_| ())
            .map_err(|error| fault(error, "the kernel proper has no such tracepoint", text)),
        (Point::Entry | Point::Return, name) => check_function(name, text, lookup),
    }
}

/// The most bytes of a command's name, without its end.
const COMM_MAX: usize = 15;

const COMMAND: &str = "expected a command of 1 to 15 bytes, odd ones written as \\xHH, or all";
const DEVICE: &str =
    "expected a network device of 1 to 15 bytes, odd ones written as \\xHH, or all";

/// Of a command or a network device, whose names have the same size.
fn parse_comm<'a>(
    text: &'a [u8],
    expected: &'static str,
) -> core::result::Result<Number, Fault<'a>> {
    if text == b"all" {
        return Ok(0);
    }
    let mut name: Number = 0;
    let (mut rest, mut len) = (text, 0);
    while let [first, tail @ ..] = rest {
        let byte;
        (byte, rest) = match (first, tail) {
            (b'\\', [b'x', high, low, tail @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, tail),
                _ => return Err(fault(EINVAL, expected, text)),
            },
            (b'\\', _) => return Err(fault(EINVAL, expected, text)),
            _ => (*first, tail),
        };
        if byte == 0 || len == COMM_MAX {
            return Err(fault(EINVAL, expected, text));
        }
        name |= Number::from(byte) << (8 * len);
        len += 1;
    }
    if len == 0 {
        return Err(fault(EINVAL, expected, text));
    }
    Ok(name)
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// A name as [`parse_comm`] reads it.
fn write_comm(f: &mut fmt::Formatter<'_>, name: Number) -> fmt::Result {
    // Somebody is really called so.
    if name == Number::from(u32::from_le_bytes(*b"all\0")) {
        return f.write_str("\\x61ll");
    }
    let bytes = name.to_le_bytes();
    let mut bytes = bytes.iter().take_while(|&&byte| byte != 0);
    bytes.try_for_each(|&byte| match byte {
        b'\\' | 0..=b' ' | 0x7f.. => f.write_fmt(fmt!("\\x{byte:02x}")),
        _ => f.write_char(byte as char),
    })
}

impl Param {
    /// Parses a value. That of a text is 0: the caller keeps the text, which is checked.
    pub(crate) fn parse<'a>(
        &self,
        text: &'a [u8],
        lookup: Lookup<'_>,
    ) -> core::result::Result<Number, Fault<'a>> {
        match self.kind {
            Kind::Comm => parse_comm(text, COMMAND),
            Kind::NetDevice => parse_comm(text, DEVICE),
            Kind::Names(known) => names::parse(text, known),
            _ => self.parse_small(text, lookup).map(Number::from),
        }
    }

    fn parse_small<'a>(
        &self,
        text: &'a [u8],
        lookup: Lookup<'_>,
    ) -> core::result::Result<u64, Fault<'a>> {
        match self.kind {
            Kind::Duration => parse_duration(text),
            Kind::Switch => match text {
                b"0" => Ok(0),
                b"1" => Ok(1),
                _ => Err(fault(EINVAL, "expected 0 or 1", text)),
            },
            Kind::Count { min, max } => {
                let number = parse_number(text, text, "expected a whole number")?;
                in_range(number, min, max, text)
            }
            Kind::Power { min, max } => {
                let number = parse_number(text, text, "expected a power of two")?;
                in_range(number, min, max, text)?;
                if !number.is_power_of_two() {
                    return Err(fault(EINVAL, "expected a power of two", text));
                }
                Ok(number)
            }
            Kind::Word(words) => words
                .iter()
                .position(|word| word.as_bytes() == text)
                .map(|at| at as u64)
                .ok_or_else(|| fault(EINVAL, "expected one of the words in `trackers`", text)),
            Kind::Disk => parse_disk(text, lookup),
            Kind::Id { max } => parse_id(text, max),
            Kind::Cgroup => parse_cgroup(text, lookup),
            Kind::Function => check_function(text, text, lookup).map(|()| 0),
            Kind::Point => check_point(text, lookup).map(|()| 0),
            Kind::Fields { empty } => fields::parse(text, empty),
            Kind::Comm | Kind::NetDevice | Kind::Names(_) => {
                Err(fault(EINVAL, "expected a name", text))
            }
        }
    }

    /// The canonical text of a value.
    pub(crate) fn display(&self, value: Number) -> Value {
        Value {
            kind: self.kind,
            value,
        }
    }

    /// The type, for the `trackers` file.
    pub(crate) fn kind_name(&self) -> KindName {
        KindName(self.kind)
    }
}

/// See [`Param::display`].
pub(crate) struct Value {
    kind: Kind,
    value: Number,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value as u64;
        match self.kind {
            Kind::Word(words) => f.write_str(words.get(value as usize).unwrap_or(&"?")),
            Kind::Disk if value == ALL_DEVICES => f.write_str("all"),
            Kind::Disk => f.write_fmt(fmt!("{}", Device(value as u32))),
            Kind::Id { .. } | Kind::Cgroup if value == ALL => f.write_str("all"),
            Kind::Comm | Kind::NetDevice | Kind::Names(_) if self.value == 0 => f.write_str("all"),
            Kind::Names(known) => names::write(f, self.value, known),
            Kind::Comm | Kind::NetDevice => write_comm(f, self.value),
            Kind::Function | Kind::Point => f.write_str("none"),
            Kind::Fields { empty } => fields::write(f, value, empty),
            _ => f.write_fmt(fmt!("{value}")),
        }
    }
}

/// A device in the kernel's `MKDEV` encoding, printed as `MAJOR:MINOR`.
pub(crate) struct Device(pub(crate) u32);

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minor = self.0 & ((1 << MINOR_BITS) - 1);
        f.write_fmt(fmt!("{}:{}", self.0 >> MINOR_BITS, minor))
    }
}

/// See [`Param::kind_name`].
pub(crate) struct KindName(Kind);

impl fmt::Display for KindName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Duration => f.write_str("duration"),
            Kind::Switch => f.write_str("0|1"),
            Kind::Count { min, max } => f.write_fmt(fmt!("{min}-{max}")),
            Kind::Power { min, max } => f.write_fmt(fmt!("power-of-two {min}-{max}")),
            Kind::Word(words) => words.iter().enumerate().try_for_each(|(i, word)| {
                let bar = if i == 0 { "" } else { "|" };
                f.write_fmt(fmt!("{bar}{word}"))
            }),
            Kind::Disk => f.write_str("disk"),
            Kind::Id { max } => f.write_fmt(fmt!("0-{max}|all")),
            Kind::Comm => f.write_str("command|all"),
            Kind::NetDevice => f.write_str("net-device|all"),
            Kind::Cgroup => f.write_str("cgroup|all"),
            Kind::Function => f.write_str("function"),
            Kind::Point => f.write_str("tracepoint:NAME|function:NAME|return:NAME"),
            Kind::Fields { empty } => {
                f.write_str("arg0-arg4|tid|cpu|ret")?;
                empty.map_or(Ok(()), |empty| f.write_fmt(fmt!("|{empty}")))
            }
            Kind::Names(_) => f.write_str("names|!names|all"),
        }
    }
}

/// Says what was wrong with a name that is well-formed but means nothing here.
pub(crate) fn unknown<'a>(error: Error, expected: &'static str, word: &'a [u8]) -> Fault<'a> {
    fault(error, expected, word)
}
