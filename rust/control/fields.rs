// SPDX-License-Identifier: GPL-2.0

//! The values that a `pair` takes at a point: registers, the thread, the CPU.
//!
//! A list has one or two fields, such as `arg0,tid`. Like the values of most parameters, it is
//! stored as a number: a byte for each field, the first field lowest, 0 for no fields.

use super::{fault, Fault};
use kernel::{
    fmt::{self, Write},
    prelude::*, //
};

/// Number of arguments that can be taken, on every architecture. x86-64 passes six in registers
/// (arm64 eight), but the first argument of a tracepoint's probe is the probe's own data.
pub(crate) const ARGUMENTS: usize = 5;

/// Maximum number of fields of a list.
pub(crate) const FIELDS: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Field {
    /// `tid`: the id of the current thread, in the initial namespace.
    Tid,
    /// `cpu`: the current CPU.
    Cpu,
    /// `ret`: the result of a function.
    Result,
    /// `arg0`, or `arg0:32` for the lower bits only: an argument by its position, from 0.
    Argument { nth: u8, width: Width },
}

/// The low bits of a register that count. Each value is the high half of a field's byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Width {
    All = 1,
    Bits32 = 2,
    Bits16 = 3,
    Bits8 = 4,
}

const WIDTHS: [(Width, &str); 4] = [
    (Width::All, ""),
    (Width::Bits32, ":32"),
    (Width::Bits16, ":16"),
    (Width::Bits8, ":8"),
];

impl Width {
    /// Returns the bits of a register that count.
    #[inline(always)]
    pub(crate) fn of(self, register: u64) -> u64 {
        match self {
            Width::All => register,
            Width::Bits32 => u64::from(register as u32),
            Width::Bits16 => u64::from(register as u16),
            Width::Bits8 => u64::from(register as u8),
        }
    }
}

impl Field {
    /// The list `tid`.
    pub(crate) const TID: u64 = 1;

    fn to_byte(self) -> u8 {
        match self {
            Field::Tid => 1,
            Field::Cpu => 2,
            Field::Result => 3,
            Field::Argument { nth, width } => (width as u8) << 4 | nth,
        }
    }

    #[inline(always)]
    fn from_byte(byte: u8) -> Option<Self> {
        let width = match byte >> 4 {
            0 => {
                return match byte {
                    1 => Some(Field::Tid),
                    2 => Some(Field::Cpu),
                    3 => Some(Field::Result),
                    _ => None,
                }
            }
            1 => Width::All,
            2 => Width::Bits32,
            3 => Width::Bits16,
            _ => Width::Bits8,
        };
        let nth = byte & 0xf;
        Some(Field::Argument { nth, width })
    }

    fn parse(text: &[u8]) -> Option<Self> {
        match text {
            b"tid" => return Some(Field::Tid),
            b"cpu" => return Some(Field::Cpu),
            b"ret" => return Some(Field::Result),
            _ => {}
        }
        let (digit, rest) = text.strip_prefix(b"arg")?.split_first()?;
        let nth = digit.wrapping_sub(b'0');
        let (width, _) = WIDTHS.into_iter().find(|(_, end)| end.as_bytes() == rest)?;
        (usize::from(nth) < ARGUMENTS).then_some(Field::Argument { nth, width })
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Field::Tid => f.write_str("tid"),
            Field::Cpu => f.write_str("cpu"),
            Field::Result => f.write_str("ret"),
            Field::Argument { nth, width } => {
                let found = WIDTHS.iter().find(|(one, _)| *one == width);
                let end = found.map_or("", |(_, end)| *end);
                f.write_fmt(fmt!("arg{nth}{end}"))
            }
        }
    }
}

#[inline(always)]
pub(crate) fn of(list: u64) -> [Option<Field>; FIELDS] {
    [
        Field::from_byte(list as u8),
        Field::from_byte((list >> 8) as u8),
    ]
}

/// Parses a list; `empty` is the word for a list without fields, if that is allowed.
pub(super) fn parse<'a>(
    text: &'a [u8],
    empty: Option<&'static str>,
) -> core::result::Result<u64, Fault<'a>> {
    if empty.is_some_and(|empty| empty.as_bytes() == text) {
        return Ok(0);
    }
    const EXPECTED: &str =
        "expected one or two of arg0 to arg4 (or arg0:32, :16, :8), tid, cpu, ret, comma-separated";
    let (mut list, mut count) = (0, 0);
    for word in text.split(|&byte| byte == b',') {
        let field = Field::parse(word).filter(|_| count < FIELDS);
        let field = field.ok_or_else(|| fault(EINVAL, EXPECTED, text))?;
        list |= u64::from(field.to_byte()) << (8 * count);
        count += 1;
    }
    Ok(list)
}

/// Writes a list as [`parse`] reads it.
pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    list: u64,
    empty: Option<&'static str>,
) -> fmt::Result {
    if list == 0 {
        return f.write_str(empty.unwrap_or("?"));
    }
    for (at, field) in of(list).into_iter().flatten().enumerate() {
        if at != 0 {
            f.write_char(',')?;
        }
        f.write_fmt(fmt!("{field}"))?;
    }
    Ok(())
}
