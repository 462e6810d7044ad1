// SPDX-License-Identifier: GPL-2.0

//! A list of names as the value of a parameter: the codes of up to [`MAX`] names, in one
//! number.
//!
//! ```text
//!    127            upper half            64 63            lower half             0
//!   +---------+-------+-----+-----+-----+---+-------+-----+-----+-----+-----+------+
//!   | all but |       | 11  | ... |  7  | 6 |       |  5  | ... |  2  |  1  |  0   |
//!   +---------+-------+-----+-----+-----+---+-------+-----+-----+-----+-----+------+
//! ```
//!
//! So a list is stored and shown like any other value, and a probe compares without a table.

use super::{fault, Fault, Number};
use kernel::{
    fmt::{self, Write},
    prelude::*, //
};

/// Maximum number of names in a list.
pub(super) const MAX: usize = 12;

/// The number of bits for each name. They hold its inverted code, so that 0 means no name.
const CODE_BITS: u32 = 10;
const CODE_MASK: u64 = (1 << CODE_BITS) - 1;
const PER_HALF: u32 = 6;

/// The bit of the upper half that inverts the list.
const ALL_BUT: u64 = 1 << 63;

/// Parses a list.
pub(super) fn parse<'a>(
    text: &'a [u8],
    known: &[(&str, u16)],
) -> core::result::Result<Number, Fault<'a>> {
    if text == b"all" {
        return Ok(0);
    }
    let (list, mut halves) = match text {
        [b'!', list @ ..] => (list, [0, ALL_BUT]),
        _ => (text, [0; 2]),
    };
    for (at, name) in list.split(|&byte| byte == b',').enumerate() {
        let found = known.iter().find(|known| known.0.as_bytes() == name);
        let Some((_, code)) = found else {
            if name.is_empty() {
                let expected = "expected names separated by commas, or all";
                return Err(fault(EINVAL, expected, text));
            }
            return Err(fault(EINVAL, "no such name", name));
        };
        if at >= MAX {
            return Err(fault(ERANGE, "expected at most 12 names", name));
        }
        let (half, place) = (at / PER_HALF as usize, at as u32 % PER_HALF);
        halves[half] |= (u64::from(*code) ^ CODE_MASK) << (place * CODE_BITS);
    }
    let [lower, upper] = halves;
    Ok(Number::from(upper) << 64 | Number::from(lower))
}

/// Returns the codes of a list.
#[inline(always)]
fn listed([lower, upper]: [u64; 2]) -> impl Iterator<Item = u16> {
    [lower, upper & !ALL_BUT].into_iter().flat_map(|mut half| {
        core::iter::from_fn(move || {
            let code = (half & CODE_MASK) ^ CODE_MASK;
            half >>= CODE_BITS;
            (code != CODE_MASK).then_some(code as u16)
        })
    })
}

/// Whether a list of names, in halves, the lower first, accepts a code; the list is not `all`. Any
/// context.
#[inline]
pub(crate) fn is_listed(list: [u64; 2], code: u16) -> bool {
    let is_there = listed(list).any(|one| one == code);
    is_there != (list[1] & ALL_BUT != 0)
}

/// Whether a list names a code, and is neither `all` nor inverted. Any context.
#[inline]
pub(crate) fn is_named(list: [u64; 2], code: u16) -> bool {
    list[1] & ALL_BUT == 0 && listed(list).any(|one| one == code)
}

/// Writes a list as [`parse`] reads it.
pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    list: Number,
    known: &[(&str, u16)],
) -> fmt::Result {
    let halves = [list as u64, (list >> 64) as u64];
    if halves[1] & ALL_BUT != 0 {
        f.write_char('!')?;
    }
    for (at, code) in listed(halves).enumerate() {
        let name = known.iter().find(|known| known.1 == code);
        let comma = if at == 0 { "" } else { "," };
        f.write_fmt(fmt!("{comma}{}", name.map_or("?", |(name, _)| name)))?;
    }
    Ok(())
}
