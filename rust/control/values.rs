// SPDX-License-Identifier: GPL-2.0

//! Parses values of parameters, and shows them in their notation.

use super::{
    comm, fault, fields,
    lookup::{check_function, check_point, parse_cgroup, parse_disk},
    names,
    number::{in_range, parse_number},
    Fault, Kind, Lookup, Number, Param, ALL, ALL_DEVICES, DURATION_MAX, MINOR_BITS,
};
use kernel::{fmt, prelude::*};

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
    const TOO_LONG: &str = "expected a duration of at most a year";
    if number.is_empty() {
        return Err(fault(EINVAL, EXPECTED, text));
    }
    parse_number(number, text, TOO_LONG)?
        .checked_mul(scale)
        .filter(|&ns| ns <= DURATION_MAX)
        .ok_or_else(|| fault(ERANGE, TOO_LONG, text))
}

/// Stands for the description of the expected value, which the [`Fault`] derives from the
/// parameter's kind.
const BY_KIND: &str = "";

fn parse_id(text: &[u8], max: u64) -> core::result::Result<u64, Fault<'_>> {
    if text == b"all" {
        return Ok(ALL);
    }
    let number = parse_number(text, text, BY_KIND)?;
    in_range(number, 0, max, text, BY_KIND)
}

impl Param {
    /// Parses a value. The value of a text is 0: the text is only checked, and the caller keeps it.
    /// The fault names the parameter and its possible values.
    pub(crate) fn parse<'a>(
        &self,
        text: &'a [u8],
        lookup: Lookup<'_>,
    ) -> core::result::Result<Number, Fault<'a>> {
        let value = match self.kind {
            Kind::Comm => comm::parse(text, comm::COMMAND),
            Kind::NetDevice => comm::parse(text, comm::DEVICE),
            Kind::Names(known) => names::parse(text, known),
            _ => self.parse_small(text, lookup).map(Number::from),
        };
        value.map_err(|fault| Fault {
            param: Some((self.name, self.kind)),
            ..fault
        })
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
                let number = parse_number(text, text, BY_KIND)?;
                in_range(number, min, max, text, BY_KIND)
            }
            Kind::Power { min, max } => {
                let number = parse_number(text, text, BY_KIND)?;
                in_range(number, min, max, text, BY_KIND)?;
                if !number.is_power_of_two() {
                    return Err(fault(EINVAL, BY_KIND, text));
                }
                Ok(number)
            }
            Kind::Word(words) => words
                .iter()
                .position(|word| word.as_bytes() == text)
                .map(|at| at as u64)
                .ok_or_else(|| fault(EINVAL, BY_KIND, text)),
            Kind::Disk => parse_disk(text, lookup),
            Kind::Id { max } => parse_id(text, max),
            Kind::Cgroup => parse_cgroup(text, lookup),
            Kind::FunctionOrAll if !self.kind.is_text(text) => Ok(0),
            Kind::Function | Kind::FunctionOrAll => check_function(text, text, lookup).map(|()| 0),
            Kind::Point => check_point(text, lookup).map(|()| 0),
            Kind::Fields { empty } => fields::parse(text, empty),
            Kind::Comm | Kind::NetDevice | Kind::Names(_) => {
                Err(fault(EINVAL, "expected a name", text))
            }
        }
    }

    /// Returns the canonical text of a value.
    pub(crate) fn display(&self, value: Number) -> Value {
        Value {
            kind: self.kind,
            value,
        }
    }

    /// Returns the type, for the `trackers` file.
    pub(crate) fn kind_name(&self) -> KindName {
        KindName(self.kind)
    }
}

/// A value to be printed, see [`Param::display`].
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
            Kind::FunctionOrAll => f.write_str("all"),
            Kind::Names(known) => names::write(f, self.value, known),
            Kind::Comm | Kind::NetDevice => comm::write(f, self.value),
            Kind::Function | Kind::Point => f.write_str("none"),
            Kind::Fields { empty } => fields::write(f, value, empty),
            _ => f.write_fmt(fmt!("{value}")),
        }
    }
}

/// A device in the kernel's `MKDEV` encoding, printed as `MAJOR:MINOR`.
#[derive(Clone, Copy, Default)]
pub(crate) struct Device(pub(crate) u32);

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minor = self.0 & ((1 << MINOR_BITS) - 1);
        f.write_fmt(fmt!("{}:{}", self.0 >> MINOR_BITS, minor))
    }
}

/// A type to be printed, see [`Param::kind_name`].
pub(crate) struct KindName(pub(super) Kind);

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
            Kind::FunctionOrAll => f.write_str("function|all"),
            Kind::Point => f.write_str("tracepoint:NAME|function:NAME|return:NAME"),
            Kind::Fields { empty } => {
                f.write_str("arg0-arg4|tid|cpu|ret")?;
                empty.map_or(Ok(()), |empty| f.write_fmt(fmt!("|{empty}")))
            }
            Kind::Names(_) => f.write_str("names|!names|all"),
        }
    }
}
