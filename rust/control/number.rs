// SPDX-License-Identifier: GPL-2.0

//! Whole numbers, used in values of all kinds.

use super::{fault, Fault};
use kernel::prelude::*;

/// Parses digits only; `ERANGE` if the number is too large.
pub(super) fn parse_number<'a>(
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
        .ok_or_else(|| fault(ERANGE, expected, word))
}

/// Checks that a number is within bounds; `ERANGE` if it is not.
pub(super) fn in_range<'a>(
    number: u64,
    min: u64,
    max: u64,
    text: &'a [u8],
    expected: &'static str,
) -> core::result::Result<u64, Fault<'a>> {
    if number < min || number > max {
        return Err(fault(ERANGE, expected, text));
    }
    Ok(number)
}
